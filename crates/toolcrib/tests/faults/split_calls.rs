//! Tests of `split_calls`: deferred tools are called through `tool_read` or `tool_write`.

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{count, until_true};
use crate::raw_client::{ERAS, Era, RawClient};

fn script() -> Value {
    let returns = json!([{"arguments": true}]);
    let reads = json!({"annotations": {"readOnlyHint": true}});
    json!({
        "capabilities": {"tools": {}},
        "tools": {"get": returns, "peek": returns, "set": returns, "list": returns},
        "definitions": {"get": reads, "peek": reads},
    })
}

/// Configures an honest server, of which the owner changes two tools, and a server whose annotations are not trusted.
fn environment(name: &str, split: &str) -> TestEnvironment {
    let changes = "tools.peek.read_only = false\ntools.list.read_only = true\n";
    TestEnvironment::new(name)
        .with(&format!("{split}[activation]\nmode = \"on\"\n"))
        .scripted("shop", &script(), changes)
        .scripted("evil", &script(), "trust_annotations = false\n")
}

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap_or_default()
}

fn check(environment: &TestEnvironment, peer: &RawClient, era: Era) {
    let call = |through: &str, name: &str| {
        peer.call(through, json!({"name": name, "arguments": {"id": 1}}))
    };
    for server in ["shop", "evil"] {
        until_true(server, || {
            text(&call("tool_write", &format!("{server}__set"))).starts_with("set")
        });
    }
    let list = peer.ask("tools/list", json!({}));
    let tools = list["tools"].as_array().unwrap();
    let annotations = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name);
        tool.map(|tool| tool["annotations"].clone())
    };
    assert_eq!(annotations("tool_read"), Some(json!({"readOnlyHint": true})));
    let write = json!({"readOnlyHint": false, "destructiveHint": true});
    assert_eq!(annotations("tool_write"), Some(write));
    assert_eq!(annotations("tool_call"), None);
    for (name, reads) in [
        ("shop__get", true),
        ("shop__peek", false),
        ("shop__set", false),
        ("shop__list", true),
        ("evil__get", false),
        ("evil__set", false),
    ] {
        let (right, wrong) =
            if reads { ("tool_read", "tool_write") } else { ("tool_write", "tool_read") };
        let (server, own) = name.split_once("__").unwrap();
        let answer = call(right, name);
        assert_eq!(text(&answer), format!("{own} {{\"id\":1}}"), "{era:?} {name}");
        let calls = || count(&environment.log(server), &format!("call {own}"));
        let before = calls();
        for wrong in [wrong, "tool_call"] {
            // Other spellings of the name reach the same tool, so they are refused, too.
            for spelling in [name.to_owned(), name.replace("__", "/")] {
                let answer = call(wrong, &spelling);
                assert_eq!(answer["isError"], true, "{era:?} {answer}");
                let refusal: Value = serde_json::from_str(text(&answer)).unwrap();
                assert_eq!(refusal["error"], "wrong_call_tool", "{refusal}");
                assert_eq!(refusal["hint"], format!("call {right} with the same input"));
            }
        }
        assert_eq!(calls(), before, "{name} was not sent");
        let found = peer.search(&format!("select:{name}"));
        assert_eq!(found["hits"][0]["call"], right, "{found}");
        let described = peer.call("tool_describe", json!({"name": name}));
        assert!(text(&described).contains(&format!("\"call\":\"{right}\"")), "{described}");
    }
}

#[test]
fn calls_that_read_and_calls_that_write_are_separate() {
    for era in ERAS {
        let environment = environment("split-stdio", "split_calls = true\n");
        check(&environment, &environment.stdio(era), era);
        let gateway = environment.serve();
        check(&environment, &gateway.peer(era), era);
    }
}

#[test]
fn without_the_setting_there_is_only_one_tool() {
    let environment = environment("split-off", "");
    let peer = environment.stdio(Era::Older);
    let call = |name: &str| peer.call("tool_call", json!({"name": name, "arguments": {}}));
    until_true("the shop", || text(&call("shop__set")).starts_with("set"));
    assert_eq!(peer.names(), ["tool_search", "tool_describe", "tool_call"]);
    assert!(peer.search("select:shop__get")["hits"][0].get("call").is_none());
    for absent in ["tool_read", "tool_write"] {
        assert!(peer.call(absent, json!({"name": "shop__get"}))["error"].is_object());
    }
}
