//! Starts a process that outlives the client that started it.
//!
//! Clients end `toolcrib mcp` in different ways: some close its input, others signal its process group or all processes
//! below it. The background gateway must survive all of these. So `toolcrib mcp` starts a process that starts the
//! background gateway and exits, and the background gateway begins a session of its own.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, setsid};

/// The limit on open files that a background gateway sets for itself, if the system allows it.
const MAX_FILES: u64 = 8_192;

/// Runs a command that starts a background process and exits, and waits until it has exited. Standard error of both is
/// appended to `log`. Blocks.
pub fn run_starter(command: &[OsString], log: File) -> io::Result<()> {
    let status = in_background(command)?.stderr(log).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

/// Starts a command as a background process, without waiting for it. It inherits standard error.
pub fn start_detached(command: &[OsString]) -> io::Result<()> {
    in_background(command)?.spawn().map(|_| ())
}

fn in_background(command: &[OsString]) -> io::Result<Command> {
    let [program, arguments @ ..] = command else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let mut command = Command::new(program);
    // The root folder, so that no other folder is kept in use.
    command.args(arguments).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command)
}

/// Begins a session without a terminal, so that no signal of the client's terminal reaches this process. Also raises the
/// limit on open files, because this process holds the pipes of all servers.
pub fn become_daemon() {
    // This fails only if the process already leads a session.
    let _ = setsid();
    let files = getrlimit(Resource::Nofile);
    if files.current.is_some_and(|current| current < MAX_FILES) {
        let current = files.maximum.map_or(MAX_FILES, |maximum| maximum.min(MAX_FILES));
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..files });
    }
}
