//! Tests of responses that a caller with a limited scope must not get, through the real binary: calls of other tools in
//! unusual forms, and responses that cannot be checked.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::{slice, thread};

use serde_json::{Value, json};

use crate::http::{Response, post_with};
use crate::replica::Replica;

/// The header that limits the caller's scope to `crm__*`.
const SCOPE: &str = "x-toolcrib-tools: crm__*\r\n";
const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

/// Starts a provider that sends the same response to every request, and returns its URL. `head` contains the headers
/// for the response's content type and encoding.
fn provider(head: &str, body: &[u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut response =
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{head}\r\n\r\n").into_bytes();
    response.extend_from_slice(body);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
            // The body is a JSON object, so the request is complete when it ends with a brace.
            while !request.ends_with(b"}") {
                let count = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..count]);
            }
            stream.write_all(&response).unwrap();
        }
    });
    url
}

fn replica(url: &str) -> Replica {
    Replica::start(&format!("[proxy]\nopenai = '{url}'\nanthropic = '{url}'\ngemini = '{url}'\n"))
}

/// Sends a request as a limited caller, and returns what the caller gets instead of the provider's response.
fn get(head: &str, body: &[u8], path: &str, ask: &Value) -> Response {
    let replica = replica(&provider(head, body));
    let answer = post_with(&replica.url, path, SCOPE, &ask.to_string()).unwrap();
    assert!(replica.log().contains("a response was withheld from a caller with a limited scope"));
    answer
}

fn chat(stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"type": "function", "function": {"name": "crm__find"}}]})
}

fn call(name: &str) -> Value {
    json!([{"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}}])
}

/// Returns a complete response with one choice for each message.
fn complete_response(messages: &[Value]) -> Vec<u8> {
    let choice = |(index, message): (usize, &Value)| json!({"index": index, "message": message, "finish_reason": "stop"});
    let choices: Vec<Value> = messages.iter().enumerate().map(choice).collect();
    json!({"id": "c", "choices": choices}).to_string().into_bytes()
}

/// Returns a stream of these deltas.
fn deltas(deltas: &[Value]) -> Vec<u8> {
    let event = |delta: &Value| {
        let chunk =
            json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
        format!("data: {chunk}\n\n")
    };
    let events: String = deltas.iter().map(event).collect();
    (events + "data: [DONE]\n\n").into_bytes()
}

/// Asserts that the client got only an error, in its API's format.
fn is_an_error(answer: &Response, why: &str) {
    assert_eq!(answer.status, 502, "{}", answer.body);
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    let text = format!(
        "toolcrib: this caller's tools are limited, and the response is withheld because {why}"
    );
    assert_eq!(body["error"]["message"], json!(text));
    assert!(answer.header("content-encoding").is_none());
}

/// Asserts that a stream that had already begun ends with an error event of the API, and does not contain the call.
fn ends_with_an_error(answer: &Response, why: &str) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let events = answer.events();
    let text = events.last().unwrap()["error"]["message"].as_str().unwrap();
    assert!(text.ends_with(why), "{text}");
    assert!(!answer.body.contains("secret"), "{}", answer.body);
}

const JSON: &str = "Content-Type: application/json";
const EVENTS: &str = "Content-Type: text/event-stream";
const UNDECLARED: &str = "it calls a tool that this caller does not have";

#[test]
fn a_request_for_a_response_that_cannot_be_checked_is_rejected() {
    let replica = replica("http://127.0.0.1:9");
    for (path, change, why) in [
        (CHAT, json!({"stream": 1}), "the value of `stream` is not `true` or `false`"),
        (CHAT, json!({"stream": "true"}), "the value of `stream` is not `true` or `false`"),
        (CHAT, json!({"model": 5}), "`model` is missing or not a string"),
        (
            CHAT,
            json!({"messages": null}),
            "`messages` is missing or not a conversation of this API",
        ),
        (
            RESPONSES,
            json!({"input": "Hi", "messages": null, "tools": [], "background": true}),
            "the response would be fetched later",
        ),
        (
            "/v1beta/models/m:generateContent?callback=f",
            json!({"contents": []}),
            "the query contains a parameter other than `alt` and `prettyPrint`",
        ),
    ] {
        let mut ask = chat(false);
        ask.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let answer = post_with(&replica.url, path, SCOPE, &ask.to_string()).unwrap();
        assert_eq!(answer.status, 400, "{}", answer.body);
        assert!(answer.body.contains(why), "{}", answer.body);
    }
}

#[test]
fn a_compressed_response_is_rejected() {
    // The bytes are plain JSON, although the header declares that they are compressed.
    let body = complete_response(&[json!({"role": "assistant", "content": "Hi"})]);
    for (head, stream) in [(JSON, false), (EVENTS, true)] {
        let head = format!("{head}\r\nContent-Encoding: gzip");
        is_an_error(&get(&head, &body, CHAT, &chat(stream)), "it is compressed");
    }
}

#[test]
fn the_content_type_of_a_response_is_case_insensitive() {
    let body = deltas(&[json!({"content": "Hi"}), json!({"function_call": {"name": "secret"}})]);
    let head = "Content-Type: Text/Event-Stream; charset=utf-8";
    ends_with_an_error(&get(head, &body, CHAT, &chat(true)), UNDECLARED);
}

#[test]
fn events_without_a_content_type_are_rejected() {
    let body = deltas(&[json!({"tool_calls": call("secret")})]);
    is_an_error(&get(JSON, &body, CHAT, &chat(true)), "it is not a JSON object");
    // A stream is checked even if the client did not request one.
    is_an_error(&get(EVENTS, &body, CHAT, &chat(false)), UNDECLARED);
}

#[test]
fn a_legacy_function_call_is_rejected() {
    let legacy = json!({"role": "assistant", "content": null, "function_call": {"name": "secret", "arguments": "{}"}});
    is_an_error(
        &get(JSON, &complete_response(slice::from_ref(&legacy)), CHAT, &chat(false)),
        UNDECLARED,
    );
    ends_with_an_error(&get(EVENTS, &deltas(&[legacy]), CHAT, &chat(true)), UNDECLARED);
}

#[test]
fn a_call_in_a_second_choice_is_rejected() {
    let hi = json!({"role": "assistant", "content": "Hi"});
    let body = complete_response(&[hi, json!({"role": "assistant", "tool_calls": call("secret")})]);
    is_an_error(&get(JSON, &body, CHAT, &chat(false)), UNDECLARED);
    let mut several = chat(false);
    several["n"] = json!(2);
    is_an_error(&get(JSON, &body, CHAT, &several), UNDECLARED);
}

#[test]
fn a_name_that_is_completed_in_a_later_event_is_rejected() {
    let more = json!([{"index": 0, "function": {"name": "_secret"}}]);
    let body = deltas(&[json!({"tool_calls": call("crm__find")}), json!({"tool_calls": more})]);
    ends_with_an_error(&get(EVENTS, &body, CHAT, &chat(true)), UNDECLARED);
}

#[test]
fn a_command_for_an_undeclared_shell_is_rejected() {
    let ask =
        json!({"model": "m", "input": "Hi", "tools": [{"type": "function", "name": "crm__find"}]});
    let item = json!({"type": "shell_call", "id": "s", "call_id": "c", "action": {"commands": ["secret"]}});
    let body = json!({"id": "r", "status": "completed", "output": [item]}).to_string();
    is_an_error(&get(JSON, body.as_bytes(), RESPONSES, &ask), UNDECLARED);
}

/// Responses are not checked for a client whose tools are not limited, so it gets them unchanged.
#[test]
fn a_client_without_a_scope_gets_the_same_bytes() {
    let legacy = json!({"role": "assistant", "content": null, "function_call": {"name": "secret", "arguments": "{}"}});
    for (head, body, stream) in [
        (JSON, complete_response(slice::from_ref(&legacy)), false),
        (EVENTS, deltas(&[legacy]), true),
        (JSON, b"no JSON".to_vec(), false),
    ] {
        let replica = replica(&provider(head, &body));
        let answer = post_with(&replica.url, CHAT, "", &chat(stream).to_string()).unwrap();
        assert_eq!((answer.status, answer.body.into_bytes()), (200, body));
    }
}
