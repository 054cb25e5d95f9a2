//! The process between us and a server, which sees to it that nothing of the server outlives us.
//!
//! A gateway that is killed with SIGKILL cannot clean up, a parent-death signal misses grandchildren,
//! and `npx` or `uvx` put a server two processes down. So the gateway starts its own executable
//! again as a warden, and the warden starts the server. It holds none of the server's pipes, passes
//! no bytes, and sleeps until one of three things happens: the server exits, the
//! lifeline from the gateway ends, or it is told to end by a signal. Then everything below it goes: first
//! on its own, then by SIGTERM, then by SIGKILL. On Linux the warden is child subreaper, so that also
//! what left the server's group falls to it; elsewhere it reaches the group only.
//!
//! Plain blocking code in one thread: a second thread or a runtime is one more thing to fail in the one
//! process that must not.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, test_kill_process_group,
    wait,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::lifeline::{Report, receive};
use super::{GracePeriods, children};

/// How often to look for processes that have newly fallen to us, while ending.
const LOOK: Duration = Duration::from_millis(20);

/// The exit code of a command that could not be run, as shells have it.
const CANNOT_RUN: u8 = 127;

/// Runs the command `argv` with stdin and stdout from the gateway, and ends with it.
///
/// Meant for a hidden subcommand of the executable that [`Launch::warden`](super::Launch::warden)
/// names, as the first thing it does: there must be no other thread yet. Exits with the server's code,
/// with 128 + n when signal n killed it, and with 127 when it could not be run.
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
    // Before the server starts, so that no signal finds us unprepared and no orphan gets away.
    let children = on_signals(&[SIGCHLD]).map_err(|error| error.to_string())?;
    let orders = on_signals(&[SIGTERM, SIGINT, SIGHUP]).map_err(|error| error.to_string())?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid())).map_err(|error| error.to_string())?;

    let ([stdin, stdout], grace) = receive(io::stdin())
        .map_err(|error| format!("only the gateway can start a warden: {error}"))?;
    let mut command = Command::new(&program);
    command.args(argv).stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).process_group(0);
    let started = command.spawn();
    // It holds our copies of the server's pipes, and whoever waits for their end would wait for ever.
    drop(command);
    let server = match started {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            Report::CannotRun(error.to_string()).send(io::stdin());
            return Err(format!("cannot run {}: {error}", program.display()));
        }
    };
    Report::Runs(server.as_raw_pid()).send(io::stdin());
    let told = BTreeSet::new();
    let mut warden = Warden { server, code: None, children, orders, told, grace };
    warden.sleep();
    warden.end();
    // A server that not even SIGKILL ended is left to the kernel; what it would have died of is known.
    Ok(warden.code.unwrap_or(128 + 9))
}

/// A socket that becomes readable when one of the signals comes.
fn on_signals(signals: &[i32]) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, theirs.try_clone()?)?;
    }
    Ok(ours)
}

struct Warden {
    server: Pid,
    /// What we shall exit with, once the server has exited and was reaped.
    code: Option<u8>,
    /// Readable when a child has died.
    children: UnixStream,
    /// Readable when we were told to end.
    orders: UnixStream,
    /// Processes that were sent SIGTERM already: a second one makes some programs abort their shutdown.
    told: BTreeSet<i32>,
    grace: GracePeriods,
}

impl Warden {
    /// Sleeps until there is a reason to end.
    fn sleep(&mut self) {
        loop {
            self.reap();
            if self.code.is_some() {
                return;
            }
            let stdin = io::stdin();
            let mut fds = [
                PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
                PollFd::new(&self.children, PollFlags::IN),
                PollFd::new(&self.orders, PollFlags::IN),
            ];
            // Interrupted, or no memory for a moment: look again.
            if poll(&mut fds, None).is_err() {
                continue;
            }
            // The gateway never writes after the first message: whatever is there to read is the end.
            if !fds[0].revents().is_empty() || !fds[2].revents().is_empty() {
                return;
            }
        }
    }

    /// Ends everything below us, within the sum of the grace periods.
    fn end(&mut self) {
        let GracePeriods { after_eof, after_sigterm, after_sigkill } = self.grace;
        let _ = self.gone_within(after_eof, None)
            || self.gone_within(after_sigterm, Some(Signal::TERM))
            || self.gone_within(after_sigkill, Some(Signal::KILL));
    }

    /// Sends `signal` to all there are and all that turn up, until none is left or the time is over.
    fn gone_within(&mut self, limit: Duration, signal: Option<Signal>) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if self.reap() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            if let Some(signal) = signal {
                self.signal(signal);
            }
            let mut fds = [PollFd::new(&self.children, PollFlags::IN)];
            let _ = poll(&mut fds, Timespec::try_from(left.min(LOOK)).ok().as_ref());
        }
    }

    /// Signals the server's group as long as the server itself holds the group's number, and each child.
    fn signal(&mut self, signal: Signal) {
        let again = signal == Signal::KILL;
        let children = children::of(getpid());
        // Reaped, its number could be another's, and without `/proc` there is nothing but the group.
        let whole = self.code.is_none() || children.is_err();
        if whole && (self.told.insert(-self.server.as_raw_pid()) || again) {
            let _ = kill_process_group(self.server, signal);
        }
        let group_told = self.told.contains(&-self.server.as_raw_pid());
        for child in children.unwrap_or_default() {
            let as_member = group_told && child.group == Some(self.server);
            if again || (!as_member && self.told.insert(child.pid.as_raw_pid())) {
                let _ = kill_process(child.pid, signal);
            }
        }
    }

    /// Takes leave of every child that has died, and says whether nobody is left.
    fn reap(&mut self) -> bool {
        // Emptied first: who dies from here on makes it readable again.
        let mut bytes = [0; 64];
        while matches!((&self.children).read(&mut bytes), Ok(1..)) {}
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.server => {
                    let (report, code) = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => (Report::Exited(code), code),
                        (None, Some(signal)) => (Report::Killed(signal), 128 + signal),
                        (None, None) => continue,
                    };
                    report.send(io::stdin());
                    self.code = Some(code as u8);
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return self.group_gone(),
            }
        }
    }

    /// Without children of ours left: on Linux orphans are our children, so nobody is left at all.
    fn group_gone(&self) -> bool {
        cfg!(target_os = "linux") || test_kill_process_group(self.server).is_err()
    }
}
