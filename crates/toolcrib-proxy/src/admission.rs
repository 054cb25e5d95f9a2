//! Decides whether a client's request is accepted. For this, it determines the endpoint and the caller, and checks that
//! the endpoint is open to the caller. All decisions that need only the head of a request are made here, once.

use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use toolcrib_dialect::Api;
use toolcrib_dialect::mode::RequestedMode;
use toolcrib_server::{BodyBudget, ConnectionContext};

use crate::api_error::RequestError;
use crate::caller::{Caller, Callers};
use crate::endpoint::{Endpoint, EndpointKind};
use crate::path::NormalizedPath;
use crate::query;
use crate::toolcrib_headers::ToolcribHeaders;

/// A request that was accepted.
#[derive(Debug)]
pub(crate) struct AdmittedRequest {
    pub(crate) parts: Parts,
    pub(crate) path: NormalizedPath,
    pub(crate) endpoint: Endpoint,
    pub(crate) caller: Caller,
    /// The mode that the client requests in a header of this request.
    pub(crate) mode: Option<RequestedMode>,
    /// The path and query that are sent to the upstream. If the body is read or the caller is limited, the path is the
    /// normalised one, so that exactly what was checked is sent. Otherwise the client's path is sent unchanged.
    pub(crate) target: String,
}

impl AdmittedRequest {
    /// Returns the memory budget that the request's listener has for bodies; `None` if the request has no
    /// [`ConnectionContext`].
    pub(crate) fn bodies(&self) -> Option<&BodyBudget> {
        self.parts.extensions.get::<ConnectionContext>().map(ConnectionContext::bodies)
    }

    /// Whether the request is a POST to a provider's API, so that its body must be JSON.
    pub(crate) fn is_json(&self) -> bool {
        let is_api = self.endpoint.api.is_some() || self.endpoint.kind == EndpointKind::Count;
        is_api && self.parts.method == Method::POST
    }

    /// Decides, from the head of a request, whether the request is accepted.
    pub(crate) fn admit(callers: &Callers, parts: Parts) -> Result<Self, RequestError> {
        let path = NormalizedPath::read(parts.uri.path().as_bytes())
            .map_err(|why| RequestError::new(Api::Chat, StatusCode::BAD_REQUEST, &why))?;
        let query = parts.uri.query();
        let endpoint = Endpoint::from_path(&path, query, &parts.headers);
        let api = endpoint.api.unwrap_or(endpoint.vendor.error_api());
        let bad_request =
            |why: &dyn ToString| RequestError::new(api, StatusCode::BAD_REQUEST, &why.to_string());
        let own_headers = ToolcribHeaders::read(&parts.headers).map_err(|why| bad_request(&why))?;
        let caller = callers
            .identify(&parts.uri, &parts.headers, &own_headers)
            .map_err(|why| RequestError::unidentified(api, &why))?;
        if is_own_path(&path) {
            let text = "there is nothing at this path, and requests to it are not forwarded";
            return Err(RequestError::new(api, StatusCode::NOT_FOUND, text));
        }
        if caller.is_limited() {
            // A caller with a key must not name a Google Cloud project: the operator's credential may have access to
            // several projects, and the caller must not choose which of them pays.
            let is_open = endpoint.is_open_to_callers(&parts.method)
                && !(endpoint.names_google_project && caller.name().is_some());
            if !is_open && !caller.may_use_path(&parts.method, &path) {
                let text = not_open_message(&parts, &path, &caller);
                return Err(RequestError::new(api, StatusCode::FORBIDDEN, &text));
            }
            let query = query.unwrap_or_default();
            query::check(query).map_err(|why| bad_request(&why))?;
            if caller.scope.is_narrow() && endpoint.api == Some(Api::Gemini) {
                query::check_gemini(query).map_err(|why| bad_request(&why))?;
            }
        }
        let mode = own_headers.mode;
        let target = match query {
            _ if endpoint.api.is_none() && !caller.is_limited() => {
                parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned()
            }
            Some(query) => format!("{path}?{query}"),
            None => path.to_string(),
        };
        Ok(Self { parts, path, endpoint, caller, mode, target })
    }
}

/// Whether a path is a spelling of one of the listener's own paths, which must not be forwarded.
fn is_own_path(path: &NormalizedPath) -> bool {
    let folded = path.as_str().to_ascii_lowercase();
    path.is_root()
        || matches!(folded.as_str(), "/metrics" | "/healthz")
        || folded.starts_with("/mcp")
        || folded.starts_with("/toolcrib")
}

/// Returns the error message which says that a path is not open to a caller, and how to open it.
fn not_open_message(parts: &Parts, path: &NormalizedPath, caller: &Caller) -> String {
    let request = format!("{} {path}", parts.method);
    match caller.name() {
        Some(name) => format!(
            "`{request}` is not open to the caller `{name}`: add it to `paths` of `[proxy]`, or of this caller in `[[proxy.callers]]`"
        ),
        None => format!(
            "`{request}` is not open to a request with `x-toolcrib-tools`, because its body is not read: leave the header out, or add the path to `paths` of `[proxy]`"
        ),
    }
}
