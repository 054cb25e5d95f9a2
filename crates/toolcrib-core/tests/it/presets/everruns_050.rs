//! Tests of how the `everruns@0.50` preset differs from `everruns`. docs/presets/everruns-0.50.md refers to these tests
//! by name.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::conversation::TranscriptEntry;
use toolcrib_core::disclosure::{DisclosureKind, DisclosureSetting};
use toolcrib_core::policy::{ActivationMode, ActivationReason};
use toolcrib_core::{
    Conversation, Crib, DefinitionFormat, Disclosure, Ledger, Preset, TurnContext,
};

use super::{configured, crib, warnings};
use crate::support::{Chat, catalog, names, strings, tool};

const NAME: &str = "everruns@0.50";

/// `count` tools of a server, with one parameter each.
fn tools(count: usize) -> Vec<Value> {
    let with = |at: usize| {
        let description = format!("Reads gauge number {at}.");
        tool(&format!("plant__gauge_{at}"), &description, &strings(&["unit"], 1))
    };
    (0..count).map(with).collect()
}

fn show(chat: &mut Chat<'_>) -> Arc<Disclosure> {
    chat.crib.disclose(&TurnContext::new(&chat.scope), &mut chat.conversation)
}

/// The definitions that are sent, each as its name and schema.
fn sent(shown: &Disclosure) -> Vec<(String, Value)> {
    let definition = |text: &str| {
        let tool: Value = serde_json::from_str(text).unwrap();
        (tool["name"].as_str().unwrap().to_owned(), tool["input_schema"].clone())
    };
    shown.definitions(DefinitionFormat::Own).iter().map(|text| definition(text)).collect()
}

fn sent_names(shown: &Disclosure) -> Vec<String> {
    sent(shown).into_iter().map(|(name, _)| name).collect()
}

fn with(config: &Value) -> Value {
    json!({"capabilities": [{"ref": "tool_search", "config": config}]})
}

fn bounded(config: &Value, tools: &[Value]) -> Crib {
    let mut own = json!({"bounded": true});
    own.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    Crib::new(catalog(tools), configured(Preset::Everruns050, &with(&own)))
}

#[test]
fn the_preset_is_named_after_the_release() {
    assert_eq!(Preset::named(NAME), Some(Preset::Everruns050));
    let settings = toolcrib_core::Settings::from_toml(&format!("preset = \"{NAME}\"")).unwrap();
    assert_eq!(settings, Preset::Everruns050.settings());
}

#[test]
fn a_stub_is_an_open_object_without_a_hint() {
    let crib = crib(Preset::Everruns050, &tools(15));
    let shown = show(&mut Chat::new(&crib));
    let stub = json!({"type": "object", "properties": {}, "additionalProperties": true});
    assert_eq!(sent(&shown)[0], ("plant__gauge_0".into(), stub));
    assert!(
        shown.instruction.as_ref().unwrap().contains("tool_search"),
        "the hint is in the instruction"
    );
}

#[test]
fn it_defers_at_fifteen_tools_and_more() {
    let reason = |count| {
        let crib = crib(Preset::Everruns050, &tools(count));
        show(&mut Chat::new(&crib)).decision.reason
    };
    assert!(matches!(reason(14), ActivationReason::Below { .. }));
    assert_eq!(reason(15), ActivationReason::Count { tools: 15, threshold: 15 });
}

#[test]
fn a_deferring_session_keeps_deferring_with_fewer_tools() {
    let crib = crib(Preset::Everruns050, &tools(15));
    let mut chat = Chat::new(&crib);
    show(&mut chat);
    let mut fewer =
        Chat { conversation: chat.conversation, ..Chat::within(&crib, &["plant__gauge_3"]) };
    assert_eq!(show(&mut fewer).decision.reason, ActivationReason::Sticky);
    let fresh = show(&mut Chat::within(&crib, &["plant__gauge_3"]));
    assert!(matches!(fresh.decision.reason, ActivationReason::Below { .. }));
}

#[test]
fn reveals_and_deferral_are_rebuilt_from_the_transcript() {
    let crib = crib(Preset::Everruns050, &tools(15));
    let reply = Chat::new(&crib).search("gauge_7").for_model();
    let ledger = Ledger::from_transcript([TranscriptEntry::Reply(&reply)], 64);
    let mut chat = Chat { conversation: Conversation::with_ledger(ledger), ..Chat::new(&crib) };
    let shown = sent(&show(&mut chat));
    assert_eq!(shown[7].1, strings(&["unit"], 1));
    assert_eq!(shown[8].1["properties"], json!({}));
    // If compaction removed a reply from the transcript, the tools that it revealed are forgotten.
    let ledger = Ledger::from_transcript([], 64);
    let mut chat = Chat { conversation: Conversation::with_ledger(ledger), ..Chat::new(&crib) };
    assert_eq!(sent(&show(&mut chat))[7].1["properties"], json!({}));
}

#[test]
fn a_tool_has_its_schema_after_a_failed_call() {
    let crib = crib(Preset::Everruns050, &tools(15));
    let mut chat = Chat::new(&crib);
    show(&mut chat);
    let refusal = chat.refused("plant__gauge_7", r#"{"unit":5}"#);
    assert!(refusal.input_schema.is_some());
    assert_eq!(sent(&show(&mut chat))[7].1, strings(&["unit"], 1));
}

#[test]
fn found_tools_get_their_schemas_unless_reveal_says_otherwise() {
    let redefine = configured(Preset::Everruns050, &with(&json!({"reveal": "redefine"})));
    assert_eq!(redefine, Preset::Everruns050.settings());
    let in_result = configured(Preset::Everruns050, &with(&json!({"reveal": "in_result"})));
    let crib = Crib::new(catalog(&tools(15)), in_result);
    let mut chat = Chat::new(&crib);
    let before = show(&mut chat);
    let reply = chat.search("gauge_7");
    assert!(reply.hits[0].input_schema.is_some());
    assert_eq!(show(&mut chat), before, "the list is unchanged");
    assert!(!before.instruction.as_ref().unwrap().contains("next step"));
}

#[test]
fn an_invalid_reveal_falls_back_to_the_default_with_a_warning() {
    let warned = warnings(Preset::Everruns050, &with(&json!({"reveal": "never"})));
    let problem = "\"never\" is neither `redefine` nor `in_result`; using `redefine`";
    assert_eq!(warned, [format!("`capabilities.tool_search.reveal`: {problem}")]);
    let both = with(&json!({"reveal": "in_result", "bounded": true}));
    let problem = "`in_result` cannot be combined with `bounded`; using `redefine`";
    let warned = warnings(Preset::Everruns050, &both);
    assert_eq!(warned, [format!("`capabilities.tool_search.reveal`: {problem}")]);
}

#[test]
fn bounded_shows_no_deferred_tool_before_it_was_found() {
    let mut three = tools(2);
    three.push(tool("bash", "Run a command.", &strings(&["command"], 1)));
    let crib = bounded(&json!({}), &three);
    let mut chat = Chat::new(&crib);
    let shown = show(&mut chat);
    assert_eq!(sent_names(&shown), ["bash", "tool_search"], "even a few tools are deferred");
    assert_eq!(shown.listing, None);
    chat.search("gauge_1");
    assert_eq!(sent_names(&show(&mut chat)), ["bash", "tool_search", "plant__gauge_1"]);
}

#[test]
fn bounded_keeps_the_tools_that_were_loaded_last() {
    let crib = bounded(&json!({"max_active_tools": 2}), &tools(20));
    let mut chat = Chat::new(&crib);
    for name in ["gauge_1", "gauge_2", "gauge_3"] {
        chat.search(&format!("select:plant__{name}"));
    }
    let all = ["tool_search", "plant__gauge_2", "plant__gauge_3"];
    assert_eq!(sent_names(&show(&mut chat)), all);
    chat.search("select:plant__gauge_1");
    let all = ["tool_search", "plant__gauge_3", "plant__gauge_1"];
    assert_eq!(sent_names(&show(&mut chat)), all, "it is loaded again, and the oldest is evicted");
    chat.search("select:plant__gauge_5,plant__gauge_6,plant__gauge_7");
    let all = ["tool_search", "plant__gauge_6", "plant__gauge_5"];
    assert_eq!(sent_names(&show(&mut chat)), all, "the first hits of a reply are kept");
}

#[test]
fn bounded_counts_the_bytes_of_what_is_shown() {
    let wide = "x".repeat(800);
    let mut two = vec![tool("plant__wide", &wide, &strings(&["unit"], 1))];
    two.extend(tools(3));
    let crib = bounded(&json!({"max_active_bytes": 1024}), &two);
    let mut chat = Chat::new(&crib);
    chat.search("select:plant__gauge_0");
    chat.search("select:plant__wide");
    assert_eq!(
        sent_names(&show(&mut chat)),
        ["tool_search", "plant__wide"],
        "only the newest tool fits into the limit"
    );
    chat.search("select:plant__gauge_1,plant__gauge_2");
    let all = ["tool_search", "plant__gauge_0", "plant__gauge_2", "plant__gauge_1"];
    assert_eq!(sent_names(&show(&mut chat)), all, "a tool that does not fit is skipped");
}

#[test]
fn bounded_has_its_own_limits_and_warns_about_values_out_of_range() {
    let settings = configured(Preset::Everruns050, &with(&json!({"bounded": true})));
    assert_eq!((settings.max_revealed, settings.max_revealed_bytes), (32, 65_536));
    assert_eq!(settings.search.reply_tokens, 32_768 / 4);
    assert_eq!(settings.activation.mode, ActivationMode::On);
    let far = json!({"bounded": true, "max_active_tools": 500, "max_result_bytes": 1});
    let warned = warnings(Preset::Everruns050, &with(&far));
    assert_eq!(
        warned,
        [
            "`capabilities.tool_search.max_active_tools`: 500 is not within 1 to 128; using 128",
            "`capabilities.tool_search.max_result_bytes`: 1 is not within 1024 to 65536; using 1024",
        ]
    );
}

#[test]
fn without_a_match_bounded_names_sources_and_no_tools() {
    let crib = bounded(&json!({}), &tools(20));
    let reply: Value =
        serde_json::from_str(&Chat::new(&crib).search("submarine").for_model()).unwrap();
    assert_eq!(reply["available_sources"], json!([{"name": "plant", "tools": 20}]), "{reply}");
    assert_eq!(reply["available_tools"], Value::Null);
}

#[test]
fn bounded_searches_parameters_too() {
    let mut all = tools(20);
    all.push(tool("plant__valve", "Turns.", &strings(&["angle"], 1)));
    let crib = bounded(&json!({}), &all);
    assert_eq!(names(&Chat::new(&crib).search("angle")), ["plant__valve"]);
}

#[test]
fn automatic_search_is_the_providers_or_else_the_clients() {
    let disclosure =
        |id: &str| configured(Preset::Everruns050, &json!({"capabilities": [id]})).disclosure;
    assert_eq!(disclosure("tool_search"), DisclosureSetting::Reveal);
    assert_eq!(disclosure("auto_tool_search"), DisclosureSetting::Hosted);
    let auto = configured(Preset::Everruns050, &json!({"capabilities": ["auto_tool_search"]}));
    assert_eq!(
        auto.disclosure_kind(),
        DisclosureKind::Reveal,
        "`reveal` is used if the provider has no search"
    );
    assert_eq!(disclosure("openai_tool_search"), DisclosureSetting::Hosted);
    assert_eq!(disclosure("claude_tool_search"), DisclosureSetting::Hosted);
    let both = json!({"capabilities": ["openai_tool_search", {"ref": "tool_search"}]});
    let settings = configured(Preset::Everruns050, &both);
    assert_eq!(
        settings.disclosure,
        DisclosureSetting::Reveal,
        "an explicit `tool_search` has precedence"
    );
}

#[test]
fn the_configuration_of_the_release_is_recognised_by_its_keys() {
    let old = with(&json!({"threshold": 20}));
    assert_eq!(Preset::of_config(&old), Some(Preset::Everruns));
    for key in ["reveal", "bounded", "max_active_tools"] {
        assert_eq!(Preset::of_config(&with(&json!({key: 1}))), Some(Preset::Everruns050), "{key}");
    }
    for id in ["openai_tool_search", "claude_tool_search"] {
        for capability in [json!(id), json!({"ref": id})] {
            let config = json!({"capabilities": [capability]});
            assert_eq!(Preset::of_config(&config), Some(Preset::Everruns050), "{config}");
        }
    }
}

#[test]
fn threshold_and_allowlist_are_read_as_before() {
    let config = with(&json!({"threshold": 20, "never_defer": ["plant_gauge_3"]}));
    let settings = configured(Preset::Everruns050, &config);
    let crib = Crib::new(catalog(&tools(20)), settings);
    let shown = sent(&show(&mut Chat::new(&crib)));
    assert_eq!(shown[3].1, strings(&["unit"], 1), "names match with any separators");
    assert_eq!(shown[4].1["properties"], json!({}));
}

#[test]
fn the_ranking_is_that_of_the_earlier_editions() {
    let (now, before) = (Preset::Everruns050.settings(), Preset::Everruns.settings());
    assert_eq!((now.rank, now.search), (before.rank, before.search));
}
