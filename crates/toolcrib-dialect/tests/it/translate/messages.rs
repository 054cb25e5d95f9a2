//! Tests of Messages clients with a backend that uses Chat Completions: requests, complete responses, and errors.

use serde_json::{Value, json};
use toolcrib_dialect::Api::Messages;
use toolcrib_dialect::translate::{Untranslatable, adapter};

use super::{translated, two_calls_complete, whole};

#[test]
fn a_conversation_with_calls_results_and_images() {
    let (adapter, sent) = translated(
        Messages,
        &json!({
            "model": "claude-sonnet-5", "max_tokens": 1024, "stream": true,
            "temperature": 0.5, "top_p": 0.9, "top_k": 40, "stop_sequences": ["END"],
            "metadata": {"user_id": "u-1"},
            "thinking": {"type": "enabled", "budget_tokens": 1000},
            "system": [
                {"type": "text", "text": "You are Claude.", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "Be brief."}],
            "tools": [
                {"name": "read", "description": "Reads a file", "defer_loading": true,
                    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}},
                {"type": "custom", "name": "write", "strict": true,
                    "input_schema": {"type": "object"}},
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
                {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
            "messages": [
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "Eq"},
                    {"type": "text", "text": "Let me "}, {"type": "text", "text": "look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a", "n": 1}},
                    {"type": "tool_use", "id": "toolu_2", "name": "write", "input": {}},
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": [
                        {"type": "text", "text": "one"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
                        {"type": "text", "text": "two"},
                        {"type": "tool_reference", "tool_name": "crm_find"}]},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true, "content": "no such file"},
                    {"type": "text", "text": "And now?"}]},
                {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]},
                {"role": "user", "content": [
                    {"type": "text", "text": "First."}, {"type": "text", "text": "Second."}]},
                {"role": "assistant", "content": "Yes."},
                {"role": "user", "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image", "source": {"type": "url", "url": "https://x.test/cat.png"}},
                    {"type": "image", "source": {"type": "file", "file_id": "f1"}},
                    {"type": "document", "title": "Notes", "source": {"type": "text", "media_type": "text/plain", "data": "n1"}},
                    {"type": "mystery"}]},
                {"role": "system", "content": [{"type": "text", "text": "Deletion is off."},
                    {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "x"}}]}]
        }),
    );
    assert_eq!(
        sent,
        json!({
            "model": "claude-sonnet-5", "max_tokens": 1024, "temperature": 0.5, "top_p": 0.9,
            "stop": ["END"], "user": "u-1", "stream": true, "stream_options": {"include_usage": true},
            "tools": [
                {"type": "function", "function": {"name": "read", "description": "Reads a file",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}},
                {"type": "function", "function": {"name": "write",
                    "parameters": {"type": "object"}, "strict": true}}],
            "tool_choice": "required", "parallel_tool_calls": false,
            "messages": [
                {"role": "system", "content": "You are Claude.\n\nBe brief."},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Let me look.", "tool_calls": [
                    {"id": "toolu_1", "type": "function",
                        "function": {"name": "read", "arguments": "{\"path\":\"a\",\"n\":1}"}},
                    {"id": "toolu_2", "type": "function",
                        "function": {"name": "write", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "toolu_1",
                    "content": "one\n\ntwo\n\nTool crm_find is loaded."},
                {"role": "tool", "tool_call_id": "toolu_2", "content": "Error: no such file"},
                {"role": "user", "content": [
                    {"type": "text", "text": "From the result of call toolu_1:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
                    {"type": "text", "text": "And now?"}]},
                {"role": "user", "content": "First.\n\nSecond."},
                {"role": "assistant", "content": "Yes."},
                {"role": "user", "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "https://x.test/cat.png"}},
                    {"type": "text", "text": "(The image cannot be shown here.)"},
                    {"type": "text", "text": "Notes"},
                    {"type": "text", "text": "n1"}]},
                {"role": "system", "content": "Deletion is off."}]
        })
    );
    assert_eq!(
        adapter.dropped(),
        [
            "field `top_k`",
            "field `thinking`",
            "tool `web_search`",
            "tool `tool_search_tool_bm25`",
            "content `server_tool_use`",
            "content `image`",
            "content `mystery`",
            "content `tool_addition`",
        ]
    );
}

#[test]
fn arguments_and_schemas_are_copied_verbatim() {
    let mut adapter = adapter(Messages, toolcrib_dialect::Api::Chat).unwrap();
    let sent = adapter
        .request(
            r#"{"model":"m","tools":[{"name":"t","input_schema":{"z":1.00,"a":12345678901234567890123}}],
            "messages":[{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"t","input":{"z":1.00,"a":1e2}}]}]}"#,
        )
        .unwrap();
    assert_eq!(
        sent.body,
        concat!(
            r#"{"model":"m","tools":[{"type":"function","function":{"name":"t","parameters":{"z":1.00,"a":12345678901234567890123}}}],"#,
            r#""messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"i","type":"function","function":{"name":"t","arguments":"{\"z\":1.00,\"a\":1e2}"}}]}]}"#
        )
    );
}

#[test]
fn every_tool_choice_is_translated() {
    let translated_choice = |choice: Value| {
        let body = json!({"model": "m", "messages": [], "tool_choice": choice,
            "tools": [{"name": "t", "input_schema": {"type": "object"}}]});
        translated(Messages, &body).1["tool_choice"].clone()
    };
    assert_eq!(translated_choice(json!({"type": "auto"})), "auto");
    assert_eq!(translated_choice(json!({"type": "any"})), "required");
    assert_eq!(translated_choice(json!({"type": "none"})), "none");
    assert_eq!(
        translated_choice(json!({"type": "tool", "name": "t"})),
        json!({"type": "function", "function": {"name": "t"}})
    );
    // Without tools, the tool choice is left out, because backends reject it.
    let body = json!({"model": "m", "messages": [],
        "tool_choice": {"type": "none", "disable_parallel_tool_use": true}});
    assert_eq!(translated(Messages, &body).1, json!({"model": "m", "messages": []}));
}

#[test]
fn a_long_user_id_is_hashed_and_the_output_format_is_translated() {
    let (_, sent) = translated(
        Messages,
        &json!({"model": "m", "messages": [], "metadata": {"user_id": "u".repeat(65)},
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}}}),
    );
    assert_eq!(sent["user"].as_str().unwrap().len(), 64);
    assert_ne!(sent["user"], "u".repeat(64));
    assert_eq!(
        sent["response_format"],
        json!({"type": "json_schema", "json_schema":
            {"name": "output", "schema": {"type": "object"}, "strict": true}})
    );
}

#[test]
fn a_body_that_is_not_an_object_is_rejected() {
    let mut adapter = adapter(Messages, toolcrib_dialect::Api::Chat).unwrap();
    let refused = adapter.request("[]").unwrap_err();
    assert_eq!(refused, Untranslatable::NotAnObject);
    assert_eq!(
        (refused.to_string().as_str(), refused.param()),
        ("the body is not a JSON object", None)
    );
}

fn translated_response(status: u16, body: &str) -> (u16, Value) {
    let (mut adapter, _) =
        translated(Messages, &json!({"model": "claude-sonnet-5", "messages": []}));
    whole(&mut adapter, status, body)
}

#[test]
fn a_complete_response() {
    assert_eq!(
        translated_response(200, &two_calls_complete()),
        (
            200,
            json!({"id": "msg_chatcmpl-1", "type": "message", "role": "assistant", "model": "qwen3-32b",
                "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "call_a", "name": "read", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "call_b", "name": "write", "input": {"path": "b"}}],
                "stop_reason": "tool_use", "stop_sequence": null,
                "usage": {"input_tokens": 20, "cache_creation_input_tokens": 10,
                    "cache_read_input_tokens": 90, "output_tokens": 30}})
        )
    );
}

#[test]
fn finish_reasons_are_translated() {
    let stop = |finish: &str, calls: &Value| {
        let body = json!({"choices": [{"message": {"content": "x", "tool_calls": calls}, "finish_reason": finish}]});
        translated_response(200, &body.to_string()).1["stop_reason"].clone()
    };
    let call = json!([{"id": "c", "function": {"name": "t", "arguments": "{}"}}]);
    assert_eq!(stop("stop", &json!(null)), "end_turn");
    assert_eq!(stop("length", &call), "max_tokens");
    assert_eq!(stop("content_filter", &json!(null)), "refusal");
    assert_eq!(stop("tool_calls", &call), "tool_use");
    // Some servers send the finish reason `stop` for a message with calls.
    assert_eq!(stop("stop", &call), "tool_use");
}

#[test]
fn malformed_calls_are_still_translated() {
    let (_, message) = translated_response(
        200,
        &json!({"choices": [{"finish_reason": "tool_calls", "message": {
            "content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Hi."}],
            "tool_calls": [
                {"function": {"name": "no_id", "arguments": ""}},
                {"id": "o", "function": {"name": "an_object", "arguments": {"a": 1}}},
                {"id": "b", "function": {"name": "broken", "arguments": "{\"a\": "}},
                {"id": "l", "function": {"name": "a_list", "arguments": "[1]"}}]}}]})
        .to_string(),
    );
    let id = message["id"].as_str().unwrap().strip_prefix("msg_").unwrap();
    assert_eq!(id.len(), 24, "a missing id is derived from the request");
    assert_eq!(message["model"], "claude-sonnet-5");
    assert_eq!(
        message["content"],
        json!([
            {"type": "text", "text": "Hi."},
            {"type": "tool_use", "id": format!("call_{id}_0"), "name": "no_id", "input": {}},
            {"type": "tool_use", "id": "o", "name": "an_object", "input": {"a": 1}},
            {"type": "tool_use", "id": "b", "name": "broken", "input": {"_raw": "{\"a\":"}},
            {"type": "tool_use", "id": "l", "name": "a_list", "input": {"_raw": "[1]"}}])
    );
}

#[test]
fn errors_of_any_shape_are_translated() {
    let error = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
    let openai = json!({"error": {"message": "No such model", "type": "invalid_request_error",
        "param": null, "code": "model_not_found"}})
    .to_string();
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
    ] {
        assert_eq!(translated_response(status, &openai), (status, error(kind, "No such model")));
    }
    let unread = "the backend answered 502 with a body that cannot be read";
    for (status, body, expected, message) in [
        (400, r#"{"error": "model not loaded"}"#, 400, "model not loaded"),
        (400, r#"{"object": "error", "message": "too long"}"#, 400, "too long"),
        (502, "<html>Bad gateway</html>", 502, unread),
        (502, "", 502, unread),
        (502, "upstream gone", 502, "the backend answered 502: upstream gone"),
        // The response has a success status but contains an error.
        (200, r#"{"error": {"code": 429, "message": "slow down"}}"#, 429, "slow down"),
        (200, "hello", 502, "the backend answered 200: hello"),
    ] {
        let (status, body) = translated_response(status, body);
        assert_eq!((status, &body["error"]["message"]), (expected, &json!(message)));
    }
}
