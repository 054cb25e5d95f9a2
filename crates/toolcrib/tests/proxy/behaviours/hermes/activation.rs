//! Tests of when tools are deferred under `hermes`.

use serde_json::Value;

use super::{Proxy, Setup, done, first_exchange, search, session, tool};

/// Returns `count` tools of about a thousand tokens each.
fn thousands(count: usize) -> Vec<Value> {
    let words = "word ".repeat(970);
    (0..count).map(|at| tool(&format!("mcp_acme_t{at:02}"), &words, &["what"], 1)).collect()
}

fn hermes(context: &'static str) -> Setup {
    Setup::preset("hermes", "").flags(&["--context", context]).model("a-model")
}

/// Returns the tokens of the tools that may be deferred, as the proxy counts them.
fn tokens(tools: &[Value]) -> usize {
    first_exchange(&hermes("100"), tools).number("x-toolcrib-tokens-before")
}

#[test]
fn auto_activates_at_ten_percent_of_the_context_and_not_below() {
    let tools = thousands(3);
    let tokens = tokens(&tools);
    let decide = |context: usize| {
        let setup = Setup::preset("hermes", &format!("context = {context}")).model("a-model");
        first_exchange(&setup, &tools)
    };
    let exchange = decide(10 * tokens);
    assert_eq!(exchange.mode(), "bridge");
    let window = format!("(10 % of the {}-token context window)", 10 * tokens);
    assert!(exchange.why().contains(&window), "{}", exchange.why());
    let exchange = decide(10 * tokens + 10);
    assert_eq!((exchange.mode(), exchange.tools(0)), ("pass-through", &tools[..]));
}

#[test]
fn auto_goes_by_the_share_alone_and_not_by_what_is_saved() {
    let exchange = first_exchange(&hermes("100"), &session()[2..3]);
    let tokens = |side: &str| exchange.number(&format!("x-toolcrib-tokens-{side}"));
    assert!(
        exchange.mode() == "bridge" && tokens("after") > tokens("before"),
        "{}",
        exchange.why()
    );
}

#[test]
fn core_tools_do_not_count_towards_the_threshold() {
    let deferrable = tokens(&thousands(2));
    let mut tools = thousands(2);
    tools.push(tool("terminal", &"word ".repeat(4000), &[], 0));
    let decide = |context: usize| {
        let setup = Setup::preset("hermes", &format!("context = {context}")).model("a-model");
        first_exchange(&setup, &tools).mode().to_owned()
    };
    assert_eq!(decide(10 * deferrable), "bridge");
    assert_eq!(decide(10 * deferrable + 10), "pass-through");
}

#[test]
fn where_the_context_is_not_known_twenty_thousand_tokens_decide() {
    let setup = Setup::preset("hermes", "").model("a-model");
    let exchange = first_exchange(&setup, &thousands(22));
    assert_eq!(exchange.mode(), "bridge", "{}", exchange.why());
    assert!(
        exchange.why().contains("20000 because the context window is unknown"),
        "{}",
        exchange.why()
    );
    let exchange = first_exchange(&setup, &thousands(15));
    assert_eq!(exchange.mode(), "pass-through");
    assert!(
        exchange
            .why()
            .contains("the token threshold is 20000 because the context window is unknown"),
        "{}",
        exchange.why()
    );
}

#[test]
fn below_the_threshold_the_array_passes_as_it_came_and_costs_nothing() {
    // There are so many tools that Toolcrib's default settings would defer them.
    let mut tools = session();
    tools.extend(thousands(18));
    let exchange = first_exchange(&hermes("200000"), &tools);
    assert_eq!(exchange.mode(), "pass-through", "{}", exchange.why());
    assert_eq!(
        exchange.number("x-toolcrib-tokens-after"),
        exchange.number("x-toolcrib-tokens-before")
    );
    assert!(exchange.is_untouched());
}

#[test]
fn many_servers_activate_it_in_the_window_that_the_models_name_tells() {
    let setup = Setup::preset("hermes", "").model("claude-sonnet-4-5");
    let exchange = first_exchange(&setup, &thousands(25));
    assert_eq!(exchange.mode(), "bridge", "{}", exchange.why());
    assert!(
        exchange.why().contains("(10 % of the 200000-token context window)"),
        "{}",
        exchange.why()
    );
    assert_eq!(first_exchange(&setup, &thousands(3)).mode(), "pass-through");
}

#[test]
fn every_request_is_decided_again_and_with_fewer_servers_tools_are_direct() {
    let (many, few) = (thousands(12), thousands(3));
    let windows = "[context_windows]\n'a-model' = 100_000\n'another-model' = 1_000_000";
    let setup = Setup::preset("hermes", windows).model("a-model");
    let mut proxy = Proxy::start(&setup, [search("word"), done(), done(), done(), done()]);
    assert_eq!(proxy.ask(&many).mode(), "bridge");
    let exchange = proxy.continue_with(&few);
    assert_eq!((exchange.mode(), exchange.tools(0)), ("pass-through", &few[..]));
    assert_eq!(proxy.continue_with(&many).mode(), "bridge");
    proxy.setup.model = "another-model";
    assert_eq!(proxy.continue_with(&many).mode(), "pass-through", "the new model's window decides");
}
