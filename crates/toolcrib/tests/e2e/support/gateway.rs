//! The gateway under test: a home folder with a config, and connections over both transports.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::{NamedTempFile, TempDir};

use super::client::{Client, Era};
use super::wire::{Process, Wire};
use super::{Program, eventually, testkit_program};

/// A folder with a config and the gateway's saved state.
pub(crate) struct Home {
    folder: TempDir,
}

impl Drop for Home {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A running MCP server over HTTP, which is a gateway or a test server. The process is killed when this is dropped.
pub(crate) struct HttpServerProcess {
    pub(crate) url: String,
    log: NamedTempFile,
    _process: Process,
}

impl HttpServerProcess {
    /// Returns what the server has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap()
    }
}

/// Every combination of transport and protocol version. `own` is stdio with a gateway of the client's own.
pub(crate) const CONNECTIONS: [(&str, Era); 6] = [
    ("stdio", Era::Older),
    ("stdio", Era::Newer),
    ("own", Era::Older),
    ("own", Era::Newer),
    ("http", Era::Older),
    ("http", Era::Newer),
];

impl Home {
    /// Creates a home folder with this config.
    pub(crate) fn new(config: &str) -> Self {
        let home = Self { folder: tempfile::tempdir().unwrap() };
        home.configure(config);
        home
    }

    pub(crate) fn configure(&self, config: &str) {
        fs::write(self.config(), config).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn config(&self) -> PathBuf {
        self.path().join("toolcrib.toml")
    }

    fn command(&self, transport: &str, more: &[&str]) -> Program {
        let config = self.config().to_str().unwrap().to_owned();
        let mut program = vec![
            env!("CARGO_BIN_EXE_toolcrib").to_owned(),
            transport.to_owned(),
            "--config".to_owned(),
            config,
        ];
        program.extend(more.iter().map(ToString::to_string));
        program
    }

    /// Returns the command that starts the gateway over stdio, as clients have it in their configs. The client is served
    /// by the background gateway.
    pub(crate) fn mcp(&self) -> Program {
        self.command("mcp", &[])
    }

    /// Like [`Self::mcp`], for a client with a gateway of its own.
    pub(crate) fn own_mcp(&self) -> Program {
        self.command("mcp", &["--own"])
    }

    /// Returns the command that checks every server and prints the report as JSON.
    pub(crate) fn doctor(&self) -> Program {
        self.command("doctor", &["--json"])
    }

    fn background(&self) -> PathBuf {
        self.path().join("state/toolcrib/background")
    }

    /// Returns what the clients' processes and the background gateway have logged so far.
    pub(crate) fn log(&self) -> String {
        let mut log = fs::read_to_string(self.path().join("stderr")).unwrap_or_default();
        for entry in fs::read_dir(self.background()).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "log") {
                log += &fs::read_to_string(entry.path()).unwrap();
            }
        }
        log
    }

    /// Stops the background gateway, if one was started.
    pub(crate) fn stop(&self) {
        if self.background().exists() {
            let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
            command.arg("stop").stdout(Stdio::null()).stderr(Stdio::null());
            command.env("HOME", self.path()).env("XDG_STATE_HOME", self.path().join("state"));
            command.status().unwrap();
        }
    }

    /// Starts the gateway over stdio and connects a client to it.
    pub(crate) fn stdio(&self, name: &str, era: Era) -> Client {
        Client::named(name, Wire::stdio(&self.mcp(), self.path()), era)
    }

    /// Starts the gateway over HTTP.
    pub(crate) fn serve(&self) -> HttpServerProcess {
        let program = self.command("serve", &["--listen", "127.0.0.1:0"]);
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]).current_dir(self.path());
        command.env("HOME", self.path()).env("XDG_STATE_HOME", self.path().join("state"));
        start_http_server(command)
    }
}

/// Starts a server over HTTP, and waits until it prints its address.
pub(crate) fn start_http_server(mut command: Command) -> HttpServerProcess {
    let log = NamedTempFile::new().unwrap();
    let stderr = File::options().append(true).open(log.path()).unwrap();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
    let process = Process(child);
    let url = listening(log.path());
    HttpServerProcess { url, log, _process: process }
}

/// Starts a gateway and connects a client to it. Over HTTP, also returns the process of the gateway.
pub(crate) fn connect(
    home: &Home,
    (transport, era): (&str, Era),
) -> (Client, Option<HttpServerProcess>) {
    match transport {
        "stdio" => return (home.stdio("test", era), None),
        "own" => {
            let wire = Wire::stdio(&home.own_mcp(), home.path());
            return (Client::named("test", wire, era), None);
        }
        _ => {}
    }
    let gateway = home.serve();
    (Client::at(&gateway.url, era), Some(gateway))
}

/// Waits until a server logs the address that it listens on, and returns the address.
fn listening(log: &Path) -> String {
    eventually("an address to listen on", || {
        let text = fs::read_to_string(log).ok()?;
        let (_, rest) = text.split_once("listening on ")?;
        rest.split_once('\n').map(|(url, _)| url.trim().to_owned())
    })
}

/// Returns the config section of a server that is started with a command. `more` contains further lines of the section.
pub(crate) fn server(name: &str, program: &Program, more: &str) -> String {
    let mut text = format!("[servers.{name}]\ncommand = {}\n", json!(program[0]));
    let _ = writeln!(text, "args = {}\n{more}", json!(program[1..]));
    text
}

/// Returns the config section of a server `late` with 40 tools, and the path of a file. The server starts only when
/// this file exists.
pub(crate) fn late_server(home: &Home) -> (String, PathBuf) {
    let ready = home.path().join("ready");
    let program = testkit_program(
        "faulty-server",
        &["--tools", "40", "--start-when", ready.to_str().unwrap()],
    );
    (server("late", &program, "start_timeout = 600\n"), ready)
}

/// The config lines that switch deferral on, however few tools there are.
pub(crate) const DEFERRED: &str = "[activation]\nmode = \"on\"\n";
/// The config lines that switch deferral off, so that clients see all tools in full.
pub(crate) const IN_FULL: &str = "[activation]\nmode = \"off\"\n";

/// Waits until every server of the gateway is up. An empty search reports servers that are connecting or down.
pub(crate) fn wait_until_ready(client: &mut Client) {
    eventually("all servers up", || {
        let reply = client
            .result("tools/call", &json!({"name": "tool_search", "arguments": {"query": ""}}));
        let reply = &reply["structuredContent"];
        (reply.get("connecting").is_none() && reply.get("down").is_none()).then_some(())
    });
}
