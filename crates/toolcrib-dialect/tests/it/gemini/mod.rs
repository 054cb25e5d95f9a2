//! Tests of Gemini's `generateContent`.

mod arbitrary_bytes;
mod faults;
mod replay;
mod requests;
mod scenarios;

use serde_json::{Value, json};
use toolcrib_dialect::{Api, Mode};

use crate::conversation::{ClientResponse, TestConversation, begins_with, tools};

const WHOLE: &str = "/v1beta/models/gemini-3-pro-preview:generateContent";
const EVENTS: &str = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse&key=k";
const BOTH: [bool; 2] = [false, true];

fn target(stream: bool) -> &'static str {
    if stream { EVENTS } else { WHOLE }
}

/// Returns a request with forty tools.
fn request(contents: &Value) -> Value {
    let tools: Vec<Value> = tools(40)
        .into_iter()
        .map(|(name, description, parameters)| {
            json!({"name": name, "description": description, "parametersJsonSchema": parameters})
        })
        .collect();
    json!({"contents": contents, "tools": [{"functionDeclarations": tools}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"temperature": 0.25}})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

fn call(name: &str, args: &Value) -> Value {
    json!({"functionCall": {"name": name, "args": args}})
}

fn response(name: &str, output: &str) -> Value {
    json!({"functionResponse": {"name": name, "response": {"output": output}}})
}

/// Returns the search that most tests begin with. It has a signature, as calls of Gemini 3 do.
fn search() -> Value {
    json!({"functionCall": {"name": "tool_search", "args": {"query": "find customer"}},
        "thoughtSignature": "c2ln"})
}

/// Returns a call to a deferred tool through the bridge. `real` returns the same call in the form that the client gets.
fn bridged() -> Value {
    call("tool_call", &json!({"name": "crm__find_customer", "arguments": {"q": "ada"}}))
}

fn real() -> Value {
    call("crm__find_customer", &json!({"q": "ada"}))
}

/// Returns the upstream's response in round `n`, complete or as events. Text is streamed word by word, and each call is
/// one event.
fn answer(n: u32, parts: &Value, finish: &str, stream: bool) -> String {
    let usage = |part: u32| {
        json!({"promptTokenCount": 100 * n, "candidatesTokenCount": part, "totalTokenCount": 100 * n + part,
            "cachedContentTokenCount": 7,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 100 * n}]})
    };
    let body = |parts: &[Value], finish: Option<&str>, used: u32| {
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        candidate["index"] = json!(0);
        json!({"candidates": [candidate], "usageMetadata": usage(used),
            "modelVersion": "gemini-3-pro-preview", "responseId": format!("resp-{n}")})
    };
    let parts = parts.as_array().unwrap();
    if !stream {
        return body(parts, Some(finish), 10).to_string();
    }
    let mut pieces = Vec::new();
    for part in parts {
        match part["text"].as_str().filter(|_| part.as_object().unwrap().len() == 1) {
            Some(text) => {
                pieces.extend(text.split_inclusive(' ').map(|word| json!({"text": word})));
            }
            None => pieces.push(part.clone()),
        }
    }
    let last = pieces.len().saturating_sub(1);
    let mut out = String::new();
    for (at, piece) in pieces.iter().enumerate() {
        let used = if at == last { 10 } else { u32::try_from(at).unwrap().min(9) };
        let event = body(std::slice::from_ref(piece), (at == last).then_some(finish), used);
        out.extend(["data: ", &event.to_string(), "\r\n\r\n"]);
    }
    out
}

/// A response as the client reads it.
#[derive(Debug, Clone, PartialEq)]
struct ReceivedTurn {
    id: String,
    /// The content that the client sends back in its next request.
    content: Value,
    finish: String,
    usage: Value,
}

/// Reads a response as a client SDK does, and joins the pieces of text.
fn read_as_client(got: &ClientResponse, stream: bool) -> ReceivedTurn {
    let events = if stream { got.events() } else { vec![got.json()] };
    let (mut id, mut finish, mut usage) = (String::new(), String::new(), Value::Null);
    let mut parts: Vec<Value> = Vec::new();
    let mut total = 0;
    for event in &events {
        assert!(finish.is_empty(), "event after the end of the response: {event}");
        if id.is_empty() {
            id = event["responseId"].as_str().unwrap().into();
        }
        assert_eq!(event["responseId"], json!(id), "all events have the same id");
        let candidate = &event["candidates"][0];
        let received = candidate["content"]["parts"].as_array().unwrap();
        assert!(!received.is_empty(), "event without parts, which clients drop: {event}");
        for part in received {
            let bare =
                |part: &Value| part["text"].is_string() && part.as_object().unwrap().len() == 1;
            match parts.last_mut().filter(|last| bare(last) && bare(part) && stream) {
                Some(last) => {
                    let text = format!(
                        "{}{}",
                        last["text"].as_str().unwrap(),
                        part["text"].as_str().unwrap()
                    );
                    last["text"] = json!(text);
                }
                None => parts.push(part.clone()),
            }
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            finish = reason.into();
        }
        if event["usageMetadata"].is_object() {
            usage = event["usageMetadata"].clone();
            let now = usage["promptTokenCount"].as_u64().unwrap();
            assert!(now >= total, "the prompt tokens decrease: {event}");
            total = now;
        }
    }
    parts.retain(|part| part != &json!({"text": ""}));
    ReceivedTurn { id, content: json!({"role": "model", "parts": parts}), finish, usage }
}

/// Returns what the client should get for a turn with this number of rounds. The usage is the sum over all rounds.
fn expected(parts: &Value, finish: &str, rounds: u32) -> ReceivedTurn {
    let prompt: u32 = (1..=rounds).map(|n| 100 * n).sum();
    ReceivedTurn {
        id: "resp-1".into(),
        content: json!({"role": "model", "parts": parts}),
        finish: finish.into(),
        usage: json!({"promptTokenCount": prompt, "candidatesTokenCount": 10 * rounds,
            "totalTokenCount": prompt + 10 * rounds, "cachedContentTokenCount": 7 * rounds,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}]}),
    }
}

/// A conversation under test.
struct GeminiConversation {
    inner: TestConversation,
    stream: bool,
    contents: Vec<Value>,
}

impl GeminiConversation {
    fn new(stream: bool) -> Self {
        Self {
            inner: TestConversation::new(Api::Gemini, Mode::Bridge),
            stream,
            contents: vec![user("Find Ada.")],
        }
    }

    /// Sends one request of the client. `rounds` is the model's output in each round.
    fn send(&mut self, rounds: &[Value]) -> ReceivedTurn {
        let answers: Vec<String> = rounds
            .iter()
            .zip(1..)
            .map(|(parts, n)| answer(n, parts, "STOP", self.stream))
            .collect();
        let got = self.inner.send(target(self.stream), &request(&json!(self.contents)), &answers);
        assert!(!got.text.contains("tool_search"), "{}", got.text);
        assert!(!got.text.contains("tool_call"), "{}", got.text);
        read_as_client(&got, self.stream)
    }

    /// Sends the client's next request: all earlier contents, the content that the client received, and a user content
    /// with `parts`. Checks that the history sent upstream begins with the history of the previous request, and returns
    /// the entries after that.
    fn reply(&mut self, received: &ReceivedTurn, parts: &Value) -> Vec<Value> {
        let (before, first) = (self.last()["contents"].clone(), self.last()["tools"].clone());
        self.contents.push(received.content.clone());
        self.contents.push(json!({"role": "user", "parts": parts}));
        self.send(&[json!([{"text": "Very well."}])]);
        let (now, known) = (&self.last()["contents"], before.as_array().unwrap().len());
        assert!(begins_with(now, &before), "{now:#}\ndoes not begin with\n{before:#}");
        assert_eq!(self.last()["tools"], first);
        now.as_array().unwrap()[known..].to_vec()
    }

    fn last(&self) -> &Value {
        self.inner.sent.last().unwrap()
    }
}

/// Returns the texts of Toolcrib's search results in a content that was sent upstream.
fn outputs(content: &Value) -> Vec<&str> {
    let parts = content["parts"].as_array().unwrap();
    parts
        .iter()
        .map(|part| part["functionResponse"]["response"]["output"].as_str().unwrap())
        .collect()
}
