//! Tests of what a search under `hermes` finds.

use serde_json::{Value, json};

use super::super::{Setup, numbered, plain};
use super::{ON, calendar, github, on, session, slack};

#[test]
fn a_search_returns_five_unless_the_model_asks_and_twenty_at_most() {
    let mut session = on(&numbered(30, "job", "Runs a job."));
    let mut found = |arguments: Value| session.found_with("tool_search", &arguments).len();
    assert_eq!(found(json!({"query": "job"})), 5);
    assert_eq!(found(json!({"query": "job", "limit": 12})), 12);
    assert_eq!(found(json!({"query": "job", "limit": 99})), 20);
    assert_eq!(found(json!({"query": "job", "limit": 0})), 1);
    assert_eq!(
        found(json!({"query": "job", "limit": "many"})),
        5,
        "a limit that is not a number is ignored"
    );
}

#[test]
fn search_looks_at_names_descriptions_and_names_of_parameters() {
    let mut session = session();
    for (query, first) in
        [("slack", "slack__post"), ("meeting", "calendar__add"), ("attendees", "calendar__add")]
    {
        assert_eq!(session.found(query), [first], "{query}");
    }
}

#[test]
fn a_rarer_word_counts_more_and_a_longer_text_less() {
    let mut session = on(&plain(&[
        ("one", "report report report"),
        ("two", "report invoice"),
        ("three", "report and a good many other words in addition to it"),
    ]));
    assert_eq!(session.found("invoice report"), ["acme__two", "acme__one", "acme__three"]);
}

#[test]
fn a_word_that_every_tool_has_still_finds_them_all() {
    let mut session = Setup::toml(ON, &[("github", &github())]).start();
    assert_eq!(session.found("github"), ["github__list_issues", "github__create_issue"]);
}

#[test]
fn a_query_without_a_hit_is_looked_for_inside_the_names_and_nowhere_else() {
    let mut session = session();
    assert_eq!(session.found("hub__cre"), ["github__create_issue"]);
    assert_eq!(session.found("GITH"), ["github__create_issue", "github__list_issues"]);
    assert_eq!(session.found("eetin"), [""; 0], "part of a word in a description does not match");
    assert_eq!(
        session.found("post hub"),
        ["slack__post"],
        "no substring is searched if a word matches"
    );
}

#[test]
fn a_miss_names_the_sources_and_asks_for_other_words() {
    assert_eq!(
        session().search("teleport"),
        json!({
            "query": "teleport",
            "total_available": 4,
            "matches": [],
            "available_sources": [
                {"name": "calendar", "tools": 1},
                {"name": "github", "tools": 2},
                {"name": "slack", "tools": 1}
            ],
            "hint": "Nothing matches \"teleport\". Try another word for it, or fewer words."
        })
    );
}

#[test]
fn a_tool_that_is_gone_is_neither_found_nor_called() {
    let mut session = session();
    session.list();
    assert_eq!(session.found("slack"), ["slack__post"]);
    session.define("slack", &plain(&[("other", "Something else.")]));
    crate::support::eventually("the change", || {
        (session.found("send message").is_empty()).then_some(())
    });
    let arguments = json!({"channel": "#a", "text": "b"});
    let call = json!({"name": "slack__post", "arguments": arguments});
    assert_eq!(session.refused("tool_call", &call)["error"], "unknown_tool");
}

#[test]
fn a_restricted_session_can_neither_find_nor_describe_nor_call_beyond_its_tools() {
    let config = format!("{ON}[profiles.few]\nservers = [\"calendar\"]\n");
    let servers: [(&str, &[Value]); 2] = [("calendar", &calendar()), ("slack", &slack())];
    let mut session = Setup::toml(&config, &servers).flags(&["--profile", "few"]).start();
    let answer = session.search("post slack message");
    assert_eq!((&answer["matches"], &answer["total_available"]), (&json!([]), &json!(1)));
    let input = |name: &str| json!({"name": name, "arguments": {"channel": "#a", "text": "b"}});
    let described = session.refused("tool_describe", &input("slack__post"));
    let called = session.refused("tool_call", &input("slack__post"));
    assert_eq!(described, called);
    let none = session.refused("tool_call", &input("skype__post"));
    assert_eq!(
        called.to_string().replace("slack", "skype"),
        none.to_string(),
        "a hidden tool is refused like an unknown one"
    );
    let description = session.listed("tool_search")["description"].as_str().unwrap().to_owned();
    assert!(description.ends_with("1 tool on 1 server.\n"), "{description}");
}

#[test]
fn tools_out_of_scope_do_not_move_a_rank() {
    let config = format!("{ON}[profiles.few]\nservers = [\"github\"]\n");
    let servers: [(&str, &[Value]); 2] = [("github", &github()), ("slack", &slack())];
    let mut narrowed = Setup::toml(&config, &servers).flags(&["--profile", "few"]).start();
    let mut alone = Setup::toml(ON, &[("github", &github())]).start();
    let found = narrowed.search("issue repository");
    assert_eq!(found["matches"].as_array().unwrap().len(), 2);
    assert_eq!(found, alone.search("issue repository"));
}
