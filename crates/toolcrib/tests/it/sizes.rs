//! Tests of how much deferring saves, for each number that another system or this project states.
//!
//! The tool sets under `surfaces/` resemble those for which the numbers were stated. One has eighteen tools of a
//! general agent with short descriptions and large schemas. The other has thirty-two tools of a coding agent with long
//! descriptions and small schemas.

use toolcrib_core::policy::{ActivationMode, ActivationReason, Verdict};
use toolcrib_core::{
    Catalog, Conversation, Crib, DefinitionFormat, Disclosure, Preset, Scope, SearchRequest,
    Settings, TokenCounter, TurnContext,
};
use toolcrib_tokens::{Vocabulary, VocabularyCounter};

const AGENT: &str = include_str!("surfaces/agent.json");
const CODING: &str = include_str!("surfaces/coding.json");
const SAMPLE: &str = include_str!("../../sample/catalog.jsonl");

fn first_turn(catalog: &str, settings: Settings) -> (Crib, std::sync::Arc<Disclosure>) {
    let catalog = Catalog::from_json(catalog.as_bytes()).unwrap();
    let counter = VocabularyCounter::exact(Vocabulary::O200k).shared();
    let crib = Crib::new(catalog, settings).with_counter(counter);
    let scope = Scope::all(crib.catalog());
    let turn = TurnContext::new(&scope).with_context_window(200_000);
    let shown = crib.disclose(&turn, &mut Conversation::new());
    (crib, shown)
}

fn saved(before: usize, after: usize) -> f64 {
    100.0 * (before as f64 - after as f64) / before as f64
}

fn tokens(text: &str) -> usize {
    VocabularyCounter::exact(Vocabulary::O200k).count(text)
}

/// Compares sizes in bytes, of the complete list and of the schemas alone. Both include the search tool.
#[test]
fn everruns_shrinks_an_agents_surface() {
    let (crib, shown) = first_turn(AGENT, Preset::Everruns.settings());
    let search = shown.own_tools[0].definition(DefinitionFormat::Anthropic);
    let full = format!("{},{search}]", AGENT.trim_end().trim_end_matches(']'));
    let deferred = crib.tools_json(&shown, AGENT, DefinitionFormat::Anthropic);
    let count = |list: &str| serde_json::from_str::<Vec<serde_json::Value>>(list).unwrap().len();
    assert_eq!((count(&full), count(&deferred)), (19, 19));

    let list = saved(full.len(), deferred.len());
    let schemas = |list: &str| -> usize {
        let tools: Vec<serde_json::Value> = serde_json::from_str(list).unwrap();
        tools.iter().map(|tool| tool["input_schema"].to_string().len()).sum()
    };
    let schemas = saved(schemas(&full), schemas(&deferred));
    assert!(list >= 39.0 && schemas >= 55.0, "saved: list {list:.1} %, schemas {schemas:.1} %");
}

#[test]
fn the_three_bridge_tools_of_hermes_cost_about_300_tokens() {
    let mut settings = Preset::Hermes.settings();
    settings.activation.mode = ActivationMode::On;
    let (_, shown) = first_turn(SAMPLE, settings);
    let names: Vec<_> = shown.own_tools.iter().map(|own| own.name).collect();
    assert_eq!(names, ["tool_search", "tool_describe", "tool_call"]);
    let cost: usize =
        shown.own_tools.iter().map(|own| tokens(&own.definition(DefinitionFormat::Chat))).sum();
    assert!((200..=320).contains(&cost), "{cost} tokens");
}

/// Everything that deferring adds to a request is counted: the stubs with their parameters, both search tools, and the
/// note that asks the model to search.
#[test]
fn opencode_shrinks_a_coding_agents_tools() {
    let (crib, shown) = first_turn(CODING, Preset::Opencode.settings());
    assert_eq!(crib.catalog().len(), 32);
    let percent = saved(shown.tokens_before, shown.tokens_after);
    assert!(percent >= 85.0, "{percent:.1} %: {} to {}", shown.tokens_before, shown.tokens_after);
}

/// The numbers were stated for a setup in which eight tools are always loaded. The definitions of the other twenty-four
/// alone must shrink by the stated share.
#[test]
fn opencode_shrinks_what_is_not_always_loaded() {
    let mut settings = Preset::Opencode.settings();
    let always = ["read", "write", "edit", "bash", "glob", "grep", "list", "task"];
    settings.rules = settings.rules.never_defer(always);
    let (crib, shown) = first_turn(CODING, settings);
    let deferred = shown.tools.iter().filter(|tool| matches!(tool.verdict, Verdict::Deferred(_)));
    let (mut count, mut before, mut after) = (0, 0, 0);
    for tool in deferred {
        count += 1;
        before += crib.definition_tokens()[tool.id.index()];
        after += tokens(tool.definition.as_deref().unwrap());
    }
    let percent = saved(before, after);
    assert!(count == 24 && percent >= 85.0, "{count} tools, {percent:.1} %: {before} to {after}");
}

#[test]
fn a_deferred_slot_of_opencode_costs_a_name_a_mark_and_its_parameters() {
    let (_, shown) = first_turn(CODING, Preset::Opencode.settings());
    let slots = shown.tools.iter().filter_map(|tool| tool.definition.as_deref());
    let slot = slots.map(tokens).sum::<usize>() / shown.tools.len();
    assert!((30..=70).contains(&slot), "{slot} tokens");
}

#[test]
fn many_servers_activate_hermes_and_a_few_tools_do_not() {
    let reason = |catalog: &str| {
        let (_, shown) = first_turn(catalog, Preset::Hermes.settings());
        (shown.passes_through(), shown.decision.reason)
    };
    assert!(matches!(reason(SAMPLE), (false, ActivationReason::Tokens { threshold: 20_000, .. })));
    let few: Vec<&str> = SAMPLE.lines().take(14).collect();
    assert!(matches!(reason(&few.join("\n")), (true, ActivationReason::Below { .. })));
}

#[test]
fn our_default_lists_the_names_and_saves_85_percent_of_the_first_turn() {
    let (_, shown) = first_turn(SAMPLE, Settings::default());
    let listing = shown.listing.as_ref().unwrap();
    assert!(listing.text.contains("github__create_issue"), "the names are listed");
    assert!(shown.own_tools[0].description.contains(&listing.text));
    let percent = saved(shown.tokens_before, shown.tokens_after);
    assert!(percent >= 85.0, "{percent:.1} %: {} to {}", shown.tokens_before, shown.tokens_after);
}

/// Counts the tokens of the first turn, and the tokens that loading two tools adds to the tools and to the
/// conversation.
#[test]
fn after_two_loaded_schemas_it_is_still_a_tenth() {
    let (crib, first) = first_turn(SAMPLE, Preset::ClaudeCode.settings());
    let scope = Scope::all(crib.catalog());
    let turn = TurnContext::new(&scope).with_context_window(200_000);
    let mut conversation = Conversation::new();
    let ask = SearchRequest::query("select:github__create_issue,slack__post_message");
    let reply = crib.search(&turn, &mut conversation, &ask).for_model();
    let then = crib.disclose(&turn, &mut conversation).tokens_after + tokens(&reply);
    let share = 100.0 * then as f64 / first.tokens_before as f64;
    assert!(share <= 10.0, "{share:.1} %: {} to {then}", first.tokens_before);
}

/// Names cost far fewer tokens than schemas. A name costs at most fifteen tokens, so two hundred names cost no more
/// than two or three large schemas.
#[test]
fn names_cost_a_few_percent_of_the_schemas() {
    let (crib, shown) = first_turn(SAMPLE, Preset::ClaudeCode.settings());
    let names = shown.listing.as_ref().unwrap().tokens;
    let per_name = names as f64 / crib.catalog().len() as f64;
    let share = 100.0 * shown.tokens_after as f64 / shown.tokens_before as f64;
    assert!(per_name <= 15.0 && share <= 6.0, "{per_name:.1} tokens per name, {share:.1} %");
    // Two hundred names must cost no more than three schemas of a thousand tokens each.
    assert!(200.0 * per_name <= 3_000.0, "{per_name:.1} tokens per name");
}
