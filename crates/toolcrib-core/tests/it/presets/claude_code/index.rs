//! Tests of the index of tool names that the `claude-code` preset sends as a message: how it is grouped, grows, shrinks
//! and is withdrawn.

use serde_json::{Value, json};
use toolcrib_core::call::RefusalCode;
use toolcrib_core::listing::ListingForm;
use toolcrib_core::{
    Catalog, Conversation, Crib, DefinitionFormat, Limits, Preset, Scope, SearchRequest,
    TurnContext, ingest,
};

use super::{crib, mcp, resume, session, show};
use crate::support::{Chat, lines, names};

#[test]
fn the_index_groups_names_by_provider_and_sorts_them() {
    let mut mixed = session();
    mixed.swap(3, 5);
    mixed.rotate_left(4);
    let listing =
        |tools: &[Value]| show(&mut Chat::new(&crib(tools))).listing.clone().unwrap().text;
    assert_eq!(listing(&mixed), listing(&session()), "the order of the tools does not matter");
    let text = listing(&session());
    let servers: Vec<&str> = text.lines().map(|line| line.split_once(':').unwrap().0).collect();
    assert_eq!(servers, ["other (3)", "figma (1)", "github (3)", "slack (1)"]);
}

#[test]
fn two_providers_with_a_search_tool_are_kept_apart() {
    let mut builder = Catalog::builder();
    for server in ["github", "linear"] {
        let description = format!("Search {server}.");
        let text =
            lines(&[json!({"name": "search", "description": description, "inputSchema": {}})]);
        builder.add(ingest(text.as_bytes(), Some(server), &Limits::default()).unwrap());
    }
    let crib = Crib::new(builder.build(), Preset::ClaudeCode.settings());
    let found = Chat::new(&crib).search("+linear search");
    assert_eq!(names(&found), ["linear__search"]);
    assert_eq!(Chat::new(&crib).runs("mcp__github__search", "{}").0, "github__search");
    let refusal = Chat::new(&crib).refused("search", "{}");
    assert_eq!(refusal.code, RefusalCode::AmbiguousName);
    assert_eq!(refusal.nearest, ["github__search", "linear__search"]);
}

#[test]
fn a_providers_own_search_is_one_more_tool_to_be_found() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let reply = chat.search("search code");
    assert_eq!(names(&reply)[0], "mcp__github__search_code");
    let input = r#"{"query":"fn main"}"#;
    let ran = chat.runs("mcp__github__search_code", input);
    assert_eq!(ran, ("mcp__github__search_code".to_owned(), input.to_owned()));
}

#[test]
fn a_server_that_connects_later_is_announced_and_the_tools_array_is_unchanged() {
    let early = crib(&session()[..4]);
    let mut chat = Chat::new(&early);
    let before = show(&mut chat);
    let all = crib(&session());
    let mut later = resume(chat, &all);
    let after = show(&mut later);
    assert_eq!(
        after.announcement.as_deref(),
        Some(
            "Deferred tools now available too: \"mcp__figma__search_design_system\", \
             \"mcp__github__create_pull_request\", \"mcp__github__get_file_contents\", \
             \"mcp__github__search_code\"."
        )
    );
    assert_eq!(after.definitions(DefinitionFormat::Own), before.definitions(DefinitionFormat::Own));
    assert_eq!(show(&mut later).announcement, None, "announced once");
    assert_eq!(names(&later.search("figma components"))[0], "mcp__figma__search_design_system");
}

#[test]
fn a_reply_without_hits_lists_connecting_servers_and_asks_to_retry() {
    let crib = crib(&session()[..4]);
    let scope = Scope::all(crib.catalog());
    let connecting = ["github".to_owned()];
    let turn = TurnContext::new(&scope).with_connecting(&connecting);
    let reply = crib.search(&turn, &mut Conversation::new(), &SearchRequest::query("repositories"));
    assert_eq!(
        reply.for_model(),
        "{\"available\":{\"names\":[\"Monitor\",\"NotebookEdit\",\"WebFetch\",\
         \"mcp__slack__send_message\"]},\"connecting\":[\"github\"]}\n\
         Nothing matches \"repositories\". Try another word for it, or fewer words.\n\
         Some servers are still connecting: search again in a moment.\n"
    );
}

#[test]
fn a_list_that_shrinks_is_sent_again_in_full() {
    let all = crib(&session());
    let mut chat = Chat::new(&all);
    show(&mut chat);
    let without_github: Vec<Value> = session().drain(..4).collect();
    let fewer = crib(&without_github);
    let message = show(&mut resume(chat, &fewer)).announcement.clone().unwrap();
    assert!(message.contains("This list replaces any before it."));
    assert!(message.contains("mcp__slack__send_message") && !message.contains("github"));
}

#[test]
fn the_list_of_a_narrower_scope_is_sent_again_in_full() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    show(&mut chat);
    chat.scope = Scope::named(crib.catalog(), ["Monitor", "WebFetch"]);
    let message = show(&mut chat).announcement.clone().unwrap();
    assert!(message.contains("other (2): Monitor, WebFetch\n") && !message.contains("slack"));
}

#[test]
fn an_outdated_list_is_withdrawn_once() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    show(&mut chat);
    chat.scope = Scope::none(crib.catalog());
    let announcement = show(&mut chat).announcement.clone().unwrap();
    assert!(announcement.starts_with("No tool is deferred any more"), "{announcement}");
    assert_eq!(show(&mut chat).announcement, None);
    chat.scope = Scope::all(crib.catalog());
    let again = show(&mut chat).announcement.clone().unwrap();
    assert!(again.contains("mcp__slack__send_message"), "{again}");
}

#[test]
fn the_announcement_of_a_request_that_was_not_sent_can_be_repeated() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let first = show(&mut chat).announcement.clone();
    assert!(first.is_some() && show(&mut chat).announcement.is_none());
    chat.conversation.announce_again();
    assert_eq!(show(&mut chat).announcement, first);
    // If the message that withdraws the index was not sent, the next disclosure must contain it again.
    chat.scope = Scope::none(crib.catalog());
    let withdrawn = show(&mut chat).announcement.clone();
    chat.conversation.announce_again();
    assert!(withdrawn.is_some());
    assert_eq!(show(&mut chat).announcement, withdrawn);
}

#[test]
fn a_tool_out_of_scope_is_in_no_index_and_in_no_answer() {
    let crib = crib(&session());
    let mut chat = Chat::within(&crib, &["Monitor", "WebFetch"]);
    let shown = show(&mut chat);
    assert!(!format!("{:?}", shown.announcement).contains("github"));
    let reply = chat.search("select:mcp__github__search_code");
    let hidden = reply.for_model();
    let unknown = chat.search("select:mcp__gitlab__search_code").for_model();
    assert_eq!(
        hidden.replace("github", "gitlab"),
        unknown,
        "a hidden tool is answered like an unknown one"
    );
    let refusal = chat.refused("mcp__github__search_code", r#"{"query":"x"}"#);
    assert_eq!(refusal.code, RefusalCode::UnknownTool);
}

#[test]
fn ten_thousand_names_are_folded_up_to_their_servers() {
    let acme = (0..10_000).map(|i| mcp("acme", &format!("job_number_{i}"), "", &json!({})));
    let tools: Vec<Value> = acme.chain(session()).collect();
    let shown = show(&mut Chat::new(&crib(&tools)));
    let listing = shown.listing.as_ref().unwrap();
    assert_eq!(listing.form, ListingForm::Mixed);
    assert!(listing.text.contains("acme (10000 tools, names not listed)\n"));
    assert!(listing.text.contains("slack (1): mcp__slack__send_message\n"));
}
