//! A client's request that the background gateway has not answered yet, and what happens to it if the gateway ends.

use serde_json::{Value, json};
use toolcrib_core::disclosure::{DESCRIBE, SEARCH, SEARCH_REGEX};
use toolcrib_text::json::Fields;

/// Methods whose requests can safely be sent to another gateway, because they only read something or have the same effect
/// if repeated. The tasks of a gateway end with it, so its successor rejects requests about them.
const REPEATABLE_METHODS: [&str; 19] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "logging/setLevel",
    "completion/complete",
    SUBSCRIBE,
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/cancel",
    "tasks/update",
];

/// The request of the newer protocol that stays open and brings notifications of changes.
const SUBSCRIBE: &str = "subscriptions/listen";

/// Maximum number of times that a request is sent again. A request that makes the gateway crash must not do so forever.
/// This does not apply to [`SUBSCRIBE`], which is open whenever a gateway ends.
const MAX_REPEATS: u8 = 1;

/// A client's request that the background gateway has not answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenRequest {
    /// The id, as the client wrote it.
    id: String,
    is_tool_call: bool,
    is_subscription: bool,
    /// The request, if it can be sent again.
    line: Option<String>,
    repeats: u8,
}

impl OpenRequest {
    pub(super) fn new(line: &str, id: &str, method: &str, params: Option<&str>) -> Self {
        let is_tool_call = method == "tools/call";
        let tool = || params.and_then(Fields::read).and_then(|params| params.string("name"));
        let is_repeatable = if is_tool_call {
            // Of Toolcrib's own tools, these only look something up.
            tool().is_some_and(|name| [SEARCH, SEARCH_REGEX, DESCRIBE].contains(&&*name))
        } else {
            REPEATABLE_METHODS.contains(&method)
        };
        Self {
            id: id.to_owned(),
            is_tool_call,
            is_subscription: method == SUBSCRIBE,
            line: is_repeatable.then(|| line.to_owned()),
            repeats: 0,
        }
    }

    /// Whether the request stays open for as long as the client wants.
    pub(super) fn is_subscription(&self) -> bool {
        self.is_subscription
    }

    /// Returns the notifications that the client wants, if the request is a subscription.
    pub(super) fn subscribed_notifications(&self) -> Option<Value> {
        let line = self.line.as_ref().filter(|_| self.is_subscription)?;
        let fields = Fields::read(line)?;
        let params = Fields::read(fields.get("params")?)?;
        serde_json::from_str(params.get("notifications")?).ok()
    }

    /// Returns the request, if it can be sent again.
    pub(super) fn line(&self) -> Option<String> {
        self.line.clone()
    }

    /// Returns the request, if it can be sent again.
    pub(super) fn into_line(self) -> Option<String> {
        self.line
    }

    /// Prepares the request to be sent to the next gateway. Returns false if it must not be sent again.
    pub(super) fn prepare_repeat(&mut self) -> bool {
        self.repeats += 1;
        self.line.is_some() && (self.is_subscription || self.repeats <= MAX_REPEATS)
    }

    /// Returns the answer to a request that cannot be sent again.
    pub(super) fn lost_answer(&self, uses_newer_protocol: bool) -> String {
        let problem = "the background gateway stopped before it answered; the call may or may not have been executed";
        let (key, value) = if self.is_tool_call {
            let mut result =
                json!({"content": [{"type": "text", "text": problem}], "isError": true});
            if uses_newer_protocol {
                result["resultType"] = "complete".into();
            }
            ("result", result)
        } else {
            let problem = problem.replace("the call", "the request");
            ("error", json!({"code": -32_603, "message": problem}))
        };
        format!(r#"{{"jsonrpc":"2.0","id":{},"{key}":{}}}"#, self.id, Value::to_string(&value))
    }
}
