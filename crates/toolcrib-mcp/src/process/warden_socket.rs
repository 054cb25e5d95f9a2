//! The socket between the gateway and a warden, and between the two wardens.
//!
//! The warden's stdin is one of a pair of connected Unix sockets, which has three uses. The gateway sends the two file
//! descriptors that become the server's stdin and stdout. The warden sends reports. When the warden reads end-of-file,
//! it knows that the gateway has closed its socket or is gone, because no other process holds the peer socket.
//! Rejected: a pipe as a fourth inherited descriptor, because a process cannot take ownership of a descriptor by its
//! number without `unsafe`.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, send, sendmsg,
};
use tokio::net::UnixStream;

use super::GracePeriods;

/// A report from the warden about its server, sent as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WardenReport {
    /// The server is running, with this process id.
    Runs(i32),
    /// The server could not be run, for this reason.
    CannotRun(String),
    /// The server exited with this code.
    Exited(i32),
    /// This signal killed the server.
    Killed(i32),
}

impl WardenReport {
    fn to_line(&self) -> String {
        match self {
            Self::Runs(pid) => format!("runs {pid}\n"),
            Self::CannotRun(reason) => format!("cannot-run {}\n", reason.replace('\n', " ")),
            Self::Exited(code) => format!("exited {code}\n"),
            Self::Killed(signal) => format!("killed {signal}\n"),
        }
    }

    pub(super) fn from_line(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        Some(match word {
            "runs" => Self::Runs(rest.parse().ok()?),
            "cannot-run" => Self::CannotRun(rest.to_owned()),
            "exited" => Self::Exited(rest.parse().ok()?),
            "killed" => Self::Killed(rest.parse().ok()?),
            _ => return None,
        })
    }

    /// Sends the report. Errors are ignored, because the gateway may be gone.
    pub(super) fn send(&self, socket: impl AsFd) {
        // No flag against SIGPIPE is set, because not every system has such a flag, and Rust's runtime ignores the
        // signal.
        let _ = send(socket, self.to_line().as_bytes(), SendFlags::empty());
    }
}

/// The gateway's socket to a warden. Closing it ends the server.
#[derive(Debug)]
pub(super) struct WardenSocket {
    socket: UnixStream,
    /// Received bytes that were not parsed yet.
    received: Vec<u8>,
}

impl WardenSocket {
    /// Creates the pair of sockets. The second one becomes the warden's stdin.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Self { socket: UnixStream::from_std(ours)?, received: Vec::new() }, theirs.into()))
    }

    /// Tells the warden to end the server. The warden's reports still arrive.
    pub(super) fn close(&self) {
        // This fails only if the peer is already gone.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }

    /// Waits for the next report. Returns `None` if the warden is gone. This is cancel-safe.
    pub(super) async fn report(&mut self) -> Option<WardenReport> {
        loop {
            if let Some(end) = self.received.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                if let Some(report) =
                    WardenReport::from_line(String::from_utf8_lossy(&line[..end]).as_ref())
                {
                    return Some(report);
                }
                continue;
            }
            self.socket.readable().await.ok()?;
            let mut chunk = [0; 1024];
            match self.socket.try_read(&mut chunk) {
                Ok(read @ 1..) => self.received.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => return None,
            }
        }
    }
}

impl AsFd for WardenSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The settings that a warden receives when it starts, in addition to the file descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WardenSetup {
    /// How long the server may take to exit.
    pub(super) grace: GracePeriods,
    /// Whether the peer is the outer warden, and not the gateway.
    pub(super) has_outer_warden: bool,
}

/// The word that follows the grace periods in the setup line if the peer is the outer warden.
const WATCHED: &str = "watched";

impl WardenSetup {
    fn to_line(self) -> String {
        let grace = self.grace.to_line();
        if self.has_outer_warden { format!("{} {WATCHED}\n", grace.trim_end()) } else { grace }
    }

    fn from_line(line: &str) -> Option<Self> {
        let has_outer_warden = line.split_whitespace().nth(3) == Some(WATCHED);
        Some(Self { grace: GracePeriods::from_line(line)?, has_outer_warden })
    }
}

/// Sends the warden its setup, and the file descriptors that become the server's stdin and stdout.
pub(super) fn send_setup(
    socket: impl AsFd,
    stdin: BorrowedFd<'_>,
    stdout: BorrowedFd<'_>,
    setup: WardenSetup,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let both = [stdin, stdout];
    control.push(SendAncillaryMessage::ScmRights(&both));
    let line = setup.to_line();
    sendmsg(socket, &[IoSlice::new(line.as_bytes())], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives what [`send_setup`] sent.
pub(super) fn receive_setup(socket: impl AsFd) -> io::Result<([OwnedFd; 2], WardenSetup)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    // 80 bytes are enough for the line, which has three numbers of at most 20 digits and a word. One `recvmsg` returns
    // all of it, because it was sent with one `sendmsg` into an empty socket.
    let mut line = [0; 80];
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(&mut line)], &mut control, RecvFlags::empty())?;
    let setup = str::from_utf8(&line[..received.bytes]).ok().and_then(WardenSetup::from_line);
    let fds: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    for fd in &fds {
        // The server gets copies of these descriptors as its descriptors 0 and 1. If it also inherited the originals,
        // its stdin would never reach end-of-file. Only Linux can set the flag in `recvmsg`. Setting it afterwards is
        // safe, because no other thread is running yet.
        fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    }
    let fds = <[OwnedFd; 2]>::try_from(fds).map_err(|_| io::ErrorKind::UnexpectedEof)?;
    Ok((fds, setup.ok_or(io::ErrorKind::InvalidData)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_survives_a_round_trip() {
        for has_outer_warden in [false, true] {
            let setup = WardenSetup { grace: GracePeriods::default(), has_outer_warden };
            assert_eq!(WardenSetup::from_line(&setup.to_line()), Some(setup));
        }
    }

    #[test]
    fn reports_survive_a_round_trip() {
        let reports = [
            WardenReport::Runs(4711),
            WardenReport::CannotRun("No such file or directory".into()),
            WardenReport::Exited(3),
            WardenReport::Killed(9),
        ];
        for report in reports {
            assert_eq!(WardenReport::from_line(report.to_line().trim_end()), Some(report));
        }
        assert_eq!(WardenReport::from_line("exited"), None);
        assert_eq!(WardenReport::from_line("exited x"), None);
    }
}
