//! The measured processes. Their executables are in the same folder as the benchmark's own executable. A process is
//! killed when it is no longer needed.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::BenchError;

/// Builds the measured programs in release mode.
pub fn build() -> Result<(), BenchError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["build", "--quiet", "--release", "-p", "toolcrib", "-p", "toolcrib-testkit"];
    let built = Command::new(cargo).args(args).status()?;
    if built.success() { Ok(()) } else { Err("the gateway cannot be built".into()) }
}

/// Returns the path of an executable of this workspace, or an error if the executable has not been built.
pub fn program(name: &str) -> Result<PathBuf, BenchError> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.exists() { Ok(path) } else { Err(format!("`{}` is missing", path.display()).into()) }
}

/// A process that is killed when this value is dropped.
#[derive(Debug)]
pub struct Process(pub Child);

impl Process {
    /// Returns the process id.
    pub fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Returns the address that the process listens on, which it prints to standard error.
    pub fn address(&mut self) -> Result<String, BenchError> {
        let output = self.0.stderr.take().ok_or("no standard error")?;
        let mut lines = BufReader::new(output).lines();
        let said = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let said = line.split_once("listening on http://")?.1.split(['/', ' ']).next()?;
            Some(said.trim_end_matches(':').to_owned())
        });
        // Keep reading, so that a full pipe does not block the process.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        said.ok_or_else(|| "the server does not listen".into())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The config of a gateway, and a temporary folder for its state.
#[derive(Debug)]
pub struct GatewaySetup {
    folder: TempDir,
    config: String,
}

impl GatewaySetup {
    /// Creates a setup without servers.
    pub fn new() -> Result<Self, BenchError> {
        Ok(Self { folder: tempfile::tempdir()?, config: String::new() })
    }

    /// Adds a stdio server to the config. `more` contains further lines for the server's section.
    pub fn command(&mut self, name: &str, program: &Path, args: &[&str], more: &str) {
        let program = program.display().to_string();
        let _ = writeln!(
            self.config,
            "[servers.{name}]\ncommand = {program:?}\nargs = {args:?}\n{more}"
        );
    }

    /// Adds an HTTP server to the config.
    pub fn address(&mut self, name: &str, address: &str) {
        let _ = writeln!(self.config, "[servers.{name}]\nurl = \"http://{address}/mcp\"");
    }

    /// Returns the temporary folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the config file, unless it is up to date, and returns a `toolcrib` command that uses the file. The caller
    /// sets up the standard streams of the command.
    pub fn toolcrib(&self, args: &[&str]) -> Result<Command, BenchError> {
        let file = self.folder.path().join("toolcrib.toml");
        if std::fs::read_to_string(&file).ok().as_ref() != Some(&self.config) {
            std::fs::write(&file, &self.config)?;
        }
        let mut command = Command::new(program("toolcrib")?);
        command.args(args).arg("--config").arg(file);
        command.env("XDG_STATE_HOME", self.folder.path());
        Ok(command)
    }

    /// Starts `toolcrib serve`, which runs the gateway and the proxy over HTTP. Returns the process and its address.
    pub fn serve(&self, args: &[&str]) -> Result<(Process, String), BenchError> {
        let mut command = self.toolcrib(&["serve", "--listen", "127.0.0.1:0"])?;
        command.args(args);
        let mut process = Process(command.stderr(Stdio::piped()).spawn()?);
        let address = process.address()?;
        Ok((process, address))
    }
}
