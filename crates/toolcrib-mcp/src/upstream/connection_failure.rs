//! Why there is no connection to a server, as text for people and models.

use std::fmt;
use std::time::Duration;

use toolcrib_text::clean::one_line;
use toolcrib_text::shorten;

use super::secrets::Secrets;
use crate::oauth;

/// Maximum length of a reason, in characters. Reasons are repeated in replies to the model.
const REASON_CHARS: usize = 300;

/// Why connecting failed, or why a connection ended.
#[derive(Debug)]
pub(super) struct ConnectionFailure {
    pub(super) reason: String,
    /// What the operator can do about the failure.
    pub(super) hint: Option<String>,
    /// Whether a login is required first.
    pub(super) needs_login: bool,
    /// Whether the gateway ended the connection. If so, the exit status of the server's process is not the reason.
    pub(super) by_gateway: bool,
}

impl ConnectionFailure {
    pub(super) fn new(reason: impl fmt::Display) -> Self {
        let reason = shorten(&reason.to_string(), REASON_CHARS).into_owned();
        Self { reason, hint: None, needs_login: false, by_gateway: false }
    }

    pub(super) fn with_hint(reason: impl fmt::Display, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::new(reason) }
    }

    /// Creates the failure of a server that the gateway disconnected because it exceeded a limit.
    pub(super) fn limit_violation(reason: impl fmt::Display) -> Self {
        let hint = "if it needs more than others, raise `server_requests` in `[gateway.limits]`";
        Self { by_gateway: true, ..Self::with_hint(reason, hint) }
    }

    pub(super) fn login_required(login: &oauth::NeedsLogin) -> Self {
        let hint = format!("run: toolcrib login {}", login.server);
        Self { needs_login: true, ..Self::with_hint("it requires a login", hint) }
    }

    /// Creates the failure of a server that did not answer within `limit`.
    pub(super) fn timed_out(limit: Duration) -> Self {
        let hint = "some servers download themselves first: raise `start_timeout`, or start it once by hand";
        let reason = format!("it did not answer within {:.0} s", limit.as_secs_f64());
        Self { by_gateway: true, ..Self::with_hint(reason, hint) }
    }

    /// Adds the text that a server over stdio has written instead of messages, which is often why it does not work.
    pub(super) fn with_stray_text(self, text: Option<&str>) -> Self {
        let Some(text) = text else { return self };
        let reason =
            format!("it writes text that is not MCP to standard output: `{text}`; {}", self.reason);
        let hint = "a server over stdio may write only MCP messages to standard output, and its log to standard error";
        Self { hint: Some(hint.into()), reason, ..self }
    }

    /// Masks secrets in the failure, and reduces its reason to one line.
    pub(super) fn masked(self, secrets: &Secrets) -> Self {
        let reason = shorten(&one_line(&secrets.mask(&self.reason)), REASON_CHARS).into_owned();
        Self { reason, ..self }
    }
}
