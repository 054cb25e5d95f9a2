//! A response body that keeps a value alive until the body has been sent: a place among the requests in flight, or a
//! share of a memory total.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};

/// A body that drops a value once the body was sent or given up. Frames pass unchanged, trailers included.
#[derive(Debug)]
pub struct BodyWithPermit<T> {
    body: Body,
    _held: T,
}

impl<T> BodyWithPermit<T> {
    /// Keeps `held` for as long as `body`.
    pub fn new(body: Body, held: T) -> Self {
        Self { body, _held: held }
    }
}

impl<T: Unpin> HttpBody for BodyWithPermit<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
