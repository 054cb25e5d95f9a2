//! Request bodies with a timeout, and the part of their state that the connection needs.

use parking_lot::{Mutex, MutexGuard};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, timeout};

/// Maximum number of bytes that are received and discarded if a service does not read a body to its end. By default,
/// services accept bodies up to this size.
const MAX_DISCARDED: usize = 64 << 20;
/// Maximum time to receive the unread rest of a body.
const DISCARD_TIME: Duration = Duration::from_secs(10);
/// Maximum time without receiving any byte of the unread rest of a body.
const DISCARD_PAUSE: Duration = Duration::from_secs(1);

/// Why a request body ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestBodyError {
    /// No byte arrived for too long.
    #[error("no byte of the request body arrived for {0} seconds")]
    Stalled(u64),
    /// The connection failed.
    #[error(transparent)]
    Connection(hyper::Error),
}

/// The state of a request body, shared by the body and its connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyState(Arc<SharedBodyState>);

#[derive(Debug, Default)]
struct SharedBodyState {
    is_stalled: AtomicBool,
    unread: Mutex<Option<Incoming>>,
}

impl BodyState {
    /// Whether reading the body timed out.
    pub(crate) fn is_stalled(&self) -> bool {
        self.0.is_stalled.load(Ordering::Relaxed)
    }

    /// Whether the service dropped the body before reading all of it.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread().is_some()
    }

    /// Receives and discards the rest of a body that the service dropped. Otherwise the connection would be closed
    /// while the client is still sending, and most clients would never see the response. Stops after [`DISCARD_TIME`],
    /// after [`DISCARD_PAUSE`] without any byte, or after [`MAX_DISCARDED`] bytes.
    pub(crate) async fn discard(&self) {
        let Some(mut body) = self.unread().take() else { return };
        let mut discarded = 0;
        let all = async {
            while let Ok(Some(Ok(frame))) = timeout(DISCARD_PAUSE, next_frame(&mut body)).await {
                discarded += frame.data_ref().map_or(0, Bytes::len);
                if discarded > MAX_DISCARDED {
                    break;
                }
            }
        };
        let _ = timeout(DISCARD_TIME, all).await;
    }

    fn unread(&self) -> MutexGuard<'_, Option<Incoming>> {
        self.0.unread.lock()
    }
}

async fn next_frame(body: &mut Incoming) -> Option<Result<Frame<Bytes>, hyper::Error>> {
    std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

/// A request body that fails if no byte arrives for `timeout`. The time counts only while the service waits for bytes,
/// because the client is not to blame if the service reads slowly, for example because its upstream is slow.
pub(crate) struct TimedBody {
    /// `None` once the body has ended.
    body: Option<Incoming>,
    timeout: Duration,
    /// Runs while the service waits for the next bytes.
    timer: Option<Pin<Box<Sleep>>>,
    body_state: BodyState,
}

impl TimedBody {
    pub(crate) fn new(body: Incoming, timeout: Duration, body_state: BodyState) -> Self {
        Self { body: Some(body), timeout, timer: None, body_state }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            this.timer = None;
            if !matches!(frame, Some(Ok(_))) {
                this.body = None;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(RequestBodyError::Connection)));
        }
        let timeout = this.timeout;
        let timer = this.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        timer.as_mut().poll(context).map(|()| {
            this.body = None;
            this.body_state.0.is_stalled.store(true, Ordering::Relaxed);
            Some(Err(RequestBodyError::Stalled(timeout.as_secs())))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for TimedBody {
    fn drop(&mut self) {
        *self.body_state.unread() = self.body.take().filter(|body| !body.is_end_stream());
    }
}
