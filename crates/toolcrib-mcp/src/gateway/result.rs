//! Results as the two eras want them.

use std::sync::Arc;

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Value, json};

use super::exchange::NoAnswer;

/// How long a list may be kept by a client, in milliseconds. Changes are told besides.
const KEEP_LIST: u64 = 60_000;

/// Whether a client may keep a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// A list, for a while.
    List,
    /// What was read from a resource: as its server says, else not at all.
    Read,
    /// Not at all.
    No,
}

/// The key of `_meta` by which a server names itself.
const WHO_ANSWERS: &str = "io.modelcontextprotocol/serverInfo";

/// A result in the form of a client's era.
pub(super) fn finish(mut result: Value, modern: bool, keep: Keep) -> Value {
    if let Some(fields) = result.as_object_mut() {
        // It speaks of one hop: to our client we are the server.
        if let Some(meta) = fields.get_mut("_meta").and_then(Value::as_object_mut)
            && meta.shift_remove(WHO_ANSWERS).is_some()
            && meta.is_empty()
        {
            fields.shift_remove("_meta");
        }
        let complete = fields.get("resultType").is_none_or(|kind| kind == "complete");
        if !modern {
            if complete {
                fields.shift_remove("resultType");
            }
            if keep == Keep::Read {
                fields.shift_remove("ttlMs");
                fields.shift_remove("cacheScope");
            }
        } else if complete {
            fields.entry("resultType").or_insert_with(|| "complete".into());
            let (ttl, scope) = match keep {
                Keep::List => (KEEP_LIST, "private"),
                Keep::Read => (0, "private"),
                Keep::No => return result,
            };
            fields.entry("ttlMs").or_insert_with(|| ttl.into());
            fields.entry("cacheScope").or_insert_with(|| scope.into());
        }
    }
    result
}

/// A tool's answer that says what went wrong, so that the model can read it.
pub(super) fn failure(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

/// An error in the form of a client's era.
pub(super) fn error(no_answer: NoAnswer, modern: bool) -> ErrorData {
    match no_answer {
        NoAnswer::Refused(error) => in_era(error, modern),
        NoAnswer::Server(why) => ErrorData::internal_error(why, None),
    }
}

/// That a resource is not there.
pub(super) fn no_resource(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": uri})))
}

/// That several servers claim an address.
pub(super) fn several_resources(uri: &str, servers: &[Arc<str>]) -> ErrorData {
    let problem = "several servers claim this address; read it by its address in `resources/list` or \
                   `resources/templates/list`, which names the server";
    ErrorData::resource_not_found(problem, Some(json!({"uri": uri, "servers": servers})))
}

/// That a resource is not there has a code of its own in the older era.
pub(super) fn in_era(mut error: ErrorData, modern: bool) -> ErrorData {
    if modern && error.code == ErrorCode::RESOURCE_NOT_FOUND {
        error.code = ErrorCode::INVALID_PARAMS;
    }
    error
}
