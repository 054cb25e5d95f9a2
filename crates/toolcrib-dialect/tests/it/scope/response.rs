//! What a caller with a limited scope gets of a response: calls of tools that its request declares, and nothing that
//! cannot be checked.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::FourChars;
use toolcrib_dialect::exchange::action::{Body, Ending, Setup};
use toolcrib_dialect::{Action, Api, Exchange, Request, Toolset, Unchecked};

use super::generated::visible;
use super::target;

/// A response of the upstream.
struct Answer {
    status: u16,
    is_events: bool,
    body: Vec<u8>,
}

/// What the client gets.
#[derive(Debug, PartialEq, Eq)]
struct Got {
    body: String,
    ending: Ending,
    rounds: usize,
}

fn whole(body: &Value) -> Answer {
    Answer { status: 200, is_events: false, body: body.to_string().into_bytes() }
}

fn events(events: &[Value]) -> Answer {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Answer { status: 200, is_events: true, body: body.into_bytes() }
}

fn request(api: Api) -> Value {
    let user = json!([{"role": "user", "content": "Hi"}]);
    let schema = json!({"type": "object"});
    match api {
        Api::Chat => json!({"model": "m", "messages": user, "tools": [
            {"type": "function", "function": {"name": "show_a", "parameters": schema}},
            {"type": "function", "function": {"name": "hide_a", "parameters": schema}}]}),
        Api::Responses => json!({"model": "m", "input": user, "tools": [
            {"type": "function", "name": "show_a", "parameters": schema},
            {"type": "function", "name": "hide_a", "parameters": schema}]}),
        Api::Messages => json!({"model": "m", "max_tokens": 9, "messages": user, "tools": [
            {"name": "show_a", "input_schema": schema}, {"name": "hide_a", "input_schema": schema}]}),
        Api::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "tools": [
            {"functionDeclarations": [{"name": "show_a"}, {"name": "hide_a"}]}]}),
    }
}

fn streamed(api: Api) -> Value {
    let mut body = request(api);
    if api != Api::Gemini {
        body["stream"] = json!(true);
    }
    body
}

fn path(api: Api, is_stream: bool) -> &'static str {
    match api {
        Api::Gemini if is_stream => "/v1beta/models/m:streamGenerateContent?alt=sse",
        _ => target(api),
    }
}

/// Sends a request of a limited caller, and gives it these responses.
fn play(api: Api, body: &Value, answers: Vec<Answer>) -> Got {
    let is_stream = answers.first().is_some_and(|answer| answer.is_events);
    let path = path(api, is_stream);
    let read = Request::read_visible(api, path, body.to_string().into_bytes(), &visible).unwrap();
    let mut setup = Setup::new("localhost", Arc::new(FourChars));
    setup.checks_calls = true;
    let mut exchange = Exchange::new(api, path, read, setup);
    let mut answers = answers.into_iter();
    let mut got = Vec::new();
    loop {
        match exchange.next().unwrap() {
            Action::Load(keys) => exchange.loaded(vec![None; keys.len()]),
            Action::Prepare(plan) => {
                let toolset = Toolset::new(*plan, exchange.tools());
                exchange.prepared(Arc::new(toolset));
            }
            Action::Send(outgoing) => {
                assert!(outgoing.is_read, "a compressed response cannot be checked");
                let answer = answers.next().unwrap();
                exchange.answered(answer.status, answer.is_events);
                for piece in answer.body.chunks(7) {
                    exchange.bytes(piece.to_vec().into());
                }
                exchange.end();
            }
            Action::Respond(start) => match start.body {
                Body::Complete(body) => got.extend(body),
                Body::Forwarded => {}
                Body::AsItComes => panic!("a response that is not read"),
            },
            Action::Forward(bytes) => got.extend(bytes),
            Action::Done(done) => {
                let body = String::from_utf8(got).unwrap();
                return Got { body, ending: done.ending, rounds: done.summary.rounds };
            }
            _ => {}
        }
    }
}

/// The client gets nothing of a response but what came before the event that is refused.
fn is_refused(api: Api, body: &Value, answer: Answer, why: Unchecked) {
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let got = play(api, body, vec![answer]);
    assert_eq!(got.ending, Ending::Unchecked(why), "{api:?} {text}");
    assert!(!got.body.contains("hide_a"), "{api:?} {text}");
}

/// The client gets a response as it came.
fn passes(api: Api, body: &Value, answer: Answer) {
    let text = String::from_utf8(answer.body.clone()).unwrap();
    let got = play(api, body, vec![answer]);
    assert_eq!((got.ending, got.body), (Ending::Complete, text), "{api:?}");
}

fn chat_call(name: &str) -> Value {
    json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": "{\"name\":\"x\"}"}})
}

fn chat(messages: &[Value]) -> Value {
    let choices: Vec<Value> = (0..)
        .zip(messages)
        .map(
            |(index, message)| json!({"index": index, "message": message, "finish_reason": "stop"}),
        )
        .collect();
    json!({"id": "c", "object": "chat.completion", "created": 1, "choices": choices})
}

fn chunk(delta: &Value) -> Value {
    json!({"id": "c", "created": 1, "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn chat_end() -> Value {
    json!({"id": "c", "created": 1, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
}

fn response(items: &[Value]) -> Value {
    json!({"id": "r", "object": "response", "status": "completed", "output": items})
}

fn message(blocks: &[Value]) -> Value {
    json!({"id": "m", "type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1}})
}

fn content(parts: &[Value]) -> Value {
    json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
}

#[test]
fn calls_of_declared_tools_pass_as_they_came() {
    let call = chat_call("show_a");
    let tool_use = json!({"type": "tool_use", "id": "t", "name": "show_a", "input": {"type": "tool_use", "name": "hide_b"}});
    let item = json!({"type": "function_call", "id": "f", "call_id": "c", "name": "show_a", "arguments": "{}"});
    let part = json!({"functionCall": {"name": "show_a", "args": {"name": "hide_b"}}});
    let two = json!({"functionCall": {"name": "show_b", "args": {}}});
    passes(
        Api::Chat,
        &request(Api::Chat),
        whole(&chat(&[json!({"role": "assistant", "content": null, "tool_calls": [call]})])),
    );
    passes(Api::Messages, &request(Api::Messages), whole(&message(&[tool_use.clone()])));
    passes(Api::Responses, &request(Api::Responses), whole(&response(&[item.clone()])));
    let mut gemini = request(Api::Gemini);
    gemini["tools"][0]["functionDeclarations"][1]["name"] = json!("show_b");
    passes(Api::Gemini, &gemini, whole(&content(&[part.clone(), two.clone()])));
    passes(Api::Gemini, &gemini, events(&[content(&[part, two])]));
    let piece = json!({"index": 0, "function": {"arguments": "{}"}});
    let again =
        json!({"index": 0, "id": "call_2", "function": {"name": "show_a", "arguments": "{}"}});
    let deltas = [
        json!({"role": "assistant", "tool_calls": [call]}),
        json!({"tool_calls": [piece]}),
        json!({"tool_calls": [again]}),
    ];
    let mut chunks: Vec<Value> = deltas.iter().map(chunk).collect();
    chunks.push(chat_end());
    passes(Api::Chat, &streamed(Api::Chat), events(&chunks));
    passes(
        Api::Messages,
        &streamed(Api::Messages),
        events(&[
            json!({"type": "message_start", "message": message(&[])}),
            json!({"type": "content_block_start", "index": 0, "content_block": tool_use}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}),
            json!({"type": "message_stop"}),
        ]),
    );
    passes(
        Api::Responses,
        &streamed(Api::Responses),
        events(&[
            json!({"type": "response.created", "response": {"id": "r", "output": [], "tools": [{"type": "function", "name": "show_a"}]}}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": response(&[item])}),
        ]),
    );
}

/// As before, a call of another tool is answered in a hidden round if it has the usual form.
#[test]
fn a_call_of_a_hidden_tool_is_answered_in_a_hidden_round() {
    let last = json!({"role": "assistant", "content": "Done."});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [chat_call("hide_a")]});
    let got =
        play(Api::Chat, &request(Api::Chat), vec![whole(&chat(&[call])), whole(&chat(&[last]))]);
    assert_eq!((got.ending, got.rounds), (Ending::Complete, 2));
    assert!(got.body.contains("Done.") && !got.body.contains("hide_a"), "{}", got.body);
}

#[test]
fn calls_in_unusual_forms_are_refused_in_chat_completions() {
    let said = |extra: Value| {
        let mut message = json!({"role": "assistant", "content": "Hi"});
        message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        message
    };
    let legacy = json!({"function_call": {"name": "hide_a", "arguments": "{}"}});
    let calls = json!({"tool_calls": [chat_call("hide_a")]});
    let undeclared = Unchecked::UndeclaredTool;
    for (message, why) in [
        (said(legacy.clone()), undeclared),
        (
            said(
                json!({"tool_calls": [chat_call("show_a")], "function_call": legacy["function_call"]}),
            ),
            undeclared,
        ),
        (said(json!({"tool_calls": chat_call("hide_a")})), Unchecked::UnknownForm),
        (
            said(json!({"tool_calls": [{"id": "c", "name": "hide_a", "arguments": "{}"}]})),
            undeclared,
        ),
        (
            said(json!({"tool_calls": [{"id": "c", "custom": {"name": ["hide_a"]}}]})),
            Unchecked::UnknownForm,
        ),
        (said(json!({"Tool_Calls": [chat_call("hide_a")]})), Unchecked::TwoKeys),
    ] {
        is_refused(Api::Chat, &request(Api::Chat), whole(&chat(&[message])), why);
    }
    let second = chat(&[said(json!({})), said(calls.clone())]);
    is_refused(Api::Chat, &request(Api::Chat), whole(&second), undeclared);
    for body in [json!({"n": 2}), json!({"functions": [{"name": "show_a"}]}), json!({"tools": []})]
    {
        let mut request = request(Api::Chat);
        request.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        is_refused(Api::Chat, &request, whole(&second), undeclared);
    }
    let piece =
        |name: &str| chunk(&json!({"tool_calls": [{"index": 0, "function": {"name": name}}]}));
    let choice = |key: &str, index: usize| json!({"choices": [{"index": index, key: calls}]});
    for events_of in [
        vec![chunk(&legacy)],
        vec![choice("message", 0)],
        vec![chunk(&json!({"tool_calls": [chat_call("show_a")]})), piece("hide_a")],
        vec![chunk(&json!({"tool_calls": [chat_call("show_a")]})), piece("_hide_a")],
        vec![json!({"choices": [], "message": calls})],
    ] {
        is_refused(Api::Chat, &streamed(Api::Chat), events(&events_of), undeclared);
    }
    // Two names that are both declared are not put together.
    let mut two = streamed(Api::Chat);
    two["tools"][1]["function"]["name"] = json!("show_b");
    let joined = [chunk(&json!({"tool_calls": [chat_call("show_a")]})), piece("show_b")];
    is_refused(Api::Chat, &two, events(&joined), undeclared);
}

#[test]
fn items_that_a_client_runs_are_refused_unless_they_are_declared() {
    let undeclared = Unchecked::UndeclaredTool;
    let rows = [
        (json!({"type": "custom_tool_call", "name": "hide_a", "input": "x"}), undeclared),
        (
            json!({"type": "function_call", "name": "show_a", "namespace": "hide_a", "arguments": "{}"}),
            undeclared,
        ),
        (
            json!({"type": "local_shell_call", "action": {"type": "exec", "command": ["hide_a"]}}),
            undeclared,
        ),
        (json!({"type": "shell_call", "action": {"commands": ["hide_a"]}}), undeclared),
        (json!({"type": "apply_patch_call", "operation": {"path": "hide_a"}}), undeclared),
        (json!({"type": "computer_call", "action": {"text": "hide_a"}}), undeclared),
        (
            json!({"type": "mcp_approval_request", "server_label": "s", "name": "hide_a"}),
            undeclared,
        ),
        (json!({"type": "mcp_call", "server_label": "s", "name": "hide_a"}), undeclared),
        (
            json!({"type": "tool_search_output", "tools": [{"type": "function", "name": "hide_a"}]}),
            undeclared,
        ),
        (json!({"type": "function_tool_call", "name": "hide_a"}), undeclared),
        (json!({"type": "Function_Call", "name": "hide_a"}), Unchecked::UnknownForm),
        (json!({"type": "function_call", "name": {"a": "hide_a"}}), Unchecked::UnknownForm),
    ];
    let call_id = |item: &Value| {
        let mut item = item.clone();
        (item["id"], item["call_id"]) = (json!("i"), json!("c"));
        item
    };
    // Without tools there are no hidden rounds, which answer some of them.
    let without = |mut body: Value| {
        body["tools"] = json!([]);
        body
    };
    for (item, why) in &rows {
        let item = call_id(item);
        let only = without(request(Api::Responses));
        is_refused(Api::Responses, &only, whole(&response(&[item.clone()])), *why);
        for event in [
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": response(&[item.clone()])}),
        ] {
            is_refused(Api::Responses, &without(streamed(Api::Responses)), events(&[event]), *why);
        }
    }
    let named = json!({"type": "response.function_call_arguments.done", "name": "hide_a", "arguments": "{}"});
    is_refused(Api::Responses, &streamed(Api::Responses), events(&[named]), undeclared);
    let mut declared = request(Api::Responses);
    declared["tools"] = json!([
        {"type": "show_shell"},
        {"type": "show_computer_use_preview"},
        {"type": "namespace", "name": "office", "tools": [{"type": "function", "name": "show_b"}]},
        {"type": "mcp", "server_label": "docs", "allowed_tools": ["show_c"]}
    ]);
    for item in [
        json!({"type": "show_shell_call", "action": {"commands": ["ls"]}}),
        json!({"type": "show_computer_call", "action": {"type": "screenshot"}}),
        json!({"type": "function_call", "name": "show_b", "namespace": "office", "arguments": "{}"}),
        json!({"type": "mcp_approval_request", "server_label": "docs", "name": "show_c"}),
    ] {
        let got = play(Api::Responses, &declared, vec![whole(&response(&[call_id(&item)]))]);
        assert_eq!(got.ending, Ending::Complete, "{item}");
    }
}

#[test]
fn blocks_are_refused_wherever_they_are() {
    let undeclared = Unchecked::UndeclaredTool;
    let tool_use = |kind: &str| json!({"type": kind, "id": "t", "name": "hide_a", "input": {}});
    for (kind, why) in [
        ("server_tool_use", undeclared),
        ("mcp_tool_use", undeclared),
        ("Tool_Use", Unchecked::UnknownForm),
        ("client_tool_use", Unchecked::UnknownForm),
    ] {
        is_refused(Api::Messages, &request(Api::Messages), whole(&message(&[tool_use(kind)])), why);
    }
    let start = json!({"type": "message_start", "message": message(&[tool_use("tool_use")])});
    is_refused(Api::Messages, &streamed(Api::Messages), events(&[start]), undeclared);
    let mut hosted = request(Api::Messages);
    hosted["tools"] = json!([{"type": "show_code_20250825", "name": "show_code"}]);
    let run = json!({"type": "server_tool_use", "id": "s", "name": "bash_show_code", "input": {}});
    passes(Api::Messages, &hosted, whole(&message(&[run])));
}

#[test]
fn parts_are_refused_in_every_candidate() {
    let undeclared = Unchecked::UndeclaredTool;
    let call = json!({"functionCall": {"name": "hide_a", "args": {}}});
    let text = json!({"text": "Hi"});
    let mut second = content(&[text]);
    let other = json!({"index": 1, "content": {"role": "model", "parts": [call]}});
    second["candidates"].as_array_mut().unwrap().push(other);
    let both = json!({"functionCall": {"name": "show_a"}, "function_call": {"name": "hide_a"}});
    for (body, why) in [
        (second, undeclared),
        (content(&[json!({"toolCall": {"toolType": "hide_a", "args": {}}})]), undeclared),
        (
            content(&[json!({"executableCode": {"language": "PYTHON", "code": "hide_a"}})]),
            undeclared,
        ),
        (content(&[both]), Unchecked::TwoKeys),
    ] {
        is_refused(Api::Gemini, &request(Api::Gemini), whole(&body), why);
        is_refused(Api::Gemini, &request(Api::Gemini), events(&[body]), why);
    }
    let mut hosted = request(Api::Gemini);
    hosted["tools"] = json!([{"showHosted": {}}, {"show_search": {}}]);
    let run = json!({"toolCall": {"toolType": "SHOW_SEARCH_WEB", "args": {}}});
    passes(Api::Gemini, &hosted, whole(&content(&[run])));
}

#[test]
fn a_response_that_cannot_be_read_is_refused() {
    let call =
        chat(&[json!({"role": "assistant", "tool_calls": [chat_call("hide_a")]})]).to_string();
    let choices = format!(r#"{},"choices":[]}}"#, call.strip_suffix('}').unwrap());
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    let bytes = |body: &[u8], is_events| Answer { status: 200, is_events, body: body.to_vec() };
    let rows: [(&[u8], bool, Unchecked); 10] = [
        (b"\x1f\x8b\x08\x00", false, Unchecked::NotAnObject),
        (b"", false, Unchecked::NotAnObject),
        (b"[{\"tool_calls\":1}]", false, Unchecked::NotAnObject),
        (b"{\"x\":NaN}", false, Unchecked::NotAnObject),
        (b"data: {}\n\n", false, Unchecked::NotAnObject),
        (choices.as_bytes(), false, Unchecked::TwoKeys),
        (b"\x1f\x8b\x08\x00", true, Unchecked::NotEvents),
        (call.as_bytes(), true, Unchecked::NotEvents),
        (b"data: [{\"tool_calls\":1}]\n\n", true, Unchecked::NotEvents),
        (b"data: {\"x\":\"\xff\"}\n\n", true, Unchecked::NotEvents),
    ];
    for api in [Api::Chat, Api::Responses, Api::Messages, Api::Gemini] {
        for (body, is_events, why) in rows {
            let ask = if is_events { streamed(api) } else { request(api) };
            is_refused(api, &ask, bytes(body, is_events), why);
        }
        let nested = json!({"x": serde_json::from_str::<Value>(&deep).unwrap()});
        is_refused(api, &request(api), whole(&nested), Unchecked::TooComplex);
    }
    // How a response is read depends on its own type, whatever was asked for.
    let streamed_call = events(&[chunk(&json!({"tool_calls": [chat_call("hide_a")]}))]);
    is_refused(Api::Chat, &request(Api::Chat), streamed_call, Unchecked::UndeclaredTool);
    passes(Api::Chat, &request(Api::Chat), events(&[chunk(&json!({"content": "Hi"})), chat_end()]));
    // A byte order mark is no reason to refuse a response.
    let hi = format!("\u{feff}{}", chat(&[json!({"role": "assistant", "content": "Hi"})]));
    passes(Api::Chat, &request(Api::Chat), bytes(hi.as_bytes(), false));
    // An error of the provider has no calls that a client would run.
    let error = Answer { status: 500, is_events: false, body: b"no JSON".to_vec() };
    let path = target(Api::Chat);
    let read = Request::read_visible(
        Api::Chat,
        path,
        request(Api::Chat).to_string().into_bytes(),
        &visible,
    );
    let mut setup = Setup::new("localhost", Arc::new(FourChars));
    setup.checks_calls = true;
    let mut exchange = Exchange::new(Api::Chat, path, read.unwrap(), setup);
    let mut ending = None;
    while let Some(action) = exchange.next() {
        match action {
            Action::Prepare(plan) => {
                let toolset = Toolset::new(*plan, exchange.tools());
                exchange.prepared(Arc::new(toolset));
            }
            Action::Send(_) => exchange.answered(error.status, error.is_events),
            Action::Respond(start) => assert!(matches!(start.body, Body::AsItComes)),
            Action::Done(done) => ending = Some((done.ending, done.status)),
            _ => {}
        }
    }
    assert_eq!(ending, Some((Ending::Complete, 500)));
}
