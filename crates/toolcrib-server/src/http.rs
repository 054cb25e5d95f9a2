//! The HTTP server: one listener, on which services mount their routers.
//!
//! It puts the [`Guard`] in front of every route, because a web page in a browser must not be able to
//! reach a service on the same machine. It answers `/healthz` and `/metrics` itself, and when it is
//! stopped it lets requests in flight finish.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::admin::{Admin, metrics_route};
use crate::config::HttpSettings;
use crate::drain::Drain;
use crate::guard::{Guard, HEALTH, Unusable};
use crate::listener::SmallReads;
use crate::metrics::Registry;

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// An entry of the config can never match.
    #[error(transparent)]
    Guard(#[from] Unusable),
    /// Serving ended with an error.
    #[error("serving ended: {0}")]
    Io(#[from] std::io::Error),
}

impl ServeError {
    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Listen { .. } => {
                "another program may have the port: choose one with `--listen 127.0.0.1:PORT`"
            }
            Self::Guard(_) => "correct `[http]` in the config",
            Self::Io(_) => "see the log",
        }
    }
}

/// How the routes of a service authenticate their callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication {
    /// With the listener's bearer token, if it has one.
    BearerToken,
    /// With keys that the service checks itself. `Authorization` is then not ours to check: it may hold a
    /// credential that the service passes on.
    OwnKeys,
}

/// A server that has its address and does not accept connections yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
    admin: Arc<Admin>,
    router: Router,
    drain: Drain,
}

impl HttpServer {
    /// Binds `address`. Of `settings` only the allowed hosts and origins are used: the address may come from
    /// the command line, and [`Access::decide`] has turned the token into `access`.
    pub fn bind(
        address: SocketAddr,
        settings: &HttpSettings,
        access: Access,
    ) -> BoxFuture<'_, Result<Self, ServeError>> {
        async move {
            let failed = |source| ServeError::Listen { address, source };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            Ok(Self {
                address: listener.local_addr().map_err(failed)?,
                listener,
                guard: Guard::new(&settings.allowed_hosts, &settings.allowed_origins, access)?,
                admin: Arc::default(),
                router: Router::new(),
                drain: Drain::default(),
            })
        }
        .boxed()
    }

    /// The bound address, with the real port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Who may see the metrics, if not everybody who may send requests.
    #[must_use]
    pub fn with_admin(self, admin: Arc<Admin>) -> Self {
        Self { admin, ..self }
    }

    /// The shutdown of this server, for the services on it.
    pub fn drain(&self) -> Drain {
        self.drain.clone()
    }

    /// Adds the routes of a service. No two services may have the same route, and only one may have a fallback.
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
    pub fn serve(
        self,
        registry: Registry,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), ServeError>> {
        async move {
            let metrics = metrics_route(registry, self.guard.clone(), Arc::clone(&self.admin));
            let Self { listener, router, drain, .. } = self
                .mount(own_routes(), Authentication::BearerToken)
                .mount(metrics, Authentication::OwnKeys);
            let stopped = stop.clone().cancelled_owned();
            let serving = axum::serve(SmallReads(listener), router).with_graceful_shutdown(stopped);
            tokio::select! {
                ended = serving.into_future() => Ok(ended?),
                () = drain.finish(stop) => Ok(()),
            }
        }
        .boxed()
    }
}

/// The routes that belong to no service, but for the metrics.
fn own_routes() -> Router {
    Router::new().route(HEALTH, get(|| async { "ok\n" }))
}
