//! Reads and adds the token counts of the Responses API.

use serde_json::Value;
use toolcrib_text::json::Fields;

use crate::usage::{self, Usage};

/// Reads the token usage of a response, adds it to `sum`, and returns it.
pub(super) fn add(response: &Fields<'_>, sum: &mut Option<Value>) -> Usage {
    let Some(used) = response.get("usage").and_then(usage::parse) else {
        return Usage::default();
    };
    let usage = Usage {
        input: usage::token_count(&used, &["input_tokens"]),
        cached: usage::token_count(&used, &["input_tokens_details", "cached_tokens"]),
        output: usage::token_count(&used, &["output_tokens"]),
    };
    match sum {
        Some(sum) => usage::add(sum, &used),
        None => *sum = Some(used),
    }
    usage
}
