//! Assembles a streamed round of Chat Completions into one message.
//!
//! If another round follows, its request must contain this message completely: its text, its calls, and all other
//! fields.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::response::round_end;
use crate::budget::ResponseBudget;
use crate::call_router::{CallRoute, CallRouter};
use crate::dialect::RoundEnd;
use crate::usage::Usage;

/// A round, assembled from its chunks.
#[derive(Debug, Default)]
pub(super) struct StreamedRound {
    pub(super) text: String,
    /// Whether the round had any text, even if the text was too large to be recorded.
    pub(super) has_text: bool,
    /// Other fields of the message. Some of them, such as reasoning, must be sent back to the upstream.
    pub(super) extra: Vec<(String, Value)>,
    pub(super) calls: Vec<StreamedCall>,
    pub(super) finish: Option<String>,
    pub(super) usage: Usage,
    /// The usage object as the server sent it.
    pub(super) used: Option<Value>,
    pub(super) ended: bool,
    /// Whether the upstream reported an error.
    pub(super) failed: bool,
}

/// A call, assembled from its pieces.
#[derive(Debug, Default)]
pub(super) struct StreamedCall {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
    /// Whether the called tool is a custom tool, whose input is not JSON.
    pub(super) custom: bool,
    /// Other fields of the call. They are not used here, but they must be sent back to the upstream.
    pub(super) extra: Vec<(String, String)>,
    pub(super) state: CallState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallState {
    #[default]
    Held,
    /// The call is forwarded to the client under this index.
    Forwarded(usize),
    Decided,
    /// The call was held in a truncated round. It will not be answered, so it is removed from the message.
    Dropped,
}

impl StreamedRound {
    pub(super) fn is_truncated(&self) -> bool {
        self.finish.as_deref().is_some_and(|reason| round_end(reason) == RoundEnd::Truncated)
    }

    /// Adds the fields of a delta to the message.
    pub(super) fn add_delta(&mut self, delta: &Fields<'_>, budget: &mut ResponseBudget) {
        for (key, raw) in delta.iter() {
            // A parsed value other than a string takes many times the memory of its text.
            let weight = if raw.starts_with('"') { raw.len() } else { 16 * raw.len() };
            match key {
                "role" | "tool_calls" => {}
                "content" => {
                    let text = delta.string("content").unwrap_or_default();
                    self.has_text |= !text.is_empty();
                    if budget.copy(text.len()) {
                        self.text.push_str(&text);
                    }
                }
                _ if !budget.copy(key.len() + weight) => {}
                _ => {
                    let Ok(value) = serde_json::from_str::<Value>(raw) else { continue };
                    let known = self.extra.iter_mut().find(|(known, _)| known == key);
                    match (known, value) {
                        (Some((_, Value::String(text))), Value::String(more)) => {
                            text.push_str(&more);
                        }
                        (Some((_, Value::Array(list))), Value::Array(more)) => list.extend(more),
                        (Some(_), Value::Null) => {}
                        (Some((_, known)), value) => *known = value,
                        (None, value) => self.extra.push((key.to_owned(), value)),
                    }
                }
            }
        }
    }

    /// Returns the message as a history entry.
    pub(super) fn into_entry(self) -> String {
        let mut out = String::from(r#"{"role":"assistant","content":"#);
        let calls: Vec<String> = self
            .calls
            .iter()
            .filter(|call| call.state != CallState::Dropped)
            .map(|call| call.write(&call.name, &call.arguments, None))
            .collect();
        let null = self.text.is_empty() && !calls.is_empty();
        out.push_str(&if null { "null".to_owned() } else { json::quote(&self.text) });
        for (key, value) in self.extra.iter().filter(|(_, value)| !value.is_null()) {
            out.extend([",", &json::quote(key), ":", &value.to_string()]);
        }
        if !calls.is_empty() {
            out.extend([r#","tool_calls":["#, &calls.join(","), "]"]);
        }
        out.push('}');
        out
    }
}

impl StreamedCall {
    pub(super) fn add_piece(&mut self, piece: &Fields<'_>, budget: &mut ResponseBudget) {
        for (key, raw) in piece.iter() {
            match key {
                "index" => {}
                "id" => {
                    self.id =
                        self.id.take().or_else(|| piece.string("id").filter(|id| !id.is_empty()));
                }
                "function" | "custom" => {
                    self.custom |= key == "custom";
                    let key = if key == "custom" { "input" } else { "arguments" };
                    let Some(function) = Fields::read(raw) else { continue };
                    // Some servers repeat the name in every piece.
                    let name = function.string("name").unwrap_or_default();
                    if name != self.name {
                        budget.hold(name.len());
                        self.name.push_str(&name);
                    }
                    // Some servers send the arguments as an object instead of a string.
                    let arguments = function.get(key).filter(|raw| *raw != "null");
                    let text = function.string(key).or(arguments.map(str::to_owned));
                    let text = text.unwrap_or_default();
                    if let CallState::Forwarded(_) = self.state {
                        // The client gets these arguments as they arrive. The copy is only for the record.
                        if !budget.copy(text.len()) {
                            continue;
                        }
                    } else {
                        budget.hold_arguments(self.arguments.len() + text.len(), text.len());
                    }
                    self.arguments.push_str(&text);
                }
                _ if self.extra.iter().any(|(known, _)| known == key) => {}
                _ => {
                    budget.hold(key.len() + raw.len());
                    self.extra.push((key.to_owned(), raw.to_owned()));
                }
            }
        }
    }

    /// Returns the call's JSON arguments, or an empty string for a custom tool.
    pub(super) fn json_arguments(&self) -> &str {
        if self.custom { "" } else { &self.arguments }
    }

    pub(super) fn sort(&self, router: &CallRouter) -> CallRoute {
        let is_theirs = self.custom && router.toolset().is_declared(&self.name);
        if is_theirs { CallRoute::Forward } else { router.route(&self.name) }
    }

    pub(super) fn write(&self, name: &str, arguments: &str, index: Option<usize>) -> String {
        let mut out = String::from("{");
        if let Some(index) = index {
            out.extend([r#""index":"#, &index.to_string(), ","]);
        }
        if let Some(id) = &self.id {
            out.extend([r#""id":"#, &json::quote(id), ","]);
        }
        for (key, raw) in &self.extra {
            out.extend([&json::quote(key), ":", raw, ","]);
        }
        let (name, arguments) = (json::quote(name), json::quote(arguments));
        let (kind, key) = if self.custom { ("custom", "input") } else { ("function", "arguments") };
        out.extend(["\"", kind, r#"":{"name":"#, &name, ",\"", key, "\":", &arguments, "}}"]);
        out
    }
}
