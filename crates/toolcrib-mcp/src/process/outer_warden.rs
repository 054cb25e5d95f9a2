//! The outer warden: it watches the one that watches the server.
//!
//! A single warden could itself be killed, and everything below it would live on. So the warden that the gateway starts
//! starts another, which starts the server. Each ends the server and all that it started when the other is gone:
//!
//! - The inner one reads the end of its inner_socket, which the outer one holds.
//! - The outer one reaps the inner one. On Linux it is child subreaper too, so that the server and its orphans fall to
//!   it.
//!
//! Rejected: a parent-death signal for the server, which misses what the server started, and the gateway as subreaper,
//! which would have to tell orphans from children of its own, and may be killed together with a warden.

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

/// How much longer than the grace periods the inner warden may take to end everything.
const SLACK: Duration = Duration::from_millis(500);

/// Starts the inner warden, this executable with the same arguments, and ends with it. Returns the code to exit with.
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
    outer.sleep(grace);
    // What the inner warden reported last may be there still.
    outer.forward_reports();
    if let Some(ended @ ChildExit::Exited(_)) = outer.tree.child_exit {
        // The inner warden has seen to everything.
        return Ok(ended.code());
    }
    outer.tree.terminate(grace);
    Ok(ChildExit::Killed(9).code())
}

/// This executable, also after an update replaced its file.
fn own_executable() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

struct OuterWarden {
    tree: ProcessTree,
    /// To the inner warden; `None` once its other end is closed.
    inner_socket: Option<UnixStream>,
    /// The part of a report that has come.
    received: Vec<u8>,
    /// When to end everything without the inner warden. Set when the inner warden is told to end.
    deadline: Option<Instant>,
}

impl OuterWarden {
    /// Sleeps until the inner warden has ended or its deadline has passed.
    fn sleep(&mut self, grace: GracePeriods) {
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
            let (stdin, told) = (io::stdin(), self.deadline.is_some());
            let mut fds = vec![PollFd::new(&self.tree.child_exits, PollFlags::IN)];
            if let Some(inner_socket) = &self.inner_socket {
                fds.push(PollFd::new(inner_socket, PollFlags::IN));
            }
            let relays = fds.len() - 1;
            // Once told to end there is nothing new to hear from these two.
            if !told {
                fds.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
                fds.push(PollFd::new(&self.tree.stop_signals, PollFlags::IN));
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // Interrupted, or no memory for a moment: look again.
            if poll(&mut fds, left.as_ref()).is_err() {
                continue;
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            drop(fds);
            if relays == 1 && ready[1] {
                self.forward_reports();
            }
            if ready[1 + relays..].contains(&true) {
                self.deadline = Some(Instant::now() + grace.total() + SLACK);
                // The inner warden reads the end, and does its work.
                if let Some(inner_socket) = &self.inner_socket {
                    let _ = inner_socket.shutdown(std::net::Shutdown::Write);
                }
            }
        }
    }

    /// Passes the reports of the inner warden on to the gateway.
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
