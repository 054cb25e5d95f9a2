//! Tests of search under `everruns`: what it finds, and how it ranks.

use serde_json::json;

use super::super::{Setup, numbered, plain};
use super::{agent, with};

#[test]
fn a_name_hit_counts_three_and_one_in_the_description_one() {
    let mut tools = plain(&[
        ("mail_send", "Send mail."),
        ("mail_list", "What was sent."),
        ("fax_send", "Send a page."),
        ("post_letter", "For those without mail."),
        ("send_mail_now", "Three words in the name."),
        ("mail_box", "Five: to send now or later."),
    ]);
    tools
        .extend(plain(&[("bash", "Run a command; can also read a file."), ("view_file", "Show.")]));
    tools.extend(numbered(8, "gauge_", "Reads."));
    let mut session = with(&tools).start();
    assert_eq!(session.found("without"), ["dev__post_letter"], "a word in a description matches");
    assert_eq!(session.found("file"), ["dev__view_file"], "1 point is less than half of 3 points");
    let found = session.found("mail  send");
    assert_eq!(found[..2], ["dev__mail_send", "dev__send_mail_now"], "these score 6 points");
    assert_eq!(found[2], "dev__mail_box", "this scores 4 points");
    assert!(
        !found.contains(&"dev__post_letter".to_owned()),
        "2 of 6 points are too few: {found:?}"
    );
    assert!(
        found.contains(&"dev__fax_send".to_owned()),
        "half of the best score is enough: {found:?}"
    );
}

#[test]
fn a_query_that_is_a_name_finds_that_tool_alone_behind_a_prefix_and_punctuation() {
    let mut tools = plain(&[("read_file_lines", "Like read_file."), ("read_file", "Show a file.")]);
    tools.extend(numbered(13, "gauge_", "Reads."));
    let mut session = with(&tools).start();
    for query in
        ["dev__read_file", "read_file", "READ_FILE", "`read_file`", "(read_file).", "\"read_file\""]
    {
        assert_eq!(session.found(query), ["dev__read_file"], "{query}");
    }
}

#[test]
fn at_most_eight_tools_are_returned_and_revealed_by_one_search() {
    let mut session = with(&numbered(20, "note_", "Takes it down.")).start();
    assert_eq!(session.stubs().len(), 20);
    let arguments = json!({"query": "note", "limit": 50});
    assert_eq!(session.found_with("tool_search", &arguments).len(), 8);
    assert_eq!(session.stubs().len(), 12);
}

#[test]
fn a_search_considers_only_the_tools_of_the_profile() {
    let config = "preset = \"everruns\"\n[activation]\ntools = 1\n[profiles.few]\n\
                  allow = [\"dev/read_file\", \"dev/bash\"]\n[profiles.none]\nallow = [\"dev/no_such_tool\"]\n";
    let setup = Setup::toml(config, &[("dev", &agent())]).flags(&["--profile", "few"]);
    let mut session = setup.start();
    assert_eq!(session.found("file"), ["dev__read_file"]);
    let miss = session.search("write_file");
    assert_eq!(miss["available_tools"], json!(["dev__bash", "dev__read_file"]));
    let setup = Setup::toml(config, &[("dev", &agent())]).flags(&["--profile", "none"]);
    let mut session = setup.start();
    assert_eq!(session.search("file")["available_tools"], json!([]));
    assert!(
        !session.names().iter().any(|name| name.starts_with("dev__")),
        "the profile `none` shows no tool"
    );
}

#[test]
fn an_answer_carries_the_full_schemas_of_the_matches() {
    let mut session = with(&agent()).start();
    let expected = json!({
        "query": "fetch",
        "tools": [{
            "name": "dev__web_fetch",
            "description": "Get a page from the web.",
            "parameters": agent()[6]["inputSchema"],
        }],
        "loaded": ["dev__web_fetch"],
        "message": "The tools are loaded: call them with their real parameters.",
    });
    assert_eq!(session.search("fetch"), expected);
}

#[test]
fn no_match_and_an_empty_query_list_the_names_and_reveal_nothing() {
    let mut session = with(&agent()).start();
    let miss = session.search("calendar");
    assert!(miss["message"].as_str().unwrap().starts_with("Nothing matches \"calendar\"."));
    for answer in [miss, session.search(""), session.search("...")] {
        assert_eq!(answer["available_tools"].as_array().unwrap().len(), 15, "{answer}");
        assert_eq!((&answer["tools"], &answer["loaded"]), (&json!([]), &json!([])));
    }
    assert_eq!(session.stubs().len(), 15);
}

#[test]
fn tools_of_every_server_are_deferred_and_found() {
    let servers = [("dev", &agent()[..14]), ("weather", &agent()[14..])];
    let mut session = Setup::preset("everruns", &servers).start();
    assert!(session.is_stub("weather__forecast"));
    assert_eq!(session.found("forecast"), ["weather__forecast"]);
    assert_eq!(session.found("shell"), ["dev__bash"]);
}
