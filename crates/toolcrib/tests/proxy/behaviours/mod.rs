//! Tests of the behaviours that docs/presets documents, through `toolcrib serve`. Each test is named in a row of the
//! table on its page.
//!
//! The model replies exactly as a test says, in Chat Completions unless the row is about another API. So a test can
//! check the bytes that reach the provider, the replies to the model's calls, and what the client receives.

mod claude_code;
mod everruns;
mod everruns_050;
mod hermes;
mod notices;
mod opencode;
mod setup;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolcrib_testkit::provider::{CannedResponse, Options, Provider, ReceivedRequest};

use self::setup::Setup;
use crate::http::{Response, post_with};
use crate::replica::Replica;

const CHAT: &str = "/v1/chat/completions";

/// A running proxy, its provider, and the conversation of one client.
struct Proxy {
    provider: Provider,
    replica: Replica,
    setup: Setup,
    history: Vec<Value>,
    conversations: usize,
}

/// One request of the client: what the proxy sent to the provider, and the response that the client received.
struct ProxyExchange {
    /// The body of the client's request.
    client_body: String,
    /// The bodies that were sent to the provider, one per round.
    sent: Vec<Value>,
    /// The first body that was sent to the provider, byte for byte.
    first_body: Vec<u8>,
    response: Response,
}

impl Proxy {
    /// Starts a proxy whose provider gives these answers, one for each request.
    fn start(setup: &Setup, answers: impl IntoIterator<Item = CannedResponse>) -> Self {
        let provider = Provider::start(Options::responses(answers)).unwrap();
        let url = format!("http://{}", provider.address());
        let mut flags = vec!["--openai", &url, "--anthropic", &url, "--gemini", &url];
        let mut environment = Vec::new();
        if setup.real_hosts {
            // The scripted provider is configured as the HTTP proxy, so it receives the requests to these hosts.
            flags = vec![
                "--openai",
                "http://api.openai.com",
                "--anthropic",
                "http://api.anthropic.com",
            ];
            environment.extend([("HTTP_PROXY", Path::new(&url)), ("NO_PROXY", Path::new(""))]);
        }
        flags.extend(&setup.flags);
        let text = setup.text.replace("URL", &url);
        let replica = Replica::start_file(setup.file, &text, &flags, &environment);
        let (history, conversations) = (Vec::new(), 0);
        Self { provider, replica, setup: setup.clone(), history, conversations }
    }

    /// Starts a new conversation with these tools, and returns its first exchange.
    fn ask(&mut self, tools: &[Value]) -> ProxyExchange {
        self.conversations += 1;
        let text = format!("Task number {}.", self.conversations);
        self.history = vec![json!({"role": "user", "content": text})];
        self.send(tools)
    }

    /// Continues the conversation. Adds a result for each call of the model, or another user message if there are no
    /// calls.
    fn continue_with(&mut self, tools: &[Value]) -> ProxyExchange {
        let calls = self.history.last().and_then(|last| last["tool_calls"].as_array().cloned());
        for call in calls.iter().flatten() {
            let result = json!({"role": "tool", "tool_call_id": call["id"], "content": "Done."});
            self.history.push(result);
        }
        if calls.is_none() {
            self.history.push(json!({"role": "user", "content": "And then?"}));
        }
        self.send(tools)
    }

    fn send(&mut self, tools: &[Value]) -> ProxyExchange {
        let body = json!({"model": self.setup.model, "messages": self.history, "tools": tools});
        let exchange = self.post(CHAT, &body);
        let message = exchange.body()["choices"][0]["message"].clone();
        assert!(message.is_object(), "{} {}", exchange.response.status, exchange.response.body);
        self.history.push(message);
        exchange
    }

    /// Continues the conversation with another proxy, which does not have the state of the first one.
    fn on_another_proxy(self, answers: impl IntoIterator<Item = CannedResponse>) -> Self {
        Self { history: self.history, ..Self::start(&self.setup, answers) }
    }

    /// Sends a request to this path, and returns the exchange.
    fn post(&self, path: &str, body: &Value) -> ProxyExchange {
        let before = self.provider.requests().len();
        let (url, headers) = (&self.replica.url, self.setup.headers);
        let client_body = body.to_string();
        let response = post_with(url, path, headers, &client_body).unwrap();
        let requests = self.provider.requests().split_off(before);
        let first_body = requests.first().map(|request| request.body.to_vec()).unwrap_or_default();
        let sent = requests.iter().map(ReceivedRequest::json).collect();
        ProxyExchange { client_body, sent, first_body, response }
    }
}

impl ProxyExchange {
    /// Returns the number in a header of the response.
    fn number(&self, header: &str) -> usize {
        self.response.header(header).unwrap().parse().unwrap()
    }

    fn body(&self) -> Value {
        serde_json::from_str(&self.response.body).unwrap()
    }

    /// Whether the provider received exactly one request, with the client's body byte for byte.
    fn is_untouched(&self) -> bool {
        self.sent.len() == 1 && self.first_body == self.client_body.as_bytes()
    }

    fn mode(&self) -> &str {
        self.response.header("x-toolcrib-mode").unwrap()
    }

    fn why(&self) -> &str {
        self.response.header("x-toolcrib-why").unwrap()
    }

    /// Returns the tools in a request to the provider.
    fn tools(&self, round: usize) -> &[Value] {
        self.sent[round]["tools"].as_array().unwrap()
    }

    /// Returns the names of the tools in a request to the provider.
    fn names(&self, round: usize) -> Vec<&str> {
        self.tools(round).iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
    }

    /// Returns the tool with this name in a request to the provider.
    fn tool(&self, round: usize, name: &str) -> &Value {
        self.tools(round).iter().find(|tool| tool["function"]["name"] == name).unwrap()
    }

    fn schema(&self, round: usize, name: &str) -> &Value {
        &self.tool(round, name)["function"]["parameters"]
    }

    fn description(&self, round: usize, name: &str) -> &str {
        self.tool(round, name)["function"]["description"].as_str().unwrap()
    }

    /// Returns the reply to a call of Toolcrib's own tool, which is the last message of a request to the provider.
    fn reply(&self, round: usize) -> &str {
        let last = self.sent[round]["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(last["role"], "tool", "{last}");
        last["content"].as_str().unwrap()
    }

    /// Returns the name and the arguments of each call that the client received.
    fn calls(&self) -> Vec<(String, String)> {
        let body = self.body();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let call =
            |call: &Value| (text(&call["function"]["name"]), text(&call["function"]["arguments"]));
        let calls = body["choices"][0]["message"]["tool_calls"].as_array().cloned();
        calls.iter().flatten().map(call).collect()
    }
}

/// Returns a response in which the model makes this call.
fn call(name: &str, arguments: &Value) -> CannedResponse {
    call_with_text(name, &arguments.to_string())
}

/// Returns a response in which the model makes a call with exactly this text as its arguments.
fn call_with_text(name: &str, arguments: &str) -> CannedResponse {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let id = format!("call_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let function = json!({"name": name, "arguments": arguments});
    let calls = json!([{"id": id, "type": "function", "function": function}]);
    answer(&json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
}

/// Returns a response in which the model searches.
fn search(query: &str) -> CannedResponse {
    call("tool_search", &json!({"query": query}))
}

/// Returns a response in which the model ends its turn.
fn done() -> CannedResponse {
    answer(&json!({"role": "assistant", "content": "Done."}), "stop")
}

fn answer(message: &Value, stop: &str) -> CannedResponse {
    let choice = json!({"index": 0, "message": message, "finish_reason": stop});
    CannedResponse::json(
        200,
        &json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}),
    )
}

/// Returns the first exchange of a conversation with these tools.
fn first_exchange(setup: &Setup, tools: &[Value]) -> ProxyExchange {
    Proxy::start(setup, [done()]).ask(tools)
}

/// Returns the replies to these calls of Toolcrib's own tools. Each call is made in its own conversation.
fn replies(setup: &Setup, tools: &[Value], calls: &[(&str, Value)]) -> Vec<String> {
    let answers = calls.iter().flat_map(|(name, input)| [call(name, input), done()]);
    let mut proxy = Proxy::start(setup, answers);
    calls.iter().map(|_| proxy.ask(tools).reply(1).to_owned()).collect()
}

/// Returns the replies to these searches. Each search is made in its own conversation.
fn search_replies(setup: &Setup, tools: &[Value], queries: &[&str]) -> Vec<String> {
    let calls: Vec<_> =
        queries.iter().map(|query| ("tool_search", json!({"query": query}))).collect();
    replies(setup, tools, &calls)
}

/// Returns the replies to these searches, parsed as JSON.
fn search_json(setup: &Setup, tools: &[Value], queries: &[&str]) -> Vec<Value> {
    let texts = search_replies(setup, tools, queries);
    texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// Returns the tool names in the list `list` of a reply.
fn names<'a>(answer: &'a Value, list: &str) -> Vec<&'a str> {
    answer[list].as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap()).collect()
}

/// Defines a tool whose parameters are all strings. The first `required` of them are required.
fn tool(name: &str, description: &str, arguments: &[&str], required: usize) -> Value {
    let function = json!({
        "name": name, "description": description, "parameters": strings(arguments, required),
    });
    json!({"type": "function", "function": function})
}

fn strings(arguments: &[&str], required: usize) -> Value {
    let properties: serde_json::Map<String, Value> =
        arguments.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": properties, "required": &arguments[..required]})
}

/// Returns the warnings that the proxy logs when it starts, without their prefix.
fn warnings(setup: &Setup) -> Vec<String> {
    let log = Proxy::start(setup, []).replica.log();
    let warnings = log.lines().filter_map(|line| line.strip_prefix("warning: "));
    warnings.map(str::to_owned).collect()
}
