//! The processes below a warden: its child, and on Linux the orphans that it adopts as a child subreaper.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, test_kill_process_group,
    wait,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::{GracePeriods, children};

/// How often to look for newly adopted processes while the processes are being ended.
const RESCAN_INTERVAL: Duration = Duration::from_millis(20);

/// How the warden's child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildExit {
    Exited(i32),
    Killed(i32),
}

impl ChildExit {
    /// Returns the exit code that a shell would report.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code as u8,
            Self::Killed(signal) => (128 + signal) as u8,
        }
    }
}

/// The processes below a warden.
pub(super) struct ProcessTree {
    /// The process that the warden started.
    pub(super) child: Option<Pid>,
    /// The server's process group, once it is known.
    pub(super) group: Option<Pid>,
    /// How the child ended, once it was reaped.
    pub(super) child_exit: Option<ChildExit>,
    /// Called as soon as the child has ended, without waiting for its descendants.
    pub(super) on_child_exit: fn(ChildExit),
    /// A socket that is readable when a child has exited.
    pub(super) child_exits: UnixStream,
    /// A socket that is readable when a signal told the warden to stop.
    pub(super) stop_signals: UnixStream,
    /// Processes that were already sent SIGTERM. They are not sent another one, because that makes some programs abort
    /// their shutdown. A process group is stored as its negative id.
    signalled: BTreeSet<i32>,
}

impl ProcessTree {
    /// Installs signal handlers and becomes a subreaper. This must be called before a child is started, so that no
    /// signal is missed.
    pub(super) fn new() -> io::Result<Self> {
        let (child_exits, stop_signals) =
            (signal_socket(&[SIGCHLD])?, signal_socket(&[SIGTERM, SIGINT, SIGHUP])?);
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(getpid()))?;
        let signalled = BTreeSet::new();
        Ok(Self {
            child: None,
            group: None,
            child_exit: None,
            on_child_exit: |_| {},
            child_exits,
            stop_signals,
            signalled,
        })
    }

    /// Ends all processes, within the sum of the grace periods.
    pub(super) fn terminate(&mut self, grace: GracePeriods) {
        let GracePeriods { after_eof, after_sigterm, after_sigkill } = grace;
        let _ = self.wait_until_gone(after_eof, None)
            || self.wait_until_gone(after_sigterm, Some(Signal::TERM))
            || self.wait_until_gone(after_sigkill, Some(Signal::KILL));
    }

    /// Sends `signal`, if there is one, to all processes, including newly adopted ones, until none is left or `limit`
    /// has passed. Returns whether none is left.
    fn wait_until_gone(&mut self, limit: Duration, signal: Option<Signal>) -> bool {
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
            let mut fds = [PollFd::new(&self.child_exits, PollFlags::IN)];
            let _ = poll(&mut fds, Timespec::try_from(left.min(RESCAN_INTERVAL)).ok().as_ref());
        }
    }

    /// Sends a signal to each child. The server's process group also gets the signal, if the group's leader is a child
    /// that was not reaped yet, or if the children cannot be listed.
    fn signal(&mut self, signal: Signal) {
        let repeat = signal == Signal::KILL;
        let children = children::children_of(getpid());
        // Once the child is reaped, another process may get its id, so the group is not signalled any more. Without
        // `/proc`, only the group is known, so it is signalled in any case.
        let is_held = self.child_exit.is_none() && self.group == self.child;
        let group = self.group.filter(|_| is_held || children.is_err());
        if let Some(group) = group
            && (self.signalled.insert(-group.as_raw_pid()) || repeat)
        {
            let _ = kill_process_group(group, signal);
        }
        let signalled_group =
            self.group.filter(|group| self.signalled.contains(&-group.as_raw_pid()));
        for child in children.unwrap_or_default() {
            let as_member = signalled_group.is_some() && child.group == signalled_group;
            if repeat || (!as_member && self.signalled.insert(child.pid.as_raw_pid())) {
                let _ = kill_process(child.pid, signal);
            }
        }
    }

    /// Reaps all exited children. Returns whether no process is left.
    pub(super) fn reap(&mut self) -> bool {
        // The socket is drained first, so that a child that exits from now on makes it readable again.
        let mut bytes = [0; 64];
        while matches!((&self.child_exits).read(&mut bytes), Ok(1..)) {}
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == self.child => {
                    let ended = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => ChildExit::Exited(code),
                        (None, Some(signal)) => ChildExit::Killed(signal),
                        (None, None) => continue,
                    };
                    self.child_exit = Some(ended);
                    (self.on_child_exit)(ended);
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return self.is_group_gone(),
            }
        }
    }

    /// Whether the server's process group is empty. This is called when no child is left. On Linux no process at all is
    /// left then, because orphans become our children.
    fn is_group_gone(&self) -> bool {
        cfg!(target_os = "linux")
            || self.group.is_none_or(|group| test_kill_process_group(group).is_err())
    }
}

/// Creates a socket that becomes readable when one of the signals arrives.
fn signal_socket(signals: &[i32]) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, theirs.try_clone()?)?;
    }
    Ok(ours)
}
