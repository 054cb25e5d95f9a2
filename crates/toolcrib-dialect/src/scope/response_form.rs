//! Rejects requests whose response could not be checked.
//!
//! If the caller's scope is limited, the calls in the response are checked. So a body is rejected before anything is
//! sent if it is not a request of its API, or if it requests a response in a form that cannot be checked.

use toolcrib_text::json::Fields;

use super::ScopeViolation;
use crate::api::Api;

/// Checks the fields that determine the form of the response. In Gemini's API, the path determines the form, so no
/// field is checked.
pub(crate) fn check(api: Api, body: &Fields<'_>) -> Result<(), ScopeViolation> {
    if api == Api::Gemini {
        return Ok(());
    }
    for field in ["stream", "background"] {
        // Servers disagree on values such as `1` or the string `"true"`. They are rejected, so that the proxy and the
        // server cannot read them differently.
        if !matches!(body.get(field), None | Some("null" | "true" | "false")) {
            return Err(ScopeViolation::NotABoolean(field));
        }
    }
    if api == Api::Responses && body.get("background") == Some("true") {
        return Err(ScopeViolation::Background);
    }
    if body.string("model").is_none() {
        return Err(ScopeViolation::NoModel);
    }
    Ok(())
}
