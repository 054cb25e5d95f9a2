//! The `everruns` preset, behaviour by behaviour: docs/presets/everruns.md names these tests.

mod config;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::call::Code;
use toolcrib_core::conversation::CONVERSATIONS;
use toolcrib_core::disclose::SEARCH;
use toolcrib_core::policy::{Because, Defers, Reason, Verdict};
use toolcrib_core::reply::Available;
use toolcrib_core::{
    Ask, Conversation, Conversations, Crib, Defer, Disclosure, Outcome, Preset, Problem, Reply,
    Scope, Settings, Shape, Turn,
};

use super::{configured, crib, warnings};
use crate::support::{Chat, catalog, names, strings, tool};

/// Fifteen tools: just enough to be deferred.
fn agent() -> Vec<Value> {
    let tools = [
        ("read_file", "Read a file from the workspace.", "path"),
        ("write_file", "Write a file to the workspace.", "path"),
        ("edit_file", "Replace text in a file.", "path"),
        ("list_directory", "List what a folder holds.", "path"),
        ("grep_files", "Look for a pattern in many files.", "pattern"),
        ("bash", "Run a shell command.", "command"),
        ("web_fetch", "Get a page from the web.", "url"),
        ("write_todos", "Keep the plan as a list of steps.", "steps"),
        ("get_time", "Tell date and time.", "zone"),
        ("kv_get", "Read a stored value.", "key"),
        ("kv_set", "Store a value.", "key"),
        ("spawn_agent", "Start a helper on a task of its own.", "task"),
        ("list_sessions", "List sessions that are running.", "state"),
        ("stop_session", "End a session.", "id"),
        ("weather__forecast", "Forecast for a place, from an MCP server.", "place"),
    ];
    let with = |(name, words, argument)| tool(name, words, &strings(&[argument, "note"], 1));
    tools.into_iter().map(with).collect()
}

/// The same with one tool's policy set by its owner.
fn agent_with(name: &str, defer: &str) -> Vec<Value> {
    let mut tools = agent();
    tools.iter_mut().find(|tool| tool["name"] == name).unwrap()["defer"] = defer.into();
    tools
}

fn everruns(tools: &[Value]) -> Crib {
    crib(Preset::Everruns, tools)
}

fn show(chat: &mut Chat<'_>) -> Arc<Disclosure> {
    chat.crib.disclose(&Turn::new(&chat.scope), &mut chat.conversation)
}

/// The definition the model gets of a tool.
fn sent(shown: &Disclosure, name: &str) -> Value {
    let definitions = shown.definitions(Shape::Own);
    let mut parsed = definitions.iter().map(|text| serde_json::from_str::<Value>(text).unwrap());
    parsed.find(|tool| tool["name"] == name).unwrap()
}

fn is_stub(shown: &Disclosure, name: &str) -> bool {
    sent(shown, name)["input_schema"]["properties"] == json!({})
}

fn answer(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Answer(reply) => serde_json::from_str(&reply.for_model()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Names and scores.
fn scores(reply: &Reply) -> Vec<(&str, f32)> {
    reply.hits.iter().map(|hit| (hit.name.as_str(), hit.score)).collect()
}

/// Tools that take nothing.
fn plain(tools: &[(&str, &str)]) -> Vec<Value> {
    tools.iter().map(|(name, words)| tool(name, words, &strings(&[], 0))).collect()
}

// When it defers.

#[test]
fn deferral_sets_in_at_fifteen_tools_and_not_at_fourteen() {
    let all = everruns(&agent());
    let shown = show(&mut Chat::new(&all));
    assert_eq!(shown.decision.reason, Reason::Count { tools: 15, threshold: 15 });
    let fewer = everruns(&agent()[..14]);
    let shown = show(&mut Chat::new(&fewer));
    assert_eq!(shown.decision.reason, Reason::Below);
}

#[test]
fn below_the_threshold_the_tools_are_sent_unchanged_and_nothing_is_added() {
    let crib = everruns(&agent()[..14]);
    let shown = show(&mut Chat::new(&crib));
    let input = serde_json::to_string_pretty(&agent()[..14]).unwrap();
    assert_eq!(crib.tools_json(&shown, &input, Shape::Own), input, "byte for byte");
    assert_eq!((shown.own.len(), &shown.instruction), (0, &None));
}

#[test]
fn tools_that_are_never_deferred_count_towards_the_threshold() {
    let mut tools = agent();
    for tool in &mut tools[1..] {
        tool["defer"] = "never".into();
    }
    let crib = everruns(&tools);
    let shown = show(&mut Chat::new(&crib));
    assert_eq!(shown.decision.reason, Reason::Count { tools: 15, threshold: 15 });
    assert!(is_stub(&shown, "read_file"));
}

#[test]
fn only_the_count_decides_whatever_the_tools_cost() {
    let long = "A word or two more. ".repeat(500);
    let large: Vec<Value> =
        (0..14).map(|i| tool(&format!("t{i}"), &long, &strings(&["a"], 1))).collect();
    let few = everruns(&large);
    let scope = Scope::all(few.catalog());
    let turn = Turn { context: Some(8_000), ..Turn::new(&scope) };
    assert!(few.disclose(&turn, &mut Conversation::new()).passes_through());
    let tiny: Vec<Value> = (0..15).map(|i| tool(&format!("t{i}"), "", &json!({}))).collect();
    let many = everruns(&tiny);
    let shown = show(&mut Chat::new(&many));
    assert!(shown.tokens_after > shown.tokens_before, "at a loss too");
}

#[test]
fn each_turn_is_decided_anew() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    assert_eq!(show(&mut chat).decision.defers, Defers::Everything);
    chat.scope = Scope::of(crib.catalog(), crib.catalog().ids().take(14));
    assert!(show(&mut chat).passes_through());
}

// What is sent in a schema's place.

#[test]
fn a_deferred_tool_keeps_name_and_description_and_its_stub_says_what_to_ask() {
    let crib = everruns(&agent());
    let stub = json!({
        "name": "web_fetch",
        "description": "Get a page from the web.",
        "input_schema": {
            "type": "object",
            "properties": {},
            "additionalProperties": true,
            "description": "Not loaded: call tool_search with the query web_fetch first.",
        },
        "server": "",
    });
    assert_eq!(sent(&show(&mut Chat::new(&crib)), "web_fetch"), stub);
}

#[test]
fn the_query_that_a_stub_names_loads_that_tool_alone() {
    let crib = everruns(&agent());
    for tool in agent() {
        let name = tool["name"].as_str().unwrap();
        assert_eq!(names(&Chat::new(&crib).search(name)), [name]);
    }
}

#[test]
fn the_search_tool_is_added_and_is_never_deferred() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    let first = sent(&show(&mut chat), SEARCH);
    assert_eq!(
        first["input_schema"],
        json!({
            "type": "object",
            "properties": {"query": {
                "type": "string",
                "description": "Keywords for what the tool should do, or its exact name.",
            }},
            "required": ["query"],
            "additionalProperties": false,
        })
    );
    chat.search("web_fetch");
    assert_eq!(sent(&show(&mut chat), SEARCH), first);
    assert_eq!(show(&mut chat).own.len(), 1, "there is no other tool of ours");
}

#[test]
fn a_tool_that_calls_itself_tool_search_is_not_let_in() {
    let tools = catalog(&plain(&[("tool_search", "Find things."), ("bash", "Run a command.")]));
    assert_eq!(tools.find("tool_search"), None);
    assert_eq!(tools.findings()[0].problem, Problem::NameReserved);
}

#[test]
fn a_short_note_in_the_system_prompt_asks_to_search_first() {
    let crib = everruns(&agent());
    assert_eq!(
        show(&mut Chat::new(&crib)).instruction.as_deref(),
        Some(
            "Some of your tools show only a stub of their schema. Load one with `tool_search` \
             before its first use: describe what you need, or `select:NAME`. Its real parameters \
             are there on the next step. Do not say that a capability is missing, and do not make \
             do with a general tool, before you have searched."
        )
    );
}

#[test]
fn every_model_is_served_alike() {
    let crib = everruns(&agent());
    let scope = Scope::all(crib.catalog());
    let shown =
        |model| crib.disclose(&Turn { model, ..Turn::new(&scope) }, &mut Conversation::new());
    for model in ["gemini-3-pro", "gpt-4o", "gpt-5.4", "claude-opus-4-8", "my-local-model"] {
        assert_eq!(shown(Some(model)), shown(None), "{model}");
    }
}

// Policies.

#[test]
fn never_keeps_the_full_schema() {
    let tools = agent_with("write_todos", "never");
    let crib = everruns(&tools);
    assert_eq!(sent(&show(&mut Chat::new(&crib)), "write_todos"), tools[7]);
}

#[test]
fn automatic_is_the_default_and_defers_from_the_threshold_on() {
    let crib = everruns(&agent());
    assert_eq!(crib.catalog().tools()[0].defer(), Defer::Automatic);
    let shown = show(&mut Chat::new(&crib));
    let deferred = Verdict::Deferred(Because::Active);
    assert!(shown.shown.iter().all(|tool| tool.verdict == deferred));
}

#[test]
fn always_defers_when_tool_search_is_active_and_not_below_the_threshold() {
    let tools = agent_with("bash", "always");
    let crib = everruns(&tools);
    let shown = show(&mut Chat::new(&crib));
    assert_eq!(shown.shown[5].verdict, Verdict::Deferred(Because::Owner(Defer::Always)));
    let fewer = everruns(&tools[..14]);
    assert!(show(&mut Chat::new(&fewer)).passes_through());
}

#[test]
fn always_can_be_made_to_hold_below_the_threshold_too() {
    let settings = Preset::Everruns.with_toml("[activation]\nalways_below = true").unwrap();
    let crib = Crib::new(catalog(&agent_with("bash", "always")[..14]), settings);
    let shown = show(&mut Chat::new(&crib));
    assert!(is_stub(&shown, "bash"));
    assert!(!is_stub(&shown, "read_file"));
}

#[test]
fn an_allowlisted_tool_behaves_exactly_like_one_that_is_never_deferred() {
    let config = json!({"capabilities": {"tool_search": {"never_defer": ["bash"]}}});
    let listed = Crib::new(catalog(&agent()), configured(Preset::Everruns, &config));
    let mut chat = Chat::new(&listed);
    assert_eq!(sent(&show(&mut chat), "bash"), agent()[5]);
    let arguments = r#"{"command": "ls"}"#;
    let first_call = chat.runs("bash", arguments);
    assert_eq!(first_call, ("bash".into(), arguments.into()), "without a search before it");
    assert!(is_stub(&show(&mut chat), "read_file"));
}

#[test]
fn the_allowlists_of_code_and_configuration_are_merged() {
    let config = json!({"capabilities": {"tool_search": {"never_defer": ["bash"]}}});
    let mut settings = configured(Preset::Everruns, &config);
    settings.rules = settings.rules.never_defer(["read_file"]);
    let crib = Crib::new(catalog(&agent()), settings);
    let shown = show(&mut Chat::new(&crib));
    let stubs = ["read_file", "bash", "edit_file"].map(|name| is_stub(&shown, name));
    assert_eq!(stubs, [false, false, true]);
}

// Ranking.

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
fn punctuation_around_a_name_is_stripped() {
    let crib = everruns(&plain(&[("read_file", "Show a file."), ("read_file_lines", "In part.")]));
    for query in ["\"read_file\"", "`read_file`", "'read_file'", " read_file. ", "(read_file)"] {
        assert_eq!(scores(&Chat::new(&crib).search(query)), [("read_file", 103.0)], "{query}");
    }
}

#[test]
fn what_scores_less_than_half_the_best_is_left_out() {
    let crib = everruns(&plain(&[
        ("send_mail_now", "Nine: three words in the name."),
        ("mail_box", "Five: to send now or later."),
        ("mail_tray", "Four: to send later."),
    ]));
    let mut chat = Chat::new(&crib);
    let reply = chat.search("send mail now");
    assert_eq!(scores(&reply), [("send_mail_now", 9.0), ("mail_box", 5.0)]);
    let half = chat.search("mail now");
    assert_eq!(scores(&half)[1], ("mail_box", 4.0), "of six");
    assert_eq!(scores(&half)[2], ("mail_tray", 3.0), "half is enough");
}

#[test]
fn at_most_eight_tools_are_returned_and_revealed_by_one_search() {
    let tools: Vec<Value> = (0..15)
        .map(|i| tool(&format!("note_{i}"), "Takes it down.", &strings(&["a"], 1)))
        .collect();
    let crib = everruns(&tools);
    let mut chat = Chat::new(&crib);
    let ask = Ask { limit: Some(50), ..Ask::query("note") };
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
    let queries = ["note", "mail", "fax"].map(str::to_owned).to_vec();
    let reply = Chat::new(&everruns(&tools)).ask(&Ask { queries, ..Ask::default() });
    assert_eq!(
        names(&reply),
        ["note_0", "mail_1", "fax_2", "note_3", "mail_4", "fax_5", "note_6", "mail_7"]
    );
    let queries = vec!["select:fax_2,fax_5,fax_8,fax_11,fax_14".into(), "note".into()];
    let reply = Chat::new(&everruns(&tools)).ask(&Ask { queries, ..Ask::default() });
    assert_eq!(names(&reply)[4..], ["fax_14", "note_0", "note_3", "note_6"], "names count too");
}

#[test]
fn without_an_allowlist_nothing_is_visible() {
    let crib = everruns(&agent());
    let mut chat = Chat { scope: Scope::none(crib.catalog()), ..Chat::new(&crib) };
    let reply = chat.search("file");
    assert_eq!((reply.hits.len(), reply.available), (0, Some(Available::Names(Vec::new()))));
    assert_eq!(chat.refused("read_file", r#"{"path":"a"}"#).error, Code::UnknownTool);
    assert_eq!(show(&mut chat).shown, []);
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

// Answers.

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
fn no_match_returns_the_names_that_there_are_and_no_schema() {
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

// Progressive disclosure.

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
    assert_eq!(stubs, 13, "and no other");
}

#[test]
fn what_one_session_found_another_does_not_see() {
    let crib = everruns(&agent());
    let scope = Scope::all(crib.catalog());
    let turn = Turn::new(&scope);
    let mut sessions = Conversations::default();
    crib.search(&turn, sessions.get("a"), &Ask::query("bash"));
    assert!(!is_stub(&crib.disclose(&turn, sessions.get("a")), "bash"));
    assert!(is_stub(&crib.disclose(&turn, sessions.get("b")), "bash"));
}

#[test]
fn sessions_are_bounded_and_one_that_fell_out_searches_again() {
    assert_eq!(CONVERSATIONS, 4_096);
    let crib = everruns(&agent());
    let scope = Scope::all(crib.catalog());
    let turn = Turn::new(&scope);
    let mut sessions = Conversations::new(2, 64);
    for key in ["a", "b", "c"] {
        crib.search(&turn, sessions.get(key), &Ask::query("bash"));
    }
    assert_eq!(sessions.len(), 2);
    assert!(!is_stub(&crib.disclose(&turn, sessions.get("b")), "bash"));
    assert!(is_stub(&crib.disclose(&turn, sessions.get("a")), "bash"), "the oldest is forgotten");
    crib.search(&turn, sessions.get("a"), &Ask::query("bash"));
    assert!(!is_stub(&crib.disclose(&turn, sessions.get("a")), "bash"));
}

#[test]
fn the_session_that_falls_out_is_the_one_that_was_used_least_recently() {
    let crib = everruns(&agent());
    let scope = Scope::all(crib.catalog());
    let turn = Turn::new(&scope);
    let mut sessions = Conversations::new(2, 64);
    for key in ["a", "b", "a", "c"] {
        crib.search(&turn, sessions.get(key), &Ask::query("bash"));
    }
    assert!(!is_stub(&crib.disclose(&turn, sessions.get("a")), "bash"), "first seen, still in use");
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
fn a_tool_that_changed_since_it_was_found_is_a_stub_again() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    chat.search("bash");
    let mut tools = agent();
    tools[5]["input_schema"] = strings(&["command", "timeout"], 2);
    let changed = everruns(&tools);
    let scope = Scope::all(changed.catalog());
    let shown = changed.disclose(&Turn::new(&scope), &mut chat.conversation);
    assert!(is_stub(&shown, "bash"));
}

// Execution.

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
    assert!(!is_stub(&show(&mut chat), "web_fetch"), "a wrong guess loads it as a search does");
    let arguments = r#"{"command": "ls"}"#;
    assert_eq!(chat.runs("bash", arguments), ("bash".into(), arguments.into()));
}

#[test]
fn select_loads_several_tools_by_name() {
    let crib = everruns(&agent());
    let mut chat = Chat::new(&crib);
    assert_eq!(names(&chat.search("select:bash,web_fetch")), ["bash", "web_fetch"]);
}

// The earlier edition.

#[test]
fn in_the_earlier_edition_the_schema_is_in_the_answer_and_nowhere_else() {
    let settings = Settings::from_toml("preset = 'everruns'\nreveals = false").unwrap();
    let crib = Crib::new(catalog(&agent()), settings);
    let mut chat = Chat::new(&crib);
    let first = show(&mut chat);
    let reply = answer(chat.call(SEARCH, r#"{"query": "bash"}"#));
    assert_eq!(reply["tools"][0]["parameters"], strings(&["command", "note"], 1));
    assert_eq!(show(&mut chat), first, "a stub it was and a stub it stays");
    assert!(first.instruction.as_ref().unwrap().contains("Its real parameters are in the answer."));
    assert_eq!(chat.runs("bash", r#"{"command":"ls"}"#).0, "bash");
}
