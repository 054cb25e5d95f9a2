//! Tests of custom tools: their input is not JSON, and calls to them are always forwarded.

use serde_json::{Value, json};

use super::{TARGET, new_conversation, request};

fn custom() -> Value {
    json!({"index": 0, "id": "call_patch0000001", "type": "custom",
        "custom": {"name": "patch", "input": "*** Begin"}})
}

fn request_with_custom_tool(stream: bool) -> Value {
    let mut body = request(&json!([{"role": "user", "content": "Mend it."}]), stream);
    let patch = json!({"type": "custom", "custom": {"name": "patch"}});
    body["tools"].as_array_mut().unwrap().push(patch);
    body
}

fn chunks(calls: &[Value]) -> String {
    let chunk = |delta: Value, finish: Value| {
        let chunk = json!({"id": "chatcmpl-1", "created": 1001,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {chunk}\n\n")
    };
    let calls = calls.iter().map(|call| chunk(json!({"tool_calls": [call]}), Value::Null));
    let end = [chunk(json!({}), json!("tool_calls")), "data: [DONE]\n\n".to_owned()];
    calls.chain(end).collect()
}

#[test]
fn a_call_of_a_custom_tool_is_forwarded_unchanged() {
    let more = json!({"index": 0, "custom": {"input": " Patch"}});
    let upstream = chunks(&[custom(), more]);
    assert_eq!(
        new_conversation()
            .send(TARGET, &request_with_custom_tool(true), std::slice::from_ref(&upstream))
            .text,
        upstream
    );
    let upstream = json!({"id": "chatcmpl-1", "created": 1001, "choices": [{"index": 0,
        "message": {"role": "assistant", "content": null, "tool_calls": [custom()]},
        "finish_reason": "tool_calls"}]})
    .to_string();
    assert_eq!(
        new_conversation()
            .send(TARGET, &request_with_custom_tool(false), std::slice::from_ref(&upstream))
            .text,
        upstream
    );
}

#[test]
fn a_call_next_to_a_search_ends_the_turn_and_is_restored_completely() {
    let search = json!({"id": "call_search000001", "type": "function",
        "function": {"name": "tool_search", "arguments": r#"{"query":"customer"}"#}});
    for stream in [false, true] {
        let mut conversation = new_conversation();
        let mut second = search.clone();
        second["index"] = json!(1);
        let upstream = if stream {
            chunks(&[custom(), second])
        } else {
            json!({"id": "chatcmpl-1", "created": 1001, "choices": [{"index": 0,
                "message": {"role": "assistant", "content": null, "tool_calls": [custom(), search]},
                "finish_reason": "tool_calls"}]})
            .to_string()
        };
        let got = conversation.send(TARGET, &request_with_custom_tool(stream), &[upstream]);
        assert!(got.text.contains(r#""name":"patch""#), "{}", got.text);
        assert!(got.text.contains(r#""finish_reason":"tool_calls""#), "{}", got.text);
        assert!(!got.text.contains("tool_search"), "{}", got.text);
        let mut body = request_with_custom_tool(stream);
        body["messages"].as_array_mut().unwrap().extend([
            json!({"role": "assistant", "content": null, "tool_calls": [custom()]}),
            json!({"role": "tool", "tool_call_id": "call_patch0000001", "content": "Done"}),
        ]);
        let sent = conversation.turn(TARGET, &body.to_string()).request();
        let sent: Value = serde_json::from_str(&sent).unwrap();
        let calls = sent["messages"][1]["tool_calls"].as_array().unwrap();
        assert_eq!(calls[0]["custom"], custom()["custom"]);
        assert_eq!(calls[1]["function"]["name"], "tool_search");
        assert_eq!(sent["messages"][2]["tool_call_id"], "call_search000001");
    }
}
