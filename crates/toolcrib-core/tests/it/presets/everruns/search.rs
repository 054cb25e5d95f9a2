//! Tests of searching and ranking with the `everruns` preset.

use serde_json::{Value, json};
use toolcrib_core::call::RefusalCode;
use toolcrib_core::disclosure::SEARCH;
use toolcrib_core::reply::AvailableTools;
use toolcrib_core::{Scope, SearchRequest};

use super::{agent, answer, everruns, is_stub, plain, scores, show};
use crate::support::{Chat, names, strings, tool};

// Tests of the ranking.

#[test]
fn a_term_scores_three_in_the_name_and_one_in_the_description_alone() {
    let crib = everruns(&plain(&[
        ("mail_send", "Send mail."),
        ("mail_list", "What was sent."),
        ("fax_send", "Send a page."),
        ("post_letter", "For those without mail."),
    ]));
    let mut chat = Chat::new(&crib);
    assert_eq!(scores(&chat.search("mail")), [("mail_send", 3.0), ("mail_list", 3.0)]);
    let both = chat.search("mail  send");
    assert_eq!(scores(&both), [("mail_send", 6.0), ("mail_list", 3.0), ("fax_send", 3.0)]);
    assert_eq!(scores(&chat.search("without")), [("post_letter", 1.0)]);
}

#[test]
fn a_name_hit_dominates_an_incidental_word_in_prose() {
    let crib = everruns(&plain(&[
        ("bash", "Run a command; can also read a file."),
        ("read_file", "Show its content."),
    ]));
    assert_eq!(scores(&Chat::new(&crib).search("file")), [("read_file", 3.0)]);
}

#[test]
fn a_query_that_is_a_name_ranks_that_tool_first_by_a_hundred() {
    let crib = everruns(&plain(&[
        ("read_file_lines", "Like read_file, in part."),
        ("read_file", "Show a file."),
    ]));
    let mut chat = Chat::new(&crib);
    assert_eq!(scores(&chat.search("read_file")), [("read_file", 103.0)]);
    assert_eq!(scores(&chat.search("READ_FILE")), [("read_file", 103.0)]);
}

#[test]
fn a_tool_with_a_server_prefix_is_found_by_its_own_name() {
    let crib = everruns(&plain(&[
        ("dev__read_file_lines", "Like read_file, in part."),
        ("dev__read_file", "Show a file."),
    ]));
    assert_eq!(scores(&Chat::new(&crib).search("read_file")), [("dev__read_file", 103.0)]);
    let crib = everruns(&plain(&[("dev__read_file", "Theirs."), ("read_file", "Ours.")]));
    assert_eq!(scores(&Chat::new(&crib).search("read_file")), [("read_file", 103.0)]);
    let crib = everruns(&plain(&[("dev__get", "One."), ("ops__get", "Two.")]));
    let both = [("dev__get", 103.0), ("ops__get", 103.0)];
    assert_eq!(scores(&Chat::new(&crib).search("get")), both);
}

#[test]
fn punctuation_around_a_name_is_stripped() {
    let crib = everruns(&plain(&[("read_file", "Show a file."), ("read_file_lines", "In part.")]));
    for query in ["\"read_file\"", "`read_file`", "'read_file'", " read_file. ", "(read_file)"] {
        assert_eq!(scores(&Chat::new(&crib).search(query)), [("read_file", 103.0)], "{query}");
    }
}

#[test]
fn tools_with_less_than_half_the_best_score_are_left_out() {
    let crib = everruns(&plain(&[
        ("send_mail_now", "Nine: three words in the name."),
        ("mail_box", "Five: to send now or later."),
        ("mail_tray", "Four: to send later."),
    ]));
    let mut chat = Chat::new(&crib);
    let reply = chat.search("send mail now");
    assert_eq!(scores(&reply), [("send_mail_now", 9.0), ("mail_box", 5.0)]);
    let reply = chat.search("mail now");
    assert_eq!(scores(&reply)[1], ("mail_box", 4.0), "more than half of the best score, 6");
    assert_eq!(scores(&reply)[2], ("mail_tray", 3.0), "half of the best score is enough");
}

#[test]
fn at_most_eight_tools_are_returned_and_revealed_by_one_search() {
    let tools: Vec<Value> = (0..15)
        .map(|i| tool(&format!("note_{i}"), "Takes it down.", &strings(&["a"], 1)))
        .collect();
    let crib = everruns(&tools);
    let mut chat = Chat::new(&crib);
    let ask = SearchRequest::query("note").with_limit(50);
    let reply = chat.ask(&ask);
    assert_eq!((reply.hits.len(), reply.loaded.len()), (8, 8));
    let shown = show(&mut chat);
    let stubs = (0..15).filter(|i| is_stub(&shown, &format!("note_{i}"))).count();
    assert_eq!(stubs, 7);
}

#[test]
fn several_queries_in_one_call_share_the_eight() {
    let tools: Vec<Value> = (0..24)
        .map(|i| tool(&format!("{}_{i}", ["note", "mail", "fax"][i % 3]), "", &strings(&["a"], 1)))
        .collect();
    let queries = ["note", "mail", "fax"];
    let reply = Chat::new(&everruns(&tools)).ask(&SearchRequest::queries(queries));
    assert_eq!(
        names(&reply),
        ["note_0", "mail_1", "fax_2", "note_3", "mail_4", "fax_5", "note_6", "mail_7"]
    );
    let queries = ["select:fax_2,fax_5,fax_8,fax_11,fax_14", "note"];
    let reply = Chat::new(&everruns(&tools)).ask(&SearchRequest::queries(queries));
    assert_eq!(
        names(&reply)[4..],
        ["fax_14", "note_0", "note_3", "note_6"],
        "selected names count towards the limit"
    );
}

#[test]
fn without_an_allowlist_nothing_is_visible() {
    let crib = everruns(&agent());
    let mut chat = Chat { scope: Scope::none(crib.catalog()), ..Chat::new(&crib) };
    let reply = chat.search("file");
    assert_eq!((reply.hits.len(), reply.available), (0, Some(AvailableTools::Names(Vec::new()))));
    assert_eq!(chat.refused("read_file", r#"{"path":"a"}"#).code, RefusalCode::UnknownTool);
    assert_eq!(show(&mut chat).tools, []);
}

#[test]
fn every_tool_that_has_a_stub_can_be_loaded_by_its_name() {
    let crib = everruns(&agent());
    for tool in agent() {
        let name = tool["name"].as_str().unwrap();
        assert_eq!(Chat::new(&crib).search(name).loaded, [name]);
    }
}

#[test]
fn a_search_considers_only_the_tools_that_are_visible_in_this_turn() {
    let crib = everruns(&agent());
    let mut chat = Chat::within(&crib, &["read_file", "bash"]);
    assert_eq!(names(&chat.search("file")), ["read_file"]);
    assert_eq!(names(&chat.search("write_file")), [""; 0]);
    let miss = answer(chat.call(SEARCH, r#"{"query": "web_fetch"}"#));
    assert_eq!(miss["available_tools"], json!(["bash", "read_file"]));
}

// Tests of replies.

#[test]
fn an_answer_carries_the_full_schemas_of_the_matches() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    show(&mut chat);
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
    assert_eq!(answer(chat.call(SEARCH, r#"{"query": "fetch"}"#)), expected);
}

#[test]
fn without_a_match_the_available_names_are_returned_and_no_schema() {
    let crib = everruns(&agent()[..3]);
    let expected = json!({
        "query": "calendar",
        "tools": [],
        "loaded": [],
        "message": "Nothing matches \"calendar\". Try another word for it, or fewer words.",
        "available_tools": ["edit_file", "read_file", "write_file"],
    });
    assert_eq!(answer(Chat::new(&crib).call(SEARCH, r#"{"query": "calendar"}"#)), expected);
}

#[test]
fn an_empty_query_lists_the_names_and_reveals_nothing() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    let before = show(&mut chat);
    for query in [r#"{"query": ""}"#, r#"{"query": "..."}"#] {
        let listed = answer(chat.call(SEARCH, query));
        assert_eq!(listed["available_tools"].as_array().unwrap().len(), 15, "{query}");
        assert_eq!((&listed["tools"], &listed["loaded"]), (&json!([]), &json!([])));
    }
    assert_eq!(show(&mut chat), before);
}

#[test]
fn tools_of_mcp_servers_are_deferred_and_found_like_any_other() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    assert!(is_stub(&show(&mut chat), "weather__forecast"));
    let reply = chat.search("forecast");
    assert_eq!(
        reply.hits[0].input_schema.as_ref().unwrap().get(),
        crib.catalog().tools()[14].schema()
    );
}

#[test]
fn select_loads_several_tools_by_name() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    assert_eq!(names(&chat.search("select:bash,web_fetch")), ["bash", "web_fetch"]);
}
