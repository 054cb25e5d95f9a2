//! The page at `/`, for people who open the address in a browser.
//!
//! The server serves this page itself, so that the proxy never forwards a request for `/` to a provider.

use axum::Router;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;

const TEXT: &str = "\
Toolcrib: tool search for AI agents.

/mcp           the MCP gateway; add this address to an MCP client
/mcp/PROFILE   the same, limited to a profile of the config
/v1/...        the LLM proxy; use this server as the base URL of an LLM client
/healthz       the health check
/metrics       metrics
";

pub(crate) fn routes() -> Router {
    Router::new().route("/", any(|method: Method| std::future::ready(page(&method))))
}

fn page(method: &Method) -> Response {
    if [Method::GET, Method::HEAD].contains(method) {
        return TEXT.into_response();
    }
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")], TEXT).into_response()
}
