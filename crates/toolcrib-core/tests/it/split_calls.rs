//! Tests of `split_calls`: the bridge has a tool for tools that only read, and a tool for all others.

use serde_json::{Value, json};
use toolcrib_core::call::{AccessPolicy, MayWriteReason, ReadOnlyReason, RefusalCode, ToolAccess};

use crate::support::{Chat, catalog, crib_with, strings};

/// Returns a tool in MCP's format.
fn annotated(name: &str, annotations: &Value) -> Value {
    json!({"name": name, "description": name, "inputSchema": strings(&["id"], 1), "annotations": annotations})
}

fn tools() -> Vec<Value> {
    vec![
        annotated("a__get", &json!({"readOnlyHint": true})),
        annotated("a__set", &json!({"readOnlyHint": false})),
        annotated("a__unknown", &json!({})),
        annotated("a__odd", &json!({"readOnlyHint": true, "destructiveHint": true})),
        annotated("a__text", &json!({"readOnlyHint": "true"})),
    ]
}

const READERS: [&str; 1] = ["a__get"];

#[test]
fn a_tool_is_called_only_through_the_one_that_fits() {
    let crib = crib_with(&tools(), "split_calls = true");
    for tool in crib.catalog().tools() {
        let reads = READERS.contains(&tool.name());
        let (right, wrong) =
            if reads { ("tool_read", "tool_write") } else { ("tool_write", "tool_read") };
        assert_eq!(crib.call_tool(tool), Some(right));
        let input = json!({"name": tool.name(), "arguments": {"id": "1"}}).to_string();
        let mut chat = Chat::new(&crib);
        assert_eq!(chat.runs(right, &input).0, tool.name());
        for wrong in [wrong, "tool_call"] {
            let refusal = chat.refused(wrong, &input);
            assert_eq!(refusal.code, RefusalCode::WrongCallTool, "{}", tool.name());
            assert_eq!(refusal.hint, format!("call {right} with the same input"));
            assert!(refusal.input_schema.is_none());
        }
        let reply = chat.search(&format!("select:{}", tool.name()));
        assert_eq!(reply.hits[0].call, Some(right));
        assert!(reply.for_model().contains(&format!("\"call\":\"{right}\"")));
    }
}

/// The gateway offers the bridge to clients that cannot use the configured disclosure.
#[test]
fn the_wrong_one_is_refused_with_every_disclosure() {
    for disclosure in ["append", "terse", "reveal", "reference"] {
        let crib = crib_with(&tools(), &format!("split_calls = true\ndisclosure = '{disclosure}'"));
        let input = json!({"name": "a__set", "arguments": {"id": "1"}}).to_string();
        let refusal = Chat::new(&crib).refused("tool_read", &input);
        assert_eq!(refusal.code, RefusalCode::WrongCallTool, "{disclosure}");
        assert_eq!(Chat::new(&crib).runs("tool_write", &input).0, "a__set");
    }
}

#[test]
fn without_the_setting_there_is_only_one() {
    for toml in ["", "split_calls = true\ndisclosure = 'append'"] {
        let crib = crib_with(&tools(), toml);
        let own: Vec<&str> = crib.own_tools().iter().map(|own| own.name).collect();
        assert!(!own.contains(&"tool_read") && !own.contains(&"tool_write"), "{own:?}");
        assert!(crib.catalog().tools().iter().all(|tool| crib.call_tool(tool).is_none()));
        assert!(!Chat::new(&crib).search("get").for_model().contains("\"call\""));
    }
    let refusal = Chat::new(&crib_with(&tools(), "")).refused("tool_read", "{}");
    assert_eq!(refusal.code, RefusalCode::UnknownTool);
    let crib = crib_with(&tools(), "split_calls = true");
    let own: Vec<&str> = crib.own_tools().iter().map(|own| own.name).collect();
    assert_eq!(own, ["tool_search", "tool_describe", "tool_read", "tool_write"]);
    assert!(!crib.own_instruction().contains("tool_call"), "{}", crib.own_instruction());
}

#[test]
fn the_owner_of_the_config_decides_before_the_annotations() {
    let get = &catalog(&tools()).tools()[0].clone();
    let set = &catalog(&tools()).tools()[1].clone();
    let access = |tool: &toolcrib_core::Tool, policy| tool.clone().with_access(policy).access();
    for (policy, of_get, of_set) in [
        (
            AccessPolicy::Annotations,
            ToolAccess::ReadOnly(ReadOnlyReason::Annotations),
            ToolAccess::MayWrite(MayWriteReason::Annotations),
        ),
        (
            AccessPolicy::IgnoreAnnotations,
            ToolAccess::MayWrite(MayWriteReason::Untrusted),
            ToolAccess::MayWrite(MayWriteReason::Untrusted),
        ),
        (
            AccessPolicy::ReadOnly,
            ToolAccess::ReadOnly(ReadOnlyReason::Config),
            ToolAccess::ReadOnly(ReadOnlyReason::Config),
        ),
        (
            AccessPolicy::MayWrite,
            ToolAccess::MayWrite(MayWriteReason::Config),
            ToolAccess::MayWrite(MayWriteReason::Config),
        ),
    ] {
        assert_eq!((access(get, policy), access(set, policy)), (of_get, of_set), "{policy:?}");
    }
}
