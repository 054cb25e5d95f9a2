//! Results as the two eras want them.

use std::sync::Arc;

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Value, json};

use super::forwarded_request::ForwardError;

/// How long a list may be kept by a client, in milliseconds. Changes are told besides.
const LIST_TTL_MS: u64 = 60_000;

/// Whether a client may policy a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachePolicy {
    /// A list, for a while.
    List,
    /// Operation was read from a resource: as its server says, else not at all.
    Resource,
    /// Not at all.
    NoStore,
}

/// The key of `_meta` by which a server names itself.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// A result in the form of a client's era.
pub(super) fn adapt_result(mut result: Value, is_modern: bool, policy: CachePolicy) -> Value {
    if let Some(fields) = result.as_object_mut() {
        // It speaks of one hop: to our client we are the server.
        if let Some(meta) = fields.get_mut("_meta").and_then(Value::as_object_mut)
            && meta.shift_remove(SERVER_INFO_KEY).is_some()
            && meta.is_empty()
        {
            fields.shift_remove("_meta");
        }
        let complete = fields.get("resultType").is_none_or(|kind| kind == "complete");
        if !is_modern {
            if complete {
                fields.shift_remove("resultType");
            }
            if policy == CachePolicy::Resource {
                fields.shift_remove("ttlMs");
                fields.shift_remove("cacheScope");
            }
        } else if complete {
            fields.entry("resultType").or_insert_with(|| "complete".into());
            let (ttl, scope) = match policy {
                CachePolicy::List => (LIST_TTL_MS, "private"),
                CachePolicy::Resource => (0, "private"),
                CachePolicy::NoStore => return result,
            };
            fields.entry("ttlMs").or_insert_with(|| ttl.into());
            fields.entry("cacheScope").or_insert_with(|| scope.into());
        }
    }
    result
}

/// A tool's answer that says what went wrong, so that the model can read it.
pub(super) fn tool_error(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

/// An error in the form of a client's era.
pub(super) fn forward_error(error: ForwardError, is_modern: bool) -> ErrorData {
    match error {
        ForwardError::Rpc(error) => adapt_error(error, is_modern),
        ForwardError::UpstreamError(why) => ErrorData::internal_error(why, None),
    }
}

/// That a resource is not there.
pub(super) fn resource_not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": uri})))
}

/// That several servers claim an address.
pub(super) fn ambiguous_resource(uri: &str, servers: &[Arc<str>]) -> ErrorData {
    let problem = "several servers claim this address; read it by its address in `resources/list` or \
                   `resources/templates/list`, which names the server";
    ErrorData::resource_not_found(problem, Some(json!({"uri": uri, "servers": servers})))
}

/// That a resource is not there has a code of its own in the older era.
pub(super) fn adapt_error(mut error: ErrorData, is_modern: bool) -> ErrorData {
    if is_modern && error.code == ErrorCode::RESOURCE_NOT_FOUND {
        error.code = ErrorCode::INVALID_PARAMS;
    }
    error
}
