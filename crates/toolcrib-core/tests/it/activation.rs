//! Tests of activation: whether a conversation defers tools, which ones, and for how long.

use serde_json::{Value, json};
use toolcrib_core::policy::{
    ActivationReason, Decision, Deferral, ThresholdSource, Verdict, VerdictReason,
};
use toolcrib_core::{Conversation, Crib, DeferPolicy, Disclosure, Scope, Settings, TurnContext};

use crate::disclose::{show, sixteen_tools};
use crate::support::{Chat, catalog, crib_with, office};

#[test]
fn the_thresholds_decide_and_the_reason_is_reported() {
    let many = sixteen_tools();
    let crib = |count: usize| Crib::new(catalog(&many[..count]), Settings::default());
    let decision = |crib: &Crib| show(&mut Chat::new(crib)).decision;
    let threshold = Some((ThresholdSource::UnknownWindow, 20_000));
    let below =
        Decision { deferral: Deferral::Nothing, reason: ActivationReason::Below { threshold } };
    assert_eq!(decision(&crib(14)), below);
    assert_eq!(
        decision(&crib(15)),
        Decision {
            deferral: Deferral::Everything,
            reason: ActivationReason::Count { tools: 15, threshold: 15 }
        }
    );
    let tiny: Vec<Value> = (0..15).map(|i| json!({"name": format!("t{i}")})).collect();
    let shown = show(&mut Chat::new(&Crib::new(catalog(&tiny), Settings::default())));
    assert!(
        matches!(shown.decision.reason, ActivationReason::NoSaving { before, after } if after >= before),
        "{:?}",
        shown.decision
    );
    assert!(shown.passes_through());
}

#[test]
fn always_is_deferred_below_the_threshold_and_never_is_not_deferred_above() {
    let mut tools = office();
    tools[0]["defer"] = json!("always");
    tools[1]["defer"] = json!("never");
    let few = Crib::new(catalog(&tools), Settings::default());
    let shown = show(&mut Chat::new(&few));
    let verdict = |shown: &Disclosure, i: usize| {
        shown.tools.iter().find(|s| s.id.index() == i).unwrap().verdict.clone()
    };
    assert_eq!(verdict(&shown, 0), Verdict::Deferred(VerdictReason::Owner(DeferPolicy::Always)));
    assert_eq!(verdict(&shown, 2), Verdict::Full(VerdictReason::NotActive));
    let on = crib_with(&tools, "");
    let shown = show(&mut Chat::new(&on));
    assert_eq!(verdict(&shown, 1), Verdict::Full(VerdictReason::Owner(DeferPolicy::Never)));
    assert_eq!(verdict(&shown, 2), Verdict::Deferred(VerdictReason::Active));
}

#[test]
fn rules_come_from_code_and_from_configuration() {
    let mut settings = Settings::from_toml(
        "[activation]\nmode = 'on'\n[defer]\nnever = ['MAIL__*']\n[defer.servers]\nslack = 'never'",
    )
    .unwrap();
    settings.rules = settings.rules.never_defer(["github__create_issue"]);
    let crib = Crib::new(catalog(&office()), settings);
    let shown = show(&mut Chat::new(&crib));
    let deferred: Vec<_> = shown
        .tools
        .iter()
        .filter(|s| matches!(s.verdict, Verdict::Deferred(_)))
        .map(|s| crib.catalog().tool(s.id).name())
        .collect();
    assert_eq!(deferred, ["github__list_issues", "github__merge_pull_request"]);
}

#[test]
fn without_the_search_tool_no_tool_is_deferred() {
    let crib = crib_with(&office(), "");
    let scope = Scope::all(crib.catalog());
    let turn = TurnContext::new(&scope).with_search_allowed(false);
    let shown = crib.disclose(&turn, &mut Conversation::new());
    assert!(shown.passes_through());
    assert_eq!(shown.decision.reason, ActivationReason::NoSearch);
}

#[test]
fn a_deferring_conversation_keeps_deferring_when_servers_disconnect() {
    let (all, few) = (&sixteen_tools()[..], &sixteen_tools()[..3]);
    let auto = "[activation]\n";
    let crib = crib_with(all, auto);
    let mut chat = Chat::new(&crib);
    assert!(!show(&mut chat).passes_through());
    let fewer = crib_with(few, auto);
    let mut later = Chat { conversation: chat.conversation, ..Chat::new(&fewer) };
    assert_eq!(show(&mut later).decision.reason, ActivationReason::Sticky);
    let not_sticky = crib_with(few, "[activation]\nsticky = false\n");
    let mut later = Chat { conversation: later.conversation, ..Chat::new(&not_sticky) };
    assert!(show(&mut later).passes_through());
}

#[test]
fn an_always_rule_alone_does_not_keep_deferral_active() {
    let mut tools = office();
    tools[0]["defer"] = json!("always");
    let crib = Crib::new(catalog(&tools), Settings::default());
    let mut chat = Chat::new(&crib);
    assert_eq!(show(&mut chat).decision.deferral, Deferral::OnlyAlways);
    chat.search("select:github__create_issue");
    assert_eq!(show(&mut chat).decision.deferral, Deferral::OnlyAlways);
}

#[test]
fn a_resumed_conversation_keeps_deferring() {
    use toolcrib_core::Ledger;
    use toolcrib_core::conversation::TranscriptEntry;
    let few = Crib::new(catalog(&office()[..3]), Settings::default());
    let resumed = |ledger| {
        show(&mut Chat { conversation: Conversation::with_ledger(ledger), ..Chat::new(&few) })
    };
    let calls = Ledger::from_transcript([TranscriptEntry::Call("github__create_issue")], 8);
    assert!(
        resumed(calls).passes_through(),
        "a transcript with only calls does not activate deferral"
    );
    let all = crib_with(&sixteen_tools(), "[activation]\n");
    let mut chat = Chat::new(&all);
    show(&mut chat);
    let imported = Ledger::import(&chat.conversation.ledger().export(), 8).unwrap();
    assert_eq!(
        resumed(imported).decision.reason,
        ActivationReason::Sticky,
        "the conversation still defers, although no tool was loaded"
    );
}
