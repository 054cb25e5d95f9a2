//! A folder for one test, with the config, the logs of its servers and the state of its gateway.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::probe::{signal, until, wait_or_kill};
use crate::raw_client::{Era, RawClient};

pub(crate) struct TestEnvironment {
    pub(crate) folder: PathBuf,
    config: String,
}

/// A running gateway over HTTP.
pub(crate) struct HttpGateway {
    child: Child,
    pub(crate) address: String,
}

/// Returns the path of a test server.
pub(crate) fn testkit(name: &str) -> PathBuf {
    toolcrib_testkit::program(env!("CARGO_BIN_EXE_toolcrib"), name)
}

impl TestEnvironment {
    pub(crate) fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("faults-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        // The folder is the home of the gateway, so it must be private, independent of the umask.
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&folder, private).unwrap();
        Self { folder, config: String::new() }
    }

    /// Adds a server with faults. Its log is at [`Self::log`].
    pub(crate) fn faulty(self, name: &str, args: &[&str]) -> Self {
        self.faulty_with(name, args, "")
    }

    /// Adds a server with faults, and further lines in its section of the config.
    pub(crate) fn faulty_with(self, name: &str, args: &[&str], more: &str) -> Self {
        let log = self.log(name);
        let mut all = vec!["--log", log.to_str().unwrap()];
        all.extend(args);
        self.command(name, &testkit("faulty-server"), &all, more)
    }

    /// Adds a server that answers according to a script (see `faulty-server --script`). `more` contains further lines
    /// of its section in the config.
    pub(crate) fn scripted(self, name: &str, script: &Value, more: &str) -> Self {
        let file = self.folder.join(format!("{name}.json"));
        std::fs::write(&file, script.to_string()).unwrap();
        self.faulty_with(name, &["--script", file.to_str().unwrap()], more)
    }

    /// Adds a server without faults.
    pub(crate) fn fixture(self, name: &str, more: &str) -> Self {
        self.command(name, &testkit("fixture-server"), &[], more)
    }

    fn command(mut self, name: &str, program: &Path, args: &[&str], more: &str) -> Self {
        // A JSON string is also a valid TOML string.
        let (program, args) = (Value::from(program.to_str().unwrap()), Value::from(args));
        write!(self.config, "[servers.{name}]\ncommand = {program}\nargs = {args}\n{more}\n")
            .unwrap();
        self
    }

    /// Adds text to the config.
    pub(crate) fn with(mut self, text: &str) -> Self {
        self.config.push_str(text);
        self.config.push('\n');
        self
    }

    pub(crate) fn text(&self) -> &str {
        &self.config
    }

    /// Returns the path of the log that the server `name` writes.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// Returns what the gateway has written to standard error so far.
    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(self.folder.join("said")).unwrap_or_default()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join("toolcrib.toml")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join("state").join("toolcrib")
    }

    /// Replaces the config atomically, as careful editors do.
    pub(crate) fn write(&self, text: &str) {
        // Several threads of a test may write the first config at the same time.
        let draft = self.folder.join(format!("toolcrib.{:?}.new", std::thread::current().id()));
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(&draft, self.config()).unwrap();
    }

    /// Returns a command that runs the binary with this config. Its standard error is appended to a file.
    pub(crate) fn toolcrib(&self, args: &[&str]) -> Command {
        self.limited(args, None)
    }

    /// Returns a command that runs the binary without a config.
    pub(crate) fn toolcrib_without_config(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        command.args(args).current_dir(&self.folder).env("HOME", &self.folder);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn limited(&self, args: &[&str], files: Option<usize>) -> Command {
        if !self.config().exists() {
            self.write(&self.config);
        }
        let binary = env!("CARGO_BIN_EXE_toolcrib");
        let mut command = match files {
            None => Command::new(binary),
            Some(files) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("ulimit -n {files}; exec \"$@\""), "sh", binary]);
                shell
            }
        };
        command.args(args).arg("--config").arg(self.config()).current_dir(&self.folder);
        command.env_remove("XDG_CONFIG_HOME").env("HOME", &self.folder);
        command.env("XDG_STATE_HOME", self.folder.join("state"));
        let stderr =
            File::options().create(true).append(true).open(self.folder.join("said")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        command
    }

    /// Starts a gateway over stdio and connects a client to it.
    pub(crate) fn stdio(&self, era: Era) -> RawClient {
        RawClient::stdio(self.toolcrib(&["mcp", "--own"]), era)
    }

    /// Starts a gateway over stdio, for a client that has not begun its handshake.
    pub(crate) fn before_handshake(&self) -> RawClient {
        RawClient::before_handshake(self.toolcrib(&["mcp", "--own"]), Era::Older)
    }

    /// Lets clients wait for the background gateway for as long as it takes on a busy machine. Without clients, the
    /// background gateway ends after the time `idle`.
    pub(crate) fn background(self, idle: &str) -> Self {
        self.with(&format!("[gateway]\nbackground_wait = 600\nbackground_idle = '{idle}'"))
    }

    /// Connects a client that is served by the background gateway.
    pub(crate) fn shared(&self, era: Era) -> RawClient {
        RawClient::stdio(self.toolcrib(&["mcp"]), era)
    }

    /// Like [`Self::shared`], for a client with this working folder.
    pub(crate) fn shared_in(&self, era: Era, folder: &Path) -> RawClient {
        let mut command = self.toolcrib(&["mcp"]);
        std::fs::create_dir_all(folder).unwrap();
        command.current_dir(folder);
        RawClient::stdio(command, era)
    }

    /// Returns the status of the background gateway, or `None` if it is not running.
    pub(crate) fn background_status(&self) -> Option<Value> {
        let done = self.toolcrib(&["ps", "--json"]).stdout(Stdio::piped()).output().unwrap();
        let mut statuses: Vec<Value> = serde_json::from_slice(&done.stdout).unwrap();
        assert!(statuses.len() < 2, "{statuses:?}");
        statuses.pop()
    }

    /// Returns the process id of the background gateway.
    pub(crate) fn background_pid(&self) -> u32 {
        let status = self.background_status().expect("the background gateway is running");
        status["pid"].as_u64().unwrap() as u32
    }

    /// Returns the folder with the sockets and logs of background gateways.
    pub(crate) fn background_folder(&self) -> PathBuf {
        self.state().join("background")
    }

    /// Returns what background gateways have logged so far.
    pub(crate) fn background_log(&self) -> String {
        let entries = std::fs::read_dir(self.background_folder()).into_iter().flatten().flatten();
        let logs = entries.filter(|it| it.path().extension().is_some_and(|ending| ending == "log"));
        logs.map(|log| std::fs::read_to_string(log.path()).unwrap_or_default()).collect()
    }

    /// Starts a gateway over stdio with a profile, and connects a client to it.
    pub(crate) fn stdio_as(&self, era: Era, profile: &str) -> RawClient {
        RawClient::stdio(self.toolcrib(&["mcp", "--own", "--profile", profile]), era)
    }

    /// Starts a gateway over HTTP and waits until it listens.
    pub(crate) fn serve(&self) -> HttpGateway {
        self.serve_within(None)
    }

    /// Like [`Self::serve`], with a limit on the number of open files.
    pub(crate) fn serve_within(&self, files: Option<usize>) -> HttpGateway {
        let before = self.stderr().len();
        let child = self.limited(&["serve", "--listen", "127.0.0.1:0"], files).spawn().unwrap();
        let address = || {
            let stderr = self.stderr();
            let rest = stderr[before..].split_once("listening on http")?.1;
            Some(rest.split_once("://")?.1.split_once("/mcp")?.0.to_owned())
        };
        let address = until("listening", address).0;
        HttpGateway { child, address }
    }

    /// Runs `toolcrib doctor --json` and returns the servers in its report.
    pub(crate) fn doctor(&self) -> Vec<Value> {
        let done = self.toolcrib(&["doctor", "--json"]).stdout(Stdio::piped()).output().unwrap();
        let mut answer: Value = serde_json::from_slice(&done.stdout).unwrap();
        serde_json::from_value(answer["servers"].take()).unwrap()
    }
}

impl Drop for TestEnvironment {
    fn drop(&mut self) {
        if self.background_folder().exists() {
            let _ = self.toolcrib(&["stop"]).status();
        }
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

impl HttpGateway {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Connects a client to this gateway.
    pub(crate) fn peer(&self, era: Era) -> RawClient {
        RawClient::http(&self.address, "/mcp", era)
    }

    /// Connects a client to the path of one profile.
    pub(crate) fn peer_as(&self, era: Era, profile: &str) -> RawClient {
        RawClient::http(&self.address, &format!("/mcp/{profile}"), era)
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        signal(self.pid(), "-TERM");
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the gateway exits, and returns how long that took.
    pub(crate) fn wait_for_exit(&mut self) -> Duration {
        until("the gateway exits", || self.child.try_wait().unwrap()).1
    }
}

impl Drop for HttpGateway {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            signal(self.pid(), "-TERM");
        }
        wait_or_kill(&mut self.child);
    }
}
