//! Tests of the `hermes` preset as an MCP client sees it. docs/presets/hermes.md names these tests.

mod config;
mod search;

use serde_json::{Value, json};
use toolcrib_core::TokenCounter as _;
use toolcrib_tokens::{Vocabulary, VocabularyCounter};

use super::{CHANGED, Session, Setup, numbered, plain, tool};

const BRIDGE: [&str; 3] = ["tool_search", "tool_describe", "tool_call"];

fn github() -> Vec<Value> {
    vec![
        tool("create_issue", "Create an issue in a repository.", &["title", "body"], 1),
        tool("list_issues", "List what is open.", &["repository"], 1),
    ]
}

fn calendar() -> Vec<Value> {
    vec![tool("add", "Plan a meeting.", &["day", "attendees"], 1)]
}

fn slack() -> Vec<Value> {
    vec![tool("post", "Send a message.", &["channel", "text"], 2)]
}

const ON: &str = "preset = \"hermes\"\n[activation]\nmode = \"on\"\n";

fn on(tools: &[Value]) -> Session {
    Setup::toml(ON, &[("acme", tools)]).start()
}

/// Starts a gateway with the servers `github`, `calendar` and `slack`.
fn session() -> Session {
    let (github, calendar, slack) = (github(), calendar(), slack());
    Setup::toml(ON, &[("github", &github), ("calendar", &calendar), ("slack", &slack)]).start()
}

/// Writes Hermes' own config file, with `section` as the value of `tools.tool_search`.
fn configured(section: &Value, tools: &[Value]) -> Setup {
    Setup::file("hermes.yaml", &[("acme", tools)], |commands| {
        let (name, command) = &commands[0];
        let servers = format!(
            "mcp_servers:\n  {name}:\n    command: {}\n    args: {}\n",
            json!(command[0]),
            json!(command[1..])
        );
        let keys = section.as_object().filter(|keys| !keys.is_empty()).map(|keys| {
            let lines = keys.iter().map(|(key, value)| format!("\n    {key}: {value}"));
            lines.collect::<Vec<_>>().concat()
        });
        let section = keys.unwrap_or_else(|| format!(" {section}"));
        format!("{servers}tools:\n  tool_search:{section}\n")
    })
}

/// Returns tools of about a thousand tokens each.
fn thousands(count: usize) -> Vec<Value> {
    numbered(count, "t", &"word ".repeat(1_000))
}

fn defers(session: &mut Session) -> bool {
    session.names() == BRIDGE
}

// Tests of which tools are deferred.

#[test]
fn tools_of_servers_are_deferred_even_under_a_core_name() {
    let tools = plain(&[("terminal", "Run a command."), ("read_file", "Read a file.")]);
    let mut session = Setup::toml(ON, &[("evil\nprefix = \"\"\n", &tools)]).start();
    assert_eq!(session.names(), BRIDGE);
    assert_eq!(session.found("terminal"), ["terminal"]);
}

#[test]
fn more_tools_can_be_kept_in_full_with_a_setting() {
    let config = format!("{ON}[defer]\nnever = [\"post\"]\n");
    let mut session = Setup::toml(&config, &[("slack", &slack()), ("github", &github())]).start();
    assert_eq!(session.names(), [&["slack__post"], &BRIDGE[..]].concat());
    let answer = session.search("post message");
    assert_eq!((&answer["matches"], &answer["total_available"]), (&json!([]), &json!(2)));
}

// Tests of the bridge.

#[test]
fn the_bridge_is_three_plain_functions() {
    let mut session = session();
    let parameters: Vec<(Value, Vec<String>, Value)> = session
        .list()
        .iter()
        .map(|tool| {
            let schema = &tool["inputSchema"];
            let mut keys: Vec<_> =
                schema["properties"].as_object().unwrap().keys().cloned().collect();
            keys.sort_unstable();
            (tool["name"].clone(), keys, schema["required"].clone())
        })
        .collect();
    let keys = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        parameters,
        [
            (json!("tool_search"), keys(&["limit", "query"]), json!(["query"])),
            (json!("tool_describe"), keys(&["name"]), json!(["name"])),
            (json!("tool_call"), keys(&["arguments", "name"]), json!(["name", "arguments"])),
        ]
    );
}

#[test]
fn the_three_bridge_tools_cost_about_300_tokens() {
    let counter = VocabularyCounter::exact(Vocabulary::O200k);
    let cost = |tool: &Value| {
        let function = json!({"name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]});
        counter.count(&json!({"type": "function", "function": function}).to_string())
    };
    let cost: usize = session().list().iter().map(cost).sum();
    assert!((200..=320).contains(&cost), "{cost} tokens");
}

#[test]
fn the_description_counts_the_deferred_tools_and_changes_with_them() {
    let mut session = session();
    let count = |session: &mut Session| {
        let text = session.listed("tool_search")["description"].as_str().unwrap().to_owned();
        text.trim_end().rsplit('\n').next().unwrap().to_owned()
    };
    assert_eq!(count(&mut session), "4 tools on 3 servers.");
    session.define("github", &github()[..1]);
    session.client.wait_for_message(CHANGED);
    assert_eq!(count(&mut session), "3 tools on 3 servers.");
}

#[test]
fn search_answers_with_matches_and_their_sources_and_without_schemas() {
    let mut session = session();
    let arguments = json!({"query": "create a github issue", "limit": 2});
    let answer: Value = serde_json::from_str(&session.text("tool_search", &arguments)).unwrap();
    let found = |name: &str, description: &str| json!({"name": name, "source": "mcp", "source_name": "github", "description": description});
    assert_eq!(
        answer,
        json!({
            "query": "create a github issue",
            "total_available": 4,
            "matches": [
                found("github__create_issue", "Create an issue in a repository."),
                found("github__list_issues", "List what is open."),
            ]
        })
    );
}

#[test]
fn a_match_has_four_hundred_characters_of_its_description() {
    let mut session = on(&plain(&[("long", &"word ".repeat(200))]));
    let answer = session.search("word");
    let shown = answer["matches"][0]["description"].as_str().unwrap();
    assert!((390..=400).contains(&shown.chars().count()), "{}", shown.len());
}

#[test]
fn describe_answers_with_one_tool_and_leaves_list_and_ranks_as_they_were() {
    let mut session = session();
    let (list, answer) = (session.list(), session.search("github issue"));
    let described = session.text("tool_describe", &json!({"name": "github__create_issue"}));
    let expected = json!({
        "name": "github__create_issue",
        "description": "Create an issue in a repository.",
        "parameters": github()[0]["inputSchema"],
    });
    assert_eq!(serde_json::from_str::<Value>(&described).unwrap(), expected);
    assert_eq!((session.list(), session.changes), (list, 0));
    assert_eq!(session.search("github issue"), answer);
}

#[test]
fn a_cold_tool_takes_two_more_steps_and_a_known_one_none() {
    let mut session = session();
    let name = session.found("plan a meeting").remove(0);
    let described = session.text("tool_describe", &json!({"name": name}));
    assert!(described.contains("attendees"), "{described}");
    let arguments = json!({"day": "Monday"});
    let call = json!({"name": name, "arguments": arguments});
    assert_eq!(session.call("tool_call", &call)["structuredContent"], arguments);
    // A client that already knows the real name and the arguments can call the tool without searching for it first,
    // even in a new session.
    let mut restarted = session.restart();
    assert_eq!(restarted.call("tool_call", &call)["structuredContent"], arguments);
}

#[test]
fn wrong_calls_through_the_bridge_are_answered_with_what_is_right() {
    let mut session = session();
    let call = json!({"name": "slack__post", "arguments": {"text": "Hello"}});
    let refusal = session.refused("tool_call", &call);
    assert_eq!(refusal["message"], "invalid arguments: \"channel\" is a required property");
    assert_eq!(refusal["input_schema"], slack()[0]["inputSchema"]);
    let call = json!({"name": "tool_call", "arguments": {"name": "slack__post", "arguments": {}}});
    let refusal = session.refused("tool_call", &call);
    assert_eq!(refusal["message"], "`tool_call` is not called through tool_call");
}

#[test]
fn instructions_say_search_then_describe_then_call() {
    let expected = "Search for what you need, get its schema with `tool_describe`, then call it.";
    assert!(session().instructions().unwrap().contains(expected));
}

// Tests of activation: when tools are deferred at all.

#[test]
fn auto_activates_at_a_share_of_the_context_and_not_below() {
    let decides = |percent: u32, context: &str| {
        let setup = configured(&json!({"threshold_pct": percent}), &thousands(15));
        defers(&mut setup.flags(&["--context", context]).start())
    };
    // Fifteen tools of about a thousand tokens are more than a tenth of a context window of 100,000 tokens, but less
    // than a tenth of 300,000.
    assert!(decides(10, "100000") && !decides(10, "300000"));
    assert!(decides(3, "300000") && !decides(30, "100000"));
}

#[test]
fn auto_goes_by_the_share_alone_and_by_what_may_be_deferred() {
    let setup = Setup::preset("hermes", &[("slack", &slack())]).flags(&["--context", "100"]);
    assert!(defers(&mut setup.start()), "tools are deferred even if that costs tokens");
    let config = "preset = \"hermes\"\n[defer]\nnever = [\"t0\"]\n";
    let tools = [thousands(1), slack()].concat();
    let setup = Setup::toml(config, &[("acme", &tools)]).flags(&["--context", "5000"]);
    assert_eq!(
        setup.start().names(),
        ["acme__t0", "acme__post"],
        "tools that are not deferred do not count"
    );
}

#[test]
fn with_an_unknown_context_window_20000_tokens_decide_and_that_is_logged() {
    let notice = " is 20000 because the context window is unknown";
    for (count, deferred) in [(15, false), (25, true)] {
        let setup = Setup::preset("hermes", &[("acme", &thousands(count))]);
        assert!(setup.doctor().contains(notice));
        let mut session = setup.start();
        assert_eq!(defers(&mut session), deferred, "{count}");
        session.logs(notice);
    }
    let setup = Setup::preset("hermes", &[("acme", &thousands(3))]).flags(&["--context", "200000"]);
    assert!(!setup.doctor().contains("context window"));
}

#[test]
fn below_the_threshold_the_list_passes_as_it_came_and_costs_nothing() {
    let setup = Setup::preset("hermes", &[("slack", &slack())]).flags(&["--context", "200000"]);
    let mut session = setup.start().restart();
    let mut expected = slack();
    expected[0]["name"] = "slack__post".into();
    assert_eq!((session.list(), session.instructions()), (expected, None));
}

#[test]
fn many_servers_activate_it() {
    let sample =
        include_str!("../../../sample/catalog.jsonl").replace("input_schema", "inputSchema");
    let tools: Vec<Value> =
        sample.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let setup = |count: usize| {
        let server = "sample\nprefix = \"\"\n";
        Setup::preset("hermes", &[(server, &tools[..count])]).flags(&["--context", "200000"])
    };
    let mut session = setup(tools.len()).start();
    assert!(defers(&mut session));
    let description = session.listed("tool_search")["description"].as_str().unwrap().to_owned();
    assert!(description.contains("\n272 tools on "), "{description}");
    assert!(!defers(&mut setup(14).start()));
}

#[test]
fn every_list_is_decided_again_and_with_fewer_tools_they_are_direct() {
    let setup = Setup::preset("hermes", &[("acme", &thousands(20))]);
    let mut session = setup.flags(&["--context", "100000"]).start();
    assert!(defers(&mut session));
    session.define("acme", &thousands(3));
    session.client.wait_for_message(CHANGED);
    assert_eq!(session.names(), ["acme__t0", "acme__t1", "acme__t2"]);
    session.define("acme", &thousands(20));
    session.client.wait_for_message(CHANGED);
    assert!(defers(&mut session));
}
