//! Tests of the names of our own tools if the client already has tools with those names.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::disclosure::{DisclosureSetting, OwnNames, Stub};
use toolcrib_core::listing::{ListingForm, ListingPlacement};
use toolcrib_core::policy::ActivationMode;
use toolcrib_core::reply;
use toolcrib_core::{
    CallOutcome, Catalog, Conversation, Crib, Limits, Problem, Scope, Settings, TurnContext,
    ingest, ingest_with_own_names,
};

use crate::support::{Chat, office, strings, tool};

fn alternative_settings() -> Settings {
    let mut settings = Settings::default();
    settings.own_names = OwnNames::alternative();
    settings.activation.mode = ActivationMode::On;
    settings
}

/// A catalog of a client that has tools with our default names.
fn catalog_with_our_names() -> Catalog {
    let own = OwnNames::default().all();
    let mut tools = office();
    tools.extend(own.iter().map(|name| tool(name, "The client's own.", &strings(&["what"], 1))));
    let text = Value::from(tools).to_string();
    let mut builder = Catalog::builder();
    builder.add(
        ingest_with_own_names(OwnNames::alternative(), text.as_bytes(), None, &Limits::default())
            .unwrap(),
    );
    builder.build()
}

#[test]
fn a_client_may_own_our_default_names_and_then_ours_are_withheld() {
    let text = json!([
        {"name": "tool_search", "input_schema": {}},
        {"name": "CRIB_search", "input_schema": {}},
        {"name": "tool_search_tool_bm25", "input_schema": {}},
    ])
    .to_string();
    let limits = Limits::default();
    let withheld = |ingested: toolcrib_core::IngestedTools| -> Vec<String> {
        assert!(ingested.findings.iter().all(|finding| finding.problem == Problem::NameReserved));
        ingested.findings.into_iter().filter_map(|finding| finding.tool).collect()
    };
    let first = ingest(text.as_bytes(), None, &limits).unwrap();
    assert_eq!(withheld(first), ["tool_search", "tool_search_tool_bm25"]);
    let alternative_settings =
        ingest_with_own_names(OwnNames::alternative(), text.as_bytes(), None, &limits).unwrap();
    assert_eq!(withheld(alternative_settings), ["CRIB_search", "tool_search_tool_bm25"]);
}

#[test]
fn a_client_tool_with_our_default_name_is_found_and_called_normally() {
    let crib = Crib::new(catalog_with_our_names(), alternative_settings());
    let mut chat = Chat::new(&crib);
    let input = r#"{"what":"x"}"#;
    for name in OwnNames::default().all() {
        assert_eq!(chat.runs(name, input), (name.to_owned(), input.to_owned()));
        let wrapped = json!({"name": name, "arguments": {"what": "x"}}).to_string();
        assert_eq!(chat.runs("crib_call", &wrapped), (name.to_owned(), input.to_owned()));
    }
    let CallOutcome::Answer(reply) = chat.call("crib_search", r#"{"query":"select:tool_search"}"#)
    else {
        panic!("no answer");
    };
    assert_eq!(reply.loaded, ["tool_search"]);
    let own = chat.refused("crib_call", r#"{"name":"crib_search","arguments":{}}"#);
    assert_eq!(own.hint, "call `crib_search` directly");
}

fn settings() -> impl Strategy<Value = Settings> {
    let kind = prop_oneof![
        Just(DisclosureSetting::Bridge),
        Just(DisclosureSetting::Reveal),
        Just(DisclosureSetting::Terse),
        Just(DisclosureSetting::Append)
    ];
    let place = prop_oneof![
        Just(ListingPlacement::Description),
        Just(ListingPlacement::Fresh),
        Just(ListingPlacement::Message)
    ];
    let form =
        prop_oneof![Just(ListingForm::Full), Just(ListingForm::Count), Just(ListingForm::None)];
    let reply = prop_oneof![
        Just(reply::ReplyFormat::Json),
        Just(reply::ReplyFormat::Functions),
        Just(reply::ReplyFormat::Markdown),
        Just(reply::ReplyFormat::Tools),
        Just(reply::ReplyFormat::Matches)
    ];
    (kind, place, form, reply, proptest::array::uniform3(any::<bool>())).prop_map(
        |(kind, place, form, reply, [schemas, reveals, regex])| {
            let mut settings = alternative_settings();
            (settings.disclosure, settings.stub, settings.reveals) = (kind, Stub::Hint, reveals);
            (settings.listing.placement, settings.listing.form) = (place, form);
            (settings.search.format, settings.search.schemas) = (reply, schemas);
            (settings.search.regex, settings.search.reply_tokens) = (regex, 200);
            settings
        },
    )
}

/// Everything that the model could read in one conversation under these settings.
fn model_texts(settings: Settings, model: Option<&str>, calls: &[(usize, String)]) -> String {
    let crib = Crib::new(crate::support::catalog(&office()), settings);
    let scope = Scope::all(crib.catalog());
    let turn = TurnContext::new(&scope).with_model(model);
    let mut conversation = Conversation::new();
    let names = crib.settings().own_names.all();
    let mut model_texts = format!("{:?}", crib.own_tools());
    for (which, input) in calls {
        let _ = write!(model_texts, "{:?}", crib.disclose(&turn, &mut conversation));
        let name = names.get(*which).copied().unwrap_or("no_such_tool");
        model_texts.push_str(&match crib.handle(&turn, &mut conversation, name, input) {
            CallOutcome::Answer(reply) => reply.for_model(),
            CallOutcome::Refused(refusal) => serde_json::to_string(&refusal).unwrap(),
            CallOutcome::Run(call) => call.name,
        });
    }
    model_texts
}

#[test]
fn the_advice_for_repeated_searches_uses_the_alternative_names() {
    let circles = vec![(0, r#"{"query":"messages"}"#.to_owned()); 6];
    let model_texts = model_texts(alternative_settings(), None, &circles);
    for phrase in ["`select:NAME` or crib_describe gives", "directly or through crib_call"] {
        assert!(model_texts.contains(phrase), "{model_texts}");
    }
    assert!(!model_texts.contains("tool_"), "{model_texts}");
}

fn inputs() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("[1]".to_owned()),
        Just("{}".to_owned()),
        Just(r#"{"pattern":"("}"#.to_owned()),
        Just(r#"{"query":"send an email"}"#.to_owned()),
        Just(r#"{"query":"xyzzy"}"#.to_owned()),
        Just(r#"{"query":""}"#.to_owned()),
        Just(r#"{"name":"mail__send","arguments":{"to":1}}"#.to_owned()),
        Just(r#"{"name":"crib_call","arguments":{}}"#.to_owned()),
        Just(r#"{"name":"mail__sent"}"#.to_owned()),
        "\\{\"query\":\"[a-z ]{0,12}\"\\}",
    ]
}

proptest! {
    #[test]
    fn under_the_alternative_names_no_text_mentions_the_default_names(
        settings in settings(),
        model in prop_oneof![Just(None), Just(Some("qwen3")), Just(Some("claude-opus-5"))],
        calls in proptest::collection::vec((0..5usize, inputs()), 1..12),
    ) {
        let model_texts = model_texts(settings, model, &calls);
        for name in OwnNames::default().all() {
            prop_assert!(!model_texts.contains(name), "{name} in {model_texts}");
        }
        prop_assert!(model_texts.contains("crib_search"));
    }

    #[test]
    fn default_names_that_are_not_ours_are_refused_as_unknown_tools(
        which in 0..4usize, input in inputs(), swap in any::<bool>(),
    ) {
        let (ours, others) = (OwnNames::alternative(), OwnNames::default());
        let (ours, others) = if swap { (others, ours) } else { (ours, others) };
        let mut settings = alternative_settings();
        settings.own_names = ours;
        let crib = Crib::new(crate::support::catalog(&office()), settings);
        let name = others.all()[which];
        let refusal = Chat::new(&crib).refused(name, &input);
        prop_assert_eq!(refusal.code, toolcrib_core::call::RefusalCode::UnknownTool);
        prop_assert_eq!(refusal.message, format!("there is no tool `{name}`"));
    }
}
