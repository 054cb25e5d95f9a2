//! Tests of the index of tool names under `claude-code`: how it is grouped, how it grows, and what it says about
//! servers that are unavailable.

use serde_json::json;

use super::super::{CHANGED, Setup, plain, program, tool};
use super::{github, index, session, slack};
use crate::support::client::Era;
use crate::support::gateway::server;
use crate::support::{eventually, testkit_program};

#[test]
fn the_index_groups_names_by_server_and_sorts_them() {
    let mut mixed = github();
    let mut session = session();
    let before = index(&mut session);
    mixed.reverse();
    session.define("github", &mixed);
    // The new order alone does not change the index, so the gateway would not announce it. One more tool is added, and
    // its announcement shows that the gateway has fetched the new order, too.
    let more = [mixed, plain(&[("zip", "Packs.")])].concat();
    session.define("github", &more);
    session.client.wait_for_message(CHANGED);
    let names = "github__create_pull_request, github__get_file_contents, github__search_code";
    let after = index(&mut session);
    assert!(before.contains(&format!("github (3): {names}\n")), "{before}");
    assert!(after.contains(&format!("github (4): {names}, github__zip\n")), "{after}");
}

#[test]
fn two_servers_with_a_search_tool_are_kept_apart() {
    let [one, two] = ["Search github.", "Search linear."].map(|words| plain(&[("search", words)]));
    let setup = Setup::preset("claude-code", &[("github", &one), ("linear", &two)]);
    let mut session = setup.start();
    assert_eq!(session.found("+linear search"), ["linear__search"]);
    session.runs("mcp__github__search", &json!({}));
    let refusal = session.refused("tool_call", &json!({"name": "search", "arguments": {}}));
    assert_eq!(refusal["error"], "ambiguous_name");
    assert_eq!(refusal["nearest"], json!(["github__search", "linear__search"]));
}

#[test]
fn the_tools_of_a_server_that_is_added_show_up_in_the_same_index() {
    let mut session = Setup::preset("claude-code", &[("slack", &slack())]).start();
    assert!(!index(&mut session).contains("github"));
    session.found("select:slack__send_message");
    let home = &session.setup.home;
    let program = program(home, "github", &github());
    let config = std::fs::read_to_string(&session.setup.file).unwrap();
    home.configure(&format!("{config}{}", server("github", &program, "")));
    eventually("the new server's tools are listed", || {
        index(&mut session).contains("github__search_code").then_some(())
    });
    assert_eq!(
        session.names(),
        ["tool_search", "slack__send_message"],
        "the other tools are unchanged"
    );
    assert_eq!(session.found("repositories")[0], "github__search_code");
}

#[test]
fn the_listing_is_as_long_as_the_settings_allow() {
    let jobs: Vec<_> = (0..60).map(|at| tool(&format!("job_{at:02}"), "", &[], 0)).collect();
    let listed = |config: &str| {
        let config = format!("preset = \"claude-code\"\n{config}");
        index(&mut Setup::toml(&config, &[("acme", &jobs)]).start())
    };
    assert!(listed("").contains("acme__job_59"));
    let short = listed("[listing]\ntokens = 50\n");
    assert!(short.contains("acme (60)") && !short.contains("acme__job_"), "{short}");
}

#[test]
fn a_miss_says_which_server_is_still_connecting() {
    let setup = Setup::preset("claude-code", &[("slack", &slack())]);
    let silent = server("github", &testkit_program("faulty-server", &["--never-answer"]), "");
    let config = std::fs::read_to_string(&setup.file).unwrap();
    setup.home.configure(&format!("{config}[gateway]\nwait = 0\nfirst_list_wait = 0\n{silent}"));
    let mut session = setup.connect("test", Era::Older);
    let answer = session.text("tool_search", &json!({"query": "repositories"}));
    assert!(answer.contains("\"connecting\":["), "{answer}");
    assert!(answer.contains("\"github\""), "{answer}");
    assert!(
        answer.contains("Some servers are still connecting: search again in a moment."),
        "{answer}"
    );
}
