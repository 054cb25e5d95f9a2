//! Graceful shutdown: requests in flight may finish, streams without an end are closed.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::body_with_permit::BodyWithPermit;

/// Maximum time that requests in flight may take to finish after a stop.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Time for the last bytes of streams to be sent after they were closed.
const FLUSH_TIME: Duration = Duration::from_secs(1);

/// The shutdown of a server, as its services take part in it. A clone is the same shutdown.
#[derive(Debug, Clone, Default)]
pub struct GracefulShutdown {
    in_flight: TaskTracker,
    closed: CancellationToken,
}

impl GracefulShutdown {
    /// Shutdown waits until the returned token is dropped. For requests that end on their own.
    pub fn track_request(&self) -> TaskTrackerToken {
        self.in_flight.token()
    }

    /// Cancelled once shutdown no longer waits. Ends the streams that last as long as their client listens.
    pub fn streams_closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Makes shutdown wait for every request to `router`, until the last byte of its response.
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

    /// Runs the shutdown once `stop` is cancelled.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        stop.cancelled().await;
        self.in_flight.close();
        if tokio::time::timeout(MAX_WAIT, self.in_flight.wait()).await.is_err() {
            tracing::warn!(
                seconds = MAX_WAIT.as_secs(),
                "requests that took too long were cut off"
            );
        }
        self.closed.cancel();
        tokio::time::sleep(FLUSH_TIME).await;
    }
}
