//! A server as a child process: started without a shell and with its own environment, and ended together with all
//! processes that it started.
//!
//! ```text
//! gateway ──spawns──► outer warden ──spawns──► inner warden ──spawns──► server ──► whatever it starts
//!    │  └─── socket ───┘      └───── socket ───────┘                     │ │ │
//!    └──────────────────────── stdin, stdout, stderr ───────────────────┴─┴─┘
//! ```
//!
//! [`Launch::spawn`] starts the outer [`warden`], which starts the inner one, which starts the server. The pipes bypass
//! both. The server is ended when the gateway drops its [`Process`], and when the gateway or one of the wardens dies.

mod children;
mod environment;
mod find_command;
mod grace_periods;
mod memory;
mod outer_warden;
mod process_tree;
mod spawn_error;
mod stderr_tail;
pub mod warden;
mod warden_socket;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::timeout;

pub use environment::{INHERITED_VARIABLES, environment};
pub use grace_periods::GracePeriods;
pub(crate) use memory::ProcessMemory;
pub use spawn_error::SpawnError;
pub use stderr_tail::StderrTail;
use warden_socket::{WardenReport, WardenSetup, WardenSocket, send_setup};

/// Timeout for starting a server through its wardens. This needs little time, because they only execute local files.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How much longer than the sum of its [`GracePeriods`] a warden may take to end all processes.
const SLACK: Duration = Duration::from_secs(1);
/// How long to wait until a warden that has exited or was killed is reaped.
const REAP_TIMEOUT: Duration = Duration::from_millis(500);

/// The command of a server, and how to start it.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program: a path, or a name that is looked up in the `PATH` of `env`.
    pub program: OsString,
    /// The program's arguments. They are passed unchanged, without a shell.
    pub args: Vec<OsString>,
    /// The complete environment of the server. See [`environment()`].
    pub env: Vec<(OsString, OsString)>,
    /// The working folder of the server. If `None`, the server runs in the gateway's working folder.
    pub cwd: Option<PathBuf>,
    /// The command that calls [`warden::run`], such as `[current_exe, "warden", "--"]`. The server's command is
    /// appended. On Linux, `/proc/self/exe` still works after an update has replaced the file.
    pub warden: Vec<OsString>,
    /// How long the server may take to exit.
    pub grace: GracePeriods,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The server exited with this code.
    Code(i32),
    /// The server was killed by this signal.
    Signal(i32),
    /// The server's warden died first or took too long, so the server's process group was killed.
    WardenLost,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::WardenLost => f.write_str("killed after its warden was lost"),
        }
    }
}

/// A running server. Dropping this value ends the server and all processes that it started, in the background.
#[derive(Debug)]
pub struct Process {
    /// The server's stdin. The server reads end-of-file once this pipe is dropped, even if the pipe was taken out of
    /// the option before.
    pub stdin: Option<pipe::Sender>,
    /// The server's stdout.
    pub stdout: Option<pipe::Receiver>,
    stderr: StderrTail,
    warden_socket: WardenSocket,
    warden: Child,
    server: Pid,
    exit: Option<Exit>,
    grace: GracePeriods,
}

impl Launch {
    /// Starts the server. This needs a tokio runtime with I/O and time enabled.
    pub async fn spawn(self) -> Result<Process, SpawnError> {
        match &self.cwd {
            Some(cwd) if cwd.is_relative() => {
                return Err(SpawnError::RelativeFolder { cwd: cwd.clone() });
            }
            Some(cwd) if !cwd.is_dir() => {
                return Err(SpawnError::Folder { cwd: cwd.clone() });
            }
            Some(_) | None => {}
        }
        let program = find_command::find_command(&self.program, &self.env, self.cwd.as_deref())?;

        let (mut warden_socket, socket) = WardenSocket::pair()?;
        let (their_stdin, our_stdin) = io::pipe()?;
        let (our_stdout, their_stdout) = io::pipe()?;
        let (our_stderr, their_stderr) = io::pipe()?;
        let setup = WardenSetup { grace: self.grace, has_outer_warden: false };
        send_setup(&warden_socket, their_stdin.as_fd(), their_stdout.as_fd(), setup)?;
        drop((their_stdin, their_stdout));

        let mut warden = self.start_warden(&program, socket, their_stderr.into())?;
        let stderr = StderrTail::default();
        let pipe = pipe::Receiver::from_owned_fd(our_stderr.into())?;
        let drained = tokio::spawn(stderr.clone().drain(pipe));

        match timeout(START_TIMEOUT, warden_socket.report()).await {
            Ok(Some(WardenReport::Runs(pid))) if let Some(server) = Pid::from_raw(pid) => {
                Ok(Process {
                    stdin: Some(pipe::Sender::from_owned_fd(our_stdin.into())?),
                    stdout: Some(pipe::Receiver::from_owned_fd(our_stdout.into())?),
                    stderr,
                    warden_socket,
                    warden,
                    server,
                    exit: None,
                    grace: self.grace,
                })
            }
            Ok(Some(WardenReport::CannotRun(reason))) => {
                let _ = timeout(REAP_TIMEOUT, warden.wait()).await;
                Err(SpawnError::CannotRun { program: self.program, reason })
            }
            _ => {
                let _ = warden.start_kill();
                let _ = timeout(REAP_TIMEOUT, warden.wait()).await;
                let _ = timeout(REAP_TIMEOUT, drained).await;
                Err(SpawnError::WardenLost { stderr: stderr.tail(3) })
            }
        }
    }

    /// Starts the warden. The server's program is passed as an absolute path, so the warden does not search `PATH`
    /// again.
    fn start_warden(&self, program: &Path, socket: OwnedFd, stderr: OwnedFd) -> io::Result<Child> {
        let [executable, prefix @ ..] = &self.warden[..] else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "its command is empty"));
        };
        let mut command = Command::new(executable);
        command.args(prefix).arg(program).args(&self.args);
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::from(socket)).stdout(Stdio::null()).stderr(Stdio::from(stderr));
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        // The warden has its own process group, so Ctrl-C in the terminal reaches only the gateway, which then lets its
        // servers shut down properly.
        command.process_group(0);
        command.spawn()
    }
}

impl Process {
    /// Returns the server's process id.
    pub fn pid(&self) -> u32 {
        self.server.as_raw_pid().unsigned_abs()
    }

    /// Returns the last part of the server's stderr.
    pub fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    /// Waits until the server itself has exited. Processes that it started may take a little longer.
    ///
    /// This is cancel-safe: the future may be dropped, and the method called again.
    pub async fn wait(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.exit {
                return exit;
            }
            match self.warden_socket.report().await {
                Some(WardenReport::Exited(code)) => self.exit = Some(Exit::Code(code)),
                Some(WardenReport::Killed(signal)) => self.exit = Some(Exit::Signal(signal)),
                Some(WardenReport::Runs(_) | WardenReport::CannotRun(_)) => {}
                None => self.kill(),
            }
        }
    }

    /// Ends the server and all processes that it started. Returns when they are gone, by default within 5 s.
    ///
    /// This closes stdin and the warden's socket. The warden then waits for the server to exit, sends SIGTERM, waits
    /// again, and finally sends SIGKILL. [`GracePeriods`] determines how long it waits.
    pub async fn end(mut self) -> Exit {
        self.stdin = None;
        self.warden_socket.close();
        let ended = timeout(self.grace.total() + SLACK, async {
            self.wait().await;
            // The reports end when the warden exits, which it does when no process is left.
            while self.warden_socket.report().await.is_some() {}
        });
        if ended.await.is_err() {
            let _ = self.warden.start_kill();
            if self.exit.is_none() {
                self.kill();
            }
        }
        let _ = timeout(REAP_TIMEOUT, self.warden.wait()).await;
        self.exit.unwrap_or(Exit::WardenLost)
    }

    /// Kills the server's process group after the warden was lost. This must not be called after the server's exit was
    /// reported, because the group's id may then belong to another process.
    fn kill(&mut self) {
        let _ = kill_process_group(self.server, Signal::KILL);
        self.exit = Some(Exit::WardenLost);
    }
}
