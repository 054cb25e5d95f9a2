//! Tests of docs/presets/opencode.md through the proxy.

mod config;
mod search;

use serde_json::{Value, json};

use super::{Proxy, Setup, call_with_text, done, first_exchange, search, tool};

/// Returns the tools of a coding agent and of two servers. The tests of the library, `mcp` and `serve` share this
/// sample.
fn coding() -> Vec<Value> {
    let tools: Vec<(&str, &str, &str)> =
        serde_json::from_str(include_str!("../../../../../tests/samples/opencode.json")).unwrap();
    let with = |(name, words, argument)| tool(name, words, &[argument], 1);
    tools.into_iter().map(with).collect()
}

fn opencode() -> Setup {
    Setup::preset("opencode", "")
}

#[test]
fn every_tool_is_deferred_from_the_first_one_on() {
    let exchange = first_exchange(&opencode(), &coding()[..1]);
    assert_eq!((exchange.mode(), exchange.description(0, "read")), ("terse", "[d]"));
}

#[test]
fn a_deferred_tool_keeps_its_slot_its_name_and_its_parameters_and_a_mark_for_a_description() {
    let exchange = first_exchange(&opencode(), &coding());
    let mut expected = coding();
    for tool in &mut expected {
        tool["function"]["description"] = "[d]".into();
    }
    assert_eq!(exchange.tools(0)[..13], expected, "`bash` and `read` are deferred, too");
    assert_eq!(exchange.tools(0).len(), 15);
}

#[test]
fn a_tool_in_always_load_keeps_its_full_description() {
    let setup = Setup::preset("opencode", "[defer]\nnever = ['read', 'bash']");
    let exchange = first_exchange(&setup, &coding());
    let descriptions = ["read", "write", "bash"].map(|name| exchange.description(0, name));
    assert_eq!(descriptions, ["Read a file from disk.", "[d]", "Run a shell command."]);
}

#[test]
fn both_search_tools_are_there_with_full_descriptions_whatever_was_found() {
    let exchange = Proxy::start(&opencode(), [search("github issues"), done()]).ask(&coding());
    assert_eq!(exchange.names(0)[13..], ["tool_search", "tool_search_regex"]);
    let description = exchange.description(0, "tool_search");
    assert!(
        description
            .ends_with("Finds tools whose description is cut to a mark, and returns it in full.")
    );
    assert_eq!(exchange.description(0, "tool_search_regex"), "Finds deferred tools by a pattern.");
    assert_eq!(exchange.tools(1), exchange.tools(0));
}

#[test]
fn the_note_sends_the_model_to_tool_search_and_is_stronger_for_other_providers() {
    let descriptions_for = |model| {
        let exchange = first_exchange(&opencode().model(model), &coding());
        exchange.description(0, "tool_search").to_owned()
    };
    let anthropic = descriptions_for("claude-sonnet-4-5");
    assert!(anthropic.contains("get them from `tool_search` before the first use"), "{anthropic}");
    assert!(
        !anthropic.contains("Never call") && !anthropic.contains(char::is_numeric),
        "{anthropic}"
    );
    for model in ["gpt-5.4", "qwen3-coder"] {
        let other = descriptions_for(model);
        let never = "Never call a tool described only by a mark before `tool_search`";
        assert!(other.contains(never), "{model}: {other}");
    }
}

#[test]
fn a_call_that_does_not_fit_never_reaches_the_client() {
    let tools = [tool("fetch", "Get a page.", &["url"], 1)];
    for arguments in ["", "{}", r#"{"url":5}"#, "null"] {
        let exchange =
            Proxy::start(&opencode(), [call_with_text("fetch", arguments), done()]).ask(&tools);
        assert_eq!(exchange.calls(), [], "{arguments:?}");
        let schema =
            r#"{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}"#;
        assert!(exchange.reply(1).contains(schema), "{arguments:?}: {}", exchange.reply(1));
    }
}

#[test]
fn a_deferred_tool_that_is_called_directly_runs_with_the_arguments_as_written() {
    let arguments = r#"{ "command": "ls  -l" }"#;
    let exchange = Proxy::start(&opencode(), [call_with_text("bash", arguments)]).ask(&coding());
    assert_eq!(exchange.calls(), [("bash".to_owned(), arguments.to_owned())]);
    assert_eq!((exchange.mode(), exchange.sent.len()), ("terse", 1));
}

#[test]
fn in_the_fork_a_tool_is_hidden_until_it_is_found() {
    let setup = Setup::file("opencode.json", r#"{"toolSearch": {"alwaysLoad": ["read"]}}"#);
    let exchange = Proxy::start(&setup, [search("shell"), done()]).ask(&coding());
    assert_eq!(exchange.names(0), ["read", "tool_search", "tool_search_regex"]);
    assert!(!exchange.sent[0].to_string().contains("bash"), "the request names no hidden tool");
    assert_eq!(exchange.names(1), ["read", "tool_search", "tool_search_regex", "bash"]);
    assert_eq!(*exchange.tool(1, "bash"), coding()[4]);
}

#[test]
fn a_client_with_a_tool_search_of_its_own_is_passed_untouched() {
    let mut tools = coding();
    tools.push(tool("tool_search", "Finds tools.", &["query"], 1));
    let exchange = first_exchange(&opencode(), &tools);
    assert_eq!(exchange.why(), "the client has a tool search of its own");
    assert!(exchange.is_untouched());
}

/// The tools have long descriptions and small schemas, like those for which the plugin's README states its figures.
#[test]
fn a_coding_agents_tools_shrink_by_as_much_as_the_readme_says() {
    let tools: Vec<Value> =
        serde_json::from_str(include_str!("../../it/surfaces/coding.json")).unwrap();
    let always =
        "[defer]\nnever = ['read', 'write', 'edit', 'bash', 'glob', 'grep', 'list', 'task']";
    let body = json!({
        "model": "claude-opus-5", "max_tokens": 100, "tools": tools,
        "messages": [{"role": "user", "content": "Hello."}],
    });
    for (settings, deferred) in [("", 32), (always, 24)] {
        let exchange =
            Proxy::start(&Setup::preset("opencode", settings), []).post("/v1/messages", &body);
        assert_eq!(exchange.number("x-toolcrib-deferred"), deferred);
        let marked = exchange.tools(0).iter().filter(|tool| tool["description"] == "[d]");
        let slots: Vec<usize> = marked.clone().map(|tool| tool.to_string().len()).collect();
        let before: usize = marked
            .map(|tool| tools.iter().find(|original| original["name"] == tool["name"]).unwrap())
            .map(|tool| tool.to_string().len())
            .sum();
        let after: usize = slots.iter().sum();
        assert!(after * 100 <= before * 20, "{after} of {before} bytes");
        // This estimates four characters per token.
        let slot = after / slots.len() / 4;
        assert!((30..=70).contains(&slot), "{slot} tokens");
    }
    let exchange = Proxy::start(&opencode(), []).post("/v1/messages", &body);
    let tokens = |side: &str| exchange.number(&format!("x-toolcrib-tokens-{side}"));
    let percent = 100 - 100 * tokens("after") / tokens("before");
    assert!(percent >= 85, "only {percent} % of the request is saved");
}
