//! Responses over Chat Completions: streams.

use serde_json::{Value, json};
use toolcrib_dialect::Api::Responses;

use super::responses::{counts, request, response};
use super::{asked, chunk, counted, streamed, two_calls};

/// Returns the events without their sequence numbers, after checking that these are contiguous.
fn heard(chunks: &[Value]) -> Vec<Value> {
    let mut told = streamed(&mut asked(Responses, &request()).0, chunks);
    for (n, event) in told.iter_mut().enumerate() {
        let number = event.as_object_mut().unwrap().shift_remove("sequence_number");
        assert_eq!(number, Some(json!(n)));
    }
    told
}

fn whole(kind: &str, response: &Value) -> Value {
    json!({"type": format!("response.{kind}"), "response": response})
}

fn begun() -> [Value; 2] {
    let response = response("in_progress", &json!([]), &json!(null));
    [whole("created", &response), whole("in_progress", &response)]
}

fn item(kind: &str, index: usize, item: &Value) -> Value {
    json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item})
}

fn inside(kind: &str, id: &str, index: usize, rest: &Value) -> Value {
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

/// The events that begin a message.
fn opened(first: &str) -> Vec<Value> {
    let id = "msg_chatcmpl-1_0";
    vec![
        item("added", 0, &message("in_progress", &[])),
        inside("content_part.added", id, 0, &json!({"content_index": 0, "part": part("")})),
        inside(
            "output_text.delta",
            id,
            0,
            &json!({"content_index": 0, "delta": first, "logprobs": []}),
        ),
    ]
}

/// The events that end it.
fn closed(text: &str, status: &str) -> Vec<Value> {
    let id = "msg_chatcmpl-1_0";
    vec![
        inside(
            "output_text.done",
            id,
            0,
            &json!({"content_index": 0, "text": text, "logprobs": []}),
        ),
        inside("content_part.done", id, 0, &json!({"content_index": 0, "part": part(text)})),
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
        begun().to_vec(),
        opened("Loo"),
        vec![inside("output_text.delta", "msg_chatcmpl-1_0", 0, &more)],
        closed("Looking.", "completed"),
        vec![
            item("added", 1, &read("in_progress", "")),
            inside("function_call_arguments.delta", fc, 1, &json!({"delta": "{\"path\":"})),
            inside("function_call_arguments.delta", fc, 1, &json!({"delta": " \"a\"}"})),
            inside("function_call_arguments.done", fc, 1, &json!({"name": "read", "arguments": a})),
            item("done", 1, &read("completed", a)),
            item("added", 2, &write("in_progress", "")),
            inside("custom_tool_call_input.delta", ctc, 2, &json!({"delta": b})),
            inside("custom_tool_call_input.done", ctc, 2, &json!({"input": b})),
            item("done", 2, &write("completed", b)),
            whole("completed", &response("completed", &output, &counts())),
        ],
    ]
    .concat();
    assert_eq!(heard(&two_calls()), expected);
}

#[test]
fn a_truncated_response_is_incomplete() {
    let mut end = response("incomplete", &json!([message("incomplete", &["Ha"])]), &counts());
    end["incomplete_details"] = json!({"reason": "max_output_tokens"});
    assert_eq!(
        heard(&[chunk(&json!({"content": "Ha"}), Some("length")), counted(), json!("[DONE]")]),
        [
            begun().to_vec(),
            opened("Ha"),
            closed("Ha", "incomplete"),
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
    let broken = failed("server_error", "the backend's stream broke off");
    let begun = [begun().to_vec(), opened("Ha")].concat();
    assert_eq!(
        heard(std::slice::from_ref(&half)),
        [begun.clone(), vec![whole("failed", &broken)]].concat()
    );
    for (error, code) in [
        (json!({"message": "no", "code": "context_length_exceeded"}), "context_length_exceeded"),
        (json!({"message": "no", "code": 429}), "rate_limit_exceeded"),
        (json!({"message": "no"}), "server_error"),
    ] {
        let told = heard(&[half.clone(), json!({"error": error}), json!("[DONE]")]);
        assert_eq!(told, [begun.clone(), vec![whole("failed", &failed(code, "no"))]].concat());
    }
}

#[test]
fn a_stream_without_a_beginning_has_failed() {
    let told = heard(&[]);
    let kinds: Vec<&str> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["response.created", "response.in_progress", "response.failed"]);
    let id = told[0]["response"]["id"].as_str().unwrap();
    assert_eq!((id.len(), &told[2]["response"]["id"]), (5 + 24, &json!(id)));
    assert_eq!(told[2]["response"]["tools"], super::responses::tools());
}
