//! How an agent speaks to each of the four APIs: its requests, what it reads in the answers, and what it
//! puts into its history afterwards, just as the users of the official SDKs do.

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

/// What every agent is told first.
const SYSTEM: &str = "You are the company's assistant.";

/// What an agent asks.
pub(crate) struct AgentRequest<'a> {
    pub(crate) tools: &'a Value,
    pub(crate) history: &'a [Value],
    pub(crate) stream: bool,
    /// Whether the model is asked to think, where that is asked for.
    pub(crate) thinks: bool,
}

/// One turn of the model, as an agent sees it.
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

/// Ids are made anew for each conversation.
impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.arguments) == (&other.name, &other.arguments)
    }
}

/// A turn, and what of it goes into the history.
pub(crate) type ParsedResponse = (ModelMessage, Vec<Value>);

/// An API from the agent's side.
pub(crate) trait ApiClient {
    /// The name of the history in a request.
    fn history(&self) -> &'static str;
    /// `tools`, as this API has them.
    fn tools(&self, tools: &[Tool]) -> Value;
    /// What a history begins with.
    fn initial_history(&self) -> Vec<Value> {
        Vec::new()
    }
    /// What the user says.
    fn user(&self, text: &str) -> Value;
    /// What tools answered.
    fn results(&self, results: &[(&Call, String)]) -> Vec<Value>;
    /// Where a request goes, and its body.
    fn request(&self, ask: &AgentRequest<'_>) -> (&'static str, Value);
    /// An answer that came as a whole.
    fn whole(&self, body: &Value) -> ParsedResponse;
    /// An answer that came in events.
    fn events(&self, events: &[Value]) -> ParsedResponse;
    /// The calls in what goes into the history, and the key of their ids.
    fn calls<'a>(&self, echo: &'a mut [Value]) -> (Vec<&'a mut Value>, &'static str);
    /// Gives the calls of turn number `at` other ids, here the nine characters that some providers insist on.
    fn rewrite_ids(&self, turn: &mut ModelMessage, echo: &mut [Value], at: usize) {
        let (calls, key) = self.calls(echo);
        for (place, (entry, call)) in calls.into_iter().zip(&mut turn.calls).enumerate() {
            call.id = format!("{:09}", at * 100 + place);
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
