//! A handle to a live connection, and the requests in progress on it.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use rmcp::model::{ClientRequest, RequestId, RequestMetaObject, ServerPeerInfo};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::mpsc;
use toolcrib_text::clean::one_line;

use super::open_requests::ProgressMessage;
use super::question_router::{RootsAnswer, RootsProgress};
use super::tap::Tap;
use super::upstream_error::UpstreamError;
use crate::hidden_text::clean_error;

/// A handle to a live connection. Clones share the connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionHandle {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) tap: Arc<Tap>,
    pub(crate) server_info: Arc<ServerPeerInfo>,
    pub(crate) roots: RootsProgress,
}

/// A request in progress. Dropping it before the answer arrives cancels the request.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    handle: Option<RequestHandle<RoleClient>>,
    tap: Arc<Tap>,
    id: RequestId,
    progress: mpsc::Receiver<ProgressMessage>,
}

/// An event of a request in progress.
#[derive(Debug)]
pub(crate) enum RequestEvent {
    /// The server sent a progress notification with these parameters.
    Progress(ProgressMessage),
    /// The request has ended with a result or an error.
    Done(Result<Value, UpstreamError>),
}

impl ConnectionHandle {
    /// Whether the server uses the newer protocol, which has no handshake.
    pub(crate) fn uses_newer_protocol(&self) -> bool {
        !self.server_info.protocol_version.has_initialize()
    }

    /// Whether the server has learned the roots of a client.
    pub(crate) fn knows_roots(&self) -> bool {
        *self.roots.borrow() == RootsAnswer::Known
    }

    /// Whether the connection is over.
    pub(crate) fn is_closed(&self) -> bool {
        self.tap.closed().now_or_never().is_some()
    }

    /// Waits until the connection is over. Returns the error of a request that was in progress.
    pub(crate) async fn closed(&self) -> UpstreamError {
        self.tap.closed().await;
        upstream_error(&self.tap, ServiceError::TransportClosed)
    }

    /// Sends a request, without waiting for its result.
    pub(crate) async fn send(
        &self,
        request: ClientRequest,
        meta: Option<RequestMetaObject>,
    ) -> Result<PendingRequest, UpstreamError> {
        let mut options = PeerRequestOptions::no_options();
        options.meta = meta;
        let sent = self.peer.send_request_with_option(request, options).await;
        let handle = sent.map_err(|error| upstream_error(&self.tap, error))?;
        let id = handle.id.clone();
        let progress = self.tap.take_progress(&id).unwrap_or_else(|| mpsc::channel(1).1);
        Ok(PendingRequest { handle: Some(handle), tap: Arc::clone(&self.tap), id, progress })
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        timeout: Duration,
    ) -> Result<Value, UpstreamError> {
        self.request_with(request, None, timeout).await
    }

    /// Like [`Self::request`], with `_meta` fields that replace the usual ones.
    pub(super) async fn request_with(
        &self,
        request: ClientRequest,
        meta: Option<RequestMetaObject>,
        timeout: Duration,
    ) -> Result<Value, UpstreamError> {
        let mut pending = self.send(request, meta).await?;
        let answer = async {
            loop {
                if let RequestEvent::Done(result) = pending.next_event().await {
                    return result;
                }
            }
        };
        match tokio::time::timeout(timeout, answer).await {
            Ok(result) => result,
            Err(_) => Err(UpstreamError::Timeout(timeout.as_secs_f64())),
        }
    }
}

impl PendingRequest {
    /// Returns the id that the request was sent with.
    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Waits for progress, even if the request has been answered. Never returns if none can arrive any more.
    pub(crate) async fn next_progress(&mut self) -> ProgressMessage {
        match self.progress.recv().await {
            Some(progress) => progress,
            None => std::future::pending().await,
        }
    }

    /// Waits for the next event. Progress that arrived before the answer is returned before the answer.
    pub(crate) async fn next_event(&mut self) -> RequestEvent {
        let Some(handle) = &mut self.handle else {
            return RequestEvent::Done(Err(UpstreamError::Closed("the request is over".into())));
        };
        let answer = tokio::select! {
            biased;
            Some(progress) = self.progress.recv() => return RequestEvent::Progress(progress),
            answer = &mut handle.rx => answer,
            () = self.tap.closed() => Ok(Err(ServiceError::TransportClosed)),
        };
        self.handle = None;
        let result = match answer {
            Ok(Ok(_)) => self
                .tap
                .take_result(&self.id)
                .ok_or_else(|| UpstreamError::Unexpected("an answer without a result".into())),
            Ok(Err(error)) => Err(upstream_error(&self.tap, error)),
            Err(_) => Err(upstream_error(&self.tap, ServiceError::TransportClosed)),
        };
        RequestEvent::Done(result)
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.tap.forget_request(&self.id);
        if let Some(handle) = self.handle.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let cancelled = handle.cancel(Some("the result is no longer needed".into()));
            runtime.spawn(self.tap.cancellations.track_future(cancelled));
        }
    }
}

fn upstream_error(tap: &Tap, error: ServiceError) -> UpstreamError {
    match error {
        ServiceError::McpError(error) => UpstreamError::Rejected(clean_error(error)),
        ServiceError::TransportClosed => UpstreamError::Closed(
            tap.close_reason().unwrap_or_else(|| "the connection is closed".into()),
        ),
        ServiceError::Cancelled { .. } => UpstreamError::Cancelled,
        error @ ServiceError::TransportSend(_) => {
            UpstreamError::Closed(tap.mask(&super::error_text(&error)))
        }
        other => UpstreamError::Unexpected(tap.mask(&one_line(&other.to_string()))),
    }
}
