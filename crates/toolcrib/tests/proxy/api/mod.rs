//! An agent's side of each of the four APIs: its requests, how it reads responses, and what it adds to its history, as
//! users of the official SDKs do.

mod chat;
mod gemini;
mod messages;
mod responses;

use serde_json::Value;

use crate::tools::Tool;

/// One of the APIs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Api {
    Chat,
    Responses,
    Messages,
    Gemini,
}

/// The system prompt of every agent.
const SYSTEM: &str = "You are the company's assistant.";

/// A request of an agent.
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

/// A call that the agent is to run.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

/// Ids differ between conversations, so they are not compared.
impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.arguments) == (&other.name, &other.arguments)
    }
}

/// A message, and the entries that it adds to the history.
pub(crate) type ParsedResponse = (ModelMessage, Vec<Value>);

/// The agent's side of an API.
pub(crate) trait ApiClient {
    /// The name of the history in a request.
    fn history(&self) -> &'static str;
    /// `tools`, as this API has them.
    fn tools(&self, tools: &[Tool]) -> Value;
    /// The first entries of a history.
    fn initial_history(&self) -> Vec<Value> {
        Vec::new()
    }
    /// A user message.
    fn user(&self, text: &str) -> Value;
    /// The entries for tool results.
    fn results(&self, results: &[(&Call, String)]) -> Vec<Value>;
    /// The path and body of a request.
    fn request(&self, ask: &AgentRequest<'_>) -> (&'static str, Value);
    /// Reads a complete JSON response.
    fn whole(&self, body: &Value) -> ParsedResponse;
    /// Reads a streamed response.
    fn events(&self, events: &[Value]) -> ParsedResponse;
    /// The calls among the history entries, and the key of their ids.
    fn calls<'a>(&self, echo: &'a mut [Value]) -> (Vec<&'a mut Value>, &'static str);
    /// Replaces the ids of the calls in message number `at`, here by the nine characters that some providers require.
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

/// A result with the id of its call under this key; without it if the call has none.
fn with_call_id(mut result: Value, key: &str, call: &Call) -> Value {
    if !call.id.is_empty() {
        result[key] = call.id.as_str().into();
    }
    result
}

/// Adds a piece to a field that is a string.
fn add(object: &mut Value, key: &str, piece: &Value) {
    object[key] = format!("{}{}", text(&object[key]), text(piece)).into();
}
