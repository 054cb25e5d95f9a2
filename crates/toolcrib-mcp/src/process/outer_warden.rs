//! The outer warden, which watches the inner warden.
//!
//! A single warden could be killed, and the processes below it would keep running. So the gateway starts the outer
//! warden, which starts the inner warden, which starts the server. Each of the two wardens ends the server and its
//! descendants when the other one is gone:
//!
//! - The inner warden reads end-of-file from its socket, because only the outer warden holds the peer socket.
//! - The outer warden reaps the inner one. On Linux it is a child subreaper too, so it becomes the parent of the server
//!   and its orphans.
//!
//! Rejected: a parent-death signal for the server, which does not reach the processes that the server started; and the
//! gateway as subreaper, which could not tell orphans from its own children and may be killed together with a warden.

use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::GracePeriods;
use super::process_tree::{ChildExit, ProcessTree};
use super::warden_socket::{WardenReport, WardenSetup, send_setup};

/// How much longer than the grace periods the inner warden may take to end all processes.
const SLACK: Duration = Duration::from_millis(500);

/// Starts the inner warden, which is this executable with the same arguments, and waits until it exits. Returns the
/// exit code.
pub(super) fn watch(
    [stdin, stdout]: [OwnedFd; 2],
    grace: GracePeriods,
    mut tree: ProcessTree,
) -> Result<u8, String> {
    let failed = |error: io::Error| format!("cannot start the second warden: {error}");
    let (inner_socket, theirs) = UnixStream::pair().map_err(failed)?;
    let setup = WardenSetup { grace, has_outer_warden: true };
    send_setup(&inner_socket, stdin.as_fd(), stdout.as_fd(), setup).map_err(failed)?;
    drop((stdin, stdout));
    inner_socket.set_nonblocking(true).map_err(failed)?;
    let mut command = Command::new(own_executable().map_err(failed)?);
    command.args(std::env::args_os().skip(1));
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).process_group(0);
    let inner = command.spawn().map_err(failed)?;
    drop(command);
    tree.child = Some(Pid::from_child(&inner));
    let mut outer = OuterWarden {
        tree,
        inner_socket: Some(inner_socket),
        received: Vec::new(),
        deadline: None,
    };
    outer.wait_for_inner(grace);
    // The last reports of the inner warden may not have been forwarded yet.
    outer.forward_reports();
    if let Some(ended @ ChildExit::Exited(_)) = outer.tree.child_exit {
        // A normal exit of the inner warden means that it has ended all processes.
        return Ok(ended.code());
    }
    outer.tree.terminate(grace);
    Ok(ChildExit::Killed(9).code())
}

/// Returns the path of this executable, which on Linux works even after an update has replaced the file.
fn own_executable() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

struct OuterWarden {
    tree: ProcessTree,
    /// The socket to the inner warden, or `None` once the inner warden has closed its side.
    inner_socket: Option<UnixStream>,
    /// Bytes of reports that were received but not forwarded yet.
    received: Vec<u8>,
    /// When to end all processes without the inner warden. This is set when the inner warden is told to stop.
    deadline: Option<Instant>,
}

impl OuterWarden {
    /// Waits until the inner warden has exited or its deadline has passed.
    fn wait_for_inner(&mut self, grace: GracePeriods) {
        loop {
            self.tree.reap();
            if self.tree.child_exit.is_some() {
                return;
            }
            let left =
                self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return;
            }
            let (stdin, is_stopping) = (io::stdin(), self.deadline.is_some());
            let mut fds = vec![PollFd::new(&self.tree.child_exits, PollFlags::IN)];
            if let Some(inner_socket) = &self.inner_socket {
                fds.push(PollFd::new(inner_socket, PollFlags::IN));
            }
            let inner_sockets = fds.len() - 1;
            // Stdin and the stop signals only tell the warden to stop, so they are not polled once it is stopping.
            if !is_stopping {
                fds.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
                fds.push(PollFd::new(&self.tree.stop_signals, PollFlags::IN));
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // `poll` was interrupted, or the system is out of memory for a moment, so try again.
            if poll(&mut fds, left.as_ref()).is_err() {
                continue;
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            drop(fds);
            if inner_sockets == 1 && ready[1] {
                self.forward_reports();
            }
            if ready[1 + inner_sockets..].contains(&true) {
                self.deadline = Some(Instant::now() + grace.total() + SLACK);
                // The inner warden then reads end-of-file from the socket and stops.
                if let Some(inner_socket) = &self.inner_socket {
                    let _ = inner_socket.shutdown(std::net::Shutdown::Write);
                }
            }
        }
    }

    /// Forwards the reports of the inner warden to the gateway.
    fn forward_reports(&mut self) {
        let mut chunk = [0; 1024];
        while let Some(mut inner_socket) = self.inner_socket.as_ref() {
            match inner_socket.read(&mut chunk) {
                Ok(read @ 1..) => self.received.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => self.inner_socket = None,
            }
            while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                let Some(report) = WardenReport::from_line(&String::from_utf8_lossy(&line[..end]))
                else {
                    continue;
                };
                if let WardenReport::Runs(pid) = report {
                    self.tree.group = Pid::from_raw(pid);
                }
                report.send(io::stdin());
            }
        }
    }
}
