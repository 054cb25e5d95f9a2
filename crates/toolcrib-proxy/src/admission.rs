//! A request of a client, up to the decision whether it may go on: what it asks for, who sends it, and whether
//! that is open to them. Everything that is decided from its head is decided here, once.

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

/// A request that may go on.
#[derive(Debug)]
pub(crate) struct AdmittedRequest {
    pub(crate) parts: Parts,
    pub(crate) path: NormalizedPath,
    pub(crate) endpoint: Endpoint,
    pub(crate) caller: Caller,
    /// How the request itself wants tools to be deferred.
    pub(crate) mode: Option<RequestedMode>,
    /// The path and query for the upstream. The path is the normalised one if the body is read or the caller is
    /// limited, so that what was checked is what is sent; otherwise its bytes are the client's.
    pub(crate) target: String,
}

impl AdmittedRequest {
    /// The memory for bodies of the listener that it came in on.
    pub(crate) fn bodies(&self) -> Option<&BodyBudget> {
        self.parts.extensions.get::<ConnectionContext>().map(ConnectionContext::bodies)
    }

    /// Whether the body of such a request is JSON in every provider's API.
    pub(crate) fn is_json(&self) -> bool {
        let is_api = self.endpoint.api.is_some() || self.endpoint.kind == EndpointKind::Count;
        is_api && self.parts.method == Method::POST
    }

    /// Decides about a request by its head.
    pub(crate) fn admit(callers: &Callers, parts: Parts) -> Result<Self, RequestError> {
        let path = NormalizedPath::read(parts.uri.path().as_bytes())
            .map_err(|why| RequestError::new(Api::Chat, StatusCode::BAD_REQUEST, &why))?;
        let query = parts.uri.query();
        let endpoint = Endpoint::from_path(&path, query, &parts.headers);
        let api = endpoint.api.unwrap_or(endpoint.vendor.error_api());
        let bad =
            |why: &dyn ToString| RequestError::new(api, StatusCode::BAD_REQUEST, &why.to_string());
        let ours = ToolcribHeaders::read(&parts.headers).map_err(|why| bad(&why))?;
        let caller = callers
            .identify(&parts.uri, &parts.headers, &ours)
            .map_err(|why| RequestError::unidentified(api, &why))?;
        if is_own_path(&path) {
            let text = "there is nothing at this path, and it is not forwarded";
            return Err(RequestError::new(api, StatusCode::NOT_FOUND, text));
        }
        if caller.is_limited() {
            // The credential that comes with a key may open several projects, and which one pays is not for the
            // caller to choose.
            let is_open = endpoint.is_open_to_callers(&parts.method)
                && !(endpoint.names_google_project && caller.name().is_some());
            if !is_open && !caller.may_use_path(&parts.method, &path) {
                let text = not_open_message(&parts, &path, &caller);
                return Err(RequestError::new(api, StatusCode::FORBIDDEN, &text));
            }
            let query = query.unwrap_or_default();
            query::check(query).map_err(|why| bad(&why))?;
            if caller.scope.is_narrow() && endpoint.api == Some(Api::Gemini) {
                query::check_gemini(query).map_err(|why| bad(&why))?;
            }
        }
        let mode = ours.mode;
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

/// Whether a path is another spelling of one of the listener's own, which must not be forwarded.
fn is_own_path(path: &NormalizedPath) -> bool {
    let folded = path.as_str().to_ascii_lowercase();
    path.is_root()
        || matches!(folded.as_str(), "/metrics" | "/healthz")
        || folded.starts_with("/mcp")
        || folded.starts_with("/toolcrib")
}

/// Why a path is closed to a caller, and what opens it.
fn not_open_message(parts: &Parts, path: &NormalizedPath, caller: &Caller) -> String {
    let request = format!("{} {path}", parts.method);
    match caller.name() {
        Some(name) => format!(
            "`{request}` is not open to the caller `{name}`: name it in `paths` of `[proxy]`, or of this caller in `[[proxy.callers]]`"
        ),
        None => format!(
            "`{request}` is not open to a request with `x-toolcrib-tools`, because its body is not read: leave the header out, or name the path in `paths` of `[proxy]`"
        ),
    }
}
