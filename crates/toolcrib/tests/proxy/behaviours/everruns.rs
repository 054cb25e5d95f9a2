//! Tests of docs/presets/everruns.md through the proxy.

mod config;
mod search;
mod session;

use serde_json::{Value, json};

use super::{Proxy, ProxyExchange, Setup, done, first_exchange, search, strings, tool};

/// Returns fifteen tools, which is just enough for deferral. The tests of the library, `mcp` and `serve` share this
/// sample.
fn agent() -> Vec<Value> {
    let tools: Vec<(&str, &str, &str)> =
        serde_json::from_str(include_str!("../../../../../tests/samples/everruns.json")).unwrap();
    let with = |(name, words, argument)| tool(name, words, &[argument, "note"], 1);
    tools.into_iter().map(with).collect()
}

fn everruns() -> Setup {
    Setup::preset("everruns", "")
}

fn is_stub(exchange: &ProxyExchange, round: usize, name: &str) -> bool {
    exchange.schema(round, name)["properties"] == json!({})
}

#[test]
fn tools_are_deferred_from_fifteen_on_and_sent_unchanged_below() {
    let exchange = first_exchange(&everruns(), &agent());
    assert_eq!(
        (exchange.mode(), exchange.why()),
        ("reveal", "15 tools, the threshold is 15; configured")
    );
    let exchange = first_exchange(&everruns(), &agent()[..14]);
    assert_eq!((exchange.mode(), exchange.tools(0)), ("pass-through", &agent()[..14]));
    assert!(exchange.is_untouched(), "the request is forwarded unchanged");
}

#[test]
fn tools_that_are_never_deferred_count_towards_the_threshold() {
    let never: Vec<_> =
        agent()[1..].iter().map(|tool| tool["function"]["name"].to_string()).collect();
    let setup = Setup::preset("everruns", &format!("[defer]\nnever = [{}]", never.join(",")));
    let exchange = first_exchange(&setup, &agent());
    assert!(is_stub(&exchange, 0, "read_file"));
    assert_eq!(exchange.tools(0)[1..15], agent()[1..]);
}

#[test]
fn only_the_count_decides_whatever_the_tools_cost() {
    let long = "A word or two more. ".repeat(500);
    let large: Vec<Value> = (0..14).map(|i| tool(&format!("t{i}"), &long, &["a"], 1)).collect();
    assert_eq!(
        first_exchange(&everruns().flags(&["--context", "8000"]), &large).mode(),
        "pass-through"
    );
    let tiny: Vec<Value> = (0..15).map(|i| tool(&format!("t{i}"), "", &[], 0)).collect();
    let exchange = first_exchange(&everruns(), &tiny);
    let tokens = |side: &str| exchange.number(&format!("x-toolcrib-tokens-{side}"));
    assert!(
        exchange.mode() == "reveal" && tokens("after") > tokens("before"),
        "deferred even if that costs tokens"
    );
}

#[test]
fn each_request_is_decided_again() {
    let mut proxy = Proxy::start(&everruns(), [search("bash"), done(), done()]);
    assert_eq!(proxy.ask(&agent()).mode(), "reveal");
    let exchange = proxy.continue_with(&agent()[..14]);
    assert_eq!((exchange.mode(), exchange.tools(0)), ("pass-through", &agent()[..14]));
}

#[test]
fn a_stub_keeps_name_and_description_and_says_what_to_ask() {
    let stub = json!({"type": "function", "function": {
        "name": "web_fetch",
        "description": "Get a page from the web.",
        "parameters": {
            "type": "object",
            "properties": {},
            "additionalProperties": true,
            "description": "Not loaded: call tool_search with the query web_fetch first.",
        },
    }});
    assert_eq!(*first_exchange(&everruns(), &agent()).tool(0, "web_fetch"), stub);
}

#[test]
fn one_search_tool_is_added_and_is_never_deferred() {
    let mut proxy = Proxy::start(&everruns(), [search("web_fetch"), done()]);
    let exchange = proxy.ask(&agent());
    assert_eq!(exchange.names(0).len(), 16, "only one tool is added");
    let schema = exchange.schema(0, "tool_search");
    assert_eq!(
        (&schema["required"], schema["properties"].as_object().unwrap().len()),
        (&json!(["query"]), 1)
    );
    assert_eq!(exchange.tool(0, "tool_search"), exchange.tool(1, "tool_search"));
}

#[test]
fn a_short_note_asks_to_search_first() {
    let exchange = first_exchange(&everruns(), &agent());
    let note = "Some of your tools show only a stub of their schema. Load one with `tool_search` \
                before its first use: describe what you need, or `select:NAME`. Its real \
                parameters are there on the next step.";
    assert!(exchange.description(0, "tool_search").starts_with(note), "{:?}", exchange.tools(0));
}

#[test]
fn every_model_gets_the_same_tools() {
    let first_tools = |model| {
        let exchange = first_exchange(&everruns().model(model), &agent());
        assert!(is_stub(&exchange, 0, "bash"));
        exchange.sent[0]["tools"].clone()
    };
    let expected = first_tools("gpt-5.4");
    for model in ["gpt-4o", "claude-opus-4-8", "my-local-model"] {
        assert_eq!(first_tools(model), expected, "{model}");
    }
}

#[test]
fn rules_keep_a_tool_in_full_or_defer_it_from_the_threshold_on() {
    let setup = Setup::preset("everruns", "[defer]\nnever = ['write_todos']\nalways = ['bash']");
    let exchange = first_exchange(&setup, &agent());
    assert_eq!(*exchange.tool(0, "write_todos"), agent()[7]);
    assert!(is_stub(&exchange, 0, "bash") && is_stub(&exchange, 0, "read_file"));
    assert_eq!(first_exchange(&setup, &agent()[..14]).mode(), "pass-through");
}

#[test]
fn nothing_is_kept_in_full_that_no_rule_names() {
    // Without a preset, the proxy sends tools that most agents use, such as `bash`, in full. This preset must defer
    // them, too.
    let exchange = first_exchange(&everruns(), &agent());
    let stubs = agent()
        .iter()
        .filter(|t| is_stub(&exchange, 0, t["function"]["name"].as_str().unwrap()))
        .count();
    assert_eq!(stubs, 15);
}

#[test]
fn an_agents_tools_shrink_by_as_much_as_everruns_says() {
    let tools: Vec<Value> =
        serde_json::from_str(include_str!("../../it/surfaces/agent.json")).unwrap();
    let proxy = Proxy::start(&everruns(), []);
    let body = json!({
        "model": "claude-opus-5", "max_tokens": 100, "tools": tools,
        "messages": [{"role": "user", "content": "Hello."}],
    });
    let exchange = proxy.post("/v1/messages", &body);
    let after = exchange.tools(0);
    let before = [&tools[..], &after[after.len() - 1..]].concat();
    let size = |tools: &[Value]| tools.iter().map(|tool| tool.to_string().len()).sum::<usize>();
    let schemas = |tools: &[Value]| {
        tools.iter().map(|tool| tool["input_schema"].to_string().len()).sum::<usize>()
    };
    let saved = |before: usize, after: usize| 100 * (before - after) / before;
    // Both lists contain the search tool. In the proxy, the description of that tool includes the note that asks the
    // model to search first; in everruns, the note is in the system prompt.
    let list = saved(size(&before), size(after));
    let schemas = saved(schemas(&before), schemas(after));
    assert!(list >= 39 && schemas >= 55, "saved: list {list} %, schemas {schemas} %");
}
