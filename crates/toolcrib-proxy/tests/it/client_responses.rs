//! Responses of the four APIs as a client reads them, complete or from the events of a stream.

use serde_json::{Value, json};
use toolcrib_dialect::Api;

use crate::client_requests::ClientCase;

/// A tool call as a client sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

/// One response as a client sees it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ClientView {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    /// The entries that the client adds to its history.
    pub(crate) entries: Vec<Value>,
    /// Whether the response was complete, according to the API.
    pub(crate) ended: bool,
    /// The API's error, in a body or an event.
    pub(crate) error: Option<Value>,
}

impl ClientView {
    /// Returns the names and arguments of the calls.
    pub(crate) fn called(&self) -> Vec<(&str, &Value)> {
        self.calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect()
    }
}

impl ClientCase {
    /// Reads a response: a body, or all bytes of a stream that arrived.
    pub(crate) fn read(self, body: &[u8]) -> ClientView {
        let text = String::from_utf8_lossy(body);
        if !self.stream {
            let body: Value = serde_json::from_str(&text).unwrap_or_default();
            return self.read_complete(&body);
        }
        let events: Vec<Value> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter_map(|data| serde_json::from_str(data).ok())
            .collect();
        match self.api {
            Api::Chat => chat(&events, text.ends_with("data: [DONE]\n\n")),
            Api::Responses => responses(&events),
            Api::Messages => messages(&events),
            Api::Gemini => gemini(&events),
        }
    }

    fn read_complete(self, body: &Value) -> ClientView {
        if body["error"].is_object() {
            return ClientView { error: Some(body["error"].clone()), ..ClientView::default() };
        }
        match self.api {
            Api::Chat => {
                let message = &body["choices"][0]["message"];
                ClientView {
                    id: text(&body["id"]),
                    text: text(&message["content"]),
                    calls: list(&message["tool_calls"]).iter().map(chat_call).collect(),
                    entries: vec![message.clone()],
                    ended: body["choices"][0]["finish_reason"].is_string(),
                    error: None,
                }
            }
            Api::Responses => response(body),
            Api::Messages => message(body),
            Api::Gemini => gemini(std::slice::from_ref(body)),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn chat_call(call: &Value) -> Call {
    let (id, function) = (text(&call["id"]), &call["function"]);
    let arguments = match &function["arguments"] {
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        other => other.clone(),
    };
    Call { id, name: text(&function["name"]), arguments }
}

fn chat(events: &[Value], ended: bool) -> ClientView {
    let mut view = ClientView { ended, ..ClientView::default() };
    let mut calls: Vec<Value> = Vec::new();
    for event in events {
        if event["error"].is_object() {
            view.error = Some(event["error"].clone());
            continue;
        }
        view.id = text(&event["id"]);
        let delta = &event["choices"][0]["delta"];
        view.text += delta["content"].as_str().unwrap_or_default();
        for piece in list(&delta["tool_calls"]) {
            let at = piece["index"].as_u64().unwrap() as usize;
            if at == calls.len() {
                calls.push(json!({"id": piece["id"], "type": "function",
                    "function": {"name": "", "arguments": ""}}));
            }
            for key in ["name", "arguments"] {
                let more = text(&piece["function"][key]);
                calls[at]["function"][key] = (text(&calls[at]["function"][key]) + &more).into();
            }
        }
    }
    view.calls = calls.iter().map(chat_call).collect();
    let mut message = json!({"role": "assistant", "content": view.text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    view.entries = vec![message];
    view
}

fn response(body: &Value) -> ClientView {
    let mut view = ClientView { id: text(&body["id"]), ..ClientView::default() };
    for item in list(&body["output"]) {
        if item["type"] == "function_call" {
            view.calls.push(Call {
                id: text(&item["call_id"]),
                name: text(&item["name"]),
                arguments: serde_json::from_str(&text(&item["arguments"])).unwrap_or_default(),
            });
        }
        for part in list(&item["content"]) {
            view.text += &text(&part["text"]);
        }
    }
    view.entries = list(&body["output"]).to_vec();
    view.ended = body["status"] == "completed";
    view
}

fn responses(events: &[Value]) -> ClientView {
    let mut view = ClientView::default();
    for event in events {
        match text(&event["type"]).as_str() {
            "response.completed" | "response.incomplete" => return response(&event["response"]),
            "response.created" => view.id = text(&event["response"]["id"]),
            "response.output_text.delta" => view.text += &text(&event["delta"]),
            "response.failed" => view.error = Some(event["response"]["error"].clone()),
            "error" => view.error = Some(event.clone()),
            _ => {}
        }
    }
    view
}

fn message(body: &Value) -> ClientView {
    let mut view = ClientView { id: text(&body["id"]), ..ClientView::default() };
    for block in list(&body["content"]) {
        if block["type"] == "tool_use" {
            let (id, name) = (text(&block["id"]), text(&block["name"]));
            view.calls.push(Call { id, name, arguments: block["input"].clone() });
        }
        view.text += &text(&block["text"]);
    }
    view.entries = vec![json!({"role": "assistant", "content": body["content"]})];
    view.ended = body["stop_reason"].is_string();
    view
}

fn messages(events: &[Value]) -> ClientView {
    let mut whole = json!({"content": []});
    let (mut input, mut ended, mut error) = (String::new(), false, None);
    for event in events {
        let at = event["index"].as_u64().unwrap_or_default() as usize;
        match text(&event["type"]).as_str() {
            "message_start" => whole["id"] = event["message"]["id"].clone(),
            "content_block_start" => {
                input.clear();
                whole["content"].as_array_mut().unwrap().push(event["content_block"].clone());
            }
            "content_block_delta" => {
                let (block, delta) = (&mut whole["content"][at], &event["delta"]);
                for key in ["text", "thinking", "signature"] {
                    if let Some(more) = delta[key].as_str() {
                        block[key] = (text(&block[key]) + more).into();
                    }
                }
                input += &text(&delta["partial_json"]);
            }
            "content_block_stop" if whole["content"][at]["type"] == "tool_use" => {
                let arguments = if input.is_empty() { "{}" } else { &input };
                whole["content"][at]["input"] = serde_json::from_str(arguments).unwrap_or_default();
            }
            "message_stop" => ended = true,
            "error" => error = Some(event["error"].clone()),
            _ => {}
        }
    }
    ClientView { ended, error, ..message(&whole) }
}

fn gemini(events: &[Value]) -> ClientView {
    let mut view = ClientView::default();
    let mut parts = Vec::new();
    for event in events {
        if event["error"].is_object() {
            view.error = Some(event["error"].clone());
            continue;
        }
        view.id = text(&event["responseId"]);
        let candidate = &event["candidates"][0];
        for part in list(&candidate["content"]["parts"]) {
            let call = &part["functionCall"];
            if call.is_object() {
                let (id, name) = (text(&call["id"]), text(&call["name"]));
                view.calls.push(Call { id, name, arguments: call["args"].clone() });
            }
            view.text += &text(&part["text"]);
            parts.push(part.clone());
        }
        view.ended |= candidate["finishReason"].is_string();
    }
    view.entries = vec![json!({"role": "model", "parts": parts})];
    view
}
