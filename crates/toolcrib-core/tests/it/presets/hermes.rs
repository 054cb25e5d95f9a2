//! The `hermes` preset, behaviour by behaviour: docs/presets/hermes.md names these tests.

mod config;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::call::{Code, Fault};
use toolcrib_core::conversation::Past;
use toolcrib_core::policy::Reason;
use toolcrib_core::{Crib, Disclosure, Ledger, Outcome, Preset, Reply, Settings, Shape, Turn};

use super::configured;
use crate::support::{Chat, catalog, names, strings, tool};

/// A tool of an MCP server, named as Hermes names it.
fn mcp(server: &str, own: &str, description: &str, schema: &Value) -> Value {
    let name = format!("mcp_{server}_{own}");
    json!({"name": name, "description": description, "input_schema": schema, "server": server})
}

/// Two core tools, a plugin's and three servers' tools.
fn session() -> Vec<Value> {
    vec![
        tool("terminal", "Run a shell command.", &strings(&["command"], 1)),
        tool("read_file", "Read a file.", &strings(&["path"], 1)),
        tool("weather_now", "The weather at a place.", &strings(&["place"], 1)),
        mcp(
            "github",
            "create_issue",
            "Create an issue in a repository.",
            &strings(&["title", "body"], 1),
        ),
        mcp("github", "list_issues", "List what is open.", &strings(&["repository"], 1)),
        mcp("slack", "post", "Send a message.", &strings(&["channel", "text"], 2)),
        mcp("calendar", "add", "Plan a meeting.", &strings(&["day", "attendees"], 1)),
    ]
}

fn on() -> Settings {
    configured(Preset::Hermes, &json!({"tools": {"tool_search": {"enabled": "on"}}}))
}

fn crib(tools: &[Value]) -> Crib {
    Crib::new(catalog(tools), on())
}

fn auto(tools: &[Value]) -> Crib {
    super::crib(Preset::Hermes, tools)
}

fn show(chat: &mut Chat<'_>, context: Option<usize>) -> Arc<Disclosure> {
    let turn = Turn { context, ..Turn::new(&chat.scope) };
    chat.crib.disclose(&turn, &mut chat.conversation)
}

/// The names the model sees in its tools array.
fn array(shown: &Disclosure) -> Vec<String> {
    let name = |text: &str| {
        let tool: Value = serde_json::from_str(text).unwrap();
        tool["name"].as_str().unwrap().to_owned()
    };
    shown.definitions(Shape::Own).iter().map(|text| name(text)).collect()
}

fn answered(chat: &mut Chat<'_>, name: &str, input: &Value) -> Reply {
    match chat.call(name, &input.to_string()) {
        Outcome::Answer(reply) => reply,
        other => panic!("{name} {input}: {other:?}"),
    }
}

/// An answer as the model reads it.
fn read(reply: &Reply) -> Value {
    serde_json::from_str(&reply.for_model()).unwrap()
}

const CORE: [&str; 17] = [
    "terminal",
    "read_file",
    "write_file",
    "patch",
    "search_files",
    "todo",
    "memory",
    "browser_navigate",
    "browser_click",
    "browser_take_screenshot",
    "web_search",
    "web_extract",
    "clarify",
    "execute_code",
    "delegate_task",
    "session_search",
    "send_message",
];

#[test]
fn a_core_tool_is_never_deferred_whatever_else_is() {
    let mut tools: Vec<Value> = CORE.iter().map(|name| tool(name, "", &json!({}))).collect();
    tools.extend(session().split_off(2));
    let shown = show(&mut Chat::new(&crib(&tools)), None);
    let bridge = ["tool_search", "tool_describe", "tool_call"];
    assert_eq!(array(&shown), [&CORE[..], &bridge].concat());
}

#[test]
fn tools_of_servers_and_of_plugins_are_deferred() {
    let shown = show(&mut Chat::new(&crib(&session())), None);
    assert_eq!(
        array(&shown),
        ["terminal", "read_file", "tool_search", "tool_describe", "tool_call"]
    );
}

#[test]
fn a_server_cannot_escape_deferral_by_a_core_name() {
    let imposter = json!({"name": "terminal", "input_schema": {}, "server": "evil"});
    let shown = show(&mut Chat::new(&crib(&[imposter])), None);
    assert_eq!(array(&shown), ["tool_search", "tool_describe", "tool_call"]);
}

#[test]
fn more_core_tools_are_a_line_in_the_settings() {
    let more = "[activation]\nmode = 'on'\n[defer]\nnever = ['/weather_*']";
    let crib = Crib::new(catalog(&session()), Preset::Hermes.with_toml(more).unwrap());
    let shown = show(&mut Chat::new(&crib), None);
    assert_eq!(array(&shown)[..3], ["terminal", "read_file", "weather_now"]);
}

#[test]
fn the_bridge_is_three_plain_functions_and_no_code_runs() {
    let shown = show(&mut Chat::new(&crib(&session())), None);
    let parameters: Vec<(&str, Vec<String>, Value)> = shown
        .own
        .iter()
        .map(|own| {
            let schema: Value = serde_json::from_str(own.schema).unwrap();
            let properties = schema["properties"].as_object().unwrap().keys().cloned();
            (own.name, properties.collect(), schema["required"].clone())
        })
        .collect();
    let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        parameters,
        [
            ("tool_search", owned(&["query", "limit"]), json!(["query"])),
            ("tool_describe", owned(&["name"]), json!(["name"])),
            ("tool_call", owned(&["name", "arguments"]), json!(["name", "arguments"])),
        ]
    );
}

#[test]
fn search_answers_with_matches_and_without_schemas() {
    let crib = crib(&session());
    let reply = answered(
        &mut Chat::new(&crib),
        "tool_search",
        &json!({"query": "create a github issue", "limit": 2}),
    );
    assert_eq!(
        read(&reply),
        json!({
            "query": "create a github issue",
            "total_available": 5,
            "matches": [
                {
                    "name": "mcp_github_create_issue",
                    "source": "mcp",
                    "source_name": "github",
                    "description": "Create an issue in a repository."
                },
                {
                    "name": "mcp_github_list_issues",
                    "source": "mcp",
                    "source_name": "github",
                    "description": "List what is open."
                }
            ]
        })
    );
    let plugin = read(&Chat::new(&crib).search("weather"));
    assert_eq!(
        plugin["matches"],
        json!([{"name": "weather_now", "source": "plugin", "description": "The weather at a place."}])
    );
}

#[test]
fn a_match_has_four_hundred_characters_of_its_description() {
    let long = "word ".repeat(200);
    let crib = crib(&[mcp("acme", "long", &long, &json!({}))]);
    let reply = read(&Chat::new(&crib).search("word"));
    let shown = reply["matches"][0]["description"].as_str().unwrap();
    assert!((390..=400).contains(&shown.chars().count()), "{}", shown.len());
}

#[test]
fn describe_answers_with_one_tool_and_its_parameters() {
    let crib = crib(&session());
    let input = json!({"name": "mcp_github_create_issue"});
    let reply = answered(&mut Chat::new(&crib), "tool_describe", &input);
    assert_eq!(
        read(&reply),
        json!({
            "name": "mcp_github_create_issue",
            "description": "Create an issue in a repository.",
            "parameters": strings(&["title", "body"], 1)
        })
    );
}

#[test]
fn call_is_unwrapped_so_that_hooks_and_approvals_see_the_real_tool() {
    let crib = crib(&session());
    let arguments = r#"{"title":"Crash","body":"On start."}"#;
    let input = format!(r#"{{"name":"mcp_github_create_issue","arguments":{arguments}}}"#);
    let Outcome::Run(call) = Chat::new(&crib).call("tool_call", &input) else { panic!() };
    assert_eq!(call.name, "mcp_github_create_issue");
    assert_eq!(call.arguments.get(), arguments);
    assert_eq!(crib.catalog().tool(call.id).server(), Some("github"));
}

#[test]
fn the_bridge_does_not_call_itself() {
    let crib = crib(&session());
    let input = r#"{"name":"tool_call","arguments":{"name":"terminal","arguments":{}}}"#;
    let refusal = Chat::new(&crib).refused("tool_call", input);
    assert_eq!(refusal.error, Code::Recursion);
    assert_eq!(refusal.message, "`tool_call` is not called through tool_call");
}

#[test]
fn a_cold_tool_takes_two_more_steps_and_a_known_one_none() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let found = chat.search("plan a meeting");
    let name = names(&found)[0].to_owned();
    let described = answered(&mut chat, "tool_describe", &json!({"name": name}));
    assert!(described.hits[0].input_schema.is_some());
    let input = json!({"name": name, "arguments": {"day": "Monday"}}).to_string();
    let ran = (name, r#"{"day":"Monday"}"#.to_owned());
    assert_eq!(chat.runs("tool_call", &input), ran);
    assert_eq!(Chat::new(&crib).runs("tool_call", &input), ran, "at once, for who knows it");
}

#[test]
fn a_blind_call_without_what_is_required_is_answered_with_the_schema() {
    let crib = crib(&session());
    let input = r#"{"name":"mcp_slack_post","arguments":{"text":"Hello"}}"#;
    let refusal = Chat::new(&crib).refused("tool_call", input);
    assert_eq!(refusal.message, r#"invalid arguments: "channel" is a required property"#);
    assert_eq!(refusal.input_schema.unwrap().get(), strings(&["channel", "text"], 2).to_string());
}

#[test]
fn arguments_are_checked_against_the_whole_schema() {
    let crib = crib(&session());
    let input = r#"{"name":"mcp_slack_post","arguments":{"channel":7,"text":"Hello"}}"#;
    let refusal = Chat::new(&crib).refused("tool_call", input);
    let fault = Fault { at: "/channel".into(), problem: r#"7 is not of type "string""#.into() };
    assert_eq!(refusal.faults, [fault]);
}

#[test]
fn a_core_tool_through_the_bridge_is_run_and_described() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let input = r#"{"name":"terminal","arguments":{"command":"ls"}}"#;
    assert_eq!(chat.runs("tool_call", input).0, "terminal");
    let described = answered(&mut chat, "tool_describe", &json!({"name": "terminal"}));
    assert_eq!(read(&described)["parameters"], strings(&["command"], 1));
}

#[test]
fn a_deferred_tool_called_by_its_own_name_is_run() {
    let crib = crib(&session());
    let ran = Chat::new(&crib).runs("mcp_calendar_add", r#"{"day":"Monday"}"#);
    assert_eq!(ran, ("mcp_calendar_add".to_owned(), r#"{"day":"Monday"}"#.to_owned()));
}

/// Tools of a thousand tokens each, four characters a token; the last is `short` characters shorter.
fn thousands(count: usize, short: usize) -> Vec<Value> {
    let sized = |i: usize| {
        let chars = if i + 1 == count { 4_000 - short } else { 4_000 };
        let own = format!("t{i:02}");
        let empty = mcp("acme", &own, "", &json!({})).to_string().len();
        mcp("acme", &own, &"x".repeat(chars - empty), &json!({}))
    };
    (0..count).map(sized).collect()
}

#[test]
fn auto_activates_at_ten_percent_of_the_context_and_not_below() {
    let crib = auto(&thousands(15, 0));
    let decide = |context| show(&mut Chat::new(&crib), Some(context)).decision.reason;
    assert_eq!(decide(150_000), Reason::Tokens { tokens: 15_000, threshold: 15_000 });
    assert_eq!(decide(150_010), Reason::Below);
}

#[test]
fn auto_goes_by_the_share_alone_and_not_by_what_is_saved() {
    let crib = auto(&session()[2..3]);
    let shown = show(&mut Chat::new(&crib), Some(100));
    assert!(matches!(shown.decision.reason, Reason::Tokens { threshold: 10, .. }));
    assert!(shown.tokens_after > shown.tokens_before, "the bridge costs more than one tool");
}

#[test]
fn core_tools_do_not_count_towards_the_threshold() {
    let mut tools = thousands(2, 0);
    tools.push(tool("terminal", &"x".repeat(8_000), &json!({})));
    let crib = auto(&tools);
    let decide = |context| show(&mut Chat::new(&crib), Some(context)).decision.reason;
    assert_eq!(decide(20_000), Reason::Tokens { tokens: 2_000, threshold: 2_000 });
    assert_eq!(decide(20_010), Reason::Below);
}

#[test]
fn where_the_context_is_not_known_twenty_thousand_tokens_decide() {
    let decide = |short, context| {
        show(&mut Chat::new(&auto(&thousands(20, short))), context).decision.reason
    };
    assert_eq!(decide(0, None), Reason::Tokens { tokens: 20_000, threshold: 20_000 });
    assert_eq!(decide(4, None), Reason::Below);
    assert_eq!(decide(0, Some(1_000_000)), Reason::Below, "known, its share alone decides");
}

#[test]
fn below_the_threshold_the_array_passes_as_it_came_and_costs_nothing() {
    let crib = auto(&session());
    let shown = show(&mut Chat::new(&crib), Some(200_000));
    let input = "[ {\"name\" : \"terminal\"},\n {\"type\":\"web_search_20250305\"} ]";
    assert_eq!(crib.tools_json(&shown, input, Shape::Own), input);
    assert_eq!((shown.own.len(), &shown.instruction), (0, &None));
    assert_eq!(shown.tokens_after, shown.tokens_before);
}

#[test]
fn every_assembly_decides_anew_and_fewer_servers_return_to_direct_exposure() {
    let (many, few) = (auto(&thousands(20, 0)), auto(&thousands(3, 0)));
    let mut chat = Chat::new(&many);
    assert!(!show(&mut chat, Some(100_000)).passes_through());
    let mut later = Chat { conversation: chat.conversation, ..Chat::new(&few) };
    let shown = show(&mut later, Some(100_000));
    assert_eq!(array(&shown), ["mcp_acme_t00", "mcp_acme_t01", "mcp_acme_t02"]);
    let mut again = Chat { conversation: later.conversation, ..Chat::new(&many) };
    assert!(!show(&mut again, Some(100_000)).passes_through());
    assert!(show(&mut again, Some(1_000_000)).passes_through(), "another model, another window");
}

#[test]
fn a_search_returns_five_unless_the_model_asks_and_twenty_at_most() {
    let tools: Vec<Value> =
        (0..30).map(|i| mcp("acme", &format!("job{i}"), "Runs a job.", &json!({}))).collect();
    let crib = crib(&tools);
    let found = |input: Value| answered(&mut Chat::new(&crib), "tool_search", &input).hits.len();
    assert_eq!(found(json!({"query": "job"})), 5);
    assert_eq!(found(json!({"query": "job", "limit": 12})), 12);
    assert_eq!(found(json!({"query": "job", "limit": 99})), 20);
    assert_eq!(found(json!({"query": "job", "limit": 0})), 1);
    assert_eq!(found(json!({"query": "job", "limit": "many"})), 5, "no number is no limit");
}

#[test]
fn the_description_of_the_bridge_counts_the_deferred_tools_and_changes_with_them() {
    let few = crib(&session()[..5]);
    let mut chat = Chat::new(&few);
    let before = show(&mut chat, None).own[0].description.clone();
    assert!(before.ends_with(":\n3 tools on 1 server.\n"), "{before}");
    let all = crib(&session());
    let mut later = Chat { conversation: chat.conversation, ..Chat::new(&all) };
    let shown = show(&mut later, None);
    assert!(shown.own[0].description.ends_with(":\n5 tools on 3 servers.\n"));
    assert_eq!(shown.announcement, None, "the array says it, so no message has to");
}

#[test]
fn search_looks_at_names_descriptions_and_names_of_parameters() {
    let crib = crib(&session());
    for (query, first) in [
        ("slack", "mcp_slack_post"),
        ("meeting", "mcp_calendar_add"),
        ("attendees", "mcp_calendar_add"),
    ] {
        assert_eq!(names(&Chat::new(&crib).search(query)), [first], "{query}");
    }
}

#[test]
fn a_rarer_word_counts_more_and_a_longer_text_less() {
    let crib = crib(&[
        mcp("acme", "one", "report report report", &json!({})),
        mcp("acme", "two", "report invoice", &json!({})),
        mcp("acme", "three", "report and a good many other words beside it", &json!({})),
    ]);
    let found = Chat::new(&crib).search("invoice report");
    assert_eq!(names(&found), ["mcp_acme_two", "mcp_acme_one", "mcp_acme_three"]);
}

/// A word three times in the only tool there is: ln(1 + 0.5 / 1.5) × 3 × 2.5 / (3 + 1.5).
#[test]
fn a_score_is_that_of_bm25_with_its_usual_constants() {
    let crib = crib(&[mcp("acme", "one", "report report report", &json!({}))]);
    let score = Chat::new(&crib).search("report").hits[0].score;
    assert!((score - 0.4795).abs() < 0.0001, "{score}");
}

#[test]
fn a_tool_that_was_described_keeps_its_rank() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let before = read(&chat.search("github issue"));
    answered(&mut chat, "tool_describe", &json!({"name": "mcp_github_create_issue"}));
    assert_eq!(read(&chat.search("github issue")), before);
}

#[test]
fn a_word_that_every_tool_has_still_finds_them_all() {
    let crib = crib(&session()[3..5]);
    let found = Chat::new(&crib).search("github");
    assert_eq!(names(&found), ["mcp_github_list_issues", "mcp_github_create_issue"]);
}

#[test]
fn a_query_without_a_hit_is_looked_for_inside_the_names() {
    let crib = crib(&session());
    let found = Chat::new(&crib).search("hub_cre");
    assert_eq!(names(&found), ["mcp_github_create_issue"]);
    let parts = Chat::new(&crib).search("GITH");
    assert_eq!(names(&parts), ["mcp_github_create_issue", "mcp_github_list_issues"]);
}

#[test]
fn the_substring_is_looked_for_in_names_only_and_after_the_words() {
    let crib = crib(&session());
    assert!(Chat::new(&crib).search("eetin").hits.is_empty(), "in a description it is no hit");
    let found = Chat::new(&crib).search("post hub");
    assert_eq!(names(&found), ["mcp_slack_post"], "a word was found, so no substring is");
}

#[test]
fn core_tools_are_not_in_the_catalog_that_is_searched() {
    let crib = crib(&session());
    let reply = Chat::new(&crib).search("terminal shell command");
    assert_eq!((reply.hits.len(), &read(&reply)["total_available"]), (0, &json!(5)));
}

#[test]
fn a_miss_names_the_sources_and_asks_for_other_words() {
    let crib = crib(&session());
    let reply = Chat::new(&crib).search("teleport");
    assert_eq!(
        read(&reply),
        json!({
            "query": "teleport",
            "total_available": 5,
            "matches": [],
            "available_sources": [
                {"name": "plugin", "tools": 1},
                {"name": "calendar", "tools": 1},
                {"name": "github", "tools": 2},
                {"name": "slack", "tools": 1}
            ],
            "hint": "Nothing matches \"teleport\". Try another word for it, or fewer words."
        })
    );
}

#[test]
fn the_catalog_is_that_of_the_turn_and_none_is_kept() {
    let all = crib(&session());
    let mut chat = Chat::new(&all);
    assert_eq!(names(&chat.search("slack")), ["mcp_slack_post"]);
    let fewer = crib(&session()[..5]);
    let mut later = Chat { conversation: chat.conversation, ..Chat::new(&fewer) };
    assert!(later.search("slack").hits.is_empty());
    let input = r##"{"name":"mcp_slack_post","arguments":{"channel":"#a","text":"b"}}"##;
    let refusal = later.refused("tool_call", input);
    assert_eq!(refusal.error, Code::UnknownTool);
}

/// What a session that has only its calendar is told about Slack.
#[test]
fn a_restricted_session_can_neither_find_nor_describe_nor_call_beyond_its_tools() {
    let crib = crib(&session());
    let granted = ["terminal", "mcp_calendar_add"];
    let mut chat = Chat::within(&crib, &granted);
    let reply = read(&chat.search("post slack message"));
    assert_eq!((&reply["matches"], &reply["total_available"]), (&json!([]), &json!(1)));
    let input = r##"{"name":"mcp_slack_post","arguments":{"channel":"#a","text":"b"}}"##;
    let described = chat.refused("tool_describe", input);
    let called = chat.refused("tool_call", input);
    assert_eq!(described.text(), called.text());
    let none = chat.refused("tool_call", &input.replace("mcp_slack_post", "mcp_skype_post"));
    assert_eq!(called.text().replace("slack", "skype"), none.text(), "as if it did not exist");
    let shown = show(&mut chat, None);
    assert!(shown.own[0].description.contains("1 tool on 1 server."));
}

#[test]
fn tools_out_of_scope_do_not_move_a_rank() {
    let crib = crib(&session());
    let granted = ["mcp_github_create_issue", "mcp_github_list_issues"];
    let scores = |mut chat: Chat<'_>| {
        let reply = chat.search("issue repository");
        reply.hits.iter().map(|hit| (hit.name.clone(), hit.score)).collect::<Vec<_>>()
    };
    let alone = self::crib(&session()[3..5]);
    assert_eq!(scores(Chat::within(&crib, &granted)), scores(Chat::new(&alone)));
}

#[test]
fn a_described_schema_is_in_the_history_and_the_prefix_stays() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let before = show(&mut chat, None);
    let reply = answered(&mut chat, "tool_describe", &json!({"name": "mcp_slack_post"}));
    assert!(Arc::ptr_eq(&before, &show(&mut chat, None)));
    let ledger = Ledger::from_transcript([Past::Reply(&reply.for_model())], 64);
    assert!(ledger.has_name("mcp_slack_post"), "a resumed conversation knows it was shown");
}

#[test]
fn the_instruction_says_search_then_describe_then_call() {
    let shown = show(&mut Chat::new(&crib(&session())), None);
    assert_eq!(
        shown.instruction.as_deref(),
        Some(
            "Most of your tools are deferred: `tool_search` finds them, `tool_call` runs them. \
             Search for what you need, get its schema with `tool_describe`, then call it. Do not \
             say that a capability is missing, and do not make do with a general tool, before you \
             have searched."
        )
    );
}

#[test]
fn a_name_can_be_selected_and_an_empty_query_browses() {
    let crib = crib(&session());
    let selected = read(&Chat::new(&crib).search("select:mcp_calendar_add"));
    assert_eq!(selected["matches"][0]["parameters"], strings(&["day", "attendees"], 1));
    let browsed = read(&Chat::new(&crib).search(""));
    assert_eq!((&browsed["matches"], browsed.get("error")), (&json!([]), None));
    assert!(browsed["available_sources"].is_array());
}

#[test]
fn a_model_that_only_searches_is_handed_the_schema() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let replies: Vec<Value> = (0..5).map(|_| read(&chat.search("meeting"))).collect();
    assert_eq!(replies[1].get("hint"), None);
    assert_eq!(
        replies[2]["hint"],
        "3 searches without a call: \"meeting\", \"meeting\", \"meeting\". Call \
         \"mcp_calendar_add\" if it serves, or say what is missing."
    );
    assert_eq!(replies[4]["matches"][0]["parameters"], strings(&["day", "attendees"], 1));
}
