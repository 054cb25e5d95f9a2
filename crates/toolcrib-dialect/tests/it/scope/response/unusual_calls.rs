//! Tests of calls that have such unusual forms that hidden rounds do not answer them, in each of the four APIs.

use std::slice;

use serde_json::{Value, json};
use toolcrib_dialect::exchange::action::Ending;
use toolcrib_dialect::{Api, WithheldReason};

use super::{
    UpstreamAnswer, assert_unchanged, assert_withheld, chat, chat_call, chunk, content, events,
    message, play, request, response, streamed, whole,
};

#[test]
fn calls_in_unusual_forms_are_refused_in_chat_completions() {
    let message_with = |extra: Value| {
        let mut message = json!({"role": "assistant", "content": "Hi"});
        message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        message
    };
    let legacy = json!({"function_call": {"name": "hide_a", "arguments": "{}"}});
    let calls = json!({"tool_calls": [chat_call("hide_a")]});
    let undeclared = WithheldReason::UndeclaredTool;
    for (message, why) in [
        (message_with(legacy.clone()), undeclared),
        (
            message_with(
                json!({"tool_calls": [chat_call("show_a")], "function_call": legacy["function_call"]}),
            ),
            undeclared,
        ),
        (message_with(json!({"tool_calls": chat_call("hide_a")})), WithheldReason::UnknownForm),
        (
            message_with(json!({"tool_calls": [{"id": "c", "name": "hide_a", "arguments": "{}"}]})),
            undeclared,
        ),
        (
            message_with(json!({"tool_calls": [{"id": "c", "custom": {"name": ["hide_a"]}}]})),
            WithheldReason::UnknownForm,
        ),
        (message_with(json!({"Tool_Calls": [chat_call("hide_a")]})), WithheldReason::DuplicateKey),
    ] {
        assert_withheld(Api::Chat, &request(Api::Chat), whole(&chat(&[message])), why);
    }
    let second = chat(&[message_with(json!({})), message_with(calls.clone())]);
    assert_withheld(Api::Chat, &request(Api::Chat), whole(&second), undeclared);
    for body in [json!({"n": 2}), json!({"functions": [{"name": "show_a"}]}), json!({"tools": []})]
    {
        let mut request = request(Api::Chat);
        request.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        assert_withheld(Api::Chat, &request, whole(&second), undeclared);
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
        assert_withheld(Api::Chat, &streamed(Api::Chat), events(&events_of), undeclared);
    }
    // A client might concatenate two declared names into the name of one call, which is not declared.
    let mut two = streamed(Api::Chat);
    two["tools"][1]["function"]["name"] = json!("show_b");
    let joined = [chunk(&json!({"tool_calls": [chat_call("show_a")]})), piece("show_b")];
    assert_withheld(Api::Chat, &two, events(&joined), undeclared);
    // Calls in the legacy form have no index, so a client might concatenate their names as well.
    let legacy = |name: &str| chunk(&json!({"function_call": {"name": name}}));
    assert_withheld(Api::Chat, &two, events(&[legacy("show_a"), legacy("show_b")]), undeclared);
}

/// Each line is checked, because a client may read each line of an event separately and skip lines that are not JSON.
#[test]
fn each_line_of_an_event_is_checked() {
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [chat_call("hide_a")]}}]});
    let event = |inner: &Value| UpstreamAnswer {
        status: 200,
        is_events: true,
        body: format!("data: {{\"metadata\":\ndata: {inner}\ndata: }}\n\n").into_bytes(),
    };
    assert_withheld(Api::Chat, &streamed(Api::Chat), event(&call), WithheldReason::UndeclaredTool);
    let got = play(Api::Chat, &streamed(Api::Chat), vec![event(&json!({"a": "b"}))]);
    assert!(got.body.contains("metadata"), "{got:?}");
}

#[test]
fn attributes_of_files_are_not_calls() {
    let attributes = json!({"type": "sales_call", "Name": "a", "name": "b"});
    let cited = json!([{"type": "file_citation", "file_id": "1", "attributes": attributes}]);
    let text = json!([{"type": "output_text", "text": "Hi", "annotations": cited}]);
    let output = json!([{"type": "message", "role": "assistant", "content": text}]);
    let answer = json!({"id": "r", "status": "completed", "output": output});
    let got = play(Api::Responses, &request(Api::Responses), vec![whole(&answer)]);
    assert_eq!(got.ending, Ending::Complete);
    assert!(got.body.contains("sales_call"), "{got:?}");
}

#[test]
fn items_that_a_client_runs_are_refused_unless_they_are_declared() {
    let undeclared = WithheldReason::UndeclaredTool;
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
        (json!({"type": "Function_Call", "name": "hide_a"}), WithheldReason::UnknownForm),
        (json!({"type": "function_call", "name": {"a": "hide_a"}}), WithheldReason::UnknownForm),
    ];
    let call_id = |item: &Value| {
        let mut item = item.clone();
        (item["id"], item["call_id"]) = (json!("i"), json!("c"));
        item
    };
    // The requests have no tools, because with tools there would be hidden rounds, which would answer some of these
    // calls.
    let without = |mut body: Value| {
        body["tools"] = json!([]);
        body
    };
    for (item, why) in &rows {
        let item = call_id(item);
        let only = without(request(Api::Responses));
        assert_withheld(Api::Responses, &only, whole(&response(slice::from_ref(&item))), *why);
        for event in [
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": response(slice::from_ref(&item))}),
        ] {
            assert_withheld(
                Api::Responses,
                &without(streamed(Api::Responses)),
                events(&[event]),
                *why,
            );
        }
    }
    // A tool with the same name in another namespace is a different tool, so it is not declared.
    let item = call_id(&rows[1].0);
    let body = whole(&response(slice::from_ref(&item)));
    assert_withheld(Api::Responses, &request(Api::Responses), body, undeclared);
    let named = json!({"type": "response.function_call_arguments.done", "name": "hide_a", "arguments": "{}"});
    assert_withheld(Api::Responses, &streamed(Api::Responses), events(&[named]), undeclared);
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
fn calls_in_any_block_are_refused() {
    let undeclared = WithheldReason::UndeclaredTool;
    let tool_use = |kind: &str| json!({"type": kind, "id": "t", "server_name": "s", "name": "hide_a", "input": {}});
    for (kind, why) in [
        ("server_tool_use", undeclared),
        ("mcp_tool_use", undeclared),
        ("Tool_Use", WithheldReason::UnknownForm),
        ("client_tool_use", WithheldReason::UnknownForm),
    ] {
        assert_withheld(
            Api::Messages,
            &request(Api::Messages),
            whole(&message(&[tool_use(kind)])),
            why,
        );
    }
    let start = json!({"type": "message_start", "message": message(&[tool_use("tool_use")])});
    assert_withheld(Api::Messages, &streamed(Api::Messages), events(&[start]), undeclared);
    let mut hosted = request(Api::Messages);
    hosted["tools"] = json!([{"type": "show_code_20250825", "name": "show_code"}]);
    let run = json!({"type": "server_tool_use", "id": "s", "name": "bash_show_code", "input": {}});
    assert_unchanged(Api::Messages, &hosted, whole(&message(&[run])));
}

#[test]
fn calls_in_any_candidate_are_refused() {
    let undeclared = WithheldReason::UndeclaredTool;
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
        (content(&[both]), WithheldReason::DuplicateKey),
    ] {
        assert_withheld(Api::Gemini, &request(Api::Gemini), whole(&body), why);
        assert_withheld(Api::Gemini, &request(Api::Gemini), events(&[body]), why);
    }
    let mut hosted = request(Api::Gemini);
    hosted["tools"] = json!([{"showHosted": {}}, {"show_search": {}}]);
    let run = json!({"toolCall": {"toolType": "SHOW_SEARCH_WEB", "args": {}}});
    assert_unchanged(Api::Gemini, &hosted, whole(&content(&[run])));
}
