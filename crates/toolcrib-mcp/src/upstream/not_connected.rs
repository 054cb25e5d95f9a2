//! Why there is no connection to a server, as people and models are told.

use std::fmt;
use std::time::Duration;

use toolcrib_text::clean::one_line;
use toolcrib_text::shorten;

use super::secrets::Secrets;
use crate::oauth;

/// Characters of a reason: it is told with every reply.
const WHY_CHARS: usize = 300;

/// Why there is no connection.
#[derive(Debug)]
pub(super) struct NotConnected {
    pub(super) why: String,
    /// What the operator can do about it.
    pub(super) hint: Option<String>,
    /// Whether somebody has to log in first.
    pub(super) login: bool,
    /// Whether we ended it: then how its process ended is not the reason.
    pub(super) by_us: bool,
}

impl NotConnected {
    pub(super) fn ended(why: impl fmt::Display) -> Self {
        let why = shorten(&why.to_string(), WHY_CHARS).into_owned();
        Self { why, hint: None, login: false, by_us: false }
    }

    pub(super) fn hinted(why: impl fmt::Display, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::ended(why) }
    }

    /// A server that broke its limits.
    pub(super) fn violation(why: impl fmt::Display) -> Self {
        let hint = "if it needs more than others, raise `server_requests` in `[gateway.limits]`";
        Self { by_us: true, ..Self::hinted(why, hint) }
    }

    pub(super) fn login(login: &oauth::NeedsLogin) -> Self {
        let hint = format!("run: toolcrib login {}", login.server);
        Self { login: true, ..Self::hinted("it wants somebody to log in", hint) }
    }

    /// The same, without what may not be repeated, and no longer than a line.
    pub(super) fn masked(self, secrets: &Secrets) -> Self {
        let why = shorten(&one_line(&secrets.hide(&self.why)), WHY_CHARS).into_owned();
        Self { why, ..self }
    }

    pub(super) fn slow(within: Duration) -> Self {
        let hint = "some servers download themselves first: raise `start_timeout`, or start it once by hand";
        Self::hinted(format!("it did not answer within {:.0} s", within.as_secs_f64()), hint)
    }
}
