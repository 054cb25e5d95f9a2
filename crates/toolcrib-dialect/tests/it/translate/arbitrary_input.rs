//! Property tests of translation with input that is not a conversation.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use toolcrib_dialect::Api;
use toolcrib_dialect::translate::adapter;

use super::{CLIENTS, events, stream_bytes};

/// Generates JSON that is almost valid input.
fn almost_valid_json() -> impl Strategy<Value = Value> {
    let keys = select(vec![
        "type",
        "role",
        "content",
        "messages",
        "input",
        "system",
        "instructions",
        "tools",
        "name",
        "text",
        "output",
        "source",
        "choices",
        "delta",
        "message",
        "tool_calls",
        "function",
        "arguments",
        "index",
        "id",
        "error",
        "code",
        "usage",
        "finish_reason",
        "tool_choice",
        "model",
        "call_id",
        "stream",
        "format",
        "reasoning",
        "data",
        "image_url",
        "detail",
        "metadata",
    ]);
    let words = select(vec![
        "user",
        "assistant",
        "system",
        "tool_result",
        "tool_use",
        "text",
        "message",
        "image",
        "base64",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "input_text",
        "input_image",
        "document",
        "custom",
        "function",
        "allowed_tools",
        "json_schema",
        "stop",
        "length",
        "",
        "{}",
    ]);
    let leaf = prop_oneof![
        words.prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((keys.clone(), inner), 0..6)
                .prop_map(|fields| fields.into_iter().collect::<Value>()),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_input_never_causes_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        values in proptest::collection::vec(almost_valid_json(), 1..6),
        status in 100u16..600,
    ) {
        for api in CLIENTS {
            let mut adapter = adapter(api, Api::Chat).unwrap();
            let mut out = Vec::new();
            let _ = adapter.request(&String::from_utf8_lossy(&bytes));
            adapter.complete_response(status, &bytes);
            adapter.bytes(&bytes, &mut out);
            for value in &values {
                if let Ok(adapted) = adapter.request(&value.to_string()) {
                    prop_assert!(serde_json::from_str::<Value>(&adapted.body).is_ok());
                }
                let answer = adapter.complete_response(status, value.to_string().as_bytes());
                prop_assert!(serde_json::from_slice::<Value>(&answer.body).is_ok());
            }
            out.clear();
            adapter.bytes(stream_bytes(&values).as_bytes(), &mut out);
            adapter.end(&mut out);
            events(&out);
        }
    }
}
