//! Responses of an upstream, generated from an input. They contain output of a model in the format of an API, some of
//! it broken.
//!
//! Random bytes rarely get past the first brace. Here most of a response is valid, and the errors are local: a field
//! that is missing, duplicated or of another type, or an event that is missing or occurs twice.

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use serde_json::{Value, json};
use toolcrib_dialect::Api;

/// Names of tools that the generated model calls.
pub const NAMES: [&str; 8] = [
    "tool_search",
    "tool_call",
    "tool_describe",
    "crm__find_customer",
    "crm__update_customer",
    "office__list_invoice",
    "nobody",
    "",
];

/// Arguments with which the generated model calls tools.
pub(crate) const ARGUMENTS: [&str; 10] = [
    r#"{"query":"invoice"}"#,
    r#"{"query":"select:crm__find_customer,office__list_order"}"#,
    r#"{"name":"crm__find_customer","arguments":{"q":"Ada"}}"#,
    r#"{"name":"crm__find_customer","arguments":{}}"#,
    r#"{"names":["office__list_invoice"]}"#,
    r#"{"q":"Ada"}"#,
    r#"{"id":"1"}"#,
    "{}",
    "",
    "{\"q\":",
];

/// The reasons why a response ended, as the four APIs name them.
const ENDS: [&str; 12] = [
    "tool_calls",
    "tool_use",
    "completed",
    "STOP",
    "stop",
    "end_turn",
    "length",
    "max_tokens",
    "incomplete",
    "MAX_TOKENS",
    "pause_turn",
    "failed",
];

/// One piece of the model's output.
pub(crate) enum ModelOutput {
    Text(&'static str),
    Thought(&'static str),
    Call {
        id: String,
        name: &'static str,
        arguments: &'static str,
    },
    /// A search that is a native feature of the API.
    Search {
        id: Option<String>,
    },
}

/// Generates the responses of one to three rounds from an input, complete if `whole` and streamed otherwise.
pub fn rounds(api: Api, bytes: &[u8], whole: bool) -> Vec<Vec<u8>> {
    let mut u = Unstructured::new(bytes);
    let count = u.int_in_range(1..=3).unwrap_or(1);
    (0..count).map(|n| round(api, n, &mut u, whole).unwrap_or_default()).collect()
}

fn round(api: Api, n: usize, u: &mut Unstructured<'_>, whole: bool) -> Result<Vec<u8>> {
    let mut said = Vec::new();
    for at in 0..u.int_in_range(0..=4)? {
        said.push(match u.int_in_range(0..=7)? {
            0 => ModelOutput::Text(u.choose(&[
                "Let me see.",
                "",
                "Who? tool_search!",
                "\u{1f3bb} So.",
            ])?),
            1 => ModelOutput::Thought("Hm."),
            2 => {
                ModelOutput::Search { id: u.arbitrary::<bool>()?.then(|| format!("call_{n}_{at}")) }
            }
            _ => {
                let id = if u.ratio(1, 8)? { String::new() } else { format!("call_{n}_{at}_long") };
                ModelOutput::Call { id, name: u.choose(&NAMES)?, arguments: u.choose(&ARGUMENTS)? }
            }
        });
    }
    let end = if u.ratio(3, 4)? { own_end(api) } else { u.choose(&ENDS)? };
    if whole {
        let mut body = body(api, n, &said, end);
        while !u.is_empty() && u.ratio(1, 3)? {
            break_one(u, &mut body)?;
        }
        return Ok(body.to_string().into_bytes());
    }
    let mut events = stream(api, n, &said, end);
    while !u.is_empty() && !events.is_empty() && u.ratio(1, 3)? {
        let at = u.choose_index(events.len())?;
        match u.int_in_range(0..=5)? {
            0 => drop(events.remove(at)),
            1 => events.insert(at, events[at].clone()),
            2 => {
                let other = u.choose_index(events.len())?;
                events.swap(at, other);
            }
            _ => break_one(u, &mut events[at])?,
        }
    }
    Ok(written(u, api, &events)?.into_bytes())
}

/// Writes events as a stream. Some get a comment, an unusual line end, or data on several lines.
fn written(u: &mut Unstructured<'_>, api: Api, events: &[Value]) -> Result<String> {
    let mut out = String::new();
    for event in events {
        if let (Api::Messages | Api::Responses, Some(kind)) = (api, event["type"].as_str())
            && !kind.contains(['\n', '\r'])
        {
            out.extend(["event: ", kind, "\n"]);
        }
        let data = match event {
            Value::String(word) if !word.contains(['\n', '\r']) => word.clone(),
            _ => event.to_string(),
        };
        match if u.ratio(1, 8)? { u.int_in_range(0..=3)? } else { 4 } {
            0 => out.extend([": hi\n\ndata:", &data, "\n\n"]),
            1 => out.extend(["data: ", &data, "\r\n\r\n"]),
            2 => out.extend(["data: ", &data.replacen(',', ",\ndata: ", 3), "\n\n"]),
            3 => out.extend(["id: 7\rdata: ", &data, "\r\r"]),
            _ => out.extend(["data: ", &data, "\n\n"]),
        }
    }
    Ok(out)
}

/// Breaks one randomly chosen place in a value.
pub fn break_one(u: &mut Unstructured<'_>, value: &mut Value) -> Result<()> {
    match value {
        Value::Object(fields) if !fields.is_empty() && u.ratio(7, 8)? => {
            let at = u.choose_index(fields.len())?;
            let key = fields.keys().nth(at).cloned().unwrap_or_default();
            if u.ratio(1, 8)? {
                fields.remove(&key);
                return Ok(());
            }
            break_one(u, &mut fields[&key])
        }
        Value::Array(items) if !items.is_empty() && u.ratio(7, 8)? => {
            let at = u.choose_index(items.len())?;
            match u.int_in_range(0..=8)? {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => break_one(u, &mut items[at])?,
            }
            Ok(())
        }
        _ => {
            *value = match u.int_in_range(0..=8)? {
                0 => Value::Null,
                1 => json!(u.arbitrary::<u8>()?),
                2 => json!(u64::MAX),
                3 => json!({}),
                4 => json!([]),
                5 => json!(u.choose(&ENDS)?),
                6 => json!(u.choose(&ARGUMENTS)?),
                7 => json!(u.choose(&NAMES)?),
                _ => json!(-1.5),
            };
            Ok(())
        }
    }
}

/// Returns the responses of two rounds. The first contains a search, and the second contains another search and a call
/// of a tool that was found.
pub fn searched(api: Api) -> [String; 2] {
    let call = |id: &str, name, arguments| ModelOutput::Call { id: id.to_owned(), name, arguments };
    let first = [call("call_search_first", NAMES[0], ARGUMENTS[0])];
    let second = [
        call("call_search_again", NAMES[0], ARGUMENTS[1]),
        call("call_find_customer", NAMES[1], ARGUMENTS[2]),
    ];
    [body(api, 0, &first, own_end(api)), body(api, 1, &second, own_end(api))]
        .map(|body| body.to_string())
}

/// Returns the reason for the end of a response with calls, as the API names it.
fn own_end(api: Api) -> &'static str {
    match api {
        Api::Chat => "tool_calls",
        Api::Responses => "completed",
        Api::Messages => "tool_use",
        Api::Gemini => "STOP",
    }
}

/// Returns a complete response of the API.
fn body(api: Api, n: usize, said: &[ModelOutput], end: &str) -> Value {
    let all: Vec<Value> = said.iter().enumerate().map(|(at, said)| part(api, at, said)).collect();
    match api {
        Api::Chat => {
            let calls: Vec<&Value> =
                all.iter().filter(|part| part["function"].is_object()).collect();
            let text: String = all.iter().filter_map(|part| part["text"].as_str()).collect();
            json!({"id": format!("chatcmpl-{n}"), "created": n, "choices": [{"index": 0,
                "message": {"role": "assistant", "content": text, "tool_calls": calls},
                "finish_reason": end}], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
        }
        Api::Responses => response(n, &all, end),
        Api::Messages => json!({"id": format!("msg_{n}"), "type": "message", "role": "assistant",
            "content": all, "stop_reason": end, "usage": {"input_tokens": 7, "output_tokens": 3}}),
        Api::Gemini => json!({"candidates": [{"content": {"parts": all, "role": "model"},
            "finishReason": end, "index": 0}], "responseId": format!("r{n}"),
            "usageMetadata": {"promptTokenCount": 7}}),
    }
}

/// Returns a response of the Responses API. It repeats the tools that were sent to the upstream.
fn response(n: usize, output: &[Value], status: &str) -> Value {
    json!({"id": format!("resp_{n}"), "object": "response", "created_at": n, "status": status,
        "output": output, "tools": [{"type": "function", "name": "tool_search"}],
        "previous_response_id": null, "usage": {"input_tokens": 7, "output_tokens": 3}})
}

/// Returns one piece of output, in the format of the API.
pub(crate) fn part(api: Api, at: usize, said: &ModelOutput) -> Value {
    let object = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!({}));
    match (api, said) {
        (Api::Responses, ModelOutput::Text(text)) => {
            json!({"type": "message", "id": format!("msg_{at}"),
            "role": "assistant", "content": [{"type": "output_text", "text": text}]})
        }
        (Api::Responses, ModelOutput::Thought(text)) => json!({"type": "reasoning",
            "id": format!("rs_{at}"), "summary": [], "encrypted_content": text}),
        (Api::Messages, ModelOutput::Thought(text)) => {
            json!({"type": "thinking", "thinking": text, "signature": "eA=="})
        }
        (Api::Gemini, ModelOutput::Thought(text)) => json!({"text": text, "thought": true}),
        (_, ModelOutput::Text(text) | ModelOutput::Thought(text)) => {
            json!({"type": "text", "text": text})
        }
        (Api::Chat, ModelOutput::Call { id, name, arguments }) => {
            json!({"id": id, "type": "function",
            "function": {"name": name, "arguments": arguments}})
        }
        (Api::Responses, ModelOutput::Call { id, name, arguments }) => {
            json!({"type": "function_call",
            "id": format!("fc_{at}"), "call_id": id, "name": name, "arguments": arguments,
            "status": "completed"})
        }
        (Api::Messages, ModelOutput::Call { id, name, arguments }) => {
            json!({"type": "tool_use", "id": id, "name": name, "input": object(arguments)})
        }
        (Api::Gemini, ModelOutput::Call { id, name, arguments }) => json!({"functionCall":
            {"id": id, "name": name, "args": object(arguments)}, "thoughtSignature": "eA=="}),
        (Api::Messages, ModelOutput::Search { id: Some(id) }) => {
            json!({"type": "server_tool_use", "id": id,
            "name": "tool_search_tool_bm25", "input": {"query": "invoice"}})
        }
        (Api::Messages, ModelOutput::Search { id: None }) => {
            json!({"type": "tool_search_tool_result",
            "tool_use_id": "s", "content": {"type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "office__list_order"}]}})
        }
        (_, ModelOutput::Search { id }) => json!({"type": "tool_search_call", "call_id": id,
            "execution": "client", "status": "completed", "arguments": {"query": "invoice"}}),
    }
}

/// Returns the events of a streamed response.
fn stream(api: Api, n: usize, said: &[ModelOutput], end: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let parts: Vec<Value> = said.iter().enumerate().map(|(at, said)| part(api, at, said)).collect();
    let chunk = |delta: Value, end: Option<&str>| {
        json!({"id": format!("chatcmpl-{n}"), "created": n, "choices":
            [{"index": 0, "delta": delta, "finish_reason": end}]})
    };
    match api {
        Api::Chat => {
            all.push(chunk(json!({"role": "assistant", "content": ""}), None));
            let mut calls = 0;
            for part in &parts {
                if let Some(arguments) = part["function"]["arguments"].as_str() {
                    let (head, tail) = arguments.split_at(arguments.len() / 2);
                    let mut begun = part.clone();
                    begun["index"] = json!(calls);
                    begun["function"]["arguments"] = json!(head);
                    let more = json!({"index": calls, "function": {"arguments": tail}});
                    calls += 1;
                    all.push(chunk(json!({"tool_calls": [begun]}), None));
                    all.push(chunk(json!({"tool_calls": [more]}), None));
                } else {
                    all.push(chunk(json!({"content": part["text"]}), None));
                }
            }
            all.push(chunk(json!({}), Some(end)));
            all.push(json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 7}}));
            all.push(json!("[DONE]"));
        }
        Api::Messages => {
            let mut message = body(api, n, &[], end);
            message["stop_reason"] = Value::Null;
            all.push(json!({"type": "message_start", "message": message}));
            for (index, part) in parts.iter().enumerate() {
                let mut begun = part.clone();
                let delta = match part["type"].as_str() {
                    Some("text") => json!({"type": "text_delta", "text": begun["text"].take()}),
                    Some("tool_use" | "server_tool_use") => {
                        let input = std::mem::replace(&mut begun["input"], json!({}));
                        json!({"type": "input_json_delta", "partial_json": input.to_string()})
                    }
                    _ => json!({"type": "signature_delta", "signature": "eQ=="}),
                };
                all.push(
                    json!({"type": "content_block_start", "index": index, "content_block": begun}),
                );
                all.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
                all.push(json!({"type": "content_block_stop", "index": index}));
            }
            all.push(json!({"type": "message_delta", "delta": {"stop_reason": end},
                "usage": {"output_tokens": 3}}));
            all.push(json!({"type": "message_stop"}));
        }
        Api::Responses => {
            let begun = response(n, &[], "in_progress");
            all.push(json!({"type": "response.created", "response": begun}));
            for (index, part) in parts.iter().enumerate() {
                let kind = match part["type"].as_str() {
                    Some("function_call") => "response.function_call_arguments.delta",
                    _ => "response.output_text.delta",
                };
                all.push(json!({"type": "response.output_item.added", "output_index": index,
                    "item": part}));
                all.push(json!({"type": kind, "output_index": index, "delta": part["arguments"]}));
                all.push(json!({"type": "response.output_item.done", "output_index": index,
                    "item": part}));
            }
            all.push(json!({"type": format!("response.{end}"),
                "response": response(n, &parts, end)}));
            for (at, event) in all.iter_mut().enumerate() {
                event["sequence_number"] = json!(at);
            }
        }
        Api::Gemini => {
            for pair in parts.chunks(2) {
                all.push(json!({"candidates": [{"content": {"parts": pair, "role": "model"}}],
                    "responseId": format!("r{n}")}));
            }
            all.push(body(api, n, &[], end));
        }
    }
    all
}
