//! Tests of the `everruns` preset. docs/presets/everruns.md refers to these tests by name.

mod config;
mod search;
mod session;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::disclosure::SEARCH;
use toolcrib_core::policy::{ActivationReason, Deferral, Verdict, VerdictReason};
use toolcrib_core::{
    CallOutcome, Conversation, Crib, DeferPolicy, DefinitionFormat, Disclosure, Preset, Problem,
    Reply, Scope, TurnContext,
};

use super::{configured, crib};
use crate::support::{Chat, catalog, names, strings, tool};

/// Fifteen tools, which is exactly the threshold for deferral. The tests of the library, `mcp` and `serve` share them.
fn agent() -> Vec<Value> {
    let tools: Vec<(&str, &str, &str)> =
        serde_json::from_str(include_str!("../../../../../tests/samples/everruns.json")).unwrap();
    let with = |(name, words, argument)| tool(name, words, &strings(&[argument, "note"], 1));
    tools.into_iter().map(with).collect()
}

/// The tools of `agent`, one of them with a deferral policy set by its owner.
fn agent_with(name: &str, defer: &str) -> Vec<Value> {
    let mut tools = agent();
    tools.iter_mut().find(|tool| tool["name"] == name).unwrap()["defer"] = defer.into();
    tools
}

fn everruns(tools: &[Value]) -> Crib {
    crib(Preset::Everruns, tools)
}

fn show(chat: &mut Chat<'_>) -> Arc<Disclosure> {
    chat.crib.disclose(&TurnContext::new(&chat.scope), &mut chat.conversation)
}

/// The definition of one tool as the model receives it.
fn sent(shown: &Disclosure, name: &str) -> Value {
    let definitions = shown.definitions(DefinitionFormat::Own);
    let mut parsed = definitions.iter().map(|text| serde_json::from_str::<Value>(text).unwrap());
    parsed.find(|tool| tool["name"] == name).unwrap()
}

fn is_stub(shown: &Disclosure, name: &str) -> bool {
    sent(shown, name)["input_schema"]["properties"] == json!({})
}

fn answer(outcome: CallOutcome) -> Value {
    match outcome {
        CallOutcome::Answer(reply) => serde_json::from_str(&reply.for_model()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn scores(reply: &Reply) -> Vec<(&str, f32)> {
    reply.hits.iter().map(|hit| (hit.name.as_str(), hit.score)).collect()
}

/// Tools without parameters, each given as a name and a description.
fn plain(tools: &[(&str, &str)]) -> Vec<Value> {
    tools.iter().map(|(name, words)| tool(name, words, &strings(&[], 0))).collect()
}

// Tests of activation.

#[test]
fn deferral_begins_at_fifteen_tools_and_not_at_fourteen() {
    let all = everruns(&agent());
    let shown = show(&mut Chat::new(&all));
    assert_eq!(shown.decision.reason, ActivationReason::Count { tools: 15, threshold: 15 });
    let fewer = everruns(&agent()[..14]);
    let shown = show(&mut Chat::new(&fewer));
    assert_eq!(shown.decision.reason, ActivationReason::Below { threshold: None });
}

#[test]
fn below_the_threshold_the_tools_are_sent_unchanged_and_nothing_is_added() {
    let crib = everruns(&agent()[..14]);
    let shown = show(&mut Chat::new(&crib));
    let input = serde_json::to_string_pretty(&agent()[..14]).unwrap();
    assert_eq!(
        crib.tools_json(&shown, &input, DefinitionFormat::Own),
        input,
        "the tools are unchanged"
    );
    assert_eq!((shown.own_tools.len(), &shown.instruction), (0, &None));
}

#[test]
fn tools_that_are_never_deferred_count_towards_the_threshold() {
    let mut tools = agent();
    for tool in &mut tools[1..] {
        tool["defer"] = "never".into();
    }
    let crib = everruns(&tools);
    let shown = show(&mut Chat::new(&crib));
    assert_eq!(shown.decision.reason, ActivationReason::Count { tools: 15, threshold: 15 });
    assert!(is_stub(&shown, "read_file"));
}

#[test]
fn only_the_count_decides_and_not_the_size() {
    let long = "A word or two more. ".repeat(500);
    let large: Vec<Value> =
        (0..14).map(|i| tool(&format!("t{i}"), &long, &strings(&["a"], 1))).collect();
    let few = everruns(&large);
    let scope = Scope::all(few.catalog());
    let turn = TurnContext::new(&scope).with_context_window(8_000);
    assert!(few.disclose(&turn, &mut Conversation::new()).passes_through());
    let tiny: Vec<Value> = (0..15).map(|i| tool(&format!("t{i}"), "", &json!({}))).collect();
    let many = everruns(&tiny);
    let shown = show(&mut Chat::new(&many));
    assert!(
        shown.tokens_after > shown.tokens_before,
        "tools are deferred even if that costs tokens"
    );
}

#[test]
fn each_turn_is_decided_separately() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    assert_eq!(show(&mut chat).decision.deferral, Deferral::Everything);
    chat.scope = Scope::of(crib.catalog(), crib.catalog().ids().take(14));
    assert!(show(&mut chat).passes_through());
}

// Tests of stubs.

#[test]
fn a_deferred_tool_keeps_name_and_description_and_its_stub_names_the_query() {
    let crib = everruns(&agent());
    let stub = json!({
        "name": "web_fetch",
        "description": "Get a page from the web.",
        "input_schema": {
            "type": "object",
            "properties": {},
            "additionalProperties": true,
            "description": "Not loaded: call tool_search with the query web_fetch first.",
        },
        "server": "",
    });
    assert_eq!(sent(&show(&mut Chat::new(&crib)), "web_fetch"), stub);
}

#[test]
fn the_query_that_a_stub_names_loads_that_tool_alone() {
    let crib = everruns(&agent());
    for tool in agent() {
        let name = tool["name"].as_str().unwrap();
        assert_eq!(names(&Chat::new(&crib).search(name)), [name]);
    }
}

#[test]
fn the_search_tool_is_added_and_is_never_deferred() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    let first = sent(&show(&mut chat), SEARCH);
    assert_eq!(
        first["input_schema"],
        json!({
            "type": "object",
            "properties": {"query": {
                "type": "string",
                "description": "Keywords for what the tool should do, or its exact name.",
            }},
            "required": ["query"],
            "additionalProperties": false,
        })
    );
    chat.search("web_fetch");
    assert_eq!(sent(&show(&mut chat), SEARCH), first);
    assert_eq!(show(&mut chat).own_tools.len(), 1, "Toolcrib adds no other tool");
}

#[test]
fn a_tool_named_tool_search_is_rejected() {
    let tools = catalog(&plain(&[("tool_search", "Find things."), ("bash", "Run a command.")]));
    assert_eq!(tools.find("tool_search"), None);
    assert_eq!(tools.findings()[0].problem, Problem::NameReserved);
}

#[test]
fn a_short_note_in_the_system_prompt_asks_to_search_first() {
    let crib = everruns(&agent());
    assert_eq!(
        show(&mut Chat::new(&crib)).instruction.as_deref(),
        Some(
            "Some of your tools show only a stub of their schema. Load one with `tool_search` \
             before its first use: describe what you need, or `select:NAME`. Its real parameters \
             are there on the next step. Do not say that a capability is missing, and do not make \
             do with a general tool, before you have searched."
        )
    );
}

#[test]
fn every_model_is_treated_the_same() {
    let crib = everruns(&agent());
    let scope = Scope::all(crib.catalog());
    let shown = |model| {
        crib.disclose(&TurnContext::new(&scope).with_model(model), &mut Conversation::new())
    };
    for model in ["gemini-3-pro", "gpt-4o", "gpt-5.4", "claude-opus-4-8", "my-local-model"] {
        assert_eq!(shown(Some(model)), shown(None), "{model}");
    }
}

// Tests of deferral policies.

#[test]
fn never_keeps_the_full_schema() {
    let tools = agent_with("write_todos", "never");
    let crib = everruns(&tools);
    assert_eq!(sent(&show(&mut Chat::new(&crib)), "write_todos"), tools[7]);
}

#[test]
fn automatic_is_the_default_and_defers_at_the_threshold_and_above() {
    let crib = everruns(&agent());
    assert_eq!(crib.catalog().tools()[0].defer(), DeferPolicy::Automatic);
    let shown = show(&mut Chat::new(&crib));
    let deferred = Verdict::Deferred(VerdictReason::Active);
    assert!(shown.tools.iter().all(|tool| tool.verdict == deferred));
}

#[test]
fn always_defers_when_tool_search_is_active_and_not_below_the_threshold() {
    let tools = agent_with("bash", "always");
    let crib = everruns(&tools);
    let shown = show(&mut Chat::new(&crib));
    assert_eq!(
        shown.tools[5].verdict,
        Verdict::Deferred(VerdictReason::Owner(DeferPolicy::Always))
    );
    let fewer = everruns(&tools[..14]);
    assert!(show(&mut Chat::new(&fewer)).passes_through());
}

#[test]
fn always_can_be_set_to_apply_below_the_threshold_too() {
    let settings = Preset::Everruns.with_toml("[activation]\nalways_below = true").unwrap();
    let crib = Crib::new(catalog(&agent_with("bash", "always")[..14]), settings);
    let shown = show(&mut Chat::new(&crib));
    assert!(is_stub(&shown, "bash"));
    assert!(!is_stub(&shown, "read_file"));
}

#[test]
fn an_allowlisted_tool_behaves_exactly_like_one_that_is_never_deferred() {
    let config = json!({"capabilities": {"tool_search": {"never_defer": ["bash"]}}});
    let listed = Crib::new(catalog(&agent()), configured(Preset::Everruns, &config));
    let mut chat = Chat::new(&listed);
    assert_eq!(sent(&show(&mut chat), "bash"), agent()[5]);
    let arguments = r#"{"command": "ls"}"#;
    let first_call = chat.runs("bash", arguments);
    assert_eq!(
        first_call,
        ("bash".into(), arguments.into()),
        "a tool that is not deferred runs without a search"
    );
    assert!(is_stub(&show(&mut chat), "read_file"));
}

#[test]
fn the_allowlists_of_code_and_configuration_are_merged() {
    let config = json!({"capabilities": {"tool_search": {"never_defer": ["bash"]}}});
    let mut settings = configured(Preset::Everruns, &config);
    settings.rules = settings.rules.never_defer(["read_file"]);
    let crib = Crib::new(catalog(&agent()), settings);
    let shown = show(&mut Chat::new(&crib));
    let stubs = ["read_file", "bash", "edit_file"].map(|name| is_stub(&shown, name));
    assert_eq!(stubs, [false, false, true]);
}
