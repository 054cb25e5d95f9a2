//! One client, on standard input and output.

use std::sync::Arc;

use rmcp::service::{QuitReason, ServerInitializeError, ServiceExt as _};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use tokio_util::sync::CancellationToken;

use super::Closed;
use crate::gateway::{Gateway, RawFront};

/// Serves one client until it leaves or `stop` is cancelled.
pub async fn stdio(
    gateway: &Arc<Gateway>,
    profile: Option<String>,
    stop: CancellationToken,
) -> Result<(), Closed> {
    if gateway.sight(profile.as_deref()).is_err() {
        return Err(Closed::Profile(profile.unwrap_or_default()));
    }
    let (input, output) = stdio_pipes();
    let limit = gateway.hub().config().gateway.limits.request_bytes;
    let wire = AsyncRwTransport::new_server(input, output).with_max_line_length(limit);
    let serving = RawFront(gateway.front(profile)).serve_with_ct(wire, stop);
    let running = match Box::pin(serving).await {
        Ok(running) => running,
        // A client that comes and goes without a word has asked for nothing.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => return Err(Closed::Handshake(error.to_string())),
    };
    let ended = running.waiting().await;
    match ended {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(Closed::Io(error.into())),
        Ok(_) => Ok(()),
    }
}
