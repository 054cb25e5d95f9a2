//! A response body that holds a permit until the body has been sent. The permit is, for example, a share of a memory
//! budget, or a token that marks the request as in flight.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};

/// A response body with a permit that is released once the body has been sent or dropped. Frames pass unchanged,
/// including trailers.
#[derive(Debug)]
pub struct BodyWithPermit<T> {
    body: Body,
    _permit: T,
}

impl<T> BodyWithPermit<T> {
    /// Creates a response body that consists of `body` and holds `permit`.
    pub fn new(body: Body, permit: T) -> Self {
        Self { body, _permit: permit }
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
