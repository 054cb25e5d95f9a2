//! Graceful shutdown: waits until requests in flight have finished, then closes open-ended streams.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::body_with_permit::BodyWithPermit;

/// Maximum time that shutdown waits for requests in flight.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Time to send the last bytes of streams after they are closed.
const FLUSH_TIME: Duration = Duration::from_secs(1);

/// Lets services take part in the shutdown of their server. Clones share the same state.
#[derive(Debug, Clone, Default)]
pub struct GracefulShutdown {
    in_flight: TaskTracker,
    streams_closed: CancellationToken,
}

impl GracefulShutdown {
    /// Makes shutdown wait until the returned token is dropped. Use it only for requests that end on their own, and not
    /// for streams that stay open as long as the client listens.
    pub fn track_request(&self) -> TaskTrackerToken {
        self.in_flight.token()
    }

    /// Returns a token that is cancelled when shutdown stops waiting. Streams that stay open as long as the client
    /// listens must then end.
    pub fn streams_closed(&self) -> &CancellationToken {
        &self.streams_closed
    }

    /// Makes shutdown wait for every request to `router` until the last byte of its response has been sent.
    pub fn track(&self, router: Router) -> Router {
        let tracker = self.in_flight.clone();
        router.layer(from_fn(move |request: Request, next: Next| {
            let in_flight = tracker.token();
            async move {
                let response = next.run(request).await;
                response.map(|body| Body::new(BodyWithPermit::new(body, in_flight)))
            }
        }))
    }

    /// Waits until `stop` is cancelled. Then waits at most [`MAX_WAIT`] for requests in flight, and closes open-ended
    /// streams.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        stop.cancelled().await;
        self.in_flight.close();
        if tokio::time::timeout(MAX_WAIT, self.in_flight.wait()).await.is_err() {
            tracing::warn!(
                seconds = MAX_WAIT.as_secs(),
                "requests still in flight at shutdown were cut off"
            );
        }
        self.streams_closed.cancel();
        tokio::time::sleep(FLUSH_TIME).await;
    }
}
