//! Graceful shutdown: requests in flight may finish, and open-ended streams are closed.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::body_with_permit::BodyWithPermit;

/// Maximum time to wait for requests in flight.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Time to send the last bytes of streams after they were closed.
const FLUSH_TIME: Duration = Duration::from_secs(1);

/// The shutdown of a server, as seen by its services. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct GracefulShutdown {
    in_flight: TaskTracker,
    streams_closed: CancellationToken,
}

impl GracefulShutdown {
    /// Makes shutdown wait until the returned token is dropped. For requests that end on their own.
    pub fn track_request(&self) -> TaskTrackerToken {
        self.in_flight.token()
    }

    /// Returns a token that is cancelled when shutdown stops waiting. Streams that last as long as their client
    /// listens must end then.
    pub fn streams_closed(&self) -> &CancellationToken {
        &self.streams_closed
    }

    /// Makes shutdown wait for every request to `router`, until the last byte of its response is sent.
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

    /// Waits until `stop` is cancelled, then shuts down.
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
