//! Tests of the state of a session with the `everruns` preset, and of calls of its tools.

use serde_json::Value;
use toolcrib_core::conversation::DEFAULT_MAX_CONVERSATIONS;
use toolcrib_core::disclosure::SEARCH;
use toolcrib_core::{Conversations, Crib, Scope, SearchRequest, Settings, TurnContext};

use super::{agent, answer, everruns, is_stub, sent, show};
use crate::support::{Chat, catalog, strings, tool};

// Tests of tools that are shown in full once they are found.

#[test]
fn a_found_tool_has_its_full_schema_on_the_next_step_and_for_the_rest_of_the_session() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    assert!(is_stub(&show(&mut chat), "web_fetch"));
    chat.search("web_fetch");
    assert_eq!(sent(&show(&mut chat), "web_fetch"), agent()[6]);
    chat.search("bash");
    let later = show(&mut chat);
    assert_eq!(
        (sent(&later, "web_fetch"), sent(&later, "bash")),
        (agent()[6].clone(), agent()[5].clone())
    );
    let stubs = agent().iter().filter(|t| is_stub(&later, t["name"].as_str().unwrap())).count();
    assert_eq!(stubs, 13, "only the two found tools are loaded");
}

#[test]
fn tools_found_in_one_session_are_not_visible_in_another() {
    let crib = everruns(&agent());
    let scope = Scope::all(crib.catalog());
    let turn = TurnContext::new(&scope);
    let mut sessions = Conversations::default();
    crib.search(&turn, sessions.get("a"), &SearchRequest::query("bash"));
    assert!(!is_stub(&crib.disclose(&turn, sessions.get("a")), "bash"));
    assert!(is_stub(&crib.disclose(&turn, sessions.get("b")), "bash"));
}

#[test]
fn sessions_are_limited_and_an_evicted_one_must_search_again() {
    assert_eq!(DEFAULT_MAX_CONVERSATIONS, 4_096);
    let crib = everruns(&agent());
    let scope = Scope::all(crib.catalog());
    let turn = TurnContext::new(&scope);
    let mut sessions = Conversations::new(2, 64);
    for key in ["a", "b", "c"] {
        crib.search(&turn, sessions.get(key), &SearchRequest::query("bash"));
    }
    assert_eq!(sessions.len(), 2);
    assert!(!is_stub(&crib.disclose(&turn, sessions.get("b")), "bash"));
    assert!(
        is_stub(&crib.disclose(&turn, sessions.get("a")), "bash"),
        "the oldest session is evicted"
    );
    crib.search(&turn, sessions.get("a"), &SearchRequest::query("bash"));
    assert!(!is_stub(&crib.disclose(&turn, sessions.get("a")), "bash"));
}

#[test]
fn the_least_recently_used_session_is_evicted() {
    let crib = everruns(&agent());
    let scope = Scope::all(crib.catalog());
    let turn = TurnContext::new(&scope);
    let mut sessions = Conversations::new(2, 64);
    for key in ["a", "b", "a", "c"] {
        crib.search(&turn, sessions.get(key), &SearchRequest::query("bash"));
    }
    assert!(!is_stub(&crib.disclose(&turn, sessions.get("a")), "bash"), "a session in use is kept");
}

#[test]
fn a_session_keeps_its_last_sixty_four_reveals() {
    let tools: Vec<Value> =
        (0..65).map(|i| tool(&format!("t{i}"), "", &strings(&["a"], 1))).collect();
    let crib = everruns(&tools);
    let mut chat = Chat::new(&crib);
    for i in 0..65 {
        chat.search(&format!("t{i}"));
    }
    let shown = show(&mut chat);
    let stubs: Vec<usize> = (0..65).filter(|i| is_stub(&shown, &format!("t{i}"))).collect();
    assert_eq!(stubs, [0]);
}

#[test]
fn a_tool_that_changed_after_it_was_found_is_a_stub_again() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    chat.search("bash");
    let mut tools = agent();
    tools[5]["input_schema"] = strings(&["command", "timeout"], 2);
    let changed = everruns(&tools);
    let scope = Scope::all(changed.catalog());
    let shown = changed.disclose(&TurnContext::new(&scope), &mut chat.conversation);
    assert!(is_stub(&shown, "bash"));
}

// Tests of calls.

#[test]
fn tools_are_called_by_their_own_names_with_their_own_arguments() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    show(&mut chat);
    chat.search("web_fetch");
    let arguments = r#"{ "url": "https://example.org", "note": "é" }"#;
    assert_eq!(chat.runs("web_fetch", arguments), ("web_fetch".into(), arguments.into()));
}

#[test]
fn a_first_use_costs_one_search_or_a_right_guess() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    show(&mut chat);
    let refusal = chat.refused("web_fetch", r#"{"address": "https://example.org"}"#);
    assert_eq!(refusal.input_schema.unwrap().get(), crib.catalog().tools()[6].schema());
    assert!(!is_stub(&show(&mut chat), "web_fetch"), "a call with wrong arguments loads the tool");
    let arguments = r#"{"command": "ls"}"#;
    assert_eq!(chat.runs("bash", arguments), ("bash".into(), arguments.into()));
}

// Tests of the behaviour that an earlier edition of everruns' documentation describes.

#[test]
fn in_the_earlier_edition_the_schema_is_only_in_the_answer() {
    let settings = Settings::from_toml("preset = 'everruns'\nreveals = false").unwrap();
    let crib = Crib::new(catalog(&agent()), settings);
    let mut chat = Chat::new(&crib);
    let first = show(&mut chat);
    let reply = answer(chat.call(SEARCH, r#"{"query": "bash"}"#));
    assert_eq!(reply["tools"][0]["parameters"], strings(&["command", "note"], 1));
    assert_eq!(show(&mut chat), first, "the stub is unchanged");
    assert!(first.instruction.as_ref().unwrap().contains("Its real parameters are in the answer."));
    assert_eq!(chat.runs("bash", r#"{"command":"ls"}"#).0, "bash");
}
