//! An ordinary agent. It sends its history, runs the calls that it receives, adds everything to its history, and
//! repeats.

use std::io;

use serde_json::Value;

use crate::api::{AgentRequest, Api, ModelMessage, ParsedResponse};
use crate::http::{Response, post};
use crate::scenario::{CallIdPolicy, Scenario};
use crate::tools::{Tool, run};

/// One conversation of an agent.
pub(crate) struct Agent {
    pub(crate) api: Api,
    ids: CallIdPolicy,
    tools: Value,
    history: Vec<Value>,
    /// Whether thinking is requested.
    pub(crate) thinks: bool,
    /// The model's messages so far.
    pub(crate) turns: Vec<ModelMessage>,
}

impl Agent {
    /// Starts a conversation with these tools. `name` is part of the first user message, by which the provider selects
    /// its script.
    pub(crate) fn new(scenario: Scenario, tools: &[Tool], name: &str) -> Self {
        let (api, ids) = (scenario.api, scenario.ids);
        let client = api.client();
        let mut history = client.initial_history();
        history.push(client.user(&format!("script:{name} please")));
        Self { api, ids, tools: client.tools(tools), history, thinks: true, turns: Vec::new() }
    }

    /// Requests one message of the model and returns it. Adds the message to the history, followed by the results of
    /// its calls, or by another user message if it has no calls.
    pub(crate) fn turn(&mut self, url: &str, stream: bool) -> &ModelMessage {
        let response = self.ask(url, stream).unwrap();
        self.take(&response, stream)
    }

    /// Sends the history without changing it, and returns the response.
    pub(crate) fn ask(&self, url: &str, stream: bool) -> io::Result<Response> {
        let (path, body) = self.request(stream);
        post(url, path, &body)
    }

    fn request(&self, stream: bool) -> (&'static str, String) {
        let ask = AgentRequest {
            tools: &self.tools,
            history: &self.history,
            stream,
            thinks: self.thinks,
        };
        let (path, body) = self.api.client().request(&ask);
        (path, body.to_string())
    }

    /// Returns the tools in the format in which the agent sends them.
    pub(crate) fn tools(&self) -> &Value {
        &self.tools
    }

    /// Adds the message in a response to the history, followed by the results of its calls, or by another user message
    /// if it has no calls. Returns the message.
    pub(crate) fn take(&mut self, response: &Response, stream: bool) -> &ModelMessage {
        let client = self.api.client();
        assert_eq!(response.status, 200, "turn {}: {}", self.turns.len(), response.body);
        let (mut turn, mut echo): ParsedResponse = if stream {
            client.events(&response.events())
        } else {
            client.whole(&serde_json::from_str(&response.body).unwrap())
        };
        if matches!(self.ids, CallIdPolicy::Invented | CallIdPolicy::Rewritten) {
            let at = self.turns.len();
            client.rewrite_ids(&mut turn, &mut echo, at);
        }
        self.history.extend(echo);
        if turn.calls.is_empty() {
            let next = client.user(&format!("And then? ({})", self.turns.len()));
            self.history.push(next);
        } else {
            let results: Vec<_> =
                turn.calls.iter().map(|call| (call, run(&call.name, &call.arguments))).collect();
            self.history.extend(client.results(&results));
        }
        self.turns.push(turn);
        &self.turns[self.turns.len() - 1]
    }
}
