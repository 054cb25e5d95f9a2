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
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Closed;
use super::listener::Pieces;
use crate::gateway::{Front, Gateway, Left};
use crate::http::guard::Guard;
use crate::http::token::Access;
use crate::metrics;

/// How long requests under way may take to end.
const DRAIN: Duration = Duration::from_secs(30);
/// How long the ends of streams may take to get out.
const LAST: Duration = Duration::from_secs(1);
/// How often a stream shows that it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The request that is never over: its client listens for as long as it likes.
const LISTENS: &str = "subscriptions/listen";
const SESSION: &str = "mcp-session-id";

type Service = StreamableHttpService<Front, LocalSessionManager>;
type Room = (Service, Arc<LocalSessionManager>);

/// Another service on the same listener: it gets every request that is not for the gateway.
pub struct MountedService {
    /// Its routes.
    pub router: Router,
    /// What it counts, as Prometheus reads it.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
}

impl std::fmt::Debug for MountedService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MountedService").finish_non_exhaustive()
    }
}

/// What the HTTP door is made of.
#[derive(Debug)]
pub struct Door {
    /// The address it listens on.
    pub listen: SocketAddr,
    /// Who may come in.
    pub access: Access,
    /// Another service on the same listener.
    pub mounted: Option<MountedService>,
}

/// A door that listens.
#[derive(Debug)]
pub struct Opened {
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
    doors: Arc<Doors>,
    /// The address it really has.
    pub address: SocketAddr,
}

impl Door {
    /// Begins to listen.
    pub fn open(
        self,
        gateway: &Arc<Gateway>,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<Opened, Closed>> {
        async move {
            let address = self.listen;
            let listen = |source| Closed::Listen { address, source };
            let listener = TcpListener::bind(address).await.map_err(listen)?;
            let address = listener.local_addr().map_err(listen)?;
            let config = gateway.hub().config();
            let guard =
                Guard::new(&config.http.allowed_hosts, &config.http.allowed_origins, self.access)?;
            let guard = if self.mounted.is_some() { guard.for_shared_listener() } else { guard };
            let (others, metrics) =
                self.mounted.map(|service| (service.router, service.metrics)).unzip();
            let doors = Arc::new(Doors::new(Arc::clone(gateway), metrics));
            let routes = routes(Arc::clone(&doors));
            let routes = match others {
                Some(others) => routes.fallback_service(in_time(others, &doors)),
                None => routes,
            };
            let router = guard.protect(routes);
            Ok(Opened { listener, router, stop, doors, address })
        }
        .boxed()
    }
}

impl Opened {
    /// Serves until it is stopped; requests under way may end.
    pub fn serve(self) -> BoxFuture<'static, Result<(), Closed>> {
        async move {
            let stop = self.stop.clone();
            let serving = axum::serve(Pieces(self.listener), self.router).with_graceful_shutdown(
                async move {
                    stop.cancelled().await;
                },
            );
            let drained = async {
                self.stop.cancelled().await;
                self.doors.answered.close();
                if tokio::time::timeout(DRAIN, self.doors.answered.wait()).await.is_err() {
                    tracing::warn!(
                        seconds = DRAIN.as_secs(),
                        "requests that took too long were cut off"
                    );
                }
                // Now those that only listen are let go.
                self.doors.over.cancel();
                tokio::time::sleep(LAST).await;
            };
            tokio::select! {
                ended = serving.into_future() => Ok(ended?),
                () = drained => Ok(()),
            }
        }
        .boxed()
    }
}

/// The routes, without the guard.
fn routes(doors: Arc<Doors>) -> Router {
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

/// Somebody else's routes, whose requests under way are waited for as ours are.
fn in_time(router: Router, doors: &Arc<Doors>) -> Router {
    let doors = Arc::clone(doors);
    router.layer(axum::middleware::from_fn(
        move |request: Request, next: axum::middleware::Next| {
            let under_way = doors.answered.token();
            async move {
                let (parts, body) = next.run(request).await.into_parts();
                let mut body = Box::pin(body);
                // Trailers and all: the body is handed on frame by frame.
                let frames = futures::stream::poll_fn(move |context| {
                    let _until_sent = &under_way;
                    axum::body::HttpBody::poll_frame(body.as_mut(), context)
                });
                Response::from_parts(parts, Body::new(http_body_util::StreamBody::new(frames)))
            }
        },
    ))
}

/// One service for each profile, made when it is first asked for.
struct Doors {
    gateway: Arc<Gateway>,
    /// Cancelled when nothing is answered any more.
    over: CancellationToken,
    /// Requests under way that will be over by themselves.
    answered: TaskTracker,
    by_profile: Mutex<HashMap<Option<String>, Room>>,
    /// Sessions of older clients that asked for something.
    left: Mutex<HashMap<String, Left>>,
    /// What somebody else behind the door counts.
    others: Option<Box<dyn Fn() -> String + Send + Sync>>,
}

impl std::fmt::Debug for Doors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doors").field("gateway", &self.gateway).finish_non_exhaustive()
    }
}

impl Doors {
    fn new(gateway: Arc<Gateway>, others: Option<Box<dyn Fn() -> String + Send + Sync>>) -> Self {
        Self {
            gateway,
            over: CancellationToken::new(),
            answered: TaskTracker::new(),
            by_profile: Mutex::default(),
            left: Mutex::default(),
            others,
        }
    }

    async fn enter(self: Arc<Self>, profile: Option<String>, mut request: Request) -> Response {
        // Asked each time: a reload may have taken the profile away.
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
            && request.headers().get("mcp-method").is_none_or(|method| method != LISTENS);
        let under_way = ends.then(|| self.answered.token());
        self.mended(service.handle(request).await.map(Body::new), under_way).await
    }

    /// Sessions of all profiles together.
    async fn sessions(&self) -> usize {
        let rooms: Vec<Room> = {
            let by_profile = self.by_profile.lock().unwrap_or_else(PoisonError::into_inner);
            by_profile.values().cloned().collect()
        };
        let mut sessions = 0;
        for (_, room) in rooms {
            sessions += room.sessions.read().await.len();
        }
        sessions
    }

    /// Lets a request know when its session is ended, since its call is to end with it.
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

    /// The response, with what the SDK does not know put back (see `gateway::cargo`).
    async fn mended(
        self: Arc<Self>,
        response: Response,
        under_way: Option<TaskTrackerToken>,
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
            let _until_sent = &under_way;
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
                .with_cancellation_token(self.over.child_token());
            let gateway = Arc::clone(&self.gateway);
            let front = move || Ok(gateway.front(profile.clone(), Left::default()));
            (StreamableHttpService::new(front, Arc::clone(&sessions), config), sessions)
        });
        made.clone()
    }

    fn metrics(&self) -> Response {
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(metrics::MEDIA_TYPE))];
        let mut text = self.gateway.hub().metrics().encode();
        if let Some(others) = &self.others {
            // One text has one end.
            text.truncate(text.trim_end().trim_end_matches("# EOF").len());
            text.push_str(&others());
        }
        (kind, text).into_response()
    }
}
