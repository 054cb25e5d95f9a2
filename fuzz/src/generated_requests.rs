//! Requests of a client, generated from an input in the same way as the [generated
//! responses](crate::generated_responses). Most of a request is valid, and single fields may be broken.

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use serde_json::{Value, json};
use toolcrib_dialect::Api;

use crate::client;
use crate::generated_responses::{ARGUMENTS, ModelOutput, NAMES, break_one, part};

/// Generates an entry of the history, in the format of the API. The entry is either output of the model that the client
/// sends back, or an entry of the client itself.
fn entry(api: Api, u: &mut Unstructured<'_>) -> Result<Value> {
    let name = *u.choose(&NAMES)?;
    let id = format!("call_{}_in_full", u.int_in_range(0..=3)?);
    let said = match u.int_in_range(0..=5)? {
        0 => ModelOutput::Text("So it is."),
        1 => ModelOutput::Thought("Hm."),
        2 => ModelOutput::Search { id: Some(id.clone()) },
        _ => ModelOutput::Call { id: id.clone(), name, arguments: u.choose(&ARGUMENTS)? },
    };
    let part = part(api, 0, &said);
    let model = u.ratio(2, 3)?;
    let mut entry = match (api, model, u.int_in_range(0..=1)?) {
        (Api::Chat, true, _) if part["function"].is_object() => {
            json!({"role": "assistant", "content": null, "tool_calls": [part]})
        }
        (Api::Chat, true, _) => json!({"role": "assistant", "content": "Yes."}),
        (Api::Chat, false, 0) => json!({"role": "tool", "tool_call_id": id, "content": "Ada"}),
        (Api::Responses, true, _) => part,
        (Api::Responses, false, 0) => {
            json!({"type": "function_call_output", "call_id": id, "output": "Ada"})
        }
        (Api::Messages, true, _) => json!({"role": "assistant", "content": [part]}),
        (Api::Messages, false, 0) => json!({"role": "user", "content": [{"type": "tool_result",
            "tool_use_id": id, "content": [{"type": "tool_reference", "tool_name": name}]}]}),
        (Api::Gemini, true, _) => json!({"role": "model", "parts": [part]}),
        (Api::Gemini, false, 0) => json!({"role": "user", "parts": [{"functionResponse":
            {"id": id, "name": name, "response": {"output": "Ada"}}}]}),
        (Api::Gemini, false, _) => json!({"role": "user", "parts": [{"text": "Hi."}]}),
        (_, false, _) => json!({"role": "user", "content": "Hi."}),
    };
    if u.ratio(1, 4)? {
        break_one(u, &mut entry)?;
    }
    Ok(entry)
}

/// Generates a request in the format of the API.
pub fn request(api: Api, bytes: &[u8]) -> Result<String> {
    let mut u = Unstructured::new(bytes);
    let u = &mut u;
    let mut history = Vec::new();
    for _ in 0..u.int_in_range(0..=6)? {
        history.push(entry(api, u)?);
    }
    let name = *u.choose(&NAMES)?;
    let choice = match (api, u.int_in_range(0..=2)?) {
        (_, 0) => json!("required"),
        (Api::Chat, _) => json!({"type": "function", "function": {"name": name}}),
        (Api::Responses, 1) => json!({"type": "allowed_tools", "mode": "auto",
            "tools": [{"type": "function", "name": name}]}),
        (Api::Responses, _) => json!({"type": "function", "name": name}),
        (Api::Messages, _) => json!({"type": "tool", "name": name}),
        (Api::Gemini, _) => json!({"functionCallingConfig":
            {"mode": "ANY", "allowedFunctionNames": [name]}}),
    };
    let key = if api == Api::Gemini { "toolConfig" } else { "tool_choice" };
    let mut body = json!({"model": "m", client::history_key(api): history, key: choice,
        "stream": u.arbitrary::<bool>()?, "seed": 1.5});
    if u.ratio(1, 4)? {
        break_one(u, &mut body)?;
    }
    let mut tools: Value = serde_json::from_str(client::tools(api)).unwrap_or_default();
    // Either only three tools, possibly broken, or all tools unchanged.
    if u.ratio(1, 3)? {
        let list = match api {
            Api::Gemini => &mut tools[0]["functionDeclarations"],
            _ => &mut tools,
        };
        list.as_array_mut().map(|list| list.truncate(3));
        while !u.is_empty() && u.ratio(1, 2)? {
            break_one(u, &mut tools)?;
        }
    }
    if let Some(fields) = body.as_object_mut() {
        fields.insert("tools".to_owned(), tools);
    }
    Ok(body.to_string())
}
