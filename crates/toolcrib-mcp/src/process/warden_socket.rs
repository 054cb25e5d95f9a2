//! What ties a warden to its gateway: one socket, used in three ways. A second one ties the inner warden to the outer one.
//!
//! The warden's stdin is one end of a pair of Unix sockets. Over it come the two descriptors the
//! server is to have as its stdin and stdout; on it the warden writes its reports; and when it reads
//! the end of it, the gateway has let go or is gone, however it went, since no other process ever had
//! the other end. A pipe as a fourth descriptor would do for the last of these, but a process
//! cannot take up an inherited descriptor by its number without `unsafe`; a received one comes owned.

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

/// What the warden says about its server, a line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WardenReport {
    /// It runs, under this process id.
    Runs(i32),
    /// It could not be run, for this reason.
    CannotRun(String),
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
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

    /// Writes it to the gateway. Nobody may be left to read it, which is nothing to fail over.
    pub(super) fn send(&self, socket: impl AsFd) {
        // Not every system has a flag against SIGPIPE; Rust's runtime ignores the signal anyway.
        let _ = send(socket, self.to_line().as_bytes(), SendFlags::empty());
    }
}

/// The gateway's end. While it is open, the server may live.
#[derive(Debug)]
pub(super) struct WardenSocket {
    socket: UnixStream,
    /// Reports that have come, the last perhaps in part.
    received: Vec<u8>,
}

impl WardenSocket {
    /// Both ends; the second is to be the warden's stdin.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Self { socket: UnixStream::from_std(ours)?, received: Vec::new() }, theirs.into()))
    }

    /// Lets go: the warden reads the end and does its work. Its reports still arrive.
    pub(super) fn close(&self) {
        // Fails only when the other end is gone already.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }

    /// The next report, or `None` when the warden is gone. Nothing is lost when it is dropped half way.
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

/// What a warden is told at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WardenSetup {
    /// How long the server may take to end.
    pub(super) grace: GracePeriods,
    /// Whether the other end is a warden, and not the gateway.
    pub(super) has_outer_warden: bool,
}

/// Stands after the grace periods where the other end is a warden.
const WATCHED: &str = "has_outer_warden";

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

/// Hands over what the server is to have as stdin and stdout, and what its warden is told.
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

/// The warden's side of [`send_setup`].
pub(super) fn receive_setup(socket: impl AsFd) -> io::Result<([OwnedFd; 2], WardenSetup)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    // Three numbers of at most 20 digits and a word. One `recvmsg` gets the whole line: it was sent with one `sendmsg` into
    // an empty socket.
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
        // The server gets copies as its 0 and 1; with these too, its stdin would never end. A flag
        // for this exists on Linux only, and nothing else runs in this process yet.
        fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    }
    let fds = <[OwnedFd; 2]>::try_from(fds).map_err(|_| io::ErrorKind::UnexpectedEof)?;
    Ok((fds, setup.ok_or(io::ErrorKind::InvalidData)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_warden_is_told_reads_back_as_written() {
        for has_outer_warden in [false, true] {
            let setup = WardenSetup { grace: GracePeriods::default(), has_outer_warden };
            assert_eq!(WardenSetup::from_line(&setup.to_line()), Some(setup));
        }
    }

    #[test]
    fn reports_read_back_as_written() {
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
