//! A Chat Completions request as an [`Ask`].

use serde_json::Value;

use crate::provider::ask::{Ask, Declared, Load, Open, Said, plain};
use crate::provider::dialect::list;

pub(in crate::provider) fn read(request: &Value) -> Ask {
    let mut ask = Ask::default();
    for tool in list(&request["tools"]) {
        let function = if tool["custom"].is_object() { &tool["custom"] } else { &tool["function"] };
        let name = function["name"].as_str().unwrap_or_default();
        ask.tools.push(Declared::new(
            name,
            &function["description"],
            &function["parameters"],
            Load::Loaded,
        ));
    }
    let mut open = Open::default();
    for message in list(&request["messages"]) {
        match message["role"].as_str() {
            Some("user") => ask.user(&plain(&message["content"])),
            Some("assistant") => {
                ask.model(Said::Text);
                for call in list(&message["tool_calls"]) {
                    let name = call["function"]["name"].as_str().unwrap_or_default();
                    open.call(&call["id"], name);
                    ask.model(Said::Call(name.to_owned()));
                }
            }
            Some("tool") => {
                let name = open.answer(&message["tool_call_id"]).unwrap_or_default();
                ask.result(name, plain(&message["content"]));
            }
            _ => {}
        }
    }
    ask
}
