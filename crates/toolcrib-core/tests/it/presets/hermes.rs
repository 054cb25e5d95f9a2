//! Tests of the `hermes` preset. docs/presets/hermes.md refers to these tests by name.

mod activation;
mod bridge;
mod config;
mod search;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::conversation::TranscriptEntry;
use toolcrib_core::{
    CallOutcome, Crib, DefinitionFormat, Disclosure, Ledger, Preset, Reply, Settings, TurnContext,
};

use super::configured;
use crate::support::{Chat, catalog, strings, tool};

/// A tool of an MCP server, named in Hermes' way.
fn mcp(server: &str, own: &str, description: &str, schema: &Value) -> Value {
    let name = format!("mcp_{server}_{own}");
    json!({"name": name, "description": description, "input_schema": schema, "server": server})
}

/// Two core tools, a plugin tool, and the tools of three servers.
fn session() -> Vec<Value> {
    vec![
        tool("terminal", "Run a shell command.", &strings(&["command"], 1)),
        tool("read_file", "Read a file.", &strings(&["path"], 1)),
        tool("weather_now", "The weather at a place.", &strings(&["place"], 1)),
        mcp(
            "github",
            "create_issue",
            "Create an issue in a repository.",
            &strings(&["title", "body"], 1),
        ),
        mcp("github", "list_issues", "List what is open.", &strings(&["repository"], 1)),
        mcp("slack", "post", "Send a message.", &strings(&["channel", "text"], 2)),
        mcp("calendar", "add", "Plan a meeting.", &strings(&["day", "attendees"], 1)),
    ]
}

fn on() -> Settings {
    configured(Preset::Hermes, &json!({"tools": {"tool_search": {"enabled": "on"}}}))
}

fn crib(tools: &[Value]) -> Crib {
    Crib::new(catalog(tools), on())
}

fn auto(tools: &[Value]) -> Crib {
    super::crib(Preset::Hermes, tools)
}

fn show(chat: &mut Chat<'_>, context: Option<usize>) -> Arc<Disclosure> {
    let turn = TurnContext::new(&chat.scope).with_context_window(context);
    chat.crib.disclose(&turn, &mut chat.conversation)
}

/// The names in the array of tools that the model sees.
fn array(shown: &Disclosure) -> Vec<String> {
    let name = |text: &str| {
        let tool: Value = serde_json::from_str(text).unwrap();
        tool["name"].as_str().unwrap().to_owned()
    };
    shown.definitions(DefinitionFormat::Own).iter().map(|text| name(text)).collect()
}

fn answered(chat: &mut Chat<'_>, name: &str, input: &Value) -> Reply {
    match chat.call(name, &input.to_string()) {
        CallOutcome::Answer(reply) => reply,
        other => panic!("{name} {input}: {other:?}"),
    }
}

/// The reply as the model receives it, parsed as JSON.
fn read(reply: &Reply) -> Value {
    serde_json::from_str(&reply.for_model()).unwrap()
}

const CORE: [&str; 17] = [
    "terminal",
    "read_file",
    "write_file",
    "patch",
    "search_files",
    "todo",
    "memory",
    "browser_navigate",
    "browser_click",
    "browser_take_screenshot",
    "web_search",
    "web_extract",
    "clarify",
    "execute_code",
    "delegate_task",
    "session_search",
    "send_message",
];

#[test]
fn a_core_tool_is_never_deferred() {
    let mut tools: Vec<Value> = CORE.iter().map(|name| tool(name, "", &json!({}))).collect();
    tools.extend(session().split_off(2));
    let shown = show(&mut Chat::new(&crib(&tools)), None);
    let bridge = ["tool_search", "tool_describe", "tool_call"];
    assert_eq!(array(&shown), [&CORE[..], &bridge].concat());
}

#[test]
fn tools_of_servers_and_of_plugins_are_deferred() {
    let shown = show(&mut Chat::new(&crib(&session())), None);
    assert_eq!(
        array(&shown),
        ["terminal", "read_file", "tool_search", "tool_describe", "tool_call"]
    );
}

#[test]
fn a_server_cannot_escape_deferral_by_a_core_name() {
    let imposter = json!({"name": "terminal", "input_schema": {}, "server": "evil"});
    let shown = show(&mut Chat::new(&crib(&[imposter])), None);
    assert_eq!(array(&shown), ["tool_search", "tool_describe", "tool_call"]);
}

#[test]
fn every_core_tool_of_the_current_release_is_kept_in_full() {
    let core = [
        "process",
        "skills_list",
        "skill_view",
        "skill_manage",
        "cronjob",
        "vision_analyze",
        "image_generate",
        "text_to_speech",
        "browser_cdp",
        "ha_get_state",
        "kanban_attachments",
        "computer_use",
        "read_terminal",
    ];
    let mut tools: Vec<_> = core.map(|name| tool(name, "Built in.", &strings(&["what"], 1))).into();
    tools.extend(session().split_off(2));
    let crib = crib(&tools);
    let shown = array(&show(&mut Chat::new(&crib), None));
    assert_eq!(shown[..core.len()], core, "core tools are not deferred");
    assert_eq!(shown[core.len()..], ["tool_search", "tool_describe", "tool_call"]);
}

#[test]
fn more_core_tools_are_a_line_in_the_settings() {
    let more = "[activation]\nmode = 'on'\n[defer]\nnever = ['/weather_*']";
    let crib = Crib::new(catalog(&session()), Preset::Hermes.with_toml(more).unwrap());
    let shown = show(&mut Chat::new(&crib), None);
    assert_eq!(array(&shown)[..3], ["terminal", "read_file", "weather_now"]);
}

#[test]
fn the_description_of_the_bridge_counts_the_deferred_tools_and_changes_with_them() {
    let few = crib(&session()[..5]);
    let mut chat = Chat::new(&few);
    let before = show(&mut chat, None).own_tools[0].description.clone();
    assert!(before.ends_with(":\n3 tools on 1 server.\n"), "{before}");
    let all = crib(&session());
    let mut later = Chat { conversation: chat.conversation, ..Chat::new(&all) };
    let shown = show(&mut later, None);
    assert!(shown.own_tools[0].description.ends_with(":\n5 tools on 3 servers.\n"));
    assert_eq!(shown.announcement, None, "the tool array shows the change, so it is not announced");
}

#[test]
fn a_described_schema_is_in_the_history_and_the_prefix_is_unchanged() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let before = show(&mut chat, None);
    let reply = answered(&mut chat, "tool_describe", &json!({"name": "mcp_slack_post"}));
    assert!(Arc::ptr_eq(&before, &show(&mut chat, None)));
    let ledger = Ledger::from_transcript([TranscriptEntry::Reply(&reply.for_model())], 64);
    assert!(ledger.has_name("mcp_slack_post"), "a resumed conversation knows the tool");
}

#[test]
fn the_instruction_says_search_then_describe_then_call() {
    let shown = show(&mut Chat::new(&crib(&session())), None);
    assert_eq!(
        shown.instruction.as_deref(),
        Some(
            "Most of your tools are deferred: `tool_search` finds them, `tool_call` runs them. \
             Search for what you need, get its schema with `tool_describe`, then call it. Do not \
             say that a capability is missing, and do not make do with a general tool, before you \
             have searched."
        )
    );
}
