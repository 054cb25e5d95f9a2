//! The processes that are measured: found beside this one, ended with it.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::Failed;

/// Builds what is measured, as it is measured.
pub fn build() -> Result<(), Failed> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["build", "--quiet", "--release", "-p", "toolcrib", "-p", "toolcrib-testkit"];
    let built = Command::new(cargo).args(args).status()?;
    if built.success() { Ok(()) } else { Err("the gateway cannot be built".into()) }
}

/// A program of this workspace.
pub fn program(name: &str) -> Result<PathBuf, Failed> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.exists() { Ok(path) } else { Err(format!("`{}` is missing", path.display()).into()) }
}

/// A process that ends with its owner.
#[derive(Debug)]
pub struct Process(pub Child);

impl Process {
    /// Its id.
    pub fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// The address that it says it listens on.
    pub fn address(&mut self) -> Result<String, Failed> {
        let output = self.0.stderr.take().ok_or("no standard error")?;
        let mut lines = BufReader::new(output).lines();
        let said = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let said = line.split_once("listening on http://")?.1.split(['/', ' ']).next()?;
            Some(said.trim_end_matches(':').to_owned())
        });
        // It may go on to write, and must not be held up by that.
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

/// A gateway before it runs: its config, and a place of its own for what it remembers.
#[derive(Debug)]
pub struct Setting {
    folder: TempDir,
    config: String,
}

impl Setting {
    /// One without servers.
    pub fn new() -> Result<Self, Failed> {
        Ok(Self { folder: tempfile::tempdir()?, config: String::new() })
    }

    /// A server that is a program.
    pub fn command(&mut self, name: &str, program: &Path, args: &[&str], more: &str) {
        let program = program.display().to_string();
        let _ = writeln!(
            self.config,
            "[servers.{name}]\ncommand = {program:?}\nargs = {args:?}\n{more}"
        );
    }

    /// A server that is an address.
    pub fn address(&mut self, name: &str, address: &str) {
        let _ = writeln!(self.config, "[servers.{name}]\nurl = \"http://{address}/mcp\"");
    }

    /// Its place.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `toolcrib` with this config, to be given its streams.
    pub fn toolcrib(&self, args: &[&str]) -> Result<Command, Failed> {
        let file = self.folder.path().join("toolcrib.toml");
        std::fs::write(&file, &self.config)?;
        let mut command = Command::new(program("toolcrib")?);
        command.args(args).arg("--config").arg(file);
        command.env("XDG_STATE_HOME", self.folder.path());
        Ok(command)
    }

    /// The gateway and the proxy over HTTP, with these arguments beside, and where they listen.
    pub fn serve(&self, args: &[&str]) -> Result<(Process, String), Failed> {
        let mut command = self.toolcrib(&["serve", "--listen", "127.0.0.1:0"])?;
        command.args(args);
        let mut process = Process(command.stderr(Stdio::piped()).spawn()?);
        let address = process.address()?;
        Ok((process, address))
    }
}
