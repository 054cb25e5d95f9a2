//! The client behind one request, and how to speak to it.

use std::collections::BTreeMap;

use rmcp::model::{
    ClientCapabilities, ErrorCode, ErrorData, LoggingLevel, LoggingMessageNotification,
    LoggingMessageNotificationParam, ProgressNotification, ProgressToken, RequestId,
    RequestMetaObject, ServerNotification, ServerRequest,
};
use rmcp::service::{OriginatingRequestId, Peer, RequestContext, RoleServer, ServiceError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Keys of `_meta` that speak of one hop, and not of the whole way.
const OF_THIS_HOP: [&str; 3] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
];

/// The client behind one request.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// The same for all requests of one connection.
    pub(crate) id: u64,
    /// Whether it speaks the revision without a handshake, and so may not be asked anything.
    pub(crate) modern: bool,
    pub(crate) gone: CancellationToken,
    pub(crate) meta: RequestMetaObject,
    capabilities: ClientCapabilities,
    log_level: Option<LoggingLevel>,
    request: Option<RequestId>,
    peer: Peer<RoleServer>,
}

impl Client {
    pub(crate) fn of(
        id: u64,
        context: &RequestContext<RoleServer>,
        log_level: Option<LoggingLevel>,
    ) -> Self {
        let modern = context.protocol_version().is_some_and(|version| !version.has_initialize());
        Self {
            id,
            modern,
            gone: context.ct.clone(),
            meta: context.meta.clone(),
            capabilities: context.client_capabilities().unwrap_or_default(),
            log_level: if modern { context.meta.log_level() } else { log_level },
            request: Some(context.id.clone()),
            peer: context.peer.clone(),
        }
    }

    /// A client of the older era outside of any request.
    pub(crate) fn between_requests(
        id: u64,
        peer: &Peer<RoleServer>,
        gone: CancellationToken,
    ) -> Self {
        let info = peer.peer_info();
        Self {
            id,
            modern: false,
            gone,
            meta: RequestMetaObject::default(),
            capabilities: info.map(|info| info.capabilities.clone()).unwrap_or_default(),
            log_level: None,
            request: None,
            peer: peer.clone(),
        }
    }

    /// Whether it has roots to tell of.
    pub(crate) fn has_roots(&self) -> bool {
        self.capabilities.roots.is_some()
    }

    /// What of its `_meta` goes on to a server.
    pub(crate) fn meta_for(&self, modern_server: bool) -> RequestMetaObject {
        let mut meta = RequestMetaObject::default();
        let passes = |key: &str| {
            !OF_THIS_HOP.contains(&key)
                && (modern_server || !key.starts_with("io.modelcontextprotocol/"))
        };
        for (key, value) in self.meta.0.0.iter().filter(|(key, _)| passes(key)) {
            meta.0.0.insert(key.clone(), value.clone());
        }
        if modern_server {
            // What the server may ask for is up to this client, not to us.
            meta.set_client_capabilities(self.capabilities.clone());
            // A level that was set once, in the older era, is said with every request in the newer one.
            if let Some(level) = self.log_level {
                meta.set_log_level(level);
            }
        }
        meta
    }

    /// Tells it that its request is getting on, if it wants to know.
    pub(crate) async fn progress(&self, mut params: Value) {
        let Some(token) = self.meta.get_progress_token() else { return };
        let Some(fields) = params.as_object_mut() else { return };
        fields.insert("progressToken".into(), token_value(&token));
        let told = json!({"method": "notifications/progress", "params": params});
        if let Ok(told) = serde_json::from_value::<ProgressNotification>(told) {
            let _ =
                self.peer.send_notification(ServerNotification::ProgressNotification(told)).await;
        }
    }

    /// Passes on a line of a server's log, if it wants to see such lines.
    pub(crate) async fn log(&self, line: LoggingMessageNotificationParam) {
        if self.log_level.is_some_and(|level| rank(line.level) >= rank(level)) {
            let told = LoggingMessageNotification::new(line);
            let told = ServerNotification::LoggingMessageNotification(told);
            let _ = self.peer.send_notification(told).await;
        }
    }

    /// Whether it can be asked this.
    pub(crate) fn can_answer(&self, request: &ServerRequest) -> bool {
        match request {
            ServerRequest::ElicitRequest(_) => self.capabilities.elicitation.is_some(),
            ServerRequest::CreateMessageRequest(_) => self.capabilities.sampling.is_some(),
            ServerRequest::ListRootsRequest(_) => self.capabilities.roots.is_some(),
            _ => false,
        }
    }

    /// Asks it something on a server's behalf.
    pub(crate) async fn ask(&self, mut request: ServerRequest) -> Result<Value, ErrorData> {
        if !self.can_answer(&request) {
            let what = "the client cannot be asked that";
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, what, None));
        }
        // On HTTP it must go out on the stream of the request it belongs to.
        if let Some(id) = &self.request {
            rmcp::model::GetExtensions::extensions_mut(&mut request)
                .insert(OriginatingRequestId(id.clone()));
        }
        let answer = self.peer.send_request(request).await.map_err(|error| match error {
            ServiceError::McpError(error) => error,
            other => ErrorData::internal_error(other.to_string(), None),
        })?;
        serde_json::to_value(answer)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Asks it several things, by the keys a server gave them.
    pub(crate) async fn ask_all(
        &self,
        requests: &Value,
    ) -> Result<BTreeMap<String, Value>, ErrorData> {
        let odd = || {
            ErrorData::internal_error("the server asks for input in a form that is not known", None)
        };
        let mut answers = BTreeMap::new();
        for (key, request) in requests.as_object().into_iter().flatten() {
            let request = serde_json::from_value(request.clone()).map_err(|_| odd())?;
            answers.insert(key.clone(), self.ask(request).await?);
        }
        Ok(answers)
    }
}

fn token_value(token: &ProgressToken) -> Value {
    serde_json::to_value(token).unwrap_or_default()
}

/// How grave a line is.
fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
