//! Tests of Messages clients with a backend that uses Chat Completions: streams.

use serde_json::{Value, json};
use toolcrib_dialect::Api::Messages;

use super::{call_chunk, chunk, piece, streamed, translated, two_calls, usage_chunk};

fn client_events(chunks: &[Value]) -> Vec<Value> {
    let (mut adapter, _) =
        translated(Messages, &json!({"model": "m", "messages": [], "stream": true}));
    streamed(&mut adapter, chunks)
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_chatcmpl-1", "type": "message",
        "role": "assistant", "model": "qwen3-32b", "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": {"input_tokens": 0, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0, "output_tokens": 0}}})
}

fn block(index: usize, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn tool_use(index: usize, id: &str, name: &str) -> Value {
    block(index, &json!({"type": "tool_use", "id": id, "name": name, "input": {}}))
}

fn text(index: usize, text: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}})
}

fn arguments_delta(index: usize, partial: &str) -> Value {
    json!({"type": "content_block_delta", "index": index,
        "delta": {"type": "input_json_delta", "partial_json": partial}})
}

fn stop(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str, counts: [u64; 4]) -> [Value; 2] {
    let [input, written, cached, output] = counts;
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"input_tokens": input, "cache_creation_input_tokens": written,
                "cache_read_input_tokens": cached, "output_tokens": output}}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn text_and_two_interleaved_calls() {
    let [delta, over] = end("tool_use", [20, 10, 90, 30]);
    assert_eq!(
        client_events(&two_calls()),
        [
            start(),
            block(0, &json!({"type": "text", "text": ""})),
            text(0, "Loo"),
            text(0, "king."),
            stop(0),
            tool_use(1, "call_a", "read"),
            arguments_delta(1, "{\"path\":"),
            arguments_delta(1, " \"a\"}"),
            stop(1),
            tool_use(2, "call_b", "write"),
            arguments_delta(2, "{\"path\": \"b\"}"),
            stop(2),
            delta,
            over,
        ]
    );
}

#[test]
fn a_call_is_streamed_once_the_one_before_it_is_complete() {
    let (mut adapter, _) = translated(Messages, &json!({"model": "m", "messages": []}));
    let mut out = Vec::new();
    let chunks = [
        call_chunk(&[piece(0, Some("a"), Some("x"), "{\"n\":1}")]),
        call_chunk(&[piece(1, Some("b"), Some("y"), "{")]),
    ];
    adapter.bytes(super::stream_bytes(&chunks).as_bytes(), &mut out);
    assert_eq!(
        super::events(&out),
        [
            start(),
            tool_use(0, "a", "x"),
            arguments_delta(0, "{\"n\":1}"),
            stop(0),
            tool_use(1, "b", "y"),
            arguments_delta(1, "{")
        ]
    );
}

#[test]
fn servers_with_wrong_call_indices_are_supported() {
    let [delta, over] = end("tool_use", [0; 4]);
    let whole = |id: &str, name: &str, arguments: &str| json!({"id": id, "function": {"name": name, "arguments": arguments}});
    let mut repeated = [whole("a", "x", "{}"), whole("b", "y", "{}")];
    let missing = call_chunk(&repeated);
    for call in &mut repeated {
        call["index"] = json!(0);
    }
    let one_by_one = repeated.map(|call| call_chunk(&[call]));
    let finish = chunk(&json!({}), Some("stop"));
    for chunks in [
        vec![missing, finish.clone()],
        one_by_one.into_iter().chain([finish]).collect(),
        // The name is repeated in every piece, both in a call that is streamed and in a call that is held back.
        vec![
            call_chunk(&[piece(0, Some("a"), Some("x"), "")]),
            call_chunk(&[piece(0, Some("a"), Some("x"), "{")]),
            call_chunk(&[piece(1, Some("b"), Some("y"), "{")]),
            call_chunk(&[piece(1, Some("b"), Some("y"), "}")]),
            call_chunk(&[piece(0, Some("a"), Some("x"), "}")]),
            json!("[DONE]"),
        ],
        // The second piece of a call has neither an index nor an id.
        vec![
            call_chunk(&[piece(0, Some("a"), Some("x"), "{")]),
            call_chunk(&[json!({"function": {"arguments": "}"}})]),
            call_chunk(&[piece(1, Some("b"), Some("y"), "{}")]),
            json!("[DONE]"),
        ],
    ] {
        let received = client_events(&chunks);
        let deltas = |index: usize| -> String {
            let is_delta =
                |event: &&Value| event["index"] == index && event["type"] == "content_block_delta";
            let pieces = received.iter().filter(is_delta);
            pieces.filter_map(|event| event["delta"]["partial_json"].as_str()).collect()
        };
        assert_eq!((deltas(0), deltas(1)), ("{}".to_owned(), "{}".to_owned()));
        let starts: Vec<_> = received
            .iter()
            .filter(|event| event["type"] == "content_block_start")
            .cloned()
            .collect();
        assert_eq!(starts, [tool_use(0, "a", "x"), tool_use(1, "b", "y")]);
        assert_eq!(received[received.len() - 2..], [delta.clone(), over.clone()]);
    }
}

#[test]
fn text_after_a_call_without_arguments_is_a_separate_block() {
    let [delta, over] = end("max_tokens", [20, 10, 90, 30]);
    assert_eq!(
        client_events(&[
            call_chunk(&[piece(0, None, Some("x"), "")]),
            chunk(&json!({"content": "So"}), None),
            chunk(&json!({"content": "."}), Some("length")),
            usage_chunk(),
        ]),
        [
            start(),
            tool_use(0, "call_chatcmpl-1_0", "x"),
            stop(0),
            block(1, &json!({"type": "text", "text": ""})),
            text(1, "So."),
            stop(1),
            delta,
            over,
        ]
    );
}

#[test]
fn a_stream_that_is_cut_off_is_an_error() {
    let broken = json!({"type": "error", "error":
        {"type": "api_error", "message": "the backend's stream was cut off"}});
    let opened = vec![start(), block(0, &json!({"type": "text", "text": ""})), text(0, "Ha")];
    let half = client_events(&[chunk(&json!({"content": "Ha"}), None)]);
    assert_eq!(half, [opened.clone(), vec![broken.clone()]].concat());
    for chunks in [&[][..], &[json!("[DONE]")]] {
        assert_eq!(client_events(chunks), std::slice::from_ref(&broken));
    }

    // A stream is complete if it has either a finish reason or `[DONE]`.
    let [delta, over] = end("end_turn", [0; 4]);
    let rest = vec![stop(0), delta, over];
    let whole = [opened, rest].concat();
    assert_eq!(client_events(&[chunk(&json!({"content": "Ha"}), Some("stop"))]), whole);
    assert_eq!(client_events(&[chunk(&json!({"content": "Ha"}), None), json!("[DONE]")]), whole);
}

#[test]
fn an_error_in_the_stream_ends_it() {
    let received = client_events(&[
        chunk(&json!({"content": "Ha"}), None),
        json!({"error": {"message": "overloaded", "code": 503}}),
        chunk(&json!({"content": "more"}), Some("stop")),
        json!("[DONE]"),
    ]);
    assert_eq!(
        received.last().unwrap(),
        &json!({"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}})
    );
    assert_eq!(received.len(), 4);
}

#[test]
fn comments_missing_blank_lines_and_consecutive_rounds() {
    let (mut adapter, _) = translated(Messages, &json!({"model": "m", "messages": []}));
    let mut out = Vec::new();
    adapter.bytes(b": OPENROUTER PROCESSING\n\ndata: nonsense\n\ndata: [1]\n\n", &mut out);
    assert_eq!(out, b":\n\n");
    let chunk = chunk(&json!({"content": "Ha"}), Some("stop"));
    for _ in 0..2 {
        adapter.request(r#"{"model": "m", "messages": []}"#).unwrap();
        let mut out = Vec::new();
        adapter.bytes(format!("data: {chunk}").as_bytes(), &mut out);
        assert_eq!(out, b"");
        adapter.end(&mut out);
        assert_eq!(super::events(&out).len(), 6);
    }
}
