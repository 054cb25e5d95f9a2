//! Rejects requests whose response could not be checked.
//!
//! For a caller with a limited scope, the calls in the response are checked. A body that is not a request of its API, or
//! that requests a response in a form that cannot be checked, is therefore rejected before anything is sent.

use toolcrib_text::json::Fields;

use super::ScopeViolation;
use crate::api::Api;

/// Checks the fields that determine the form of the response. In Gemini's API, the path determines it.
pub(crate) fn check(api: Api, body: &Fields<'_>) -> Result<(), ScopeViolation> {
    if api == Api::Gemini {
        return Ok(());
    }
    for field in ["stream", "background"] {
        // Some servers read `1` or `"true"` as true.
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
