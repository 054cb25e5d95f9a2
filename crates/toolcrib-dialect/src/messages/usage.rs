//! Reads the token counts of Messages.

use serde_json::Value;

use crate::usage::{self, Usage};

/// Reads a `usage` object. In this API, `input_tokens` excludes cached tokens.
pub(super) fn read(used: &Value) -> Usage {
    let cached = usage::token_count(used, &["cache_read_input_tokens"]);
    let written = usage::token_count(used, &["cache_creation_input_tokens"]);
    let rest = usage::token_count(used, &["input_tokens"]);
    Usage {
        input: rest.saturating_add(written).saturating_add(cached),
        cached,
        output: usage::token_count(used, &["output_tokens"]),
    }
}
