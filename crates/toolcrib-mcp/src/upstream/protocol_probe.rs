//! Finds out which protocol a server over stdio uses, before the SDK's own handshake.
//!
//! The SDK can do this too, but it waits only 10 s for the answer, and then mistakes a server of the newer protocol that
//! starts slowly for one of the older protocol. If a command such as `npx -y …` downloads the server, this may take a
//! minute. So the gateway waits as long as the `start_timeout` of the server allows.
//!
//! Some servers of the older protocol ignore requests that they do not know. If there is no answer after 10 s, the
//! handshake of the older protocol is sent as well, and the first useful answer decides. The SDK then repeats the request
//! that was answered. [`ProbedTransport`] gives it the answer that was already received, so each request reaches the
//! server only once.

use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, DiscoverRequest, DiscoverRequestParams, ErrorCode,
    InitializeRequest, JsonRpcMessage, ProtocolVersion, RequestId, RequestMetaObject,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, RoleClient, Service as _};
use rmcp::transport::Transport;

use super::client_service::ClientService;

/// How long the gateway waits for the answer to its probe before it also sends the handshake of the older protocol.
const SILENCE: Duration = Duration::from_secs(10);

/// The id of the probe. The SDK counts its own requests from 0, so it never uses this id or the next one. The
/// protocol also allows texts as ids, but some servers support only small numbers.
const PROBE_ID: RequestId = RequestId::Number(2_000_000_000);
/// The id of a handshake that was sent while the probe was unanswered.
const HANDSHAKE_ID: RequestId = RequestId::Number(2_000_000_001);

/// Whether a request with this id is the probe, so that its answer may arrive after a handshake has begun.
pub(super) fn is_probe(id: &RequestId) -> bool {
    *id == PROBE_ID
}

/// The server closed the connection before it answered the probe. Some servers of the older protocol exit on a request
/// that they do not know.
#[derive(Debug)]
pub(super) struct ClosedDuringProbe;

/// A transport whose server has been probed.
pub(super) struct ProbedTransport<T> {
    inner: T,
    probed: Probed,
    /// An answer that is passed to the SDK before the next message of the server.
    ready: Option<ServerJsonRpcMessage>,
}

/// What the probe has shown.
enum Probed {
    /// The server supports the newer protocol. The answer is passed to the SDK once.
    Newer(Option<ServerJsonRpcMessage>),
    /// The server uses the older protocol, and no handshake was sent yet.
    Older,
    /// The server uses the older protocol, and a handshake was sent.
    HandshakeSent {
        answer: Option<ServerJsonRpcMessage>,
        /// The id that the SDK has given to the handshake.
        sdk_id: Option<RequestId>,
    },
}

impl<T: Transport<RoleClient>> ProbedTransport<T> {
    /// Probes the server. Waits until it answers or closes the connection, so the caller limits the time.
    pub(super) async fn probe(mut inner: T) -> Result<Self, ClosedDuringProbe> {
        let sent = inner.send(probe_request());
        if sent.await.is_err() {
            // The server no longer reads. Its output is read until the end, because it may contain the reason.
            while inner.receive().await.is_some() {}
            return Err(ClosedDuringProbe);
        }
        let first = tokio::time::timeout(SILENCE, next_verdict(&mut inner)).await;
        let probed = if let Ok(verdict) = first {
            match verdict? {
                Verdict::Probed(probed) => probed,
                // No handshake was sent, so there is no answer to it.
                Verdict::Handshake(_) => Probed::Older,
            }
        } else {
            let sent = inner.send(handshake_request());
            sent.await.map_err(|_| ClosedDuringProbe)?;
            match next_verdict(&mut inner).await? {
                Verdict::Probed(Probed::Older) => {
                    Probed::HandshakeSent { answer: None, sdk_id: None }
                }
                Verdict::Probed(probed) => probed,
                Verdict::Handshake(answer) => {
                    Probed::HandshakeSent { answer: Some(answer), sdk_id: None }
                }
            }
        };
        Ok(Self { inner, probed, ready: None })
    }

    /// Returns the mode in which the SDK connects.
    pub(super) fn mode(&self) -> ClientLifecycleMode {
        match self.probed {
            Probed::Newer(_) => {
                let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
                ClientLifecycleMode::Discover { preferred_versions }
            }
            Probed::Older | Probed::HandshakeSent { .. } => ClientLifecycleMode::Initialize,
        }
    }

    /// Whether the server ignores the probe, so that its next start need not wait for the answer.
    pub(super) fn ignores_probe(&self) -> bool {
        matches!(self.probed, Probed::HandshakeSent { answer: Some(_), .. })
    }

    /// If the server has already received this request, prepares the answer for the SDK and returns true.
    fn was_sent_before(&mut self, message: &ClientJsonRpcMessage) -> bool {
        let JsonRpcMessage::Request(request) = message else { return false };
        match (&request.request, &mut self.probed) {
            (ClientRequest::DiscoverRequest(_), Probed::Newer(answer)) => {
                self.ready = answer.take().map(|answer| with_id(answer, &request.id));
                self.ready.is_some()
            }
            (
                ClientRequest::InitializeRequest(_),
                Probed::HandshakeSent { answer, sdk_id: sdk_id @ None },
            ) => {
                self.ready = answer.take().map(|answer| with_id(answer, &request.id));
                *sdk_id = Some(request.id.clone());
                true
            }
            _ => false,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for ProbedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let sent = (!self.was_sent_before(&message)).then(|| self.inner.send(message));
        async move {
            match sent {
                Some(sent) => sent.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        if let Some(answer) = self.ready.take() {
            return Some(answer);
        }
        loop {
            let message = self.inner.receive().await?;
            match (answered_id(&message), &self.probed) {
                (Some(HANDSHAKE_ID), Probed::HandshakeSent { sdk_id: Some(id), .. }) => {
                    return Some(with_id(message, id));
                }
                // This answer came too late and is not needed.
                (Some(PROBE_ID | HANDSHAKE_ID), _) => {}
                _ => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

/// What an answer says about the server.
enum Verdict {
    Probed(Probed),
    /// The server has answered the handshake.
    Handshake(ServerJsonRpcMessage),
}

/// Waits for the answer that decides which protocol the server uses. If this future is dropped, no message is lost.
async fn next_verdict<T: Transport<RoleClient>>(
    inner: &mut T,
) -> Result<Verdict, ClosedDuringProbe> {
    loop {
        let message = inner.receive().await.ok_or(ClosedDuringProbe)?;
        if let Some(verdict) = verdict(message) {
            return Ok(verdict);
        }
    }
}

fn verdict(message: ServerJsonRpcMessage) -> Option<Verdict> {
    Some(match &message {
        JsonRpcMessage::Response(answer) if is_probe(&answer.id) => {
            let is_newer = matches!(answer.result, ServerResult::DiscoverResult(_));
            let older = || Verdict::Probed(Probed::Older);
            if is_newer { Verdict::Probed(Probed::Newer(Some(message))) } else { older() }
        }
        JsonRpcMessage::Response(answer) if answer.id == HANDSHAKE_ID => {
            Verdict::Handshake(message)
        }
        // A server of the newer protocol may reject the handshake while it prepares its answer to the probe.
        JsonRpcMessage::Error(error) if error.id == Some(HANDSHAKE_ID) => return None,
        // A server that cannot read the probe omits the id.
        JsonRpcMessage::Error(error) => match error.error.code {
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::HEADER_MISMATCH => Verdict::Probed(Probed::Newer(Some(message))),
            _ => Verdict::Probed(Probed::Older),
        },
        _ => return None,
    })
}

fn answered_id(message: &ServerJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Response(answer) => Some(answer.id.clone()),
        JsonRpcMessage::Error(error) => error.id.clone(),
        _ => None,
    }
}

/// Returns the answer with another id.
fn with_id(mut answer: ServerJsonRpcMessage, id: &RequestId) -> ServerJsonRpcMessage {
    match &mut answer {
        JsonRpcMessage::Response(response) => response.id = id.clone(),
        JsonRpcMessage::Error(error) => error.id = Some(id.clone()),
        _ => {}
    }
    answer
}

fn probe_request() -> ClientJsonRpcMessage {
    let client = ClientService.get_info();
    let mut discover = DiscoverRequest::new(DiscoverRequestParams {});
    discover.extensions.insert(RequestMetaObject::with_client_context(
        ProtocolVersion::V_2026_07_28,
        client.client_info,
        client.capabilities,
    ));
    ClientJsonRpcMessage::request(ClientRequest::DiscoverRequest(discover), PROBE_ID)
}

fn handshake_request() -> ClientJsonRpcMessage {
    let initialize = InitializeRequest::new(ClientService.get_info());
    ClientJsonRpcMessage::request(ClientRequest::InitializeRequest(initialize), HANDSHAKE_ID)
}

/// Returns the error of a connection that the server closed before it answered the probe.
impl From<ClosedDuringProbe> for ClientInitializeError {
    fn from(_: ClosedDuringProbe) -> Self {
        Self::ConnectionClosed("server/discover".into())
    }
}
