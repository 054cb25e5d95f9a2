//! The outer warden: it watches the one that watches the server.
//!
//! A single warden could itself be killed, and everything below it would live on. So the warden that the gateway starts
//! starts another, which starts the server. Each ends the server and all that it started when the other is gone:
//!
//! - The inner one reads the end of its lifeline, which the outer one holds.
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
use super::family::{Ended, Family};
use super::lifeline::{HandOver, Report, hand_over};

/// How much longer than the grace periods the inner warden may take to end everything.
const SLACK: Duration = Duration::from_millis(500);

/// Starts the inner warden, this executable with the same arguments, and ends with it. Returns the code to exit with.
pub(super) fn watch(
    [stdin, stdout]: [OwnedFd; 2],
    grace: GracePeriods,
    mut family: Family,
) -> Result<u8, String> {
    let failed = |error: io::Error| format!("cannot start the second warden: {error}");
    let (lifeline, theirs) = UnixStream::pair().map_err(failed)?;
    let order = HandOver { grace, watched: true };
    hand_over(&lifeline, stdin.as_fd(), stdout.as_fd(), order).map_err(failed)?;
    drop((stdin, stdout));
    lifeline.set_nonblocking(true).map_err(failed)?;
    let mut command = Command::new(ourselves().map_err(failed)?);
    command.args(std::env::args_os().skip(1));
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).process_group(0);
    let inner = command.spawn().map_err(failed)?;
    drop(command);
    family.child = Some(Pid::from_child(&inner));
    let mut outer = Outer { family, lifeline: Some(lifeline), heard: Vec::new(), deadline: None };
    outer.sleep(grace);
    // What the inner warden reported last may be there still.
    outer.pass_on();
    if let Some(ended @ Ended::Exited(_)) = outer.family.ended {
        // The inner warden has seen to everything.
        return Ok(ended.code());
    }
    outer.family.end(grace);
    Ok(Ended::Killed(9).code())
}

/// This executable, also after an update replaced its file.
fn ourselves() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

struct Outer {
    family: Family,
    /// To the inner warden; `None` once its other end is closed.
    lifeline: Option<UnixStream>,
    /// The part of a report that has come.
    heard: Vec<u8>,
    /// When to end everything without the inner warden. Set when the inner warden is told to end.
    deadline: Option<Instant>,
}

impl Outer {
    /// Sleeps until the inner warden has ended or its deadline has passed.
    fn sleep(&mut self, grace: GracePeriods) {
        loop {
            self.family.reap();
            if self.family.ended.is_some() {
                return;
            }
            let left =
                self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return;
            }
            let (stdin, told) = (io::stdin(), self.deadline.is_some());
            let mut fds = vec![PollFd::new(&self.family.deaths, PollFlags::IN)];
            if let Some(lifeline) = &self.lifeline {
                fds.push(PollFd::new(lifeline, PollFlags::IN));
            }
            let relays = fds.len() - 1;
            // Once told to end there is nothing new to hear from these two.
            if !told {
                fds.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
                fds.push(PollFd::new(&self.family.orders, PollFlags::IN));
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // Interrupted, or no memory for a moment: look again.
            if poll(&mut fds, left.as_ref()).is_err() {
                continue;
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            drop(fds);
            if relays == 1 && ready[1] {
                self.pass_on();
            }
            if ready[1 + relays..].contains(&true) {
                self.deadline = Some(Instant::now() + grace.total() + SLACK);
                // The inner warden reads the end, and does its work.
                if let Some(lifeline) = &self.lifeline {
                    let _ = lifeline.shutdown(std::net::Shutdown::Write);
                }
            }
        }
    }

    /// Passes the reports of the inner warden on to the gateway.
    fn pass_on(&mut self) {
        let mut chunk = [0; 1024];
        while let Some(mut lifeline) = self.lifeline.as_ref() {
            match lifeline.read(&mut chunk) {
                Ok(read @ 1..) => self.heard.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => self.lifeline = None,
            }
            while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=end).collect();
                let Some(report) = Report::from_line(&String::from_utf8_lossy(&line[..end])) else {
                    continue;
                };
                if let Report::Runs(pid) = report {
                    self.family.group = Pid::from_raw(pid);
                }
                report.send(io::stdin());
            }
        }
    }
}
