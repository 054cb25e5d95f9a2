//! The warden: a process between the gateway and a server. It ends the server when the gateway is gone.
//!
//! A gateway that is killed with SIGKILL cannot clean up, a parent-death signal misses grandchildren, and `npx` or
//! `uvx` start a server two processes down. So the gateway starts its own executable again as a warden, and the warden
//! starts the server. The warden holds none of the server's pipes. It sleeps until the server exits, the socket from
//! the gateway is closed, or a signal tells it to stop. Then it ends all processes below it: it waits for them to exit,
//! sends SIGTERM, and finally SIGKILL. On Linux the warden is a child subreaper, so it also reaches processes that left
//! the server's process group. On other systems it reaches only the group. A warden may be killed too, so there are
//! two, see `super::outer_warden`.
//!
//! This is blocking code in one thread. Rejected: a runtime or a second thread, because starting either could fail, and
//! the warden must not fail.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Pid;

use super::outer_warden;
use super::process_tree::{ChildExit, ProcessTree};
use super::warden_socket::{WardenReport, receive_setup};

/// The exit code that shells use for a command that could not be run.
const CANNOT_RUN: u8 = 127;

/// Runs the command `argv` with the stdin and stdout that the gateway sends, and returns when the command has ended.
///
/// Call this from a hidden subcommand of the executable in [`Launch::warden`](super::Launch::warden), before any other
/// thread is started. It starts the same executable once more, with the arguments of this process. The exit code is the
/// server's, 128 + n if signal n killed the server, and 127 if the server could not be run.
pub fn run(argv: impl Iterator<Item = OsString>) -> ExitCode {
    match watch(argv) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            let _ = writeln!(io::stderr(), "toolcrib warden: {message}");
            ExitCode::from(CANNOT_RUN)
        }
    }
}

fn watch(mut argv: impl Iterator<Item = OsString>) -> Result<u8, String> {
    let program = argv.next().ok_or("no command given")?;
    let tree = ProcessTree::new().map_err(|error| error.to_string())?;
    let (pipes, setup) = receive_setup(io::stdin())
        .map_err(|error| format!("only the gateway can start a warden: {error}"))?;
    if !setup.has_outer_warden {
        return outer_warden::watch(pipes, setup.grace, tree);
    }
    let mut tree = start_server(&program, argv, pipes, tree)?;
    wait_for_end(&mut tree);
    tree.terminate(setup.grace);
    // If even SIGKILL has not ended the server in time, it is left to the kernel, and reported as killed.
    Ok(tree.child_exit.unwrap_or(ChildExit::Killed(9)).code())
}

fn start_server(
    program: &OsString,
    args: impl Iterator<Item = OsString>,
    [stdin, stdout]: [OwnedFd; 2],
    mut tree: ProcessTree,
) -> Result<ProcessTree, String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).process_group(0);
    let started = command.spawn();
    // `command` holds copies of the server's pipes. As long as they are open, nobody reads end-of-file from the pipes.
    drop(command);
    match started {
        Ok(child) => {
            let server = Pid::from_child(&child);
            (tree.child, tree.group) = (Some(server), Some(server));
            tree.on_child_exit = |ended| {
                let report = match ended {
                    ChildExit::Exited(code) => WardenReport::Exited(code),
                    ChildExit::Killed(signal) => WardenReport::Killed(signal),
                };
                report.send(io::stdin());
            };
            WardenReport::Runs(server.as_raw_pid()).send(io::stdin());
            Ok(tree)
        }
        Err(error) => {
            WardenReport::CannotRun(error.to_string()).send(io::stdin());
            Err(format!("cannot run {}: {error}", program.display()))
        }
    }
}

/// Sleeps until the server has exited, the gateway is gone, or a signal arrives.
fn wait_for_end(tree: &mut ProcessTree) {
    loop {
        tree.reap();
        if tree.child_exit.is_some() {
            return;
        }
        let stdin = io::stdin();
        let mut fds = [
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
            PollFd::new(&tree.child_exits, PollFlags::IN),
            PollFd::new(&tree.stop_signals, PollFlags::IN),
        ];
        // `poll` was interrupted, or the system is out of memory for a moment, so try again.
        if poll(&mut fds, None).is_err() {
            continue;
        }
        // The peer writes nothing after the first message, so a readable socket means end-of-file.
        if !fds[0].revents().is_empty() || !fds[2].revents().is_empty() {
            return;
        }
    }
}
