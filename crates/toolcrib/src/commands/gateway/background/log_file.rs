//! The log file of a background gateway, with a maximum size.

use std::fs::File;
use std::io::{self, Write};

use toolcrib_mcp::background::{BackgroundSocket, SocketError};

/// Maximum size of the log, in bytes. A full log becomes the previous log, so both together take twice as much.
pub(super) const MAX_LOG_BYTES: u64 = 4 << 20;

/// Appends to the log of a background gateway.
pub(super) struct LogFile {
    socket: BackgroundSocket,
    file: File,
    length: u64,
}

impl LogFile {
    pub(super) fn open(socket: &BackgroundSocket) -> Result<Self, SocketError> {
        let file = socket.open_log(MAX_LOG_BYTES)?;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        Ok(Self { socket: socket.clone(), file, length })
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.length >= MAX_LOG_BYTES {
            *self = Self::open(&self.socket).map_err(io::Error::other)?;
        }
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
