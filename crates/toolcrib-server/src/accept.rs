//! The accept loop, and the life of one connection.
//!
//! `axum::serve` has neither timeouts nor a limit on connections, so this module uses hyper directly. It serves only
//! HTTP/1.1, because every known client supports it, and HTTP/2 would need additional limits against attackers.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use crate::body_budget::BodyBudget;
use crate::body_with_permit::BodyWithPermit;
use crate::connection_activity::{InFlight, Timeouts};
use crate::connection_stream::ConnectionStream;
use crate::connections::{ConnectionSlot, Connections, Overload, client_of};
use crate::error_response;
use crate::guard::HEALTH_PATH;
use crate::rate_limited_log::RateLimitedLog;
use crate::request_body::{BodyState, TimedBody};
use crate::tls::ServerTls;

/// Maximum time between a failed `accept` and the next attempt. The wait ends earlier if a connection closes.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// What services can learn about the connection that a request arrived on. It is stored in the extensions of the
/// request.
#[derive(Debug, Clone)]
pub struct ConnectionContext {
    remote: SocketAddr,
    bodies: BodyBudget,
}

impl ConnectionContext {
    /// Returns the address that per-client limits use: the remote address, or its /64 network for IPv6. Returns `None`
    /// on loopback, where these limits do not apply, because all programs on this machine share that address.
    pub fn client(&self) -> Option<IpAddr> {
        client_of(self.remote.ip())
    }

    /// Returns the budget for the memory that the bodies of all requests take.
    pub fn bodies(&self) -> &BodyBudget {
        &self.bodies
    }
}

/// The state that all connections share.
#[derive(Debug, Clone)]
pub(crate) struct Acceptor {
    pub(crate) router: Router,
    pub(crate) connections: Arc<Connections>,
    pub(crate) timeouts: Timeouts,
    pub(crate) bodies: BodyBudget,
    pub(crate) tls: Option<ServerTls>,
    /// Cancelled when the server stops. From then on, no new request is accepted.
    pub(crate) stop: CancellationToken,
}

impl Acceptor {
    /// Serves connections until the server is stopped and all connections have ended.
    pub(crate) async fn run(self, listener: TcpListener) {
        let (tasks, stop) = (TaskTracker::new(), self.stop.clone());
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.accept_connections(&listener, &tasks) => {}
        }
        drop(listener);
        tasks.close();
        tasks.wait().await;
    }

    async fn accept_connections(&self, listener: &TcpListener, tasks: &TaskTracker) {
        let failures = RateLimitedLog::default();
        loop {
            match listener.accept().await {
                Ok((stream, remote)) => {
                    let slot = self.connections.admit(remote).await;
                    tasks.spawn(self.clone().serve(stream, remote, slot));
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    if let Some(times) = failures.count() {
                        tracing::error!(times, "cannot accept a connection: {error}");
                    }
                    // The most likely cause is that the process has too many open files, so an idle connection is
                    // closed.
                    let closed = self.connections.one_closed();
                    self.connections.evict_longest_idle();
                    let _ = tokio::time::timeout(ACCEPT_RETRY_DELAY, closed).await;
                }
            }
        }
    }

    /// Serves one connection until it ends, times out, or is evicted to make room for others.
    async fn serve(self, stream: TcpStream, remote: SocketAddr, slot: ConnectionSlot) {
        // A response consists of several small writes. Nagle's algorithm would delay each write until the previous one
        // is acknowledged, which takes 40 ms with delayed acknowledgements.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.serve_stream(stream, remote, &slot).await;
        };
        // The TLS handshake gets the same timeout as the head of a request.
        let handshake = tokio::time::timeout(self.timeouts.header, tls.accept(stream));
        tokio::select! {
            () = slot.activity.evicted() => {}
            done = handshake => match done {
                Ok(Ok(stream)) => self.serve_stream(stream, remote, &slot).await,
                Ok(Err(error)) => tracing::debug!("TLS handshake failed: {error}"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            },
        }
    }

    async fn serve_stream<S>(&self, stream: S, remote: SocketAddr, slot: &ConnectionSlot)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let activity = &slot.activity;
        let io = TokioIo::new(ConnectionStream::new(stream, Arc::clone(activity)));
        let service = service_fn(|request| self.respond(request, remote, slot));
        // hyper's own timeout is off, because it does not distinguish a connection that is receiving a head from an
        // idle one.
        let mut http = http1::Builder::new();
        http.header_read_timeout(None).keep_alive(slot.overload.is_none());
        let mut connection = pin!(http.serve_connection(io, service));
        let mut stopped = pin!(self.stop.cancelled());
        let mut is_stopping = false;
        while let Some(next_check) = activity.next_check(&self.timeouts) {
            tokio::select! {
                _ = connection.as_mut() => break,
                () = activity.evicted() => break,
                () = &mut stopped, if !is_stopping => {
                    is_stopping = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = tokio::time::sleep_until(next_check) => {}
            }
        }
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        remote: SocketAddr,
        slot: &ConnectionSlot,
    ) -> Result<Response<BodyWithPermit<InFlight>>, Infallible> {
        let mut in_flight = slot.activity.begin_request();
        let (body_state, awaits_permission) =
            (BodyState::default(), request.headers().contains_key(header::EXPECT));
        let overload = slot.overload.filter(|_| request.uri().path() != HEALTH_PATH);
        let mut response = match overload {
            Some(overload) => overloaded(overload),
            None => self.route(request, remote, &body_state).await,
        };
        if body_state.is_stalled() {
            // The service saw only that the body could not be read. Replace its response with one that names the
            // timeout.
            response = body_stalled(self.timeouts.body);
        } else if body_state.is_unread() && !awaits_permission {
            // The connection counts as idle while the rest of the body is discarded, so that it can time out or be
            // evicted. Otherwise a rejected client could keep it open.
            drop(in_flight);
            body_state.discard().await;
            in_flight = slot.activity.begin_request();
        }
        Ok(response.map(|body| BodyWithPermit::new(body, in_flight)))
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        remote: SocketAddr,
        body_state: &BodyState,
    ) -> Response {
        let mut request = request.map(|body| {
            if body.is_end_stream() {
                return Body::empty();
            }
            Body::new(TimedBody::new(body, self.timeouts.body, body_state.clone()))
        });
        request.extensions_mut().insert(ConnectionContext { remote, bodies: self.bodies.clone() });
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Whether an error of `accept` concerns only a single connection that its client has closed, so that the listener
/// still works.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

fn overloaded(overload: Overload) -> Response {
    let error = match overload {
        Overload::Total => "all connections of this server are busy",
        Overload::Address => "all connections of this client address are busy",
    };
    let hint =
        "try again later; the limits are `connections` and `connections_per_address` of `[http]`";
    error_response::busy(error, hint)
}

fn body_stalled(timeout: Duration) -> Response {
    let error = format!("no byte of the request body arrived for {} seconds", timeout.as_secs());
    let hint = "send the body without long pauses; the limit is `body_timeout` of `[http]`";
    let mut response = error_response::json(StatusCode::REQUEST_TIMEOUT, &error, hint);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
