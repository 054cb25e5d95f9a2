//! Tests of callers that share an account, because the proxy replaces their keys by the same credential. No caller may
//! see what the provider stores for another.

use serde_json::{Value, json};
use toolcrib_testkit::provider::{CannedResponse, Options, Provider};

use crate::http::{self, Response};
use crate::replica::Replica;

const ANN: &str = "Authorization: Bearer virtual-ann-key\r\n";
const BOB: &str = "Authorization: Bearer virtual-bob-key\r\n";

fn config(url: &str, more: &str) -> String {
    let caller = |name: &str| {
        format!(
            "[[proxy.callers]]\nname = '{name}'\nkey = 'virtual-{name}-key'\n\
             upstream_keys = {{ openai = 'real-key', anthropic = 'real-key' }}\n{more}\n"
        )
    };
    format!("[proxy]\nopenai = '{url}'\nanthropic = '{url}'\n{}{}", caller("ann"), caller("bob"))
}

fn respond(replica: &Replica, key: &str, body: &Value) -> Response {
    http::send(&replica.url, "POST /v1/responses", key.as_bytes(), &body.to_string()).unwrap()
}

/// Returns the id of a response and the id of its first output item.
fn ids(response: &Response) -> (String, String) {
    assert_eq!(response.status, 200, "{}", response.body);
    let last = |_| {
        let events = response.events();
        let last = events.iter().rfind(|event| event["type"] == "response.completed");
        last.unwrap()["response"].clone()
    };
    let whole: Value = serde_json::from_str(&response.body).unwrap_or_else(last);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&whole["id"]), text(&whole["output"][0]["id"]))
}

#[test]
fn a_stored_response_is_only_for_the_caller_that_created_it() {
    for (stream, tools) in [(false, 0), (true, 0), (false, 60), (true, 60)] {
        let provider = Provider::start(Options::default()).unwrap();
        let replica = Replica::start(&config(&provider.url, ""));
        let tools: Vec<Value> = (0..tools)
            .map(|at| json!({"type": "function", "name": format!("tool_{at}"), "parameters": {"type": "object"}}))
            .collect();
        let body = |more: Value| {
            let mut body =
                json!({"model": "gpt-5", "input": "Hi.", "stream": stream, "tools": tools});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let (id, item) = ids(&respond(&replica, ANN, &body(json!({}))));
        let next = body(json!({"previous_response_id": id}));
        // Ann can continue her own response, by its id and by the ids of its items.
        assert_eq!(respond(&replica, ANN, &next).status, 200, "{}", replica.log());
        let reference = json!({"input": [
            {"type": "item_reference", "id": item},
            {"role": "user", "content": "Hi."},
        ]});
        let before = provider.requests().len();
        respond(&replica, ANN, &body(reference.clone()));
        assert!(provider.requests().len() > before, "the caller's own item is forwarded");
        provider.clear();
        for stolen in [
            json!({"previous_response_id": id}),
            json!({"Previous_Response_Id": id}),
            json!({"previou\u{17f}_response_id": id}),
            json!({"previous-response-id": id}),
            reference,
            json!({"input": [{"id": item}]}),
            json!({"input": [{"id": item, "role": null, "content": "Hi."}]}),
            json!({"input": [{"id": item, "type": "message", "role": "assistant"}]}),
            json!({"input": [{"id": item, "type": "image_generation_call"}]}),
            json!({"conversation": "conv_1"}),
            json!({"conversation": {"id": "conv_1"}}),
            json!({"previous_response_id": "resp_nobodys"}),
        ] {
            let got = respond(&replica, BOB, &body(stolen.clone()));
            assert_eq!(got.status, 403, "{stolen}: {}", got.body);
        }
        let twice = format!(
            r#"{{"previous_response_id":null,"input":"Hi","model":"m","previous_response_id":"{id}"}}"#
        );
        let got = http::send(&replica.url, "POST /v1/responses", BOB.as_bytes(), &twice).unwrap();
        assert_eq!(got.status, 400, "{}", got.body);
        let headers = format!("{BOB}content-encoding: gzip\r\n");
        let got =
            http::send(&replica.url, "POST /v1/responses", headers.as_bytes(), "\u{1f}").unwrap();
        assert_eq!(got.status, 413, "{}", got.body);
        assert_eq!(provider.requests().len(), 0);
    }
}

#[test]
fn a_stored_response_at_an_additional_path_is_still_only_for_its_creator() {
    let provider = Provider::start(Options::default()).unwrap();
    let replica = Replica::start(&config(&provider.url, "paths = ['/v1/responses/*']"));
    let body = json!({"model": "gpt-5", "input": "Hi."});
    let (id, _) = ids(&respond(&replica, ANN, &body));
    provider.clear();
    for (method, path) in [
        ("GET", format!("/v1/responses/{id}")),
        ("GET", format!("/v1//Responses/{id}/input_items")),
        ("DELETE", format!("/v1/responses/{id}")),
        ("POST", format!("/v1/responses/{id}/cancel")),
    ] {
        let target = format!("{method} {path}");
        let get = |key: &str| http::send(&replica.url, &target, key.as_bytes(), "").unwrap();
        let got = get(BOB);
        assert_eq!((got.status, provider.requests().len()), (403, 0), "{target}: {}", got.body);
        get(ANN);
        assert_eq!(provider.requests().len(), 1, "{target}");
        provider.clear();
    }
}

#[test]
fn an_id_without_a_record_is_rejected_with_a_hint() {
    let provider = Provider::start(Options::default()).unwrap();
    let body = json!({"model": "gpt-5", "input": "Hi."});
    let first = Replica::start(&config(&provider.url, ""));
    let (id, _) = ids(&respond(&first, ANN, &body));
    let second = Replica::start(&config(&provider.url, ""));
    let next = json!({"model": "gpt-5", "input": "Go on.", "previous_response_id": id});
    let got = respond(&second, ANN, &next);
    assert_eq!(got.status, 403);
    assert!(got.body.contains("send the conversation itself in `input`"), "{}", got.body);
    // If the client sends its own credential, the provider decides whether the client may continue the response.
    let own = "Authorization: Bearer sk-own\r\n";
    assert_eq!(respond(&second, own, &next).status, 200);
}

/// A response that one caller received, and requests that refer to something in that response.
struct Case {
    path: &'static str,
    stream: bool,
    answer: CannedResponse,
    body: Value,
    uses: Vec<Value>,
}

fn cases() -> Vec<Case> {
    let hi = json!([{"role": "user", "content": "Hi."}]);
    let output = json!({"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5", "output": [
        {"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_1", "code": "1", "status": "completed"},
    ]});
    let item = |item: Value| json!({"input": [{"role": "user", "content": "Hi."}, item]});
    let citation =
        json!({"type": "container_file_citation", "container_id": "cntr_1", "file_id": "f"});
    let responses = Case {
        path: "/v1/responses",
        stream: false,
        answer: CannedResponse::json(200, &output),
        body: json!({"model": "gpt-5", "input": "Hi."}),
        uses: vec![
            item(
                json!({"type": "code_interpreter_call", "id": "ci_x", "container_id": "cntr_1", "code": "1", "outputs": [{"type": "logs", "logs": ""}]}),
            ),
            item(
                json!({"type": "shell_call", "id": "sh_x", "call_id": "c", "action": {"commands": ["ls"]}, "environment": {"type": "container_reference", "container_id": "cntr_1"}}),
            ),
            item(
                json!({"role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": [citation]}]}),
            ),
            item(
                json!({"type": "shell_call", "call_id": "c", "action": {}, "environment": {"Container-Id": "cntr_1"}}),
            ),
        ],
    };
    let container = json!({"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"});
    let message = |container: Value| json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": "end_turn", "container": container, "usage": {"input_tokens": 1, "output_tokens": 1}});
    let messages = |stream: bool, answer: CannedResponse| Case {
        path: "/v1/messages",
        stream,
        answer,
        body: json!({"model": "claude", "max_tokens": 9, "messages": hi}),
        uses: vec![
            json!({"container": "container_1"}),
            json!({"container": {"id": "container_1", "skills": []}}),
            json!({"Container": "container_1"}),
        ],
    };
    let event = |name: &str, data: Value| format!("event: {name}\ndata: {data}\n\n");
    let started = event(
        "message_start",
        json!({"type": "message_start", "message": message(container.clone())}),
    );
    let plain =
        event("message_start", json!({"type": "message_start", "message": message(json!(null))}));
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "container": container}, "usage": {"output_tokens": 1}});
    let (delta, stop) =
        (event("message_delta", delta), event("message_stop", json!({"type": "message_stop"})));
    let chat = |stream: bool, answer: CannedResponse| Case {
        path: "/v1/chat/completions",
        stream,
        answer,
        body: json!({"model": "gpt-audio", "messages": hi}),
        uses: vec![
            json!({"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}, hi[0]]}),
            json!({"messages": [{"role": "assistant", "Audio": {"ID": "audio_1"}}, hi[0]]}),
        ],
    };
    let audio = json!({"id": "audio_1", "data": "AA", "transcript": "x", "expires_at": 1});
    let choice = |part: &str| {
        let message = json!({"role": "assistant", "content": null, "audio": audio});
        json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0, part: message, "finish_reason": "stop"}]})
    };
    vec![
        responses,
        messages(false, CannedResponse::json(200, &message(container.clone()))),
        messages(true, CannedResponse::sse([started, stop.clone()])),
        messages(true, CannedResponse::sse([plain, delta, stop])),
        chat(false, CannedResponse::json(200, &choice("message"))),
        chat(
            true,
            CannedResponse::sse([
                format!("data: {}\n\n", choice("delta")),
                "data: [DONE]\n\n".into(),
            ]),
        ),
    ]
}

#[test]
fn containers_and_audio_responses_are_only_for_the_caller_that_received_them() {
    for case in cases() {
        let Case { path, stream, answer, body, uses } = case;
        let provider = Provider::start(Options::default()).unwrap();
        let replica = Replica::start(&config(&provider.url, ""));
        let send = |key: &str, more: &Value| {
            let mut body = body.clone();
            body["stream"] = stream.into();
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            provider.clear();
            let target = format!("POST {path}");
            http::send(&replica.url, &target, key.as_bytes(), &body.to_string()).unwrap()
        };
        provider.queue_response(answer);
        assert_eq!(send(ANN, &json!({})).status, 200, "{path} {stream}: {}", replica.log());
        for again in uses {
            let got = send(BOB, &again);
            let sent = provider.requests().len();
            assert_eq!((got.status, sent), (403, 0), "{path} {again}: {}", got.body);
            // Ann may use her own ids. A client with its own credential has an account of its own, so the proxy
            // forwards its requests, too.
            for key in [ANN, "Authorization: Bearer sk-own\r\n"] {
                send(key, &again);
                assert_ne!(provider.requests().len(), 0, "{path} {stream} {key} {again}");
            }
        }
    }
}
