//! The HTTP server: one listener, on which services mount their routers.
//!
//! The server puts the [`Guard`] in front of every route, because a web page in a browser must not be able to reach a
//! service on the same machine. The server itself handles `/`, `/healthz` and `/metrics`. When it is stopped, it lets
//! requests in flight finish.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::accept::Acceptor;
use crate::access::AccessControl;
use crate::admin::{AdminAccess, metrics_route};
use crate::body_budget::BodyBudget;
use crate::config::HttpSettings;
use crate::connection_activity::Timeouts;
use crate::connection_limits::connection_limits;
use crate::connections::{ConnectionLimits, Connections};
use crate::graceful_shutdown::GracefulShutdown;
use crate::guard::{Guard, HEALTH_PATH, InvalidAllowEntry};
use crate::metrics::Registry;
use crate::root_page;
use crate::tls::ServerTls;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address to listen on.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// An entry of `allowed_hosts` or `allowed_origins` is invalid.
    #[error(transparent)]
    Guard(#[from] InvalidAllowEntry),
}

impl ServeError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Listen { .. } => {
                "another program may use the port: choose another with `--listen 127.0.0.1:PORT`"
            }
            Self::Guard(_) => "correct `[http]` in the config",
        }
    }
}

/// How the routes of a service authenticate their callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication {
    /// Callers send the listener's bearer token, if the listener has one.
    BearerToken,
    /// Callers send keys that the service checks itself. The guard then ignores `Authorization`, because it may contain a
    /// credential that the service forwards.
    OwnKeys,
}

/// A server that is bound to its address but does not accept connections yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
    admin: Arc<AdminAccess>,
    limits: ConnectionLimits,
    timeouts: Timeouts,
    bodies: BodyBudget,
    tls: Option<ServerTls>,
    router: Router,
    shutdown: GracefulShutdown,
}

impl HttpServer {
    /// Binds `address`. The address and token in `settings` are not used, because `address` may come from the command
    /// line, and [`Access::decide`](crate::access::Access::decide) has converted the token to `access`.
    pub fn bind(
        address: SocketAddr,
        settings: &HttpSettings,
        access: impl Into<AccessControl>,
    ) -> BoxFuture<'_, Result<Self, ServeError>> {
        let access = access.into();
        async move {
            let failed = |source| ServeError::Listen { address, source };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            let seconds = Duration::from_secs;
            Ok(Self {
                address: listener.local_addr().map_err(failed)?,
                listener,
                guard: Guard::new(&settings.allowed_hosts, &settings.allowed_origins, access)?,
                admin: Arc::default(),
                limits: connection_limits(settings.connections, settings.connections_per_address),
                timeouts: Timeouts {
                    header: seconds(settings.header_timeout),
                    idle: seconds(settings.idle_timeout),
                    body: seconds(settings.body_timeout),
                },
                bodies: BodyBudget::new(settings.body_bytes),
                tls: None,
                router: Router::new(),
                shutdown: GracefulShutdown::default(),
            })
        }
        .boxed()
    }

    /// Returns the bound address, with the actual port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves HTTPS instead of HTTP.
    #[must_use]
    pub fn with_tls(self, tls: ServerTls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Sets who may see the metrics. By default, every client that may send requests may see them.
    #[must_use]
    pub fn with_admin(self, admin: Arc<AdminAccess>) -> Self {
        Self { admin, ..self }
    }

    /// Returns a handle with which services take part in the shutdown of this server.
    pub fn graceful_shutdown(&self) -> GracefulShutdown {
        self.shutdown.clone()
    }

    /// Adds the routes of a service. Two services must not have the same route, and only one may have a fallback.
    #[must_use]
    pub fn mount(mut self, router: Router, authentication: Authentication) -> Self {
        let guard = match authentication {
            Authentication::BearerToken => self.guard.clone(),
            Authentication::OwnKeys => self.guard.without_token(),
        };
        self.router = self.router.merge(guard.protect(router));
        self
    }

    /// Serves until `stop` is cancelled and the requests in flight have finished.
    pub fn serve(self, registry: Registry, stop: CancellationToken) -> BoxFuture<'static, ()> {
        async move {
            let metrics = metrics_route(registry, self.guard.clone(), Arc::clone(&self.admin));
            let Self { listener, limits, timeouts, bodies, tls, router, shutdown, .. } = self
                .mount(own_routes(), Authentication::BearerToken)
                .mount(metrics, Authentication::OwnKeys);
            let connections = Connections::new(limits);
            let stopped = stop.clone();
            let acceptor = Acceptor { router, connections, timeouts, bodies, tls, stop: stopped };
            tokio::select! {
                () = acceptor.run(listener) => {}
                () = shutdown.run(stop) => {}
            }
        }
        .boxed()
    }
}

/// Returns the routes of the server itself, except the metrics.
fn own_routes() -> Router {
    root_page::routes().route(HEALTH_PATH, get(|| async { "ok\n" }))
}
