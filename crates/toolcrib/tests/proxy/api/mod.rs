//! An agent's side of each of the four APIs: its requests, how it reads responses, and what it adds to its history. It
//! does this as users of the official SDKs do.

mod chat;
mod gemini;
mod messages;
mod responses;

use serde_json::Value;

use crate::tools::Tool;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Api {
    Chat,
    Responses,
    Messages,
    Gemini,
}

/// The system prompt of every agent.
const SYSTEM: &str = "You are the company's assistant.";

pub(crate) struct AgentRequest<'a> {
    pub(crate) tools: &'a Value,
    pub(crate) history: &'a [Value],
    pub(crate) stream: bool,
    /// Whether thinking is requested, if the API has an option for it.
    pub(crate) thinks: bool,
}

/// One message of the model, as an agent sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ModelMessage {
    pub(crate) thoughts: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) stop: String,
}

/// A call that the agent has to run.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

/// Compares calls without their ids, because ids differ between conversations.
impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.arguments) == (&other.name, &other.arguments)
    }
}

/// A message of the model, and the entries that it adds to the history.
pub(crate) type ParsedResponse = (ModelMessage, Vec<Value>);

/// The agent's side of an API.
pub(crate) trait ApiClient {
    /// Returns the key of the history in a request.
    fn history(&self) -> &'static str;
    /// Converts the tools to the format of this API.
    fn tools(&self, tools: &[Tool]) -> Value;
    /// Returns the entries with which a history begins.
    fn initial_history(&self) -> Vec<Value> {
        Vec::new()
    }
    /// Returns the entry for a user message.
    fn user(&self, text: &str) -> Value;
    /// Returns the entries for tool results.
    fn results(&self, results: &[(&Call, String)]) -> Vec<Value>;
    /// Returns the path and the body of a request.
    fn request(&self, ask: &AgentRequest<'_>) -> (&'static str, Value);
    /// Reads a complete JSON response.
    fn whole(&self, body: &Value) -> ParsedResponse;
    /// Reads a streamed response.
    fn events(&self, events: &[Value]) -> ParsedResponse;
    /// Returns the calls among these history entries, and the key under which each has its id.
    fn calls<'a>(&self, echo: &'a mut [Value]) -> (Vec<&'a mut Value>, &'static str);
    /// Replaces the ids of the calls in message number `at`. By default, the new ids have nine digits, a length that
    /// some providers require.
    fn rewrite_ids(&self, turn: &mut ModelMessage, echo: &mut [Value], at: usize) {
        let (calls, key) = self.calls(echo);
        for (position, (entry, call)) in calls.into_iter().zip(&mut turn.calls).enumerate() {
            call.id = format!("{:09}", at * 100 + position);
            entry[key] = call.id.as_str().into();
        }
    }
}

impl Api {
    pub(crate) fn client(self) -> &'static dyn ApiClient {
        match self {
            Self::Chat => &chat::Chat,
            Self::Responses => &responses::Responses,
            Self::Messages => &messages::Messages,
            Self::Gemini => &gemini::Gemini,
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Adds the id of a call to its result, under this key. A call without an id adds nothing.
fn with_call_id(mut result: Value, key: &str, call: &Call) -> Value {
    if !call.id.is_empty() {
        result[key] = call.id.as_str().into();
    }
    result
}

/// Appends a piece of text to a string field.
fn add(object: &mut Value, key: &str, piece: &Value) {
    object[key] = format!("{}{}", text(&object[key]), text(piece)).into();
}
