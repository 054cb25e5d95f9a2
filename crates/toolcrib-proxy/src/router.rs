//! The proxy's routes: its statistics, and everything else.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use crate::accept::accept;
use crate::error;
use crate::proxy::Proxy;

impl Proxy {
    /// The routes: our statistics, and everything else.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/toolcrib/stats", get(stats))
            .fallback(pass)
            .with_state(Arc::clone(self))
    }
}

async fn stats(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    let (uri, headers) = (request.uri(), request.headers());
    if proxy.callers.identify(uri, headers).is_err() {
        return error::no_key();
    }
    let json = serde_json::to_string(&proxy.running.totals()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

async fn pass(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    Box::pin(accept(&proxy, request)).await
}
