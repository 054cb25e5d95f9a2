//! Tests of hidden searches between a client and a backend that use different APIs.

use serde_json::{Value, json};
use toolcrib_dialect::translate::adapter;
use toolcrib_dialect::{Api, Mode};

use super::{CLIENTS, call_chunk, chunk, piece, stream_bytes, usage, usage_chunk};
use crate::conversation::{NextStep, TestConversation, begins_with, tools};

/// Id, name and arguments of a call.
type Call<'a> = (&'a str, &'a str, Value);

/// Returns the backend's response in round `n`.
fn backend_response(n: usize, text: &str, call: Option<&Call<'_>>, stream: bool) -> String {
    let finish = if call.is_some() { "tool_calls" } else { "stop" };
    if stream {
        let mut chunks = Vec::new();
        if !text.is_empty() {
            chunks.push(chunk(&json!({"role": "assistant", "content": text}), None));
        }
        if let Some((id, name, arguments)) = call {
            chunks.push(call_chunk(&[piece(0, Some(id), Some(name), &arguments.to_string())]));
        }
        chunks.extend([chunk(&json!({}), Some(finish)), usage_chunk(), json!("[DONE]")]);
        for chunk in chunks.iter_mut().filter(|chunk| chunk.is_object()) {
            chunk["id"] = json!(format!("chatcmpl-{n}"));
        }
        return stream_bytes(&chunks);
    }
    let calls: Vec<Value> = call
        .iter()
        .map(|(id, name, arguments)| {
            json!({"id": id, "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}})
        })
        .collect();
    json!({"id": format!("chatcmpl-{n}"), "created": 1_700_000_000, "model": "qwen3-32b",
        "choices": [{"message": {"role": "assistant", "content": text, "tool_calls": calls},
            "finish_reason": finish}],
        "usage": usage()})
    .to_string()
}

/// Sends a client's request and plays these responses. Returns the bodies that were sent to the backend, and what the
/// client got.
fn play(
    conversation: &mut TestConversation,
    body: &Value,
    answers: &[String],
) -> (Vec<Value>, String) {
    let target = if conversation.api == Api::Messages { "/v1/messages" } else { "/v1/responses" };
    let mut turn = conversation.turn(target, &body.to_string());
    let mut adapter = adapter(conversation.api, Api::Chat).unwrap();
    let (mut sent, mut out) = (Vec::new(), Vec::new());
    for answer in answers {
        sent.push(serde_json::from_str(&adapter.request(&turn.request()).unwrap().body).unwrap());
        let next = if body["stream"] == true {
            let mut translated = Vec::new();
            adapter.bytes(answer.as_bytes(), &mut translated);
            adapter.end(&mut translated);
            turn.bytes(&translated, &mut out);
            turn.end(&mut out)
        } else {
            turn.complete_response(&adapter.complete_response(200, answer.as_bytes()).body).unwrap()
        };
        if let NextStep::Done(done) = next {
            assert_eq!(sent.len(), answers.len());
            conversation.records.extend(done.records);
            let text = done.body.unwrap_or_else(|| String::from_utf8(out).unwrap());
            return (sent, text);
        }
    }
    panic!("the turn did not end");
}

fn request(api: Api, history: &[Value], stream: bool) -> Value {
    let tools = tools(40).into_iter().map(|(name, description, schema)| match api {
        Api::Messages => json!({"name": name, "description": description, "input_schema": schema}),
        _ => json!({"type": "function", "name": name, "description": description, "parameters": schema}),
    });
    let tools: Vec<Value> = tools.collect();
    match api {
        Api::Messages => json!({"model": "m", "max_tokens": 1024, "messages": history,
            "tools": tools, "stream": stream}),
        _ => {
            json!({"model": "m", "input": history, "tools": tools, "stream": stream, "store": false})
        }
    }
}

/// Returns the content blocks (Messages) or the output items (Responses) that the client received.
fn message(api: Api, got: &str, stream: bool) -> Vec<Value> {
    if !stream {
        let got: Value = serde_json::from_str(got).unwrap();
        let parts = &got[if api == Api::Messages { "content" } else { "output" }];
        return parts.as_array().unwrap().clone();
    }
    let events = super::events(got.as_bytes());
    match api {
        Api::Messages => {
            let gathered = super::properties::gather(api, &events);
            assert_eq!(events.last().unwrap()["type"], "message_stop");
            gathered["content"].as_array().unwrap().clone()
        }
        _ => events.last().unwrap()["response"]["output"].as_array().unwrap().clone(),
    }
}

#[test]
fn a_search_is_hidden_from_the_client_and_kept_in_the_backends_history() {
    for api in CLIENTS {
        for stream in [false, true] {
            let mut conversation = TestConversation::new(api, Mode::Bridge);
            let user = json!({"role": "user", "content": "Find Ada."});
            let search = ("call_search001", "tool_search", json!({"query": "find customer"}));
            let found = (
                "call_find00001",
                "tool_call",
                json!({"name": "crm__find_customer", "arguments": {"q": "ada"}}),
            );
            let (first, got) = play(
                &mut conversation,
                &request(api, std::slice::from_ref(&user), stream),
                &[
                    backend_response(1, "Let me look.", Some(&search), stream),
                    backend_response(2, "", Some(&found), stream),
                ],
            );
            let names: Vec<&str> = first[0]["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| tool["function"]["name"].as_str().unwrap())
                .collect();
            assert_eq!(names, ["tool_search", "tool_describe", "tool_call"]);
            let received = message(api, &got, stream);
            assert_eq!(received.len(), 2, "{api} {stream} {got}");
            assert_eq!(received[1]["name"], "crm__find_customer");
            let mut history = vec![user];
            if api == Api::Messages {
                assert_eq!(received[1]["input"], json!({"q": "ada"}));
                history.push(json!({"role": "assistant", "content": received}));
                history.push(json!({"role": "user", "content": [{"type": "tool_result",
                        "tool_use_id": received[1]["id"], "content": "Ada, 7"}]}));
            } else {
                assert_eq!(received[1]["arguments"], "{\"q\":\"ada\"}");
                history.extend_from_slice(&received);
                history.push(json!({"type": "function_call_output",
                        "call_id": received[1]["call_id"], "output": "Ada, 7"}));
            }
            let (second, got) = play(
                &mut conversation,
                &request(api, &history, stream),
                &[backend_response(3, "Ada is number 7.", None, stream)],
            );
            assert!(got.contains("Ada is number 7."));
            assert_eq!(first[1]["tools"], second[0]["tools"]);
            assert!(begins_with(&first[1]["messages"], &first[0]["messages"]));
            assert!(begins_with(&second[0]["messages"], &first[1]["messages"]));
            let mut messages = second[0]["messages"].clone();
            let result = messages[2]["content"].take();
            assert!(result.as_str().unwrap().contains("crm__find_customer"));
            assert_eq!(messages, backend_history([&search, &found]), "{api}");
        }
    }
}

/// Returns the history that the backend should get after both rounds, without the text of the search result.
fn backend_history(calls: [&Call<'_>; 2]) -> Value {
    let [search, found] = calls.map(|(id, name, arguments)| {
        json!([{"id": id, "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}}])
    });
    json!([
        {"role": "user", "content": "Find Ada."},
        {"role": "assistant", "content": "Let me look.", "tool_calls": search},
        {"role": "tool", "tool_call_id": calls[0].0, "content": null},
        {"role": "assistant", "content": null, "tool_calls": found},
        {"role": "tool", "tool_call_id": calls[1].0, "content": "Ada, 7"}])
}
