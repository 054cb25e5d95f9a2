//! The admin token, which gives access to the statistics and metrics of all callers.
//!
//! Statistics and metrics reveal who uses what, and how much. If the config has callers or an admin token, only the
//! admin sees those of all callers. Otherwise there is only a single user, and every client that may send requests may
//! see them.

use parking_lot::RwLock;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use crate::Secret;
use crate::access::is_strong;
use crate::guard::Guard;
use crate::metrics::{self, Registry};

/// The header in which the admin token can be sent instead of in `Authorization`. The proxy's keys are sent in this
/// header, too.
const KEY_HEADER: &str = "x-toolcrib-key";

/// A hint for a client whose admin token is missing or wrong.
pub const ADMIN_HINT: &str = "set `admin_token` in `[http]`, and send it as `Authorization: Bearer TOKEN` or as `x-toolcrib-key`";

/// The admin token, and whether it is required. Both may change when the config is reloaded.
#[derive(Debug, Default)]
pub struct AdminAccess(RwLock<AdminRules>);

#[derive(Debug, Default)]
struct AdminRules {
    token: Option<Secret>,
    /// Admin tokens that were valid earlier in this process and have been replaced.
    revoked: Vec<Secret>,
    has_callers: bool,
}

/// The error for an admin token that is so short that it could be guessed, or has characters other than visible ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`http.admin_token` has fewer than 16 characters, or characters other than visible ASCII")]
pub struct WeakAdminToken;

impl WeakAdminToken {
    /// Returns what the operator can do about the error.
    pub fn hint(self) -> &'static str {
        "generate one with `openssl rand -hex 32`, or leave it out"
    }
}

/// An admin token that is too long to be guessed.
#[derive(Debug, Clone)]
pub struct AdminToken(Secret);

impl AdminToken {
    /// Accepts a token of at least 16 characters of visible ASCII.
    pub fn new(token: Secret) -> Result<Self, WeakAdminToken> {
        if is_strong(token.expose()) { Ok(Self(token)) } else { Err(WeakAdminToken) }
    }
}

impl AdminAccess {
    /// Replaces the admin token and revokes the previous one.
    pub fn set_token(&self, token: Option<AdminToken>) {
        let token = token.map(|AdminToken(token)| token);
        let mut rules = self.0.write();
        let before = std::mem::replace(&mut rules.token, token.clone());
        rules.revoked.extend(before);
        rules.revoked.retain(|revoked| Some(revoked) != token.as_ref());
    }

    /// Whether `given` is an admin token that was replaced.
    pub fn is_revoked_token(&self, given: &str) -> bool {
        let rules = self.0.read();
        rules.revoked.iter().any(|token| token.matches(given))
    }

    /// Whether a text contains the current admin token or a replaced one.
    pub fn is_token_in(&self, text: &str) -> bool {
        let rules = self.0.read();
        rules.token.iter().chain(&rules.revoked).any(|token| token.is_in(text))
    }

    /// Sets whether the config has callers, each with its own key.
    pub fn set_has_callers(&self, has_callers: bool) {
        self.0.write().has_callers = has_callers;
    }

    /// Whether only the admin may see the statistics and metrics of all callers.
    pub fn is_required(&self) -> bool {
        let rules = self.0.read();
        rules.has_callers || rules.token.is_some()
    }

    /// Whether `given` is the admin token.
    pub fn matches(&self, given: &str) -> bool {
        let rules = self.0.read();
        rules.token.as_ref().is_some_and(|token| token.matches(given))
    }

    /// Whether a request contains the admin token.
    pub fn is_admin(&self, headers: &HeaderMap) -> bool {
        let values =
            |name: &str| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let bearer = values(AUTHORIZATION.as_str()).filter_map(|text| {
            let (scheme, token) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token)
        });
        bearer.chain(values(KEY_HEADER)).any(|given| self.matches(given))
    }
}

/// Returns the route of the metrics. If the admin token is not required, `guard` checks the listener's token. Host and
/// origin are checked earlier, by the guard that `HttpServer::mount` puts in front of every route.
pub(crate) fn metrics_route(registry: Registry, guard: Guard, admin: Arc<AdminAccess>) -> Router {
    let registry = Arc::new(registry);
    let respond = move |request: Request| {
        let headers = request.headers();
        let denied = if admin.is_required() {
            (!admin.is_admin(headers)).then(not_admin)
        } else {
            guard
                .check(request.method(), request.uri(), headers)
                .err()
                .map(axum::response::IntoResponse::into_response)
        };
        std::future::ready(denied.unwrap_or_else(|| {
            let content_type = [(CONTENT_TYPE, HeaderValue::from_static(metrics::MEDIA_TYPE))];
            (content_type, metrics::encode(&registry)).into_response()
        }))
    };
    Router::new().route("/metrics", get(respond))
}

fn not_admin() -> Response {
    let body = serde_json::json!({"error": "the metrics cover all callers and require the admin token", "hint": ADMIN_HINT});
    (StatusCode::FORBIDDEN, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_is_recognised_by_a_strong_token() {
        let admin = AdminAccess::default();
        assert!(!admin.is_required() && !admin.matches(""));
        assert_eq!(AdminToken::new("short".into()).unwrap_err(), WeakAdminToken);
        assert_eq!(AdminToken::new("0123456789abcdé0".into()).unwrap_err(), WeakAdminToken);
        admin.set_token(Some(AdminToken::new("0123456789abcdef".into()).unwrap()));
        assert!(admin.is_required());
        for (name, value, is_admin) in [
            ("authorization", "Bearer 0123456789abcdef", true),
            ("authorization", "bearer 0123456789abcdef", true),
            ("authorization", "Basic 0123456789abcdef", false),
            ("x-toolcrib-key", "0123456789abcdef", true),
            ("x-toolcrib-key", "0123456789abcdeg", false),
            ("x-api-key", "0123456789abcdef", false),
        ] {
            let header = (name.parse::<axum::http::HeaderName>().unwrap(), value.parse().unwrap());
            assert_eq!(
                admin.is_admin(&HeaderMap::from_iter([header])),
                is_admin,
                "{name}: {value}"
            );
        }
        assert!(admin.is_token_in("key=0123456789abcdef") && !admin.is_token_in("key=0123"));
        admin.set_token(None);
        assert!(admin.is_token_in("key=0123456789abcdef"), "revoked tokens count, too");
        assert!(!admin.is_required() && admin.is_revoked_token("0123456789abcdef"));
        admin.set_token(Some(AdminToken::new("0123456789abcdef".into()).unwrap()));
        assert!(!admin.is_revoked_token("0123456789abcdef"), "it is the current token again");
        admin.set_token(None);
        admin.set_has_callers(true);
        assert!(admin.is_required());
    }
}
