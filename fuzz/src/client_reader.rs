//! Reads a response as a client would, to find out which calls it would run and whether it can read the response at
//! all.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde_json::Value;
use toolcrib_core::disclosure::{CALL, DESCRIBE, SEARCH, SEARCH_REGEX};
use toolcrib_dialect::Api;
use toolcrib_dialect::sse::{Decoder, Event};

/// Whether this is the name of one of Toolcrib's own tools.
pub fn is_own(name: &str) -> bool {
    [SEARCH, SEARCH_REGEX, DESCRIBE, CALL].contains(&name) || name.starts_with("crib_")
}

/// Whether a text is JSON. Numbers out of range and unpaired surrogates are accepted, because the proxy only passes
/// them on.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns the events in a stream. Bytes after the last blank line also count as an event.
pub fn events(bytes: &[u8]) -> Vec<Event> {
    let mut decoder = Decoder::default();
    decoder.push(bytes);
    let mut all = Vec::new();
    while let Some(event) = decoder.next_event().expect("no event is that large") {
        all.push(event);
    }
    let mut rest = decoder.take_rest().to_vec();
    if !rest.is_empty() {
        rest.extend_from_slice(b"\n\n");
        all.extend(events(&rest));
    }
    all
}

/// Whether every event contains JSON, `[DONE]`, or only comments.
pub fn is_clean(events: &[Event]) -> bool {
    events.iter().all(|event| match event.data() {
        Some(data) => data.trim() == "[DONE]" || is_json(&data),
        None => std::str::from_utf8(event.raw()).is_ok(),
    })
}

/// Panics if a client would see a call of one of Toolcrib's own tools, or such a tool in the list of tools that a
/// response repeats.
pub fn check_stream(api: Api, events: &[Event]) {
    // The names of the calls by the index of the call. Each name is joined from the pieces in the stream.
    let mut pieces: BTreeMap<u64, String> = BTreeMap::new();
    for event in events {
        let Some(data) = event.data() else { continue };
        let Ok(value) = serde_json::from_str::<Value>(&data) else { continue };
        match api {
            Api::Chat => {
                for call in list(&value["choices"][0]["delta"]["tool_calls"]) {
                    let name = call["function"]["name"].as_str().unwrap_or_default();
                    let index = call["index"].as_u64().unwrap_or_default();
                    pieces.entry(index).or_default().push_str(name);
                }
            }
            Api::Messages if value["type"] == "content_block_start" => {
                check_block(&value["content_block"]);
            }
            Api::Messages => {}
            Api::Responses => {
                let item = matches!(
                    value["type"].as_str(),
                    Some("response.output_item.added" | "response.output_item.done")
                );
                if item && value["output_index"].is_u64() {
                    check_item(&value["item"]);
                }
                let end = ["completed", "incomplete", "failed", "cancelled"];
                let kind = value["type"].as_str().and_then(|kind| kind.strip_prefix("response."));
                if kind.is_some_and(|kind| end.contains(&kind)) {
                    // No client reads events after the end of the response.
                    return check_response(&value["response"]);
                }
            }
            Api::Gemini => check_candidate(&value),
        }
    }
    pieces.values().for_each(|name| check_name(name));
}

/// Panics if a client would see one of Toolcrib's own tools in a complete response.
pub fn check_whole(api: Api, body: &str) {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return };
    match api {
        Api::Chat => {
            for call in list(&value["choices"][0]["message"]["tool_calls"]) {
                check_name(call["function"]["name"].as_str().unwrap_or_default());
            }
        }
        Api::Messages => list(&value["content"]).iter().for_each(check_block),
        Api::Responses => check_response(&value),
        Api::Gemini => check_candidate(&value),
    }
}

fn check_block(block: &Value) {
    if block["type"] == "tool_use" {
        check_name(block["name"].as_str().unwrap_or_default());
    }
}

fn check_item(item: &Value) {
    if item["type"] == "function_call" {
        check_name(item["name"].as_str().unwrap_or_default());
    }
    let search = ["tool_search_call", "tool_search_output"].map(Value::from);
    assert!(!search.contains(&item["type"]), "a search that the client never asked for: {item}");
}

fn check_response(response: &Value) {
    list(&response["output"]).iter().for_each(check_item);
    for tool in list(&response["tools"]) {
        check_name(tool["name"].as_str().unwrap_or_default());
    }
}

fn check_candidate(value: &Value) {
    for part in list(&value["candidates"][0]["content"]["parts"]) {
        check_name(part["functionCall"]["name"].as_str().unwrap_or_default());
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn check_name(name: &str) {
    assert!(!is_own(name), "the client sees {name:?}");
}
