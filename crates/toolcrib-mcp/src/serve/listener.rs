//! Connections as the HTTP door takes them: answers go out at once, requests come in by small pieces.
//!
//! hyper doubles its buffer whenever one read fills it, up to 400 KB, and keeps it for as long as the
//! connection lives. Clients of the proxy send 100 KB and more and then listen for minutes, hundreds of
//! them at a time. Whoever reads a piece at a time never fills more than a small buffer.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Bytes of one read, at most.
const PIECE: usize = 16 << 10;

/// The listener of the door.
#[derive(Debug)]
pub(super) struct Pieces(pub(super) TcpListener);

impl Listener for Pieces {
    type Io = Piecewise;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Piecewise, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // An answer is several small writes, and each is to go out at once: held back until the one before
        // is acknowledged, which a client may put off, it would be 40 ms late.
        let _ = stream.set_nodelay(true);
        (Piecewise(stream), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Piecewise(TcpStream);

impl AsyncRead for Piecewise {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let size = buf.remaining().min(PIECE);
        let mut piece = ReadBuf::new(buf.initialize_unfilled_to(size));
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut piece))?;
        let read = piece.filled().len();
        buf.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Piecewise {
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
    async fn what_comes_at_once_is_read_by_pieces_and_whole() {
        let mut listener = Pieces(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        let sent: Vec<u8> = (0..5 * PIECE + 7).map(|at| at as u8).collect();
        let all = sent.clone();
        let client = tokio::spawn(async move {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(&all).await.unwrap();
        });
        let (mut stream, _) = listener.accept().await;
        let (mut came, mut buffer) = (Vec::new(), vec![0; 4 * PIECE]);
        while came.len() < sent.len() {
            let read = stream.read(&mut buffer).await.unwrap();
            assert!((1..=PIECE).contains(&read), "{read} bytes at once");
            came.extend_from_slice(&buffer[..read]);
        }
        client.await.unwrap();
        assert_eq!(came, sent);
    }
}
