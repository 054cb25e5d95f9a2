//! Reads the token counts of Chat Completions.

use serde_json::Value;

use crate::usage::{self, Usage};

pub(super) fn read(used: &Value) -> Usage {
    Usage {
        input: usage::token_count(used, &["prompt_tokens"]),
        cached: usage::token_count(used, &["prompt_tokens_details", "cached_tokens"]),
        output: usage::token_count(used, &["completion_tokens"]),
    }
}
