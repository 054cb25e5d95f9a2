//! TCP connections for hyper: small reads, and no delay on writes.
//!
//! hyper doubles its read buffer whenever one read fills it, up to 400 KB, and keeps it for as long as
//! the connection lives. Clients of the proxy send 100 KB and more and then wait for minutes, hundreds of
//! them at a time. With reads of at most [`MAX_READ`] bytes the buffer stays small.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Maximum size of one read, in bytes.
const MAX_READ: usize = 16 << 10;

/// A listener whose connections read at most [`MAX_READ`] bytes at a time.
#[derive(Debug)]
pub(crate) struct SmallReads(pub(crate) TcpListener);

impl Listener for SmallReads {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // A response is several small writes. Nagle's algorithm would hold each back until the one before is
        // acknowledged, and with delayed acknowledgements that takes 40 ms.
        let _ = stream.set_nodelay(true);
        (Connection(stream), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection(TcpStream);

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let size = buf.remaining().min(MAX_READ);
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(size));
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buf.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn large_writes_arrive_complete_in_small_reads() {
        let mut listener = SmallReads(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        let sent: Vec<u8> = (0..5 * MAX_READ + 7).map(|at| at as u8).collect();
        let all = sent.clone();
        let client = tokio::spawn(async move {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(&all).await.unwrap();
        });
        let (mut stream, _) = listener.accept().await;
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
