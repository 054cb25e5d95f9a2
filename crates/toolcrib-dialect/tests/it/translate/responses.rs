//! Tests of Responses clients with a backend that uses Chat Completions: requests, complete responses, and errors.

use serde_json::{Value, json};
use toolcrib_dialect::Api::{Chat, Responses};
use toolcrib_dialect::translate::{Untranslatable, adapter};

use super::{translated, two_calls_complete, usage, whole};

#[test]
fn a_conversation_with_calls_results_and_images() {
    let grammar = "start: \"*** Begin Patch\"";
    let (adapter, sent) = translated(
        Responses,
        &json!({
            "model": "gpt-5.4", "instructions": "You are Codex.", "max_output_tokens": 500,
            "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
            "temperature": 0.5, "top_p": 0.9, "user": "u-1", "parallel_tool_calls": false,
            "reasoning": {"effort": "low", "summary": "auto"}, "previous_response_id": null,
            "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "out",
                "schema": {"type": "object"}, "strict": true}},
            "tools": [
                {"type": "function", "name": "read", "description": "Reads a file", "strict": false,
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
                {"type": "custom", "name": "apply_patch", "description": "Edits files",
                    "format": {"type": "grammar", "syntax": "lark", "definition": grammar}},
                {"type": "web_search"},
                {"type": "mcp", "server_label": "docs"}],
            "tool_choice": "auto",
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Sandboxed."}]},
                {"role": "user", "content": "Hello"},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAA"},
                {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
                    "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
                {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{\"path\": \"a\"}"},
                {"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin\n"},
                {"type": "function_call_output", "call_id": "call_1", "output": [
                    {"type": "input_text", "text": "one"},
                    {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "original"}]},
                {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Done."},
                {"type": "function_call", "call_id": "call_3", "name": "read", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_3", "output": {"ok": true}},
                {"type": "message", "role": "developer", "content": "Be quick."},
                {"role": "user", "content": [
                    {"type": "input_text", "text": "And this?"},
                    {"type": "input_image", "image_url": "https://x.test/cat.png", "detail": "low"},
                    {"type": "input_image", "file_id": "file_1"},
                    {"type": "input_file", "file_id": "file_2"}]},
                {"type": "web_search_call", "id": "ws_1", "status": "completed"}]
        }),
    );
    assert_eq!(
        sent,
        json!({
            "model": "gpt-5.4", "max_tokens": 500, "temperature": 0.5, "top_p": 0.9,
            "reasoning_effort": "low", "user": "u-1",
            "response_format": {"type": "json_schema", "json_schema":
                {"name": "out", "schema": {"type": "object"}, "strict": true}},
            "stream": true, "stream_options": {"include_usage": true},
            "tools": [
                {"type": "function", "function": {"name": "read", "description": "Reads a file",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}},
                {"type": "function", "function": {"name": "apply_patch",
                    "description": format!("Edits files\n\nThe input must follow this lark grammar:\n{grammar}"),
                    "parameters": {"type": "object", "properties": {"input": {"type": "string",
                        "description": "The whole input of the tool, as plain text."}},
                        "required": ["input"], "additionalProperties": false}}}],
            "tool_choice": "auto", "parallel_tool_calls": false,
            "messages": [
                {"role": "system", "content": "You are Codex.\n\nSandboxed."},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Let me look.", "tool_calls": [
                    {"id": "call_1", "type": "function",
                        "function": {"name": "read", "arguments": "{\"path\": \"a\"}"}},
                    {"id": "call_2", "type": "function", "function":
                        {"name": "apply_patch", "arguments": "{\"input\":\"*** Begin\\n\"}"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "one"},
                {"role": "tool", "tool_call_id": "call_2", "content": "Done."},
                {"role": "user", "content": [
                    {"type": "text", "text": "From the result of call call_1:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "call_3", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "call_3", "content": "{\"ok\":true}"},
                {"role": "system", "content": "Be quick."},
                {"role": "user", "content": [
                    {"type": "text", "text": "And this?"},
                    {"type": "image_url", "image_url": {"url": "https://x.test/cat.png", "detail": "low"}},
                    {"type": "text", "text": "(The image cannot be shown here.)"},
                    {"type": "text", "text": "(The file cannot be shown here.)"}]}]
        })
    );
    assert_eq!(
        adapter.dropped(),
        [
            "field `store`",
            "field `include`",
            "tool `web_search`",
            "tool `mcp`",
            "content `image`",
            "content `file`",
            "item `web_search_call`",
        ]
    );
}

#[test]
fn a_string_input_is_a_user_message_and_empty_instructions_are_omitted() {
    let (adapter, sent) = translated(Responses, &json!({"model": "m", "input": "Hello"}));
    assert_eq!(sent, json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]}));
    assert!(adapter.dropped().is_empty());
}

#[test]
fn every_tool_choice_is_translated() {
    let translated_choice = |choice: Value| {
        let body = json!({"model": "m", "input": "x", "tool_choice": choice,
            "tools": [{"type": "function", "name": "t"}]});
        translated(Responses, &body).1["tool_choice"].clone()
    };
    let named = json!({"type": "function", "function": {"name": "t"}});
    for word in ["auto", "none", "required"] {
        assert_eq!(translated_choice(json!(word)), word);
    }
    assert_eq!(translated_choice(json!({"type": "function", "name": "t"})), named);
    assert_eq!(translated_choice(json!({"type": "custom", "name": "t"})), named);
    assert_eq!(
        translated_choice(
            json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "t"}]})
        ),
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}})
    );
    assert_eq!(translated_choice(json!({"type": "web_search"})), json!(null));
}

#[test]
fn requests_that_need_server_state_are_rejected() {
    for (field, body) in [
        ("previous_response_id", json!({"previous_response_id": "resp_1", "input": "x"})),
        ("conversation", json!({"conversation": {"id": "conv_1"}, "input": "x"})),
        ("prompt", json!({"prompt": {"id": "pmpt_1"}})),
        ("background", json!({"background": true, "input": "x"})),
        ("item_reference", json!({"input": [{"type": "item_reference", "id": "msg_1"}]})),
    ] {
        let refused = adapter(Responses, Chat).unwrap().request(&body.to_string()).unwrap_err();
        assert_eq!(refused, Untranslatable::NeedsServerState(field));
        assert_eq!(refused.param(), Some(field));
        assert!(refused.to_string().starts_with(&format!("`{field}` refers to state on a server")));
    }
}

/// Returns the expected response to [`request`]. The response repeats some fields of the request.
pub(super) fn response(status: &str, output: &Value, usage: &Value) -> Value {
    json!({"id": "resp_chatcmpl-1", "object": "response", "created_at": 1_700_000_000, "status": status,
        "error": null, "incomplete_details": null, "model": "qwen3-32b", "output": output,
        "previous_response_id": null, "store": false, "truncation": "disabled", "usage": usage,
        "instructions": "Be brief.", "max_output_tokens": null, "metadata": {},
        "parallel_tool_calls": true, "reasoning": {"effort": null, "summary": null},
        "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto",
        "tools": tools(), "top_p": 1.0, "user": null})
}

pub(super) fn tools() -> Value {
    json!([{"type": "function", "name": "read"}, {"type": "custom", "name": "write"}])
}

pub(super) fn counts() -> Value {
    json!({"input_tokens": 120, "input_tokens_details": {"cached_tokens": 90, "cache_write_tokens": 10}, "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 8}, "total_tokens": 150})
}

pub(super) fn request() -> Value {
    json!({"model": "gpt-5.4", "instructions": "Be brief.", "input": "x", "tools": tools()})
}

fn translated_response(status: u16, body: &str) -> (u16, Value) {
    whole(&mut translated(Responses, &request()).0, status, body)
}

#[test]
fn a_complete_response() {
    let output = json!([
        {"type": "message", "id": "msg_chatcmpl-1_0", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "Looking.", "annotations": [], "logprobs": []}]},
        {"type": "function_call", "id": "fc_chatcmpl-1_1", "status": "completed", "call_id": "call_a",
            "name": "read", "arguments": "{\"path\": \"a\"}"},
        // The arguments of this call do not have the form that the adapter asked for, so their text is used as the
        // custom tool's input.
        {"type": "custom_tool_call", "id": "ctc_chatcmpl-1_2", "status": "completed",
            "call_id": "call_b", "name": "write", "input": "{\"path\": \"b\"}"}]);
    assert_eq!(
        translated_response(200, &two_calls_complete()),
        (200, response("completed", &output, &counts()))
    );
}

#[test]
fn a_truncated_response_and_its_last_item_are_incomplete() {
    let cut = |finish: &str| {
        let body = json!({"id": "chatcmpl-1", "created": 1_700_000_000, "model": "qwen3-32b",
            "choices": [{"message": {"content": "Ha", "tool_calls": [
                {"id": "c", "function": {"name": "write", "arguments": "{\"input\":\"a\\nb\"}"}}]},
            "finish_reason": finish}], "usage": usage()});
        translated_response(200, &body.to_string()).1
    };
    let mut expected = response(
        "incomplete",
        &json!([
            {"type": "message", "id": "msg_chatcmpl-1_0", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": "Ha", "annotations": [], "logprobs": []}]},
            {"type": "custom_tool_call", "id": "ctc_chatcmpl-1_1", "status": "incomplete",
                "call_id": "c", "name": "write", "input": "a\nb"}]),
        &counts(),
    );
    expected["incomplete_details"] = json!({"reason": "max_output_tokens"});
    assert_eq!(cut("length"), expected);
    expected["incomplete_details"] = json!({"reason": "content_filter"});
    assert_eq!(cut("content_filter"), expected);
}

#[test]
fn openai_errors_are_passed_on_unchanged() {
    let error = json!({"error": {"message": "No such model", "type": "invalid_request_error",
        "param": null, "code": "model_not_found", "extra": 1}});
    assert_eq!(translated_response(404, &error.to_string()), (404, error));
    let error_body = |message: &str, kind: &str| json!({"error": {"message": message, "type": kind, "param": null, "code": null}});
    assert_eq!(
        translated_response(400, r#"{"error": "bad"}"#),
        (400, error_body("bad", "invalid_request_error"))
    );
    assert_eq!(
        translated_response(429, r#"{"detail": "slow"}"#),
        (429, error_body("slow", "rate_limit_error"))
    );
    assert_eq!(
        translated_response(200, "<html>"),
        (
            502,
            error_body("the backend answered 200 with a body that cannot be read", "server_error")
        )
    );
}
