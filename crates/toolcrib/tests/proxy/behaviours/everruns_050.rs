//! Tests of docs/presets/everruns-0.50.md through the proxy.

mod hosted;

use serde_json::{Value, json};

use super::{
    Proxy, Setup, call, done, first_exchange, names, search, search_json, strings, tool, warnings,
};

const STUB: &str = r#"{"type":"object","properties":{},"additionalProperties":true}"#;

/// Returns `count` tools of one server, each with one parameter.
fn tools(count: usize) -> Vec<Value> {
    let with = |at: usize| {
        let words = format!("Reads gauge number {at}.");
        tool(&format!("plant__gauge_{at}"), &words, &["unit"], 1)
    };
    (0..count).map(with).collect()
}

fn release() -> Setup {
    Setup::preset("everruns@0.50", "")
}

fn configured(config: &Value) -> Setup {
    let capabilities = json!({"capabilities": [{"ref": "tool_search", "config": config}]});
    Setup::file("everruns.json", capabilities.to_string())
}

#[test]
fn a_stub_is_an_open_object_without_a_hint() {
    let exchange = first_exchange(&release(), &tools(15));
    assert_eq!(
        (exchange.mode(), exchange.why()),
        ("reveal", "15 tools, the threshold is 15; configured")
    );
    assert_eq!(exchange.schema(0, "plant__gauge_0").to_string(), STUB);
    assert!(
        exchange.description(0, "tool_search").contains("Load one with `tool_search`"),
        "the hint is in the description of the search tool"
    );
    assert_eq!(first_exchange(&release(), &tools(14)).mode(), "pass-through");
}

#[test]
fn a_conversation_that_deferred_goes_on_when_its_tools_become_fewer() {
    let mut proxy = Proxy::start(&release(), [search("gauge_3"), done(), done()]);
    proxy.ask(&tools(15));
    let exchange = proxy.continue_with(&tools(2));
    assert_eq!(
        exchange.why(),
        "this conversation already defers; the conversation already uses this mode"
    );
    assert_eq!(exchange.schema(0, "plant__gauge_0").to_string(), STUB);
}

#[test]
fn reveals_last_as_long_as_the_history_shows_the_turn_that_found_them() {
    let ran = call("plant__gauge_7", &json!({"unit": "bar"}));
    let mut proxy = Proxy::start(&release(), [search("gauge_7"), ran, done(), done()]);
    proxy.ask(&tools(15));
    let exchange = proxy.continue_with(&tools(15));
    assert_eq!(*exchange.schema(0, "plant__gauge_7"), strings(&["unit"], 1));
    // The client compacts its history, which removes the turn that found the tool.
    proxy.history = vec![json!({"role": "user", "content": "A gauge was read."})];
    let exchange = proxy.send(&tools(15));
    assert_eq!(exchange.schema(0, "plant__gauge_7").to_string(), STUB);
}

#[test]
fn a_tool_whose_call_failed_has_its_schema_from_then_on() {
    let wrong = call("plant__gauge_7", &json!({"unit": 5}));
    let mut proxy = Proxy::start(&release(), [wrong, done(), done()]);
    let exchange = proxy.ask(&tools(15));
    assert!(
        exchange.reply(1).contains(&strings(&["unit"], 1).to_string()),
        "{}",
        exchange.reply(1)
    );
    assert_eq!(*exchange.schema(1, "plant__gauge_7"), strings(&["unit"], 1));
    assert_eq!(*proxy.continue_with(&tools(15)).schema(0, "plant__gauge_7"), strings(&["unit"], 1));
}

#[test]
fn found_tools_get_their_schemas_unless_reveal_says_otherwise() {
    for (reveal, changes) in [("redefine", true), ("in_result", false)] {
        let setup = configured(&json!({"reveal": reveal}));
        let exchange = Proxy::start(&setup, [search("gauge_7"), done()]).ask(&tools(15));
        assert!(
            exchange.reply(1).contains(&strings(&["unit"], 1).to_string()),
            "{}",
            exchange.reply(1)
        );
        assert_eq!(exchange.tools(1) != exchange.tools(0), changes, "{reveal}");
    }
}

#[test]
fn in_result_does_not_go_with_bounded_and_bounds_have_ranges() {
    let setup =
        configured(&json!({"reveal": "in_result", "bounded": true, "max_active_tools": 500}));
    let expected = [
        "`capabilities.tool_search.reveal`: `in_result` cannot be combined with `bounded`; using `redefine`",
        "`capabilities.tool_search.max_active_tools`: 500 is not within 1 to 128; using 128",
    ];
    assert_eq!(warnings(&setup), expected);
    assert_eq!(first_exchange(&setup, &tools(3)).mode(), "append");
}

#[test]
fn bounded_shows_no_deferred_tool_before_it_was_found() {
    let mut three = tools(2);
    three.push(tool("bash", "Run a command.", &["command"], 1));
    let setup = configured(&json!({"bounded": true}));
    let exchange = Proxy::start(&setup, [search("gauge_1"), done()]).ask(&three);
    assert_eq!(exchange.names(0), ["bash", "tool_search"], "even a few tools are deferred");
    assert!(!exchange.sent[0].to_string().contains("gauge"), "the request names no hidden tool");
    assert_eq!(exchange.names(1), ["bash", "tool_search", "plant__gauge_1"]);
}

#[test]
fn bounded_keeps_the_tools_that_were_loaded_last() {
    let setup = configured(&json!({"bounded": true, "max_active_tools": 2}));
    let load = |names: &str| search(&format!("select:{names}"));
    let answers = [
        load("plant__gauge_1"),
        load("plant__gauge_2"),
        load("plant__gauge_3"),
        done(),
        load("plant__gauge_1"),
        load("plant__gauge_5,plant__gauge_6,plant__gauge_7"),
        done(),
    ];
    let mut proxy = Proxy::start(&setup, answers);
    let exchange = proxy.ask(&tools(20));
    assert_eq!(exchange.names(3), ["tool_search", "plant__gauge_2", "plant__gauge_3"]);
    let exchange = proxy.continue_with(&tools(20));
    assert_eq!(exchange.names(0), ["tool_search", "plant__gauge_2", "plant__gauge_3"]);
    assert_eq!(
        exchange.names(1),
        ["tool_search", "plant__gauge_3", "plant__gauge_1"],
        "it is loaded again, and the oldest is evicted"
    );
    // Only two tools fit. Within one reply, the first tool counts as the most recent one, so the first two are kept,
    // and the first of them comes last.
    assert_eq!(exchange.names(2), ["tool_search", "plant__gauge_6", "plant__gauge_5"]);
}

#[test]
fn bounded_counts_the_bytes_of_what_is_shown() {
    let mut all = vec![tool("plant__wide", &"x".repeat(800), &["unit"], 1)];
    all.extend(tools(3));
    let setup = configured(&json!({"bounded": true, "max_active_bytes": 1024}));
    let answers = [search("select:plant__gauge_0"), search("select:plant__wide"), done()];
    let exchange = Proxy::start(&setup, answers).ask(&all);
    assert_eq!(exchange.names(1), ["tool_search", "plant__gauge_0"]);
    assert_eq!(
        exchange.names(2),
        ["tool_search", "plant__wide"],
        "only the newest tool fits into the limit"
    );
}

#[test]
fn bounded_searches_parameters_too_and_a_miss_names_sources() {
    let mut all = tools(20);
    all.push(tool("plant__valve", "Turns.", &["angle"], 1));
    let answers =
        search_json(&configured(&json!({"bounded": true})), &all, &["angle", "submarine"]);
    assert_eq!(names(&answers[0], "tools"), ["plant__valve"]);
    assert_eq!(answers[1]["available_sources"], json!([{"name": "plant", "tools": 21}]));
    assert_eq!(answers[1]["available_tools"], Value::Null);
}

#[test]
fn without_bounded_the_ranking_is_that_of_the_earlier_editions() {
    let mut all = tools(14);
    all.push(tool("plant__valve", "Turns a gauge_1 on.", &["angle"], 1));
    let queries = ["gauge_1", "turns", "gauge"];
    let now = search_json(&release(), &all, &queries);
    assert_eq!(now, search_json(&Setup::preset("everruns", ""), &all, &queries));
    assert_eq!(names(&now[0], "tools"), ["plant__gauge_1"]);
    assert_eq!((names(&now[1], "tools"), names(&now[2], "tools").len()), (vec!["plant__valve"], 8));
}

#[test]
fn threshold_and_allowlist_are_read_from_a_list_of_references() {
    let config = json!({"threshold": 20, "never_defer": ["plant_gauge_3"], "reveal": "redefine"});
    let exchange = first_exchange(&configured(&config), &tools(20));
    assert_eq!(
        exchange.schema(0, "plant__gauge_4").to_string(),
        STUB,
        "recognised by the key `reveal`"
    );
    assert_eq!(*exchange.schema(0, "plant__gauge_3"), strings(&["unit"], 1));
    assert_eq!(first_exchange(&configured(&config), &tools(19)).mode(), "pass-through");
}
