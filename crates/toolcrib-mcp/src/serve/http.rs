//! Many clients, over HTTP: `/mcp`, `/mcp/PROFILE`, `/metrics`, `/healthz`.
//!
//! Every route is behind the [`Guard`]: a web page that a browser shows must not be able to reach a
//! gateway on the same machine.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::serve::ListenerExt as _;
use futures::StreamExt as _;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Closed;
use crate::gateway::{Front, Gateway};
use crate::http::guard::Guard;
use crate::http::token::Access;
use crate::metrics;

/// How long requests under way may take to end.
const DRAIN: Duration = Duration::from_secs(30);
/// How often a stream shows that it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

type Service = StreamableHttpService<Front, LocalSessionManager>;
type Room = (Service, Arc<LocalSessionManager>);

/// What the HTTP door is made of.
#[derive(Debug)]
pub struct Door {
    /// The address it listens on.
    pub listen: SocketAddr,
    /// Who may come in.
    pub access: Access,
}

/// A door that listens.
#[derive(Debug)]
pub struct Opened {
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
    /// The address it really has.
    pub address: SocketAddr,
}

impl Door {
    /// Begins to listen.
    pub async fn open(
        self,
        gateway: &Arc<Gateway>,
        stop: CancellationToken,
    ) -> Result<Opened, Closed> {
        let address = self.listen;
        let listen = |source| Closed::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let config = gateway.hub().config();
        let guard =
            Guard::new(&config.http.allowed_hosts, &config.http.allowed_origins, self.access)?;
        let router = guard.protect(router(gateway, &stop));
        Ok(Opened { listener, router, stop, address })
    }
}

impl Opened {
    /// Serves until it is stopped; requests under way may end.
    pub async fn serve(self) -> Result<(), Closed> {
        let stop = self.stop.clone();
        // An answer is several small writes, and each is to go out at once: held back until the one before
        // is acknowledged, which a client may put off, it would be 40 ms late.
        let listener = self.listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let router = self.router;
        let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
            stop.cancelled().await;
        });
        let drained = async {
            self.stop.cancelled().await;
            tokio::time::sleep(DRAIN).await;
        };
        tokio::select! {
            ended = serving.into_future() => Ok(ended?),
            () = drained => Ok(()),
        }
    }
}

/// The routes, without the guard.
pub fn router(gateway: &Arc<Gateway>, stop: &CancellationToken) -> Router {
    let doors = Arc::new(Doors {
        gateway: Arc::clone(gateway),
        stop: stop.clone(),
        by_profile: Mutex::default(),
    });
    Router::new()
        .route(
            "/mcp",
            any(|State(doors): State<Arc<Doors>>, request: Request| doors.enter(None, request)),
        )
        .route(
            "/mcp/{profile}",
            any(
                |State(doors): State<Arc<Doors>>, Path(profile): Path<String>, request: Request| {
                    doors.enter(Some(profile), request)
                },
            ),
        )
        .route("/metrics", get(|State(doors): State<Arc<Doors>>| async move { doors.metrics() }))
        .route("/healthz", get(|| async { "ok\n" }))
        .with_state(doors)
}

/// One service for each profile, made when it is first asked for.
struct Doors {
    gateway: Arc<Gateway>,
    stop: CancellationToken,
    by_profile: Mutex<HashMap<Option<String>, Room>>,
}

impl Doors {
    async fn enter(self: Arc<Self>, profile: Option<String>, request: Request) -> Response {
        // Asked each time: a reload may have taken the profile away.
        if self.gateway.sight(profile.as_deref()).is_err() {
            return StatusCode::NOT_FOUND.into_response();
        }
        let (service, sessions) = self.service(profile);
        let limits = &self.gateway.hub().config().gateway.limits;
        let begins = request.method() == axum::http::Method::POST
            && !request.headers().contains_key("mcp-session-id")
            && request.headers().get("mcp-protocol-version").is_none_or(|version| version < "2026");
        if begins && sessions.sessions.read().await.len() >= limits.sessions {
            let retry = [(header::RETRY_AFTER, HeaderValue::from_static("10"))];
            return (StatusCode::SERVICE_UNAVAILABLE, retry, "too many sessions\n").into_response();
        }
        self.mended(service.handle(request).await.map(Body::new)).await
    }

    /// The response, with what the SDK does not know put back (see `gateway::cargo`).
    async fn mended(self: Arc<Self>, response: Response) -> Response {
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
            event.map(|event| self.gateway.cargo.unload(&event).map_or(event, Bytes::from))
        });
        Response::from_parts(parts, Body::from_stream(events))
    }

    fn service(&self, profile: Option<String>) -> Room {
        let mut by_profile = self.by_profile.lock().unwrap_or_else(PoisonError::into_inner);
        let made = by_profile.entry(profile.clone()).or_insert_with(|| {
            let limits = self.gateway.hub().config().gateway.limits.clone();
            let mut session = SessionConfig::default();
            session.keep_alive = Some(Duration::from_secs(limits.session_idle));
            session.channel_capacity = 256;
            let mut sessions = LocalSessionManager::default();
            sessions.session_config = session;
            let sessions = Arc::new(sessions);
            // Host and Origin are the guard's, on every route alike.
            let config = StreamableHttpServerConfig::default()
                .disable_allowed_hosts()
                .disable_allowed_origins()
                .with_sse_keep_alive(Some(KEEP_ALIVE))
                .with_max_request_body_bytes(limits.request_bytes)
                .with_cancellation_token(self.stop.child_token());
            let gateway = Arc::clone(&self.gateway);
            let front = move || Ok(gateway.front(profile.clone()));
            (StreamableHttpService::new(front, Arc::clone(&sessions), config), sessions)
        });
        made.clone()
    }

    fn metrics(&self) -> Response {
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(metrics::MEDIA_TYPE))];
        (kind, self.gateway.hub().metrics().encode()).into_response()
    }
}
