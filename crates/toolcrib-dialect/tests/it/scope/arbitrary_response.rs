//! Sends arbitrary bytes as the response to a caller with a limited scope. No call to a tool outside the scope may
//! reach the client.
//!
//! The caller has the tool `show_tool`. What the client gets is parsed a second time, in a simpler way: it must be
//! JSON, or events with JSON, and no call in it may have `hide` in its name. The fuzz targets include this file.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::FourCharsPerToken;
use toolcrib_dialect::exchange::action::{ExchangeConfig, ResponseBody};
use toolcrib_dialect::mode::RequestedMode;
use toolcrib_dialect::{Action, Api, Exchange, Request, Toolset};

/// Responses with calls to a hidden tool. The byte before each response selects the API, and whether the request and
/// the response are streams. Tests and the fuzzer mutate these responses.
#[cfg(test)]
pub(crate) const RESPONSES: [(u8, &str); 10] = [
    (
        0,
        r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"x","tool_calls":[{"id":"call_1","type":"function","function":{"name":"hide_tool","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
    ),
    (
        0,
        r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","function_call":{"name":"hide_tool","arguments":"{}"}},"finish_reason":"function_call"},{"index":1,"message":{"tool_calls":[{"custom":{"name":"hide_tool"}}]}}]}"#,
    ),
    (
        12,
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"x\"}}]}\n\ndata: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"function\":{\"name\":\"hide_tool\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    ),
    (
        1,
        r#"{"id":"r","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]},{"type":"function_call","call_id":"call_1","name":"hide_tool","arguments":"{}"}]}"#,
    ),
    (
        13,
        "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"custom_tool_call\",\"call_id\":\"c\",\"name\":\"hide_tool\",\"input\":\"\"}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"hide_tool\",\"arguments\":\"{}\"}]}}\n\n",
    ),
    (
        2,
        r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"hide_tool","input":{}}],"stop_reason":"tool_use"}"#,
    ),
    (
        14,
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"hide_tool\",\"input\":{}}]}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"hide_tool\",\"input\":{}}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ),
    (
        3,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"x"},{"functionCall":{"name":"hide_tool","args":{}}}]},"finishReason":"STOP"}]}"#,
    ),
    (
        15,
        "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"hide_tool\",\"args\":{}}}]}},{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"hide_tool\"}}]}}]}\n\n",
    ),
    (8, r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"hide_tool"}}]}}]}"#),
];

/// Returns the path and the body of a request with one tool.
fn request(api: Api, streams: bool) -> (&'static str, String) {
    let stream = if streams { r#""stream":true,"# } else { "" };
    match api {
        Api::Chat => (
            "/v1/chat/completions",
            format!(
                r#"{{"model":"m",{stream}"messages":[{{"role":"user","content":"Hi."}}],"tools":[{{"type":"function","function":{{"name":"show_tool"}}}}]}}"#
            ),
        ),
        Api::Responses => (
            "/v1/responses",
            format!(
                r#"{{"model":"m",{stream}"input":"Hi.","tools":[{{"type":"function","name":"show_tool"}}]}}"#
            ),
        ),
        Api::Messages => (
            "/v1/messages",
            format!(
                r#"{{"model":"m",{stream}"max_tokens":9,"messages":[{{"role":"user","content":"Hi."}}],"tools":[{{"name":"show_tool","input_schema":{{"type":"object"}}}}]}}"#
            ),
        ),
        Api::Gemini => (
            if streams {
                "/v1beta/models/m:streamGenerateContent?alt=sse"
            } else {
                "/v1beta/models/m:generateContent"
            },
            r#"{"contents":[{"role":"user","parts":[{"text":"Hi."}]}],"tools":[{"functionDeclarations":[{"name":"show_tool"}]}]}"#.to_owned(),
        ),
    }
}

/// Returns what the client gets if the upstream answers every round with `response`. `choice` selects the API,
/// and whether the request and the response are streams.
fn forwarded(choice: u8, response: &[u8]) -> Vec<u8> {
    let api = Api::ALL[usize::from(choice & 3)];
    let (asks_for_events, is_events) = (choice & 4 != 0, choice & 8 != 0);
    let (target, body) = request(api, asks_for_events);
    let visible = |names: &[&str]| names.iter().any(|name| name.starts_with("show"));
    let read = Request::read_in_scope(api, target, body.into_bytes(), &visible);
    let mut setup = ExchangeConfig::new("localhost", Arc::new(FourCharsPerToken));
    setup.checks_calls = true;
    if choice & 16 != 0 {
        setup.requested = RequestedMode::Off;
    }
    let reading = read.expect("the request can be read");
    let mut exchange = Exchange::new(api, target, reading, setup);
    let mut got = Vec::new();
    loop {
        match exchange.next_action() {
            Some(Action::LoadRecords(keys)) => exchange.records_loaded(vec![None; keys.len()]),
            Some(Action::PrepareToolset(plan)) => {
                let toolset = Toolset::new(*plan, exchange.tools());
                exchange.toolset_prepared(Arc::new(toolset));
            }
            Some(Action::Send(_)) => {
                exchange.response_started(200, is_events);
                // The response is fed in two pieces, because events may be split anywhere.
                let (first, rest) = response.split_at(response.len() / 2);
                exchange.response_bytes(first.to_vec().into());
                exchange.response_bytes(rest.to_vec().into());
                exchange.response_ended();
            }
            Some(Action::StartResponse(start)) => match start.body {
                ResponseBody::Complete(body) => got.extend_from_slice(&body),
                ResponseBody::Passthrough => panic!("a limited caller gets an unchecked response"),
                ResponseBody::Forwarded => {}
            },
            Some(Action::Forward(bytes)) => got.extend_from_slice(&bytes),
            Some(Action::Done(_)) | None => return got,
            Some(_) => {}
        }
    }
}

/// Whether a value contains a call to a hidden tool, in any of the forms that clients read.
fn calls_hidden(value: &Value) -> bool {
    let is_hidden = |value: Option<&Value>| {
        value.and_then(Value::as_str).is_some_and(|name| name.contains("hide"))
    };
    let is_hidden_call = |call: &Value| {
        let inner = ["function", "custom"].iter().map(|key| call.get(key)?.get("name"));
        inner.chain([call.get("name")]).any(is_hidden)
    };
    match value {
        Value::Array(items) => items.iter().any(calls_hidden),
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
            let is_call = ["tool_use", "function_call", "custom_tool_call"].contains(&kind);
            let legacy =
                ["function_call", "functionCall"].iter().filter_map(|key| fields.get(*key));
            let calls = fields.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
            is_call && is_hidden(fields.get("name"))
                || legacy.chain(calls).any(is_hidden_call)
                || fields.iter().any(|(key, value)| {
                    // Arguments are not searched, because they may contain anything.
                    !["arguments", "args", "input"].contains(&key.as_str()) && calls_hidden(value)
                })
        }
        _ => false,
    }
}

/// Answers a request of a limited caller with arbitrary bytes, and checks what the client gets. The first byte of
/// `data` is the `choice` of `forwarded`, and the others are the response.
pub(crate) fn check(data: &[u8]) {
    let Some((choice, response)) = data.split_first() else { return };
    let got = forwarded(*choice, response);
    let text = String::from_utf8(got).expect("a checked response is text");
    let text = text.trim_start_matches('\u{feff}');
    let values: Vec<Value> = if let Ok(value) = serde_json::from_str(text) {
        vec![value]
    } else {
        let data = text.split(['\r', '\n']).filter_map(|line| line.strip_prefix("data:"));
        let data = data.map(str::trim).filter(|data| !data.is_empty() && *data != "[DONE]");
        data.filter_map(|data| serde_json::from_str(data).ok()).collect()
    };
    for value in values {
        assert!(!calls_hidden(&value), "{value}");
    }
}
