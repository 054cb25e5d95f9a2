//! The stream that hyper reads from and writes to. It reads small chunks and reports bytes received and sent.
//!
//! hyper doubles its read buffer whenever one read fills it, up to 400 KB, and keeps the buffer for the lifetime of the
//! connection. The proxy may have hundreds of clients, each of which sends 100 KB or more at a time and then waits for
//! minutes. With reads of at most [`MAX_READ`] bytes, the buffer stays small.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection_activity::ConnectionActivity;

/// Maximum size of one read, in bytes.
const MAX_READ: usize = 16 << 10;

/// A stream that reads at most [`MAX_READ`] bytes at a time and reports bytes received and sent.
#[derive(Debug)]
pub(crate) struct ConnectionStream<S> {
    stream: S,
    activity: Arc<ConnectionActivity>,
}

impl<S> ConnectionStream<S> {
    pub(crate) fn new(stream: S, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream, activity }
    }

    fn report_sent(&self, written: io::Result<usize>) -> io::Result<usize> {
        if matches!(written, Ok(bytes) if bytes > 0) {
            self.activity.bytes_sent();
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ConnectionStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let size = buf.remaining().min(MAX_READ);
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(size));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buf.advance(read);
        if read > 0 {
            self.activity.bytes_received();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ConnectionStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        Poll::Ready(self.report_sent(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices));
        Poll::Ready(self.report_sent(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn large_writes_arrive_complete_in_small_reads() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sent: Vec<u8> = (0..5 * MAX_READ + 7).map(|at| at as u8).collect();
        let all = sent.clone();
        let client = tokio::spawn(async move {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(&all).await.unwrap();
        });
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = ConnectionStream::new(stream, Arc::new(ConnectionActivity::new()));
        let (mut received, mut buffer) = (Vec::new(), vec![0; 4 * MAX_READ]);
        while received.len() < sent.len() {
            let read = stream.read(&mut buffer).await.unwrap();
            assert!((1..=MAX_READ).contains(&read), "{read} bytes at once");
            received.extend_from_slice(&buffer[..read]);
        }
        client.await.unwrap();
        assert_eq!(received, sent);
    }
}
