//! Tests of the `opencode` preset. docs/presets/opencode.md refers to these tests by name.

mod config;
mod search;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::disclosure::{SEARCH, SEARCH_REGEX};
use toolcrib_core::policy::ActivationReason;
use toolcrib_core::{
    CallOutcome, Conversation, Crib, DefinitionFormat, Disclosure, Preset, Reply, Scope, Settings,
    TurnContext,
};

use super::{configured, crib};
use crate::support::{Chat, catalog, names, strings, tool};

/// The tools of a coding agent and of two servers. The tests of the library, `mcp` and `serve` share them.
fn coding() -> Vec<Value> {
    let tools: Vec<(&str, &str, &str)> =
        serde_json::from_str(include_str!("../../../../../tests/samples/opencode.json")).unwrap();
    let with = |(name, words, argument)| tool(name, words, &strings(&[argument], 1));
    tools.into_iter().map(with).collect()
}

fn opencode() -> Crib {
    crib(Preset::Opencode, &coding())
}

fn show(chat: &mut Chat<'_>) -> Arc<Disclosure> {
    chat.crib.disclose(&TurnContext::new(&chat.scope), &mut chat.conversation)
}

fn sent(shown: &Disclosure) -> Vec<Value> {
    let definitions = shown.definitions(DefinitionFormat::Own);
    definitions.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// The descriptions of these tools as the model receives them.
fn descriptions(shown: &Disclosure, names: &[&str]) -> Vec<String> {
    let sent = sent(shown);
    let find = |name: &&str| sent.iter().find(|tool| tool["name"] == **name).unwrap();
    names.iter().map(|name| find(name)["description"].as_str().unwrap().to_owned()).collect()
}

fn answer(outcome: CallOutcome) -> Reply {
    match outcome {
        CallOutcome::Answer(reply) => reply,
        other => panic!("{other:?}"),
    }
}

/// Calls a search tool and returns the names of the tools that it finds.
fn found(crib: &Crib, tool: &str, input: &str) -> Vec<String> {
    let reply = answer(Chat::new(crib).call(tool, input));
    names(&reply).into_iter().map(str::to_owned).collect()
}

// Tests of what the model sees.

#[test]
fn a_single_tool_is_already_deferred() {
    let one = crib(Preset::Opencode, &coding()[..1]);
    let shown = show(&mut Chat::new(&one));
    assert_eq!(shown.decision.reason, ActivationReason::On);
    assert_eq!(descriptions(&shown, &["read"]), ["[d]"]);
}

#[test]
fn a_deferred_tool_keeps_position_name_and_parameters_and_has_a_placeholder_description() {
    let crib = opencode();
    let shown = sent(&show(&mut Chat::new(&crib)));
    for (shown, came) in shown.iter().zip(coding()) {
        let mut expected = came;
        expected["description"] = "[d]".into();
        assert_eq!(*shown, expected);
    }
    assert_eq!(shown.len(), coding().len() + 2);
}

#[test]
fn a_tool_in_always_load_keeps_its_full_description() {
    let config = json!({"alwaysLoad": ["read", "bash"]});
    let crib = Crib::new(catalog(&coding()), configured(Preset::Opencode, &config));
    let shown = show(&mut Chat::new(&crib));
    assert_eq!(
        descriptions(&shown, &["read", "write", "bash"]),
        ["Read a file from disk.", "[d]", "Run a shell command."]
    );
}

#[test]
fn both_search_tools_are_always_present_with_full_descriptions() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    let first = show(&mut chat);
    let own: Vec<&str> = first.own_tools.iter().map(|own| own.name).collect();
    assert_eq!(own, ["tool_search", "tool_search_regex"]);
    assert_eq!(
        descriptions(&first, &own),
        [
            "Finds tools whose description is cut to a mark, and returns it in full.",
            "Finds deferred tools by a pattern.",
        ]
    );
    chat.search("file");
    assert_eq!(show(&mut chat).own_tools, first.own_tools);
}

#[test]
fn the_search_tools_never_find_themselves() {
    let crib = opencode();
    assert!(found(&crib, SEARCH, r#"{"query": "tool_search"}"#).iter().all(|name| name != SEARCH));
    assert!(found(&crib, SEARCH_REGEX, r#"{"pattern": "^tool_search"}"#).is_empty());
}

#[test]
fn nothing_is_added_if_every_tool_is_always_loaded() {
    let config = json!({"alwaysLoad": ["*"]});
    let crib = Crib::new(catalog(&coding()), configured(Preset::Opencode, &config));
    let shown = show(&mut Chat::new(&crib));
    assert_eq!(shown.decision.reason, ActivationReason::NothingToDefer);
    assert_eq!((shown.own_tools.len(), &shown.instruction), (0, &None));
}

#[test]
fn the_system_prompt_sends_the_model_to_tool_search() {
    let crib = opencode();
    let scope = Scope::all(crib.catalog());
    let turn = TurnContext::new(&scope).with_model("claude-sonnet-4-5");
    let shown = crib.disclose(&turn, &mut Conversation::new());
    let instruction = shown.instruction.as_ref().unwrap();
    for phrase in ["a mark", "get them from `tool_search` before the first use"] {
        assert!(instruction.contains(phrase), "{instruction}");
    }
    assert!(!instruction.contains(char::is_numeric), "no counts: they would break the cache");
}

#[test]
fn other_providers_models_are_told_to_search_before_calling() {
    let crib = opencode();
    let scope = Scope::all(crib.catalog());
    let instruction_for = |model| {
        let turn = TurnContext::new(&scope).with_model(model);
        crib.disclose(&turn, &mut Conversation::new()).instruction.clone().unwrap()
    };
    let anthropic = instruction_for(Some("claude-sonnet-4-5"));
    assert!(!anthropic.contains("Never call"));
    for model in [Some("gpt-5.4"), Some("gemini-3-pro"), Some("qwen3-coder"), None] {
        let other = instruction_for(model);
        let more = other.strip_prefix(&anthropic).unwrap();
        assert!(
            more.starts_with(" Never call a tool described only by a mark before `tool_search`"),
            "{model:?}: {more}"
        );
    }
}

#[test]
fn finding_tools_does_not_change_the_request() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    let first = show(&mut chat);
    chat.search("github issues");
    assert_eq!(show(&mut chat), first);
}

// Tests of calls.

#[test]
fn a_deferred_tool_that_is_called_directly_runs_with_the_arguments_as_written() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    show(&mut chat);
    let arguments = r#"{ "command": "ls  -l" }"#;
    assert_eq!(chat.runs("bash", arguments), ("bash".into(), arguments.into()));
}

#[test]
fn a_call_without_arguments_never_reaches_a_tool_that_needs_some() {
    let crib = opencode();
    for input in ["", "{}", "null"] {
        let refusal = Chat::new(&crib).refused("bash", input);
        let schema = refusal.input_schema.unwrap();
        assert_eq!(schema.get(), crib.catalog().tools()[4].schema(), "{input:?}");
    }
}

// Tests of the configuration for the opencode fork.

#[test]
fn in_the_fork_a_tool_is_hidden_until_it_is_found() {
    let settings = configured(Preset::Opencode, &json!({"toolSearch": {"alwaysLoad": ["read"]}}));
    let toml = "preset = 'opencode'\ndisclosure = 'append'\n[listing]\nform = 'none'\n\
        [defer]\nnever = ['read']";
    assert_eq!(settings, Settings::from_toml(toml).unwrap());
    let crib = Crib::new(catalog(&coding()), settings);
    let mut chat = Chat::new(&crib);
    let sent_names = |shown: &Disclosure| -> Vec<String> {
        sent(shown).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = show(&mut chat);
    assert_eq!(sent_names(&first), ["read", "tool_search", "tool_search_regex"]);
    assert!(!first.own_tools[0].description.contains("bash"), "no listing names a hidden tool");
    chat.search("shell");
    let second = show(&mut chat);
    assert_eq!(sent_names(&second), ["read", "tool_search", "tool_search_regex", "bash"]);
    assert_eq!(sent(&second)[3], coding()[4]);
}
