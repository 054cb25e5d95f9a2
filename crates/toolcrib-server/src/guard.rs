//! Decides which requests are accepted, by method, `Host`, `Origin` and bearer token.
//!
//! Any web page that the user opens can send requests to this machine, and with DNS rebinding it can read the
//! responses. However, a page cannot choose the `Host` and `Origin` headers. Therefore every request on every route
//! must have an allowed host and, if it comes from a page, an allowed origin. [`Guard::check`] is the only place that
//! decides.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use crate::Secret;
use crate::access::{AcceptedCredential, AccessControl};
use crate::authority::{Authority, Origin};
use crate::error_response;
use crate::rate_limited_log::RateLimitedLog;

/// The only route of the server itself that requires no credential. It reports that the process is alive, and nothing
/// else.
pub const HEALTH_PATH: &str = "/healthz";

/// Why a request was denied. The error contains no text from the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessDenied {
    /// The request has neither a `Host` header nor an authority in its URI.
    #[error("the request names no host")]
    NoHost,
    /// The request has two `Host` headers. Other software might use the one that was not checked.
    #[error("the request names two hosts")]
    ManyHosts,
    /// The host is not `name` or `name:port` in canonical spelling.
    #[error("the request's host is malformed")]
    MalformedHost,
    /// The host is well-formed but not allowed.
    #[error("the request's host is not served here")]
    ForeignHost,
    /// The request has two `Origin` headers.
    #[error("the request names two origins")]
    ManyOrigins,
    /// The origin is `null`, which any sandboxed frame, local file or redirect can send.
    #[error("the request's origin is `null`")]
    NullOrigin,
    /// The origin is not `http://host` or `https://host` with an optional port.
    #[error("the request's origin is malformed")]
    MalformedOrigin,
    /// The origin is well-formed but not allowed.
    #[error("the request's origin is not allowed here")]
    ForeignOrigin,
    /// A bearer token is required, but the request has none.
    #[error("a bearer token is required")]
    NoToken,
    /// The bearer token is wrong.
    #[error("the bearer token is wrong")]
    WrongToken,
    /// The method is `TRACE` or `CONNECT`, which no service needs. `TRACE` returns a request with its credentials, and
    /// `CONNECT` opens a tunnel.
    #[error("the method is not allowed on any path")]
    Method,
}

impl AccessDenied {
    const COUNT: usize = Self::Method as usize + 1;

    /// Returns what the operator or the client can do about the error.
    pub fn hint(self) -> &'static str {
        match self {
            Self::NoHost | Self::ManyHosts => "send exactly one `Host` header",
            Self::MalformedHost => "write the host in lower case, as `name` or `name:port`",
            Self::ForeignHost => "use `localhost`, or add the name to `allowed_hosts`",
            Self::ManyOrigins | Self::MalformedOrigin => {
                "send one `Origin` header of the form `https://host:port`, or none"
            }
            Self::NullOrigin | Self::ForeignOrigin => "add the page's origin to `allowed_origins`",
            Self::NoToken | Self::WrongToken => "send `Authorization: Bearer TOKEN`",
            Self::Method => "use another method: `TRACE` and `CONNECT` are not supported",
        }
    }

    /// Returns 401 if the token is missing or wrong, 405 for a method that is not allowed, and 403 otherwise.
    pub fn status(self) -> StatusCode {
        match self {
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            _ => StatusCode::FORBIDDEN,
        }
    }
}

impl IntoResponse for AccessDenied {
    fn into_response(self) -> Response {
        let mut response = error_response::json(self.status(), &self.to_string(), self.hint());
        let header = match self.status() {
            StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, "Bearer")),
            StatusCode::METHOD_NOT_ALLOWED => Some((ALLOW, "GET, HEAD, POST, PUT, PATCH, DELETE")),
            _ => None,
        };
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// An invalid entry of `allowed_hosts` or `allowed_origins`, which no request could match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAllowEntry {
    /// An invalid entry of `allowed_hosts`.
    #[error("`{0}` in `allowed_hosts` is not a host: write `name` or `name:port`")]
    Host(String),
    /// An invalid entry of `allowed_origins`.
    #[error(
        "`{0}` in `allowed_origins` is not an origin: write `https://name` or `https://name:port`"
    )]
    Origin(String),
}

/// The rules by which one listener accepts requests.
#[derive(Debug, Clone)]
pub struct Guard {
    hosts: Vec<Authority>,
    origins: Vec<Origin>,
    /// The credential that clients must send. `None` if the routes check their own keys.
    access: Option<AccessControl>,
    denied_log: Arc<DeniedLog>,
}

/// Logs denied requests. Anyone can send such requests, so each reason is logged at most once a minute, with the number
/// of requests.
#[derive(Debug, Default)]
struct DeniedLog([RateLimitedLog; AccessDenied::COUNT]);

impl DeniedLog {
    fn count(&self, reason: AccessDenied) {
        if let Some(requests) = self.0.get(reason as usize).and_then(RateLimitedLog::count) {
            tracing::warn!(%reason, requests, "request denied");
        }
    }
}

impl Guard {
    /// Creates a guard that allows loopback names and origins, and those in `allowed_hosts` and `allowed_origins`. An
    /// entry of `allowed_hosts` without a port allows every port.
    pub fn new(
        allowed_hosts: &[String],
        allowed_origins: &[String],
        access: impl Into<AccessControl>,
    ) -> Result<Self, InvalidAllowEntry> {
        let host = |text: &String| {
            Authority::parse(&text.to_ascii_lowercase())
                .ok_or_else(|| InvalidAllowEntry::Host(text.clone()))
        };
        let origin = |text: &String| {
            Origin::parse(&text.to_ascii_lowercase())
                .ok_or_else(|| InvalidAllowEntry::Origin(text.clone()))
        };
        Ok(Self {
            hosts: allowed_hosts.iter().map(host).collect::<Result<_, _>>()?,
            origins: allowed_origins.iter().map(origin).collect::<Result<_, _>>()?,
            access: Some(access.into()),
            denied_log: Arc::default(),
        })
    }

    /// Returns a guard that allows the same hosts and origins but requires no bearer token, for routes that check their
    /// own keys.
    #[must_use]
    pub fn without_token(&self) -> Self {
        Self { access: None, ..self.clone() }
    }

    /// Decides whether a request is accepted. `uri` contains an authority if the request uses HTTP/2 or has an absolute
    /// URI in its request line. Returns the request's credential, or `None` if the route needs none or checks its own
    /// keys.
    pub fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Option<AcceptedCredential>, AccessDenied> {
        if [Method::TRACE, Method::CONNECT].contains(method) {
            return Err(AccessDenied::Method);
        }
        self.check_host(uri, headers)?;
        self.check_origin(headers)?;
        match &self.access {
            Some(access) if uri.path() != HEALTH_PATH => {
                access.check(|token| check_token(token, headers)).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), AccessDenied> {
        let header =
            single_value(headers, &HOST, AccessDenied::ManyHosts, AccessDenied::MalformedHost)?;
        let hosts = [header, uri.authority().map(axum::http::uri::Authority::as_str)];
        // If the request has both a `Host` header and an authority, both must be allowed, because other software may
        // use either of them.
        let mut hosts = hosts.into_iter().flatten().peekable();
        if hosts.peek().is_none() {
            return Err(AccessDenied::NoHost);
        }
        for text in hosts {
            let host = Authority::parse(text).ok_or(AccessDenied::MalformedHost)?;
            if !host.is_loopback() && !self.hosts.iter().any(|allowed| allowed.covers(&host)) {
                return Err(AccessDenied::ForeignHost);
            }
        }
        Ok(())
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), AccessDenied> {
        match single_value(
            headers,
            &ORIGIN,
            AccessDenied::ManyOrigins,
            AccessDenied::MalformedOrigin,
        )? {
            None => Ok(()),
            Some("null") => Err(AccessDenied::NullOrigin),
            Some(text) => {
                let origin = Origin::parse(text).ok_or(AccessDenied::MalformedOrigin)?;
                if origin.authority.is_loopback() || self.origins.contains(&origin) {
                    Ok(())
                } else {
                    Err(AccessDenied::ForeignOrigin)
                }
            }
        }
    }

    /// Puts this guard in front of every route of `router`, including its fallback.
    pub fn protect(self, router: Router) -> Router {
        router.layer(from_fn_with_state(Arc::new(self), check_request))
    }
}

async fn check_request(
    State(guard): State<Arc<Guard>>,
    mut request: Request,
    next: Next,
) -> Response {
    match guard.check(request.method(), request.uri(), request.headers()) {
        Ok(credential) => {
            if let Some(credential) = credential {
                request.extensions_mut().insert(credential);
            }
            next.run(request).await
        }
        Err(denied) => {
            guard.denied_log.count(denied);
            denied.into_response()
        }
    }
}

fn check_token(token: &Secret, headers: &HeaderMap) -> Result<(), AccessDenied> {
    let given =
        single_value(headers, &AUTHORIZATION, AccessDenied::WrongToken, AccessDenied::WrongToken)?;
    let (scheme, value) =
        given.and_then(|text| text.split_once(' ')).ok_or(AccessDenied::NoToken)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AccessDenied::NoToken);
    }
    if token.matches(value) { Ok(()) } else { Err(AccessDenied::WrongToken) }
}

/// Returns the value of a header. If the header occurs more than once, returns the error `many`.
fn single_value<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
    many: AccessDenied,
    malformed: AccessDenied,
) -> Result<Option<&'h str>, AccessDenied> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(many);
    }
    value.to_str().map(Some).map_err(|_| malformed)
}
