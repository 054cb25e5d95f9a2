//! One live connection to a server, and the requests that are under way on it.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, RequestId, RequestMetaObject, ServerPeerInfo};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::mpsc;
use toolcrib_text::clean::one_line;

use super::failed::Failed;
use super::slots::Progress;
use super::tap::Tap;
use crate::hidden_text::clean_error;

/// One live connection.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) tap: Arc<Tap>,
    pub(crate) info: Arc<ServerPeerInfo>,
}

/// A request that is under way. Dropped before its answer came, it is cancelled.
#[derive(Debug)]
pub(crate) struct Pending {
    handle: Option<RequestHandle<RoleClient>>,
    tap: Arc<Tap>,
    id: RequestId,
    progress: mpsc::Receiver<Progress>,
}

/// What comes of a request.
#[derive(Debug)]
pub(crate) enum Step {
    /// It is getting on: the parameters of a progress notification.
    Progress(Progress),
    /// It is over.
    Over(Result<Value, Failed>),
}

impl Link {
    /// Whether the server speaks the revision without a handshake.
    pub(crate) fn is_modern(&self) -> bool {
        !self.info.protocol_version.has_initialize()
    }

    /// Sends a request.
    pub(crate) async fn send(
        &self,
        request: ClientRequest,
        meta: Option<RequestMetaObject>,
    ) -> Result<Pending, Failed> {
        let mut options = PeerRequestOptions::no_options();
        options.meta = meta;
        let sent = self.peer.send_request_with_option(request, options).await;
        let handle = sent.map_err(|error| self.failed(error))?;
        let id = handle.id.clone();
        let progress = self.tap.progress(&id).unwrap_or_else(|| mpsc::channel(1).1);
        Ok(Pending { handle: Some(handle), tap: Arc::clone(&self.tap), id, progress })
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(
        &self,
        request: ClientRequest,
        within: Duration,
    ) -> Result<Value, Failed> {
        let mut pending = self.send(request, None).await?;
        let answer = async {
            loop {
                if let Step::Over(result) = pending.next().await {
                    return result;
                }
            }
        };
        match tokio::time::timeout(within, answer).await {
            Ok(result) => result,
            Err(_) => Err(Failed::Timeout(within.as_secs_f64())),
        }
    }

    fn failed(&self, error: ServiceError) -> Failed {
        failed(&self.tap, error)
    }
}

impl Pending {
    /// The id under which the server knows it.
    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }

    /// What comes next. Progress that came before the answer is told before it.
    pub(crate) async fn next(&mut self) -> Step {
        let Some(handle) = &mut self.handle else {
            return Step::Over(Err(Failed::Closed("the request is over".into())));
        };
        let answer = tokio::select! {
            biased;
            Some(progress) = self.progress.recv() => return Step::Progress(progress),
            answer = &mut handle.rx => answer,
            () = self.tap.closed() => Ok(Err(ServiceError::TransportClosed)),
        };
        self.handle = None;
        let result = match answer {
            Ok(Ok(_)) => self
                .tap
                .take(&self.id)
                .ok_or_else(|| Failed::Odd("an answer without a result".into())),
            Ok(Err(error)) => Err(failed(&self.tap, error)),
            Err(_) => Err(failed(&self.tap, ServiceError::TransportClosed)),
        };
        Step::Over(result)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.tap.forget(&self.id);
        if let Some(handle) = self.handle.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let told = handle.cancel(Some("the caller left".into()));
            runtime.spawn(self.tap.farewells.track_future(told));
        }
    }
}

fn failed(tap: &Tap, error: ServiceError) -> Failed {
    match error {
        ServiceError::McpError(error) => Failed::Refused(clean_error(error)),
        ServiceError::TransportClosed => {
            Failed::Closed(tap.why().unwrap_or_else(|| "the connection is closed".into()))
        }
        ServiceError::Cancelled { .. } => Failed::Cancelled,
        error @ ServiceError::TransportSend(_) => Failed::Closed(tap.hide(&super::reason(&error))),
        other => Failed::Odd(tap.hide(&one_line(&other.to_string()))),
    }
}
