//! Serves many clients over HTTP, at `/mcp` and `/mcp/PROFILE`.

use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use bytes::BytesMut;
use futures::StreamExt as _;
use http_body::Body as _;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolcrib_server::access::AcceptedCredential;
use toolcrib_server::{
    BodyBudget, BodyPermit, BodyRejected, ConnectionContext, GracefulShutdown, error_response,
};

use super::http_sessions::{HttpSessions, SessionUse};
use super::log_routing::LogRoutingSessions;
use crate::gateway::{
    BodyMemory, CLIENT_INFO_HINT, ClientDisconnected, ClientSession, ConnectionKind, Gateway,
    client_info_excess,
};
use crate::json_memory::{self, takes_too_much_memory};
use crate::raw_arguments::RawArguments;

/// Maximum number of messages in one stream that wait for the client. The SDK also stores the last messages of each
/// stream, up to this number, so that it can send them again. `gateway::message_size` limits the size of each.
const STREAM_MESSAGES: usize = 64;

/// Interval of the comments that keep an idle event stream open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The method whose requests stay open until the client ends them. Shutdown does not wait for these requests.
const LISTEN_METHOD: &str = "subscriptions/listen";
const SESSION_HEADER: &str = "mcp-session-id";
/// Maximum capacity reserved for a body before it arrives, in bytes.
const MAX_RESERVED_BYTES: usize = 1 << 16;

type Service = StreamableHttpService<ClientSession, LogRoutingSessions>;
type ProfileService = (Service, Arc<LocalSessionManager>);

/// Creates the gateway's routes, for an HTTP server that uses the same `shutdown`. That server must check `Host`,
/// `Origin` and the bearer token.
pub fn routes(gateway: &Arc<Gateway>, shutdown: &GracefulShutdown) -> Router {
    let endpoint = Arc::new(McpEndpoint {
        gateway: Arc::clone(gateway),
        shutdown: shutdown.clone(),
        by_profile: Mutex::default(),
        sessions: Arc::default(),
    });
    // All paths below `/mcp` belong to the gateway, so a mistyped path must not reach another service's fallback.
    let unknown = || any(StatusCode::NOT_FOUND);
    Router::new()
        .route("/mcp/", unknown())
        .route("/mcp/{profile}/", unknown())
        .route("/mcp/{profile}/{*rest}", unknown())
        .route(
            "/mcp",
            any(|State(endpoint): State<Arc<McpEndpoint>>, request: Request| {
                endpoint.answer(None, request)
            }),
        )
        .route(
            "/mcp/{profile}",
            any(
                |State(endpoint): State<Arc<McpEndpoint>>,
                 Path(profile): Path<String>,
                 request: Request| { endpoint.answer(Some(profile), request) },
            ),
        )
        .with_state(endpoint)
}

/// The state that the requests of all clients share.
struct McpEndpoint {
    gateway: Arc<Gateway>,
    shutdown: GracefulShutdown,
    /// One service for each profile, created at the profile's first request.
    by_profile: Mutex<HashMap<Option<String>, ProfileService>>,
    sessions: Arc<HttpSessions>,
}

/// Values that must live until the response is sent.
struct InFlightGuards {
    /// Shutdown waits until this token is dropped.
    _in_flight: Option<TaskTrackerToken>,
    _session: Option<SessionUse>,
}

impl McpEndpoint {
    async fn answer(self: Arc<Self>, profile: Option<String>, mut request: Request) -> Response {
        // The profile is checked for each request, because a config reload may have removed it.
        if self.gateway.visible_in_session(profile.as_deref()).is_err() {
            return StatusCode::NOT_FOUND.into_response();
        }
        let (service, manager) = self.service(profile);
        let limits = &self.gateway.hub().config().gateway.limits;
        let connection = request.extensions().get::<ConnectionContext>().cloned();
        let credential =
            request.extensions().get::<AcceptedCredential>().cloned().unwrap_or_default();
        // The SDK would treat a session id with characters other than visible ASCII as missing, so it is rejected here.
        if request.headers().get_all(SESSION_HEADER).iter().any(|id| id.to_str().is_err()) {
            let hint = "send the session id exactly as the server sent it";
            let problem = "the session id has characters other than visible ASCII";
            return error_response::json(StatusCode::BAD_REQUEST, problem, hint);
        }
        let session = self.enter_session(&manager, &mut request).await;
        let ends = request.method() == Method::POST
            && request.headers().get("mcp-method").is_none_or(|method| method != LISTEN_METHOD);
        let in_flight = ends.then(|| self.shutdown.track_request());
        let bodies = connection.as_ref().map(ConnectionContext::bodies);
        let read = match read_request(request, limits.request_bytes, bodies).await {
            Ok(read) => read,
            Err(refused) => return refused,
        };
        let admission = if read.begins_session {
            let client = connection.as_ref().and_then(ConnectionContext::client);
            match self.sessions.admit(client, limits).await {
                Ok(admission) => Some(admission),
                Err(error) => {
                    let hint = "end sessions that are not needed, or raise `sessions` and `sessions_per_client` of `[gateway.limits]`";
                    return error_response::busy(&error.to_string(), hint);
                }
            }
        } else {
            None
        };
        let held = InFlightGuards { _in_flight: in_flight, _session: session };
        let response = service.handle(read.request).await.map(Body::new);
        if let Some(admission) = admission
            && let Some(id) = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok())
        {
            admission.begin(id.to_owned(), manager, credential.clone());
        }
        self.restore_fields(response, held, credential).await
    }

    /// Records that a session has a request in flight. The session's disconnect signal is stored in the request's
    /// extensions, because the request's call must end with the session.
    async fn enter_session(
        &self,
        manager: &Arc<LocalSessionManager>,
        request: &mut Request,
    ) -> Option<SessionUse> {
        let id = request.headers().get(SESSION_HEADER)?.to_str().ok()?.to_owned();
        if request.method() == Method::DELETE {
            self.sessions.delete(&id, manager);
            return None;
        }
        let session = self.sessions.enter(&id, manager).await?;
        request.extensions_mut().insert(session.disconnected.clone());
        Some(session)
    }

    /// Restores the fields of the response that the SDK's types drop (see `gateway::unknown_fields`).
    async fn restore_fields(
        self: Arc<Self>,
        response: Response,
        held: InFlightGuards,
        credential: AcceptedCredential,
    ) -> Response {
        let (parts, body) = response.into_parts();
        let whole =
            parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
        if whole {
            let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            };
            let restored = self.gateway.unknown_fields.restore(&bytes).map_or(bytes, Bytes::from);
            return Response::from_parts(parts, Body::from(restored));
        }
        let events = body.into_data_stream().map(move |event| {
            let _until_sent = &held;
            event
                .map(|event| self.gateway.unknown_fields.restore(&event).map_or(event, Bytes::from))
        });
        Response::from_parts(parts, Body::from_stream(events.take_until(credential.revoked())))
    }

    fn service(&self, profile: Option<String>) -> ProfileService {
        let mut by_profile = self.by_profile.lock();
        let made = by_profile.entry(profile.clone()).or_insert_with(|| {
            let limits = self.gateway.hub().config().gateway.limits.clone();
            let mut session = SessionConfig::default();
            session.keep_alive = Some(Duration::from_secs(limits.session_idle));
            session.channel_capacity = STREAM_MESSAGES;
            let mut sessions = LocalSessionManager::default();
            sessions.session_config = session;
            let sessions = Arc::new(sessions);
            // The SDK does not check `Host` and `Origin`, because the HTTP server checks them for all routes.
            let config = StreamableHttpServerConfig::default()
                .disable_allowed_hosts()
                .disable_allowed_origins()
                .with_sse_keep_alive(Some(KEEP_ALIVE))
                .with_max_request_body_bytes(limits.request_bytes)
                .with_cancellation_token(self.shutdown.streams_closed().child_token());
            let gateway = Arc::clone(&self.gateway);
            let front = move || {
                let disconnected = ClientDisconnected::default();
                Ok(gateway.client_session(profile.clone(), disconnected, ConnectionKind::Http))
            };
            let manager = Arc::new(LogRoutingSessions(Arc::clone(&sessions)));
            (StreamableHttpService::new(front, manager, config), sessions)
        });
        made.clone()
    }
}

/// A request whose body was read.
struct ReadRequest {
    /// The request. Its extensions contain the arguments of a call as text, and the memory reserved for the body.
    request: Request,
    /// Whether the request begins a session. As in the SDK, this depends on the body and not on the headers.
    begins_session: bool,
}

/// The field of a message that decides whether it begins a session.
#[derive(Deserialize)]
struct MessageMethod<'a> {
    #[serde(borrow, default)]
    method: Cow<'a, str>,
}

async fn read_request(
    request: Request,
    limit: usize,
    bodies: Option<&BodyBudget>,
) -> Result<ReadRequest, Response> {
    if request.method() != Method::POST {
        return Ok(ReadRequest { request, begins_session: false });
    }
    let (mut parts, body) = request.into_parts();
    let (body, permit) = read_body(body, limit, bodies).await?;
    let message = serde_json::from_slice::<MessageMethod<'_>>(&body);
    if message.as_ref().is_ok_and(|message| message.method == "initialize")
        && let Some(problem) = client_info_excess(&body)
    {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return Err(error_response::json(status, &problem, CLIENT_INFO_HINT));
    }
    if takes_too_much_memory(&body, limit) {
        let hint = "send fewer values, or raise `request_bytes` of `[gateway.limits]`";
        let problem = "the request has too many values for its size";
        return Err(error_response::json(StatusCode::PAYLOAD_TOO_LARGE, problem, hint));
    }
    if let Some(mut permit) = permit {
        permit.grow(json_memory::parsed_bytes(&body) - body.len()).map_err(body_rejected)?;
        parts.extensions.insert(BodyMemory::from(permit));
    }
    if let Some((_, arguments)) = RawArguments::from_message(&body) {
        parts.extensions.insert(arguments);
    }
    // A batch is treated as a request that begins a session, because it may contain one.
    let begins_session = message.map_or_else(
        |_| body.trim_ascii_start().starts_with(b"["),
        |message| message.method == "initialize",
    );
    Ok(ReadRequest { request: Request::from_parts(parts, Body::from(body)), begins_session })
}

fn body_rejected(refused: BodyRejected) -> Response {
    let hint = "see `body_bytes` of `[http]` in the config";
    match refused {
        BodyRejected::Busy => error_response::busy(&refused.to_string(), hint),
        BodyRejected::TooLarge(_) => {
            error_response::json(StatusCode::PAYLOAD_TOO_LARGE, &refused.to_string(), hint)
        }
    }
}

async fn read_body(
    body: Body,
    limit: usize,
    bodies: Option<&BodyBudget>,
) -> Result<(Bytes, Option<BodyPermit>), Response> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response());
    }
    let mut permit =
        bodies.map(|bodies| bodies.begin(announced)).transpose().map_err(body_rejected)?;
    let mut read = BytesMut::with_capacity(announced.min(MAX_RESERVED_BYTES));
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.next().await {
        // An error means that the client disconnected.
        let chunk = chunk.map_err(|_| StatusCode::BAD_REQUEST.into_response())?;
        if read.len() + chunk.len() > limit {
            return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response());
        }
        if let Some(permit) = &mut permit {
            permit.grow(chunk.len()).map_err(body_rejected)?;
        }
        read.extend_from_slice(&chunk);
    }
    Ok((read.freeze(), permit))
}
