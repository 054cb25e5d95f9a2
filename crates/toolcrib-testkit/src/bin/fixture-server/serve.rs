//! The two transports of the fixture: stdio, and Streamable HTTP on a loopback address.
//!
//! Both transports support both protocol versions. Over HTTP, `Host` and `Origin` must name this machine, so that a web
//! page cannot reach a server on localhost through a host name that the page's owner controls.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt as _;
use rmcp::ServiceExt;
use rmcp::transport::stdio as stdio_streams;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::server::{Fixture, Shared};

/// How long clients are told to wait before they reconnect (`retry` in the event stream). It is short because tests
/// wait that long.
const RETRY: Duration = Duration::from_millis(100);

/// Serves one client on stdin and stdout until the client closes them.
pub(crate) async fn stdio() -> Result<(), Box<dyn Error>> {
    let fixture = Fixture::new(Arc::new(Shared::default()));
    fixture.serve(stdio_streams()).await?.waiting().await?;
    Ok(())
}

/// Serves any number of clients at `/mcp` until interrupted. Prints the URL to stderr.
pub(crate) async fn http(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    let sessions = Arc::new(LocalSessionManager::default());
    let shared = Arc::new(Shared::with_sessions(Arc::clone(&sessions)));
    let config = StreamableHttpServerConfig::default()
        .with_sse_retry(Some(RETRY))
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"]);
    let service =
        StreamableHttpService::new(move || Ok(Fixture::new(Arc::clone(&shared))), sessions, config);
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    let router = Router::new().route_service("/mcp", service);
    // Without this, each small response would wait for a TCP acknowledgement.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    // There is no graceful shutdown, because a client with an open subscription could delay it forever.
    tokio::select! {
        served = axum::serve(listener, router) => served?,
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(())
}
