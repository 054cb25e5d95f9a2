//! Tests of conversations under `everruns`: which state is kept, and how tools are called.

use serde_json::{Value, json};

use super::{Proxy, Setup, agent, done, everruns, is_stub, search, strings, tool};
use crate::behaviours::{call, call_with_text};

#[test]
fn a_found_tool_has_its_full_schema_on_the_next_request_and_for_the_rest_of_the_conversation() {
    let ran = call("web_fetch", &json!({"url": "https://example.org"}));
    let mut proxy = Proxy::start(&everruns(), [search("web_fetch"), ran, search("bash"), done()]);
    let exchange = proxy.ask(&agent());
    assert!(is_stub(&exchange, 0, "web_fetch"));
    assert_eq!(
        *exchange.tool(1, "web_fetch"),
        agent()[6],
        "the found tool has its full definition: {:?}",
        exchange.names(1)
    );
    assert_eq!(exchange.names(1), exchange.names(0));
    let later = proxy.continue_with(&agent());
    assert_eq!(*later.tool(0, "web_fetch"), agent()[6]);
    assert_eq!(later.tools(1)[5..7], agent()[5..7]);
    let stubs = agent()
        .iter()
        .filter(|t| is_stub(&later, 1, t["function"]["name"].as_str().unwrap()))
        .count();
    assert_eq!(stubs, 13, "only the two found tools are loaded");
}

#[test]
fn a_conversation_keeps_its_last_sixty_four_reveals() {
    let tools: Vec<Value> = (0..72).map(|i| tool(&format!("t{i:02}"), "", &["a"], 1)).collect();
    let eight = |at: usize| {
        let names: Vec<String> = (8 * at..8 * at + 8).map(|i| format!("t{i:02}")).collect();
        search(&format!("select:{}", names.join(",")))
    };
    let answers = (0..4).map(eight).chain([done()]).chain((4..8).map(eight)).chain([
        done(),
        eight(8),
        done(),
    ]);
    let mut proxy = Proxy::start(&everruns(), answers);
    proxy.ask(&tools);
    proxy.continue_with(&tools);
    let exchange = proxy.continue_with(&tools);
    let stubs: Vec<usize> =
        (0..72).filter(|i| is_stub(&exchange, 1, &format!("t{i:02}"))).collect();
    assert_eq!(stubs, (0..8).collect::<Vec<_>>());
}

#[test]
fn tools_found_in_one_conversation_are_not_shown_in_another() {
    let mut proxy = Proxy::start(&everruns(), [search("bash"), done(), done()]);
    assert!(!is_stub(&proxy.ask(&agent()), 1, "bash"));
    assert!(is_stub(&proxy.ask(&agent()), 0, "bash"));
}

#[test]
fn a_conversation_whose_state_is_lost_searches_again() {
    let mut proxy = Proxy::start(&everruns(), [search("bash"), done()]);
    assert!(!is_stub(&proxy.ask(&agent()), 1, "bash"));
    let mut proxy = proxy.on_another_proxy([search("bash"), done()]);
    let exchange = proxy.continue_with(&agent());
    assert!(is_stub(&exchange, 0, "bash") && !is_stub(&exchange, 1, "bash"));
}

#[test]
fn calls_reach_the_client_by_their_own_names_with_their_own_arguments() {
    let arguments = r#"{ "url": "https://example.org", "note": "é" }"#;
    let answers = [search("web_fetch"), call_with_text("web_fetch", arguments)];
    let exchange = Proxy::start(&everruns(), answers).ask(&agent());
    assert_eq!(exchange.calls(), [("web_fetch".to_owned(), arguments.to_owned())]);
}

#[test]
fn an_allowlisted_tool_needs_no_search() {
    let setup = Setup::preset("everruns", "[defer]\nnever = ['bash']");
    let exchange = Proxy::start(&setup, [call("bash", &json!({"command": "ls"}))]).ask(&agent());
    assert_eq!(*exchange.tool(0, "bash"), agent()[5]);
    assert!(is_stub(&exchange, 0, "read_file"));
    assert_eq!((exchange.sent.len(), exchange.calls().len()), (1, 1));
}

#[test]
fn a_first_use_costs_one_search_or_a_right_guess() {
    let wrong = call("web_fetch", &json!({"address": "https://example.org"}));
    let mut proxy =
        Proxy::start(&everruns(), [wrong, done(), call("bash", &json!({"command": "ls"}))]);
    let exchange = proxy.ask(&agent());
    assert_eq!(exchange.calls(), []);
    assert!(
        exchange.reply(1).contains(&strings(&["url", "note"], 1).to_string()),
        "{}",
        exchange.reply(1)
    );
    assert_eq!(
        *exchange.tool(1, "web_fetch"),
        agent()[6],
        "a call with wrong arguments loads the tool"
    );
    let exchange = proxy.continue_with(&agent());
    assert_eq!((exchange.sent.len(), exchange.calls().len()), (1, 1));
}

#[test]
fn in_the_earlier_edition_the_schema_is_in_the_answer_and_nowhere_else() {
    let setup = Setup::preset("everruns", "reveals = false");
    let mut proxy = Proxy::start(&setup, [search("bash"), call("bash", &json!({"command": "ls"}))]);
    let exchange = proxy.ask(&agent());
    let answer: Value = serde_json::from_str(exchange.reply(1)).unwrap();
    assert_eq!(answer["tools"][0]["parameters"], strings(&["command", "note"], 1));
    assert_eq!(exchange.tools(1), exchange.tools(0), "the stub is unchanged");
    assert_eq!(exchange.calls()[0].0, "bash");
}
