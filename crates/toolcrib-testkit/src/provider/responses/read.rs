//! A Responses request, its history expanded, as an [`Ask`].

use serde_json::Value;

use crate::provider::ask::{Ask, Declared, Load, Native, Open, Said, plain};
use crate::provider::dialect::list;

pub(in crate::provider) fn read(request: &Value) -> Ask {
    let mut ask = Ask::default();
    declare(&mut ask, list(&request["tools"]), false);
    let mut open = Open::default();
    for item in list(&request["input"]) {
        let kind = item["type"].as_str().unwrap_or("message");
        match kind {
            "message" if item["role"] == "user" => ask.user(&plain(&item["content"])),
            "message" if item["role"] == "assistant" => ask.model(Said::Text),
            "function_call" | "custom_tool_call" => {
                let name = item["name"].as_str().unwrap_or_default();
                open.call(&item["call_id"], name);
                ask.model(Said::Call(name.to_owned()));
            }
            "function_call_output" | "custom_tool_call_output" => {
                let name = open.answer(&item["call_id"]).unwrap_or_default();
                ask.result(name, plain(&item["output"]));
            }
            "tool_search_call" if item["execution"] == "client" => ask.model(Said::Client),
            "tool_search_call" => {
                ask.model(Said::Hosted { id: String::new(), query: String::new(), open: false });
            }
            "tool_search_output" => {
                declare(&mut ask, list(&item["tools"]), true);
                if item["execution"] == "client" {
                    ask.result("tool_search", String::new());
                }
            }
            "additional_tools" => declare(&mut ask, list(&item["tools"]), true),
            _ => {}
        }
    }
    ask
}

fn declare(ask: &mut Ask, tools: &[Value], revealed: bool) {
    let load = |tool: &Value| match (revealed, tool["defer_loading"] == true) {
        (true, _) => Load::Revealed,
        (false, true) => Load::Deferred,
        (false, false) => Load::Loaded,
    };
    let read = |tool: &Value| {
        let name = tool["name"].as_str().unwrap_or_default();
        Declared::new(name, &tool["description"], &tool["parameters"], load(tool))
    };
    for tool in tools {
        match tool["type"].as_str() {
            Some("function" | "custom") => ask.tools.push(read(tool)),
            Some("namespace") => {
                for member in list(&tool["tools"]) {
                    let mut member = read(member);
                    member.namespace = tool["name"].as_str().map(str::to_owned);
                    ask.tools.push(member);
                }
            }
            Some("tool_search") => {
                let client = tool["execution"] == "client";
                ask.native = Some(if client { Native::Client } else { Native::Hosted });
            }
            _ => {}
        }
    }
}
