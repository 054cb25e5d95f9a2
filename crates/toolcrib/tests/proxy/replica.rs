//! A process that runs `toolcrib serve` and can be killed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Maximum time to wait until the proxy listens, which is far longer than it needs.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running proxy. The process is killed when this is dropped.
pub(crate) struct Replica {
    process: Child,
    pub(crate) url: String,
    folder: TempDir,
}

impl Replica {
    /// Starts a proxy with this config, on a free port.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_with(config, &[])
    }

    /// Starts a proxy with this config and additional environment variables.
    pub(crate) fn start_with(config: &str, environment: &[(&str, &Path)]) -> Self {
        Self::start_file("toolcrib.toml", config, &[], environment)
    }

    /// Starts a proxy with a config file of this name, and with these flags and environment variables.
    pub(crate) fn start_file(
        name: &str,
        config: &str,
        flags: &[&str],
        environment: &[(&str, &Path)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        fs::write(&file, config).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&file)
            .args(flags)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("XDG_STATE_HOME", folder.path().join("state"))
            .env("TOOLCRIB_LOG", "info")
            .env_remove("SSL_CERT_FILE")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut replica = Self { process, url: String::new(), folder };
        replica.url = replica.listening();
        replica
    }

    /// Waits until the proxy logs the address that it listens on, and returns its URL.
    fn listening(&mut self) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let log = self.log();
            let url =
                log.split_once("the LLM proxy is at ").and_then(|(_, rest)| rest.split_once('\n'));
            if let Some((url, _)) = url {
                return url.to_owned();
            }
            assert!(self.process.try_wait().unwrap().is_none(), "the proxy exited: {log}");
            assert!(Instant::now() < end, "the proxy does not listen: {log}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Replaces the config file of the proxy atomically, as an editor does.
    pub(crate) fn rewrite(&self, config: &str) {
        let (new, file) =
            (self.folder.path().join("new"), self.folder.path().join("toolcrib.toml"));
        fs::write(&new, config).unwrap();
        fs::rename(new, file).unwrap();
    }

    /// Returns the folder in which the proxy keeps its state.
    #[cfg(feature = "deep")]
    pub(crate) fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    /// Returns everything that the proxy has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Returns the modes that the proxy has used according to its log, each once.
    pub(crate) fn modes(&self) -> Vec<String> {
        let log = self.log();
        let modes = log.split(" mode=\"").skip(1).filter_map(|rest| rest.split('"').next());
        modes.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the peak memory of the proxy, in bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn peak_memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
        kilobytes * 1024
    }

    /// Kills the proxy without a graceful shutdown.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // This error is ignored, because the process may have been killed already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
