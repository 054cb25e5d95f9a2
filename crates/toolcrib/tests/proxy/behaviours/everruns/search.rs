//! Tests of search under `everruns`: what it finds, and how it ranks.

use serde_json::{Value, json};

use super::{Proxy, Setup, agent, done, everruns, is_stub, search, strings, tool};
use crate::behaviours::{call, names, search_json};

/// Returns a setup that defers even a few tools, and tools without parameters, each defined by its name and
/// description.
fn plain(tools: &[(&str, &str)]) -> (Setup, Vec<Value>) {
    let tools = tools.iter().map(|(name, words)| tool(name, words, &[], 0)).collect();
    (Setup::preset("everruns", "[activation]\nmode = 'on'"), tools)
}

/// Checks which names each query finds.
fn finds(tools: &[(&str, &str)], expected: &[(&str, &[&str])]) {
    let (setup, tools) = plain(tools);
    let queries: Vec<&str> = expected.iter().map(|(query, _)| *query).collect();
    for (answer, (query, expected)) in search_json(&setup, &tools, &queries).iter().zip(expected) {
        assert_eq!(names(answer, "tools"), *expected, "{query}");
    }
}

#[test]
fn a_term_counts_more_in_the_name_than_in_the_description() {
    let tools = [
        ("mail_send", "Send mail."),
        ("mail_list", "What was sent."),
        ("fax_send", "Send a page."),
        ("post_letter", "For those without mail."),
    ];
    finds(
        &tools,
        &[
            ("mail", &["mail_send", "mail_list"]),
            ("mail  send", &["mail_send", "mail_list", "fax_send"]),
            ("without", &["post_letter"]),
        ],
    );
}

#[test]
fn a_name_hit_dominates_an_incidental_word_in_prose() {
    let tools =
        [("bash", "Run a command; can also read a file."), ("read_file", "Show its content.")];
    finds(&tools, &[("file", &["read_file"])]);
}

#[test]
fn a_query_that_is_a_name_in_any_spelling_finds_only_that_tool() {
    let tools =
        [("read_file_lines", "Like read_file, in part."), ("dev__read_file", "Show a file.")];
    let only: &[&str] = &["dev__read_file"];
    let queries = [
        "read_file",
        "READ_FILE",
        "dev__read_file",
        "\"read_file\"",
        " read_file. ",
        "(read_file)",
    ];
    finds(&tools, &queries.map(|query| (query, only)));
}

#[test]
fn what_scores_less_than_half_the_best_is_left_out() {
    let tools = [
        ("send_mail_now", "Nine: three words in the name."),
        ("mail_box", "Five: to send now or later."),
        ("mail_tray", "Four: to send later."),
    ];
    finds(
        &tools,
        &[
            ("send mail now", &["send_mail_now", "mail_box"]),
            ("mail now", &["send_mail_now", "mail_box", "mail_tray"]),
        ],
    );
}

#[test]
fn one_search_returns_and_reveals_eight_tools_at_most() {
    let tools: Vec<Value> =
        (0..15).map(|i| tool(&format!("note_{i}"), "Takes it down.", &["a"], 1)).collect();
    let ask = call("tool_search", &json!({"query": "note", "limit": 50}));
    let exchange = Proxy::start(&everruns(), [ask, done()]).ask(&tools);
    let answer: Value = serde_json::from_str(exchange.reply(1)).unwrap();
    assert_eq!((names(&answer, "tools").len(), answer["loaded"].as_array().unwrap().len()), (8, 8));
    let stubs = (0..15).filter(|i| is_stub(&exchange, 1, &format!("note_{i}"))).count();
    assert_eq!(stubs, 7);
}

#[test]
fn a_search_considers_only_the_tools_that_the_caller_may_see() {
    let setup = Setup::preset("everruns", "[activation]\ntools = 2");
    let setup = setup.header("x-toolcrib-tools: read_file, bash\r\n");
    let answers = search_json(&setup, &agent(), &["file", "web_fetch"]);
    assert_eq!(names(&answers[0], "tools"), ["read_file"]);
    assert_eq!(answers[1]["available_tools"], json!(["bash", "read_file"]));
}

#[test]
fn a_caller_that_may_see_nothing_gets_no_tools() {
    let setup = everruns().header("x-toolcrib-tools: -*\r\n");
    let exchange = super::first_exchange(&setup, &agent());
    assert!(
        exchange.sent[0].get("tools").is_none_or(|tools| *tools == json!([])),
        "{}",
        exchange.sent[0]
    );
}

#[test]
fn an_answer_carries_the_full_schemas_of_the_matches() {
    let expected = json!({
        "query": "fetch",
        "tools": [{
            "name": "web_fetch",
            "description": "Get a page from the web.",
            "parameters": strings(&["url", "note"], 1),
        }],
        "loaded": ["web_fetch"],
        "message": "The tools are loaded: call them with their real parameters.",
    });
    assert_eq!(search_json(&everruns(), &agent(), &["fetch"]), [expected]);
}

#[test]
fn a_miss_and_an_empty_query_list_the_names_and_reveal_nothing() {
    let mut proxy =
        Proxy::start(&everruns(), [search("calendar"), search(""), search("..."), done()]);
    let exchange = proxy.ask(&agent());
    for round in 1..4 {
        let answer: Value = serde_json::from_str(exchange.reply(round)).unwrap();
        assert_eq!(answer["available_tools"].as_array().unwrap().len(), 15);
        assert_eq!((&answer["tools"], &answer["loaded"]), (&json!([]), &json!([])));
        assert_eq!(exchange.tools(round), exchange.tools(0));
    }
}

#[test]
fn every_stub_is_loaded_by_its_name_alone_servers_tools_too() {
    let tools = agent();
    let names: Vec<&str> =
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    for (answer, name) in search_json(&everruns(), &tools, &names).iter().zip(&names) {
        assert_eq!(answer["loaded"], json!([name]));
    }
}
