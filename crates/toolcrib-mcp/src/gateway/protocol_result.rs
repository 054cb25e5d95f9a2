//! Results, adapted to the client's protocol version, and errors about resources.

use std::sync::Arc;

use rmcp::model::ErrorData;
use serde_json::{Value, json};

/// How long a client may cache a list, in milliseconds. Clients are notified if a list changes earlier.
const LIST_TTL_MS: u64 = 60_000;

/// Whether a client may cache a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachePolicy {
    /// The result is a list, which may be cached for a limited time.
    List,
    /// The result is the contents of a resource. It may be cached as the server specifies, and not at all if the server
    /// specifies nothing.
    Resource,
    /// The result must not be cached.
    NoStore,
}

/// The key of `_meta` under which a result names the server that sent it.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// Adapts a result to the client's protocol version.
pub(super) fn adapt_result(
    mut result: Value,
    uses_newer_protocol: bool,
    policy: CachePolicy,
) -> Value {
    if let Some(fields) = result.as_object_mut() {
        // This field names the server that the gateway is connected to. It is removed, because for the client the
        // gateway is the server.
        if let Some(meta) = fields.get_mut("_meta").and_then(Value::as_object_mut)
            && meta.shift_remove(SERVER_INFO_KEY).is_some()
            && meta.is_empty()
        {
            fields.shift_remove("_meta");
        }
        let complete = fields.get("resultType").is_none_or(|kind| kind == "complete");
        if !uses_newer_protocol {
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

/// Builds a tool result that tells the model what went wrong.
pub(super) fn tool_error(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

/// Builds the error for a resource that does not exist.
pub(super) fn resource_not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": uri})))
}

/// Builds the error for a URI that several servers claim.
pub(super) fn ambiguous_resource(uri: &str, servers: &[Arc<str>]) -> ErrorData {
    let problem = "several servers claim this URI; read it by its URI in `resources/list` or \
                   `resources/templates/list`, which names the server";
    ErrorData::resource_not_found(problem, Some(json!({"uri": uri, "servers": servers})))
}
