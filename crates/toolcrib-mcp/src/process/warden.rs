//! The processes between us and a server, which see to it that nothing of the server outlives us.
//!
//! A gateway that is killed with SIGKILL cannot clean up, a parent-death signal misses grandchildren,
//! and `npx` or `uvx` put a server two processes down. So the gateway starts its own executable
//! again as a warden, and the warden starts the server. It holds none of the server's pipes, passes
//! no bytes, and sleeps until one of three things happens: the server exits, the
//! inner_socket from the gateway ends, or it is told to end by a signal. Then everything below it goes: first
//! on its own, then by SIGTERM, then by SIGKILL. On Linux the warden is child subreaper, so that also
//! what left the server's group falls to it; elsewhere it reaches the group only. A warden may be killed too, so there
//! are two of them: see `super::outer_warden`.
//!
//! Plain blocking code in one thread: a second thread or a runtime is one more thing to fail in the one
//! process that must not.

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

/// The exit code of a command that could not be run, as shells have it.
const CANNOT_RUN: u8 = 127;

/// Runs the command `argv` with stdin and stdout from the gateway, and ends with it.
///
/// Meant for a hidden subcommand of the executable that [`Launch::warden`](super::Launch::warden)
/// names, as the first thing it does: there must be no other thread yet. It starts that executable once more, with the
/// arguments of this process. Exits with the server's code, with 128 + n when signal n killed it, and with 127 when it
/// could not be run.
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
    sleep(&mut tree);
    tree.terminate(setup.grace);
    // A server that not even SIGKILL ended is left to the kernel; what it would have died of is known.
    Ok(tree.child_exit.unwrap_or(ChildExit::Killed(9)).code())
}

/// Starts the server.
fn start_server(
    program: &OsString,
    args: impl Iterator<Item = OsString>,
    [stdin, stdout]: [OwnedFd; 2],
    mut tree: ProcessTree,
) -> Result<ProcessTree, String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).process_group(0);
    let started = command.spawn();
    // It holds our copies of the server's pipes, and whoever waits for their end would wait for ever.
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

/// Sleeps until there is a reason to end.
fn sleep(tree: &mut ProcessTree) {
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
        // Interrupted, or no memory for a moment: look again.
        if poll(&mut fds, None).is_err() {
            continue;
        }
        // The other side never writes after the first message: whatever is there to read is the end.
        if !fds[0].revents().is_empty() || !fds[2].revents().is_empty() {
            return;
        }
    }
}
