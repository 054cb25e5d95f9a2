//! One client, on standard input and output.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::service::{QuitReason, ServerInitializeError, ServiceExt as _};
use rmcp::transport::stdio_pipes;
use tokio_util::sync::CancellationToken;

use super::Closed;
use super::client_wire::ClientWire;
use crate::gateway::{Gateway, Left, RawFront};

/// How long calls may still take when a client has said its last. Some only close their side and read on
/// (`printf … | toolcrib mcp`), and most that do are gone: their servers hear of it within a second.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Serves one client until it leaves or `stop` is cancelled.
pub fn stdio(
    gateway: &Arc<Gateway>,
    profile: Option<String>,
    stop: CancellationToken,
) -> BoxFuture<'_, Result<(), Closed>> {
    async move {
        if gateway.sight(profile.as_deref()).is_err() {
            return Err(Closed::Profile(profile.unwrap_or_default()));
        }
        let (input, output) = stdio_pipes();
        let (ended, left) = (CancellationToken::new(), Left::default());
        let limit = gateway.hub().config().gateway.limits.request_bytes;
        let wire = ClientWire::new(input, output, limit, ended.clone());
        let serving = RawFront(gateway.front(profile, left.clone())).serve_with_ct(wire, stop);
        let running = match Box::pin(serving).await {
            Ok(running) => running,
            // A client that comes and goes without a word has asked for nothing.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                return Ok(());
            }
            Err(error) => return Err(Closed::Handshake(error.to_string())),
        };
        tokio::spawn(async move {
            ended.cancelled().await;
            tokio::time::sleep(LAST_ANSWERS).await;
            left.0.cancel();
        });
        let quit = running.waiting().await;
        match quit {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(Closed::Io(error.into())),
            Ok(_) => Ok(()),
        }
    }
    .boxed()
}
