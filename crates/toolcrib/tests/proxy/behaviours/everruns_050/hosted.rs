//! Tests of the provider's own search: which capability requests it, and which models have it.

use serde_json::{Value, json};

use super::{Proxy, Setup, first_exchange, strings, tools};
use crate::behaviours::ProxyExchange;

const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";

/// Returns the setup that `openai_tool_search` and `claude_tool_search` stand for: a hosted search. `native` declares
/// the features that the upstream supports.
fn capability(native: &str) -> Setup {
    let mode = "hosted";
    let route = format!(
        "[[proxy.routes]]\nmodels = ['*']\nurl = 'URL'\nclient_key = true\nnative = {{ {native} }}"
    );
    Setup::preset("everruns@0.50", &format!("disclosure = '{mode}'\n{route}"))
}

fn messages(setup: &Setup, model: &str) -> ProxyExchange {
    let tool = |at: usize| {
        json!({
            "name": format!("plant__gauge_{at}"), "description": format!("Reads gauge number {at}."),
            "input_schema": strings(&["unit"], 1),
        })
    };
    let body = json!({
        "model": model, "max_tokens": 100, "tools": (0..20).map(tool).collect::<Vec<_>>(),
        "messages": [{"role": "user", "content": "Hello."}],
    });
    Proxy::start(setup, []).post(MESSAGES, &body)
}

fn responses(setup: &Setup, model: &str) -> ProxyExchange {
    let tool = |at: usize| {
        json!({
            "type": "function", "name": format!("plant__gauge_{at}"),
            "description": format!("Reads gauge number {at}."), "parameters": strings(&["unit"], 1),
        })
    };
    let tools: Vec<Value> = (0..20).map(tool).collect();
    let body = json!({"model": model, "input": "Hello.", "tools": tools});
    Proxy::start(setup, []).post(RESPONSES, &body)
}

#[test]
fn the_hosted_capabilities_leave_the_search_to_the_provider() {
    let setup = capability("hosted = 'both'");
    let exchange = messages(&setup, "claude-opus-5");
    assert_eq!(exchange.mode(), "hosted");
    let kinds: Vec<_> = exchange.tools(0).iter().filter_map(|tool| tool["type"].as_str()).collect();
    assert_eq!(kinds, ["tool_search_tool_bm25_20251119"]);
    let deferred = exchange.tools(0).iter().filter(|tool| tool["defer_loading"] == true).count();
    assert_eq!(deferred, 20, "{}", exchange.sent[0]);
    let exchange = responses(&capability("hosted = 'openai'"), "gpt-5.4");
    assert_eq!(exchange.mode(), "hosted");
    assert!(
        exchange.tools(0).iter().any(|tool| tool["type"] == "tool_search"),
        "{}",
        exchange.sent[0]
    );
}

#[test]
fn everruns_own_file_asks_for_the_providers_search_by_name() {
    for (id, mode) in [
        ("tool_search", "reveal"),
        ("auto_tool_search", "reveal"),
        ("openai_tool_search", "bridge"),
        ("claude_tool_search", "bridge"),
    ] {
        let config = json!({"capabilities": [{"ref": id, "config": {}}]});
        let setup = Setup::file("everruns.json", config.to_string());
        for flags in [&["--preset", "everruns@0.50"][..], &[]] {
            let exchange = first_exchange(&setup.clone().flags(flags), &tools(20));
            // The last two ids request a hosted search. These requests use Chat Completions, which has none, so
            // `bridge` is used instead.
            assert_eq!(exchange.mode(), mode, "{id} {flags:?}: {}", exchange.why());
        }
    }
}

#[test]
fn other_transports_have_no_search_of_their_own() {
    let setup = capability("");
    let exchange = first_exchange(&setup.clone().model("gpt-5.4"), &tools(20));
    assert_eq!(exchange.mode(), "bridge", "Chat Completions: {}", exchange.why());
    let exchange = messages(&setup, "anthropic/claude-opus-5");
    assert_eq!(exchange.mode(), "bridge", "a host of which nothing is known: {}", exchange.why());
}

/// On hosts other than the providers' own, the model's name does not prove that a hosted search exists. So the routes
/// declare which models have one.
#[test]
fn automatic_search_is_the_providers_on_models_that_have_one_and_stubs_elsewhere() {
    let route = |models: &str, native: &str| {
        format!(
            "[[proxy.routes]]\nmodels = [{models}]\nurl = 'URL'\nclient_key = true\n\
             native = {{ hosted = '{native}' }}\n"
        )
    };
    let routes = [
        route("'gpt-5.4', 'gpt-5.5*'", "openai"),
        route("'claude-opus-5'", "both"),
        route("'*'", "none"),
    ];
    let settings = format!("disclosure = 'hosted'\nfallback = 'reveal'\n{}", routes.concat());
    let setup = Setup::preset("everruns@0.50", &settings);
    for (model, mode) in [("gpt-5.4", "hosted"), ("gpt-5.5-pro", "hosted"), ("gpt-5.2", "reveal")] {
        assert_eq!(responses(&setup, model).mode(), mode, "{model}");
    }
    for (model, mode) in [("claude-opus-5", "hosted"), ("claude-3-7-sonnet", "reveal")] {
        assert_eq!(messages(&setup, model).mode(), mode, "{model}");
    }
}

#[test]
fn openais_search_is_on_the_models_that_have_it_on_its_own_host() {
    let setup = Setup::preset("everruns@0.50", "disclosure = 'hosted'\nfallback = 'reveal'");
    let setup = setup.real_hosts();
    for (model, mode) in [
        ("gpt-5.4", "hosted"),
        ("gpt-5.5-pro", "hosted"),
        ("gpt-6-sol", "hosted"),
        ("gpt-5.4-nano", "reveal"),
        ("gpt-5.2", "reveal"),
        ("o3", "reveal"),
    ] {
        let exchange = responses(&setup, model);
        assert_eq!(exchange.mode(), mode, "{model}: {}", exchange.why());
    }
    let exchange = first_exchange(&setup.model("gpt-5.4"), &tools(20));
    assert_eq!(exchange.mode(), "reveal", "Chat Completions: {}", exchange.why());
}

#[test]
fn anthropics_search_is_on_the_models_that_have_it_on_its_own_host() {
    let setup = Setup::preset("everruns@0.50", "disclosure = 'hosted'\nfallback = 'reveal'");
    let setup = setup.real_hosts();
    for (model, mode) in [
        ("claude-opus-4-5", "hosted"),
        ("claude-sonnet-4-6", "hosted"),
        ("claude-haiku-4-5", "hosted"),
        ("claude-fable-5", "hosted"),
        ("claude-opus-4", "reveal"),
        ("claude-3-7-sonnet", "reveal"),
    ] {
        let exchange = messages(&setup, model);
        assert_eq!(exchange.mode(), mode, "{model}: {}", exchange.why());
    }
}

#[test]
fn a_client_that_sends_defer_loading_itself_is_passed_untouched() {
    let setup = capability("hosted = 'both', references = true");
    let tools = json!([
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        {"name": "get", "description": "Get it.", "input_schema": {"type": "object"}, "defer_loading": true},
    ]);
    let messages = json!([{"role": "user", "content": "Hello."}]);
    let body =
        json!({"model": "claude-opus-5", "max_tokens": 100, "tools": tools, "messages": messages});
    let exchange = Proxy::start(&setup, []).post(MESSAGES, &body);
    assert_eq!((exchange.mode(), exchange.why()), ("bypass", "the client defers tools itself"));
    assert!(exchange.is_untouched());
}
