//! Tests of Responses clients with a backend that uses Chat Completions: streams.

use serde_json::{Value, json};
use toolcrib_dialect::Api::Responses;

use super::responses::{counts, request, response};
use super::{chunk, streamed, translated, two_calls, usage_chunk};

/// Returns the events that the client gets for these chunks, without their sequence numbers. Checks that the numbers
/// are contiguous.
fn client_events(chunks: &[Value]) -> Vec<Value> {
    let mut received = streamed(&mut translated(Responses, &request()).0, chunks);
    for (n, event) in received.iter_mut().enumerate() {
        let number = event.as_object_mut().unwrap().shift_remove("sequence_number");
        assert_eq!(number, Some(json!(n)));
    }
    received
}

fn whole(kind: &str, response: &Value) -> Value {
    json!({"type": format!("response.{kind}"), "response": response})
}

fn start_events() -> [Value; 2] {
    let response = response("in_progress", &json!([]), &json!(null));
    [whole("created", &response), whole("in_progress", &response)]
}

fn item(kind: &str, index: usize, item: &Value) -> Value {
    json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item})
}

fn item_event(kind: &str, id: &str, index: usize, rest: &Value) -> Value {
    let mut event =
        json!({"type": format!("response.{kind}"), "item_id": id, "output_index": index});
    for (key, value) in rest.as_object().unwrap() {
        event[key] = value.clone();
    }
    event
}

fn message(status: &str, texts: &[&str]) -> Value {
    let content: Vec<Value> = texts.iter().map(|text| part(text)).collect();
    json!({"type": "message", "id": "msg_chatcmpl-1_0", "status": status, "role": "assistant",
        "content": content})
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// Returns the events that begin a message.
fn message_start_events(first: &str) -> Vec<Value> {
    let id = "msg_chatcmpl-1_0";
    vec![
        item("added", 0, &message("in_progress", &[])),
        item_event("content_part.added", id, 0, &json!({"content_index": 0, "part": part("")})),
        item_event(
            "output_text.delta",
            id,
            0,
            &json!({"content_index": 0, "delta": first, "logprobs": []}),
        ),
    ]
}

/// Returns the events that end a message.
fn message_end_events(text: &str, status: &str) -> Vec<Value> {
    let id = "msg_chatcmpl-1_0";
    vec![
        item_event(
            "output_text.done",
            id,
            0,
            &json!({"content_index": 0, "text": text, "logprobs": []}),
        ),
        item_event("content_part.done", id, 0, &json!({"content_index": 0, "part": part(text)})),
        item("done", 0, &message(status, &[text])),
    ]
}

#[test]
fn text_and_two_interleaved_calls() {
    let read = |status: &str, arguments: &str| {
        json!({"type": "function_call", "id": "fc_chatcmpl-1_1", "status": status,
            "call_id": "call_a", "name": "read", "arguments": arguments})
    };
    let write = |status: &str, input: &str| {
        json!({"type": "custom_tool_call", "id": "ctc_chatcmpl-1_2", "status": status,
            "call_id": "call_b", "name": "write", "input": input})
    };
    let (fc, ctc) = ("fc_chatcmpl-1_1", "ctc_chatcmpl-1_2");
    let more = json!({"content_index": 0, "delta": "king.", "logprobs": []});
    let (a, b) = ("{\"path\": \"a\"}", "{\"path\": \"b\"}");
    let output =
        json!([message("completed", &["Looking."]), read("completed", a), write("completed", b)]);
    let expected = [
        start_events().to_vec(),
        message_start_events("Loo"),
        vec![item_event("output_text.delta", "msg_chatcmpl-1_0", 0, &more)],
        message_end_events("Looking.", "completed"),
        vec![
            item("added", 1, &read("in_progress", "")),
            item_event("function_call_arguments.delta", fc, 1, &json!({"delta": "{\"path\":"})),
            item_event("function_call_arguments.delta", fc, 1, &json!({"delta": " \"a\"}"})),
            item_event(
                "function_call_arguments.done",
                fc,
                1,
                &json!({"name": "read", "arguments": a}),
            ),
            item("done", 1, &read("completed", a)),
            item("added", 2, &write("in_progress", "")),
            item_event("custom_tool_call_input.delta", ctc, 2, &json!({"delta": b})),
            item_event("custom_tool_call_input.done", ctc, 2, &json!({"input": b})),
            item("done", 2, &write("completed", b)),
            whole("completed", &response("completed", &output, &counts())),
        ],
    ]
    .concat();
    assert_eq!(client_events(&two_calls()), expected);
}

#[test]
fn a_truncated_response_is_incomplete() {
    let mut end = response("incomplete", &json!([message("incomplete", &["Ha"])]), &counts());
    end["incomplete_details"] = json!({"reason": "max_output_tokens"});
    assert_eq!(
        client_events(&[
            chunk(&json!({"content": "Ha"}), Some("length")),
            usage_chunk(),
            json!("[DONE]")
        ]),
        [
            start_events().to_vec(),
            message_start_events("Ha"),
            message_end_events("Ha", "incomplete"),
            vec![whole("incomplete", &end)]
        ]
        .concat()
    );
}

#[test]
fn a_stream_that_is_cut_off_has_failed() {
    let failed = |code: &str, message: &str| {
        let mut failed = response("failed", &json!([]), &json!(null));
        failed["error"] = json!({"code": code, "message": message});
        failed
    };
    let half = chunk(&json!({"content": "Ha"}), None);
    let broken = failed("server_error", "the backend's stream was cut off");
    let start_events = [start_events().to_vec(), message_start_events("Ha")].concat();
    assert_eq!(
        client_events(std::slice::from_ref(&half)),
        [start_events.clone(), vec![whole("failed", &broken)]].concat()
    );
    for (error, code) in [
        (json!({"message": "no", "code": "context_length_exceeded"}), "context_length_exceeded"),
        (json!({"message": "no", "code": 429}), "rate_limit_exceeded"),
        (json!({"message": "no"}), "server_error"),
    ] {
        let received = client_events(&[half.clone(), json!({"error": error}), json!("[DONE]")]);
        assert_eq!(
            received,
            [start_events.clone(), vec![whole("failed", &failed(code, "no"))]].concat()
        );
    }
}

#[test]
fn a_stream_without_a_beginning_has_failed() {
    let received = client_events(&[]);
    let kinds: Vec<&str> = received.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["response.created", "response.in_progress", "response.failed"]);
    let id = received[0]["response"]["id"].as_str().unwrap();
    assert_eq!((id.len(), &received[2]["response"]["id"]), (5 + 24, &json!(id)));
    assert_eq!(received[2]["response"]["tools"], super::responses::tools());
}
