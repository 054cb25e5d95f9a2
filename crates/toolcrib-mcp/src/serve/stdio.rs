//! Serves one client on standard input and output, or on another pair of streams.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::service::{QuitReason, ServerInitializeError, ServiceExt as _};
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::StdioError;
use super::stdio_transport::ClientStdioTransport;
use crate::gateway::{ClientDisconnected, ConnectionKind, Gateway, RawClientSession};
use crate::hidden_text::loggable_name;

/// How long calls may still take after the client has closed our standard input. Some clients close it and continue to
/// read (`printf … | toolcrib mcp`), but most have exited, and servers should not work for a client that has exited.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// Serves one client on standard input and output until it disconnects or `stop` is cancelled.
pub fn stdio(
    gateway: &Arc<Gateway>,
    profile: Option<String>,
    stop: CancellationToken,
) -> BoxFuture<'_, Result<(), StdioError>> {
    stream(gateway, profile, stdio_pipes(), stop, Arc::default())
}

/// What is known about a client that is being served on a stream.
#[derive(Debug, Default)]
pub struct StreamClient {
    /// The id of the client's session.
    pub session: OnceLock<u64>,
    /// The name that a client of the older protocol has reported.
    pub name: OnceLock<String>,
}

/// Serves one client on a pair of streams until it disconnects or `stop` is cancelled. What is learned about the client
/// is stored in `client`.
pub fn stream<R, W>(
    gateway: &Arc<Gateway>,
    profile: Option<String>,
    (input, output): (R, W),
    stop: CancellationToken,
    client: Arc<StreamClient>,
) -> BoxFuture<'_, Result<(), StdioError>>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    async move {
        if gateway.visible_in_session(profile.as_deref()).is_err() {
            return Err(StdioError::Profile(profile.unwrap_or_default()));
        }
        let (ended, disconnected) = (CancellationToken::new(), ClientDisconnected::default());
        let limit = gateway.hub().config().gateway.limits.request_bytes;
        let transport = ClientStdioTransport::new(input, output, limit, ended.clone());
        let session = gateway.client_session(profile, disconnected.clone(), ConnectionKind::Stream);
        let _ = client.session.set(session.id());
        let serving = RawClientSession(session).serve_with_ct(transport, stop);
        let running = match Box::pin(serving).await {
            Ok(running) => running,
            // It is not an error if a client connects and disconnects without a request.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                return Ok(());
            }
            Err(error) => return Err(StdioError::Handshake(error.to_string())),
        };
        if let Some(info) = running.peer().peer_info() {
            let _ = client.name.set(loggable_name(&info.client_info.name));
        }
        tokio::spawn(async move {
            ended.cancelled().await;
            tokio::time::sleep(DRAIN_TIME).await;
            disconnected.0.cancel();
        });
        let quit = running.waiting().await;
        match quit {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(StdioError::Io(error.into())),
            Ok(_) => Ok(()),
        }
    }
    .boxed()
}
