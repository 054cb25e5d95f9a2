//! Many clients, over HTTP: `/mcp` and `/mcp/PROFILE`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use futures::StreamExt as _;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolcrib_server::Drain;

use crate::arguments::Arguments;
use crate::gateway::{Front, Gateway, Left};

/// Interval of the comments that keep an idle event stream open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The request that has no end: its client listens for as long as it likes.
const LISTEN: &str = "subscriptions/listen";
const SESSION: &str = "mcp-session-id";

type Service = StreamableHttpService<Front, LocalSessionManager>;
type ProfileService = (Service, Arc<LocalSessionManager>);

/// The gateway's routes, to be mounted on an HTTP server with this shutdown. The server checks `Host`,
/// `Origin` and the bearer token.
pub fn routes(gateway: &Arc<Gateway>, drain: &Drain) -> Router {
    let endpoint = Arc::new(Endpoint {
        gateway: Arc::clone(gateway),
        drain: drain.clone(),
        by_profile: Mutex::default(),
        left: Mutex::default(),
    });
    // All paths below `/mcp` are the gateway's: a mistyped one must not reach another service's fallback.
    let unknown = || any(StatusCode::NOT_FOUND);
    Router::new()
        .route("/mcp/", unknown())
        .route("/mcp/{profile}/", unknown())
        .route("/mcp/{profile}/{*rest}", unknown())
        .route(
            "/mcp",
            any(|State(endpoint): State<Arc<Endpoint>>, request: Request| {
                endpoint.answer(None, request)
            }),
        )
        .route(
            "/mcp/{profile}",
            any(
                |State(endpoint): State<Arc<Endpoint>>,
                 Path(profile): Path<String>,
                 request: Request| { endpoint.answer(Some(profile), request) },
            ),
        )
        .with_state(endpoint)
}

/// What the requests of all clients share.
struct Endpoint {
    gateway: Arc<Gateway>,
    drain: Drain,
    /// One service for each profile, created by its first request.
    by_profile: Mutex<HashMap<Option<String>, ProfileService>>,
    /// Sessions of older clients that sent a request.
    left: Mutex<HashMap<String, Left>>,
}

impl Endpoint {
    async fn answer(self: Arc<Self>, profile: Option<String>, mut request: Request) -> Response {
        // Checked for each request: a reload may have removed the profile.
        if self.gateway.sight(profile.as_deref()).is_err() {
            return StatusCode::NOT_FOUND.into_response();
        }
        let (service, sessions) = self.service(profile);
        let limits = &self.gateway.hub().config().gateway.limits;
        let begins = request.method() == Method::POST
            && !request.headers().contains_key(SESSION)
            && request.headers().get("mcp-protocol-version").is_none_or(|version| version < "2026");
        if begins && self.sessions().await >= limits.sessions {
            let retry = [(header::RETRY_AFTER, HeaderValue::from_static("10"))];
            return (StatusCode::SERVICE_UNAVAILABLE, retry, "too many sessions\n").into_response();
        }
        self.note_session(&sessions, &mut request).await;
        let ends = request.method() == Method::POST
            && request.headers().get("mcp-method").is_none_or(|method| method != LISTEN);
        let in_flight = ends.then(|| self.drain.in_flight());
        let request = match with_arguments(request, limits.request_bytes).await {
            Ok(request) => request,
            Err(status) => return status.into_response(),
        };
        self.mended(service.handle(request).await.map(Body::new), in_flight).await
    }

    /// Number of sessions of all profiles together.
    async fn sessions(&self) -> usize {
        let services: Vec<ProfileService> = {
            let by_profile = self.by_profile.lock().unwrap_or_else(PoisonError::into_inner);
            by_profile.values().cloned().collect()
        };
        let mut sessions = 0;
        for (_, of_profile) in services {
            sessions += of_profile.sessions.read().await.len();
        }
        sessions
    }

    /// Tells a request when its session ends, because its call must end with it.
    async fn note_session(&self, sessions: &LocalSessionManager, request: &mut Request) {
        let Some(id) = request.headers().get(SESSION).and_then(|id| id.to_str().ok()) else {
            return;
        };
        let id = id.to_owned();
        let live = sessions.sessions.read().await;
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if !live.contains_key(&*id) {
            left.remove(&id);
        } else if request.method() == Method::DELETE {
            left.remove(&id).inspect(|left| left.0.cancel());
        } else {
            if !left.contains_key(&id) {
                left.retain(|id, _| live.contains_key(&**id));
            }
            request.extensions_mut().insert(left.entry(id).or_default().clone());
        }
    }

    /// The response, with the fields restored that the SDK has no types for (see `gateway::cargo`).
    async fn mended(
        self: Arc<Self>,
        response: Response,
        in_flight: Option<TaskTrackerToken>,
    ) -> Response {
        let (parts, body) = response.into_parts();
        let whole =
            parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
        if whole {
            let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            };
            let mended = self.gateway.cargo.unload(&bytes).map_or(bytes, Bytes::from);
            return Response::from_parts(parts, Body::from(mended));
        }
        let events = body.into_data_stream().map(move |event| {
            let _until_sent = &in_flight;
            event.map(|event| self.gateway.cargo.unload(&event).map_or(event, Bytes::from))
        });
        Response::from_parts(parts, Body::from_stream(events))
    }

    fn service(&self, profile: Option<String>) -> ProfileService {
        let mut by_profile = self.by_profile.lock().unwrap_or_else(PoisonError::into_inner);
        let made = by_profile.entry(profile.clone()).or_insert_with(|| {
            let limits = self.gateway.hub().config().gateway.limits.clone();
            let mut session = SessionConfig::default();
            session.keep_alive = Some(Duration::from_secs(limits.session_idle));
            session.channel_capacity = 256;
            let mut sessions = LocalSessionManager::default();
            sessions.session_config = session;
            let sessions = Arc::new(sessions);
            // The HTTP server checks Host and Origin, on every route alike.
            let config = StreamableHttpServerConfig::default()
                .disable_allowed_hosts()
                .disable_allowed_origins()
                .with_sse_keep_alive(Some(KEEP_ALIVE))
                .with_max_request_body_bytes(limits.request_bytes)
                .with_cancellation_token(self.drain.closed().child_token());
            let gateway = Arc::clone(&self.gateway);
            let front = move || Ok(gateway.front(profile.clone(), Left::default()));
            (StreamableHttpService::new(front, Arc::clone(&sessions), config), sessions)
        });
        made.clone()
    }
}

/// A request with its body read, and the arguments of a call beside it as text.
async fn with_arguments(request: Request, limit: usize) -> Result<Request, StatusCode> {
    if request.method() != Method::POST {
        return Ok(request);
    }
    let (mut parts, body) = request.into_parts();
    // Over the limit, or its client left.
    let body = axum::body::to_bytes(body, limit).await;
    let body = body.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    if let Some((_, arguments)) = Arguments::of_message(&body) {
        parts.extensions.insert(arguments);
    }
    Ok(Request::from_parts(parts, Body::from(body)))
}
