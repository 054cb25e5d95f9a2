//! A server as a child process: started without a shell, with an environment of its own, and ended
//! with everything it started.
//!
//! ```text
//! gateway ──spawns──► outer warden ──spawns──► inner warden ──spawns──► server ──► whatever it starts
//!    │  └── warden_socket ──┘      └──── warden_socket ──────┘                     │ │ │
//!    └──────────────────────── stdin, stdout, stderr ───────────────────┴─┴─┘
//! ```
//!
//! [`Launch::spawn`] starts the [`warden`], which starts a second one, which starts the server; the pipes bypass
//! both. When the gateway drops a [`Process`], or the gateway or one of the wardens dies, the server is ended.

mod children;
mod environment;
mod find_command;
mod grace_periods;
mod outer_warden;
mod process_tree;
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
pub use stderr_tail::{STDERR_BYTES, StderrTail};
use warden_socket::{WardenReport, WardenSetup, WardenSocket, send_setup};

/// How long a warden may take to start its server: it is two `exec`s of local files.
const START: Duration = Duration::from_secs(10);
/// How much longer than its [`GracePeriods`] a warden may take to end everything.
const SLACK: Duration = Duration::from_secs(1);
/// How long until the kernel has carried out SIGKILL on a warden that kept no promise.
const REAP: Duration = Duration::from_millis(500);

/// What to start, and how.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The command: a path, or a name to be looked up in the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments, each as it is; no shell sees them.
    pub args: Vec<OsString>,
    /// The whole environment of the server; see [`environment()`].
    pub env: Vec<(OsString, OsString)>,
    /// The folder it runs in; ours, when there is none.
    pub cwd: Option<PathBuf>,
    /// The command that ends in [`warden::run`], such as `[current_exe, "warden", "--"]`; the server's
    /// command is appended. On Linux `/proc/self/exe` also works after an update replaced the file.
    pub warden: Vec<OsString>,
    /// How long it may take to end.
    pub grace: GracePeriods,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such command.
    #[error("cannot find the command `{}`", program.display())]
    NotFound {
        /// The command as configured.
        program: OsString,
        /// Where it was looked for, when it is a name and not a path.
        path: Option<OsString>,
    },
    /// The file is there, but not to be run.
    #[error("`{}` is not an executable file", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// A relative path, and no folder in the config that it begins at.
    #[error("the command `{}` is relative to the folder that Toolcrib was started in", program.display())]
    RelativeCommand {
        /// The command as configured.
        program: OsString,
    },
    /// A relative folder to run in.
    #[error("`cwd` is relative to the folder that Toolcrib was started in: `{}`", cwd.display())]
    RelativeFolder {
        /// The folder as configured.
        cwd: PathBuf,
    },
    /// There is no such folder to run in.
    #[error("cannot run in `{}`: not a folder", cwd.display())]
    Folder {
        /// The folder as configured.
        cwd: PathBuf,
    },
    /// The system refused to run it, for example because its interpreter is missing.
    #[error("cannot run `{}`: {reason}", program.display())]
    CannotRun {
        /// The command as configured.
        program: OsString,
        /// The system's words.
        reason: String,
    },
    /// The warden could not be started.
    #[error("cannot start the warden: {0}")]
    Warden(#[from] io::Error),
    /// The warden ended, or hung, before it had started the server.
    #[error("the warden started no server{}{said}", if said.is_empty() { "" } else { ": " })]
    WardenLost {
        /// What it wrote to stderr.
        said: String,
    },
}

impl SpawnError {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotFound { program, .. } if program.to_string_lossy().contains(' ') => {
                "`command` is the program alone; what follows it goes into `args`".into()
            }
            Self::NotFound { path: Some(path), .. } => format!(
                "give the full path of the command, or name `PATH` in its environment; it is looked \
                 for in {} folders",
                std::env::split_paths(path).filter(|folder| folder.is_absolute()).count()
            ),
            Self::NotFound { path: None, .. } => {
                "a path is relative to the server's folder; check both".into()
            }
            Self::RelativeCommand { .. } | Self::RelativeFolder { .. } => {
                "clients start Toolcrib in any folder: use an absolute path, or begin it with `${workspaceFolder}/` to mean that folder"
                    .into()
            }
            Self::NotExecutable { path } => {
                format!("`chmod +x {}`, or name its interpreter as the command", path.display())
            }
            Self::Folder { .. } => "create the folder, or correct it in the configuration".into(),
            Self::CannotRun { .. } => {
                "check that the file is a program for this machine, and that the interpreter in its \
                 first line exists"
                    .into()
            }
            Self::Warden(_) | Self::WardenLost { .. } => {
                "the gateway runs its own executable again to watch over servers: check that the file \
                 is still there and that processes and descriptors are not used up"
                    .into()
            }
        }
    }
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// Its warden died before it, or did not keep its time; the server's group was killed.
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

/// A running server. Dropped, it is ended in the background, with everything it started.
#[derive(Debug)]
pub struct Process {
    /// Where to write to it. Taken out, it must be dropped for the server to see the end.
    pub stdin: Option<pipe::Sender>,
    /// What it writes.
    pub stdout: Option<pipe::Receiver>,
    stderr: StderrTail,
    warden_socket: WardenSocket,
    warden: Child,
    server: Pid,
    exit: Option<Exit>,
    grace: GracePeriods,
}

impl Launch {
    /// Starts the server. Must be called inside a tokio runtime with I/O and time.
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

        match timeout(START, warden_socket.report()).await {
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
                let _ = timeout(REAP, warden.wait()).await;
                Err(SpawnError::CannotRun { program: self.program, reason })
            }
            _ => {
                let _ = warden.start_kill();
                let _ = timeout(REAP, warden.wait()).await;
                let _ = timeout(REAP, drained).await;
                Err(SpawnError::WardenLost { said: stderr.tail(3) })
            }
        }
    }

    /// Starts the warden with the program that was found, so that nothing is searched for again.
    fn start_warden(&self, program: &Path, socket: OwnedFd, stderr: OwnedFd) -> io::Result<Child> {
        let [executable, prefix @ ..] = &self.warden[..] else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command for it"));
        };
        let mut command = Command::new(executable);
        command.args(prefix).arg(program).args(&self.args);
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::from(socket)).stdout(Stdio::null()).stderr(Stdio::from(stderr));
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        // Away from our group, so that a Ctrl-C in the terminal reaches us alone and servers end in setup.
        command.process_group(0);
        command.spawn()
    }
}

impl Process {
    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.server.as_raw_pid().unsigned_abs()
    }

    /// The end of what it has written to stderr.
    pub fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    /// Waits until the server itself has ended, and says how; what it started may take a little longer.
    ///
    /// May be dropped and called again.
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

    /// Ends it with everything it started, and returns when all is gone: by default after 5 s at the most.
    ///
    /// Stdin is closed, and the warden_socket with it: the warden lets the server leave on its own, then sends
    /// SIGTERM, then SIGKILL, each after its grace period (see [`GracePeriods`]).
    pub async fn end(mut self) -> Exit {
        self.stdin = None;
        self.warden_socket.close();
        let ended = timeout(self.grace.total() + SLACK, async {
            self.wait().await;
            // The warden's reports end when it exits, and it exits when nobody is left.
            while self.warden_socket.report().await.is_some() {}
        });
        if ended.await.is_err() {
            let _ = self.warden.start_kill();
            if self.exit.is_none() {
                self.kill();
            }
        }
        let _ = timeout(REAP, self.warden.wait()).await;
        self.exit.unwrap_or(Exit::WardenLost)
    }

    /// What is left to do without a warden: the group. Only while no exit was reported, since
    /// afterwards the number may be another's.
    fn kill(&mut self) {
        let _ = kill_process_group(self.server, Signal::KILL);
        self.exit = Some(Exit::WardenLost);
    }
}
