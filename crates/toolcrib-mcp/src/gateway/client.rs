//! The client that sent a request, and how messages are sent to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientResult, CustomRequest, ErrorCode, ErrorData, LoggingLevel,
    LoggingMessageNotification, LoggingMessageNotificationParam, ProgressNotification,
    ProgressToken, RequestId, RequestMetaObject, ServerNotification, ServerRequest,
    TASKS_EXTENSION_ID,
};
use rmcp::service::{
    OriginatingRequestId, Peer, PeerRequestOptions, RequestContext, RequestHandle, RoleServer,
    ServiceError,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolcrib_server::BodyPermit;

use super::Viewer;
use super::message_size::{limit_log, limit_progress};
use super::shown_instructions::ShownInstructions;
use crate::hidden_text::clean_value;
use crate::snapshot::SessionKind;
use crate::unshared_servers::IdentifiedClient;
use crate::upstream::{APPS_EXTENSION, RawRequest, severity};

/// Keys of `_meta` that concern only the connection between two peers, so they are not forwarded.
const HOP_KEYS: [&str; 3] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
];

/// A token that is cancelled when a client has disconnected. The SDK lets that client's calls continue for some
/// seconds, in case the client still reads, but servers should not work for a client that has disconnected.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientDisconnected(pub(crate) CancellationToken);

/// Tells when nobody waits for the answer to a request any more.
#[derive(Debug, Clone)]
pub(crate) struct RequestAbandoned {
    /// Cancelled if the request is cancelled or its stream is closed.
    request: CancellationToken,
    /// Cancelled if the client that sent the request disconnects.
    client: ClientDisconnected,
}

impl RequestAbandoned {
    /// Waits until the request is abandoned.
    pub(crate) async fn cancelled(&self) {
        tokio::select! {
            () = self.request.cancelled() => {}
            () = self.client.0.cancelled() => {}
        }
    }
}

/// Sends the answer to a server's question to the task that waits for it.
pub(crate) type AnswerSender = oneshot::Sender<Result<Value, ErrorData>>;

/// The client that sent a request.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Identifies the connection. All requests of one connection have the same id.
    pub(crate) id: u64,
    /// Identifies the client across requests. If the client has a stable id, this is that id. All other clients with
    /// the same name in the same profile have the same group.
    pub(crate) group: u64,
    /// Whether the client uses the newer protocol, which has no handshake. Such a client can be asked questions only in
    /// the results of its requests.
    pub(crate) uses_newer_protocol: bool,
    /// Whether `id` stays the same for all requests of the client until it disconnects.
    pub(crate) has_stable_id: bool,
    pub(crate) abandoned: RequestAbandoned,
    pub(crate) meta: RequestMetaObject,
    capabilities: ClientCapabilities,
    log_level: Option<LoggingLevel>,
    request: Option<RequestId>,
    /// The stream for log messages about this request. If `None`, these log messages are sent with the session's other
    /// messages.
    stream: Option<RequestStream>,
    /// The instructions that the client's session has received, if it has a session.
    pub(super) shown_instructions: Option<Arc<ShownInstructions>>,
    /// The memory reserved for the request's body, if the request came over HTTP.
    pub(crate) body: Option<BodyMemory>,
    peer: Peer<RoleServer>,
}

/// A request's share of the total memory for request bodies. It is stored in the extensions of the request. The SDK
/// keeps the extensions until the request is answered, even if the client has disconnected, so the share stays reserved
/// for as long as the body or its values are in memory.
#[derive(Debug, Clone)]
pub(crate) struct BodyMemory {
    _permit: Arc<BodyPermit>,
}

impl From<BodyPermit> for BodyMemory {
    fn from(permit: BodyPermit) -> Self {
        Self { _permit: Arc::new(permit) }
    }
}

/// The notification stream of one HTTP request. It is stored in the extensions of the request.
#[derive(Debug, Clone)]
pub(crate) struct RequestStream(pub(crate) mpsc::Sender<ServerNotification>);

impl Client {
    pub(crate) fn of_request(
        id: u64,
        context: &RequestContext<RoleServer>,
        log_level: Option<LoggingLevel>,
        disconnected: &ClientDisconnected,
        profile: Option<&str>,
    ) -> Self {
        // Over HTTP, a request's session can end before its connection does, so the session's own signal is used.
        let parts = context.extensions.get::<axum::http::request::Parts>();
        let session = parts.and_then(|parts| parts.extensions.get::<ClientDisconnected>());
        let client = session.unwrap_or(disconnected).clone();
        let uses_newer_protocol =
            context.protocol_version().is_some_and(|version| !version.has_initialize());
        let name = context.client_info().map(|info| info.name).unwrap_or_default();
        Self {
            id,
            // A client of the older protocol is identified by its connection.
            group: if uses_newer_protocol { group_id(&name, profile) } else { id },
            uses_newer_protocol,
            has_stable_id: false,
            abandoned: RequestAbandoned { request: context.ct.clone(), client },
            meta: context.meta.clone(),
            capabilities: context.client_capabilities().unwrap_or_default(),
            log_level: if uses_newer_protocol { context.meta.log_level() } else { log_level },
            request: Some(context.id.clone()),
            stream: context.extensions.get::<RequestStream>().cloned(),
            shown_instructions: None,
            body: parts.and_then(|parts| parts.extensions.get::<BodyMemory>()).cloned(),
            peer: context.peer.clone(),
        }
    }

    /// Creates a client of the older protocol for messages that belong to none of its requests.
    pub(crate) fn outside_requests(
        id: u64,
        peer: &Peer<RoleServer>,
        gone: CancellationToken,
    ) -> Self {
        let info = peer.peer_info();
        Self {
            id,
            group: id,
            uses_newer_protocol: false,
            has_stable_id: true,
            abandoned: RequestAbandoned { request: gone, client: ClientDisconnected::default() },
            meta: RequestMetaObject::default(),
            capabilities: info.map(|info| info.capabilities.clone()).unwrap_or_default(),
            log_level: None,
            request: None,
            stream: None,
            shown_instructions: None,
            body: None,
            peer: peer.clone(),
        }
    }

    /// Whether the client shows the user interfaces of tools (MCP Apps).
    pub(crate) fn shows_apps(&self) -> bool {
        let extensions = self.capabilities.extensions.as_ref();
        extensions.is_some_and(|extensions| extensions.contains_key(APPS_EXTENSION))
    }

    /// Whether the client's requests belong to a session.
    pub(crate) fn session_kind(&self) -> SessionKind {
        if self.uses_newer_protocol { SessionKind::Stateless } else { SessionKind::Stateful }
    }

    /// Returns the client as a viewer of what its profile allows.
    pub(crate) fn viewer<'a>(&self, profile: Option<&'a str>) -> Viewer<'a> {
        Viewer { profile, client: self.identified().map(|client| client.id) }
    }

    /// Returns the client, if it can be told apart from other clients.
    pub(crate) fn identified(&self) -> Option<IdentifiedClient> {
        let client = IdentifiedClient { id: self.id, has_roots: self.has_roots() };
        self.has_stable_id.then_some(client)
    }

    /// Whether the client supports roots.
    pub(crate) fn has_roots(&self) -> bool {
        self.capabilities.roots.is_some()
    }

    /// Whether the client can handle a result that is a task. The older protocol has no such results.
    pub(crate) fn supports_tasks(&self) -> bool {
        self.uses_newer_protocol && self.capabilities.supports_tasks()
    }

    /// Returns the part of the request's `_meta` that is forwarded to a server. `announces_tasks` means that the server
    /// may answer with a task, whether or not the client supports tasks.
    pub(crate) fn meta_for(
        &self,
        server_uses_newer_protocol: bool,
        announces_tasks: bool,
    ) -> RequestMetaObject {
        let mut meta = RequestMetaObject::default();
        let is_forwarded = |key: &str| {
            !HOP_KEYS.contains(&key)
                && (server_uses_newer_protocol || !key.starts_with("io.modelcontextprotocol/"))
        };
        for (key, value) in self.meta.0.0.iter().filter(|(key, _)| is_forwarded(key)) {
            meta.0.0.insert(key.clone(), value.clone());
        }
        if server_uses_newer_protocol {
            // The server may use only the capabilities of this client, not all those that the gateway supports.
            let mut capabilities = self.capabilities.clone();
            let extensions = capabilities.extensions.get_or_insert_default();
            if announces_tasks {
                extensions.entry(TASKS_EXTENSION_ID.to_owned()).or_default();
            } else {
                extensions.remove(TASKS_EXTENSION_ID);
            }
            if extensions.is_empty() {
                capabilities.extensions = None;
            }
            meta.set_client_capabilities(capabilities);
            // A client of the older protocol sets the log level once, but a server of the newer protocol expects it in
            // each request.
            if let Some(level) = self.log_level {
                meta.set_log_level(level);
            }
        }
        meta
    }

    /// Sends a progress notification to the client, if the client requested progress.
    pub(crate) async fn progress(&self, mut params: Value) {
        let Some(token) = self.meta.get_progress_token() else { return };
        let Some(fields) = params.as_object_mut() else { return };
        limit_progress(fields);
        clean_value(&mut params);
        let Some(fields) = params.as_object_mut() else { return };
        fields.insert("progressToken".into(), token_value(&token));
        let notification = json!({"method": "notifications/progress", "params": params});
        if let Ok(notification) = serde_json::from_value::<ProgressNotification>(notification) {
            let _ = self
                .peer
                .send_notification(ServerNotification::ProgressNotification(notification))
                .await;
        }
    }

    /// Sends a server's log message to the client, if the message is at least as severe as the level that the client
    /// requested.
    pub(crate) async fn log(&self, mut line: LoggingMessageNotificationParam) {
        if self.log_level.is_some_and(|level| severity(line.level) >= severity(level)) {
            limit_log(&mut line);
            clean_value(&mut line.data);
            let notification = LoggingMessageNotification::new(line);
            let notification = ServerNotification::LoggingMessageNotification(notification);
            match &self.stream {
                // Sending fails if the client has closed the stream. The message is then dropped.
                Some(RequestStream(stream)) => drop(stream.send(notification).await),
                None => drop(self.peer.send_notification(notification).await),
            }
        }
    }

    /// Whether the client supports this kind of question.
    pub(crate) fn can_answer(&self, question: &RawRequest) -> bool {
        match &*question.method {
            "elicitation/create" => self.capabilities.elicitation.is_some(),
            "sampling/createMessage" => self.capabilities.sampling.is_some(),
            "roots/list" => self.capabilities.roots.is_some(),
            _ => false,
        }
    }

    /// Asks the client a question on a server's behalf.
    pub(crate) async fn ask(&self, question: RawRequest) -> Result<Value, ErrorData> {
        if !self.can_answer(&question) {
            let problem = "the client does not support this kind of question";
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, problem, None));
        }
        let request = CustomRequest::new(question.method, question.params);
        let mut request = ServerRequest::CustomRequest(request);
        // Over HTTP, the question must be sent on the stream of the client's request that caused it.
        if let Some(id) = &self.request {
            rmcp::model::GetExtensions::extensions_mut(&mut request)
                .insert(OriginatingRequestId(id.clone()));
        }
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let answered = async { OpenQuestion(Some(sent.await?)).wait().await };
        let answer = answered.await.map_err(|error| match error {
            ServiceError::McpError(error) => error,
            other => ErrorData::internal_error(other.to_string(), None),
        })?;
        serde_json::to_value(answer)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Asks the client a server's question and passes the answer to the server, unless the server withdraws the
    /// question first.
    pub(crate) async fn forward_question(&self, question: RawRequest, mut answer: AnswerSender) {
        let result = tokio::select! {
            result = self.ask(question) => result,
            () = answer.closed() => return,
        };
        let _ = answer.send(result);
    }

    /// Asks the client several questions. Returns the answers by the keys of the questions.
    pub(crate) async fn ask_all(
        &self,
        requests: &Value,
    ) -> Result<BTreeMap<String, Value>, ErrorData> {
        let malformed =
            || ErrorData::internal_error("the server asks for input in an unknown form", None);
        let mut answers = BTreeMap::new();
        for (key, request) in requests.as_object().into_iter().flatten() {
            let request = serde_json::from_value(request.clone()).map_err(|_| malformed())?;
            answers.insert(key.clone(), self.ask(request).await?);
        }
        Ok(answers)
    }
}

/// A question that was sent to a client. Dropping this value before the answer arrives cancels the question.
struct OpenQuestion(Option<RequestHandle<RoleServer>>);

impl OpenQuestion {
    async fn wait(mut self) -> Result<ClientResult, ServiceError> {
        let Some(handle) = &mut self.0 else { return Err(ServiceError::TransportClosed) };
        let answered = (&mut handle.rx).await;
        self.0 = None;
        answered.map_err(|_| ServiceError::TransportClosed)?
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(handle.cancel(Some("the answer is no longer needed".into())));
        }
    }
}

fn group_id(name: &str, profile: Option<&str>) -> u64 {
    let hash = blake3::hash(format!("{name}\n{}", profile.unwrap_or_default()).as_bytes());
    hash.as_bytes()[..8].iter().fold(0, |acc, byte| acc << 8 | u64::from(*byte))
}

fn token_value(token: &ProgressToken) -> Value {
    serde_json::to_value(token).unwrap_or_default()
}
