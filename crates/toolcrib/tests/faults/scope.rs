//! Tests that tools outside a profile cannot be found, described, called, counted or guessed.
//!
//! The reference is a second gateway whose config never contained what the profile excludes. For every question,
//! transport and protocol version, both gateways must answer with the same bytes.

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::http::{self, Request};
use crate::probe::{count, until_true};
use crate::raw_client::{ERAS, Era, RawClient};

/// Two gateways embed their tools at different times, and the ranking changes when they do. So their answers are compared
/// without deep vectors. That hidden tools do not influence the deep tier is tested in `toolcrib-core`.
const TIER: &str = "[rank]\ntier = 'table'";

/// Configures four servers, and a profile that includes only two of them and excludes two tools.
fn narrowed(name: &str) -> TestEnvironment {
    TestEnvironment::new(name)
        .fixture("books", "")
        .fixture("hidden", "")
        .faulty("locked", &["--hang", "hang", "--tools", "40"])
        .faulty("seen", &["--tools", "20"])
        .with("[profiles.narrow]\nservers = ['seen', 'b*']\ndeny = ['seen/env', 'cwd']")
        .with(TIER)
}

/// Configures only what the profile of `narrowed` contains.
fn without_excluded_servers(name: &str) -> TestEnvironment {
    TestEnvironment::new(name)
        .fixture("books", "")
        .faulty_with("seen", &["--tools", "20"], "deny = ['env', 'cwd']")
        .with("[profiles.narrow]\n")
        .with(TIER)
}

/// Returns every question that could reveal something outside the profile.
fn questions(era: Era) -> Vec<(&'static str, Value)> {
    let outside = ["locked__echo", "locked__tool_7", "hidden__test_simple_text", "seen__env"];
    let mut all = vec![
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
    ];
    let mut call = |name: &str, arguments: Value| {
        all.push(("tools/call", json!({"name": name, "arguments": arguments})));
    };
    for name in outside {
        let (server, own) = name.split_once("__").unwrap();
        call(name, json!({}));
        call(name, json!({"query": "x"}));
        call(own, json!({}));
        call("tool_call", json!({"name": name, "arguments": {}}));
        call("tool_call", json!({"name": own, "arguments": {}}));
        call("tool_call", json!({"name": format!("{server}/{own}"), "arguments": {}}));
        call("tool_describe", json!({"name": name}));
        call("tool_search", json!({"query": format!("select:{name}")}));
        call("tool_search", json!({"query": name}));
        call("tool_search", json!({"queries": [name, own, server]}));
        call(
            "tool_search_regex",
            json!({"pattern": format!("^{server}"), "query": format!("^{server}")}),
        );
        // This name differs from a real one by one letter. Similar names are suggested in the answer, but only names
        // inside the profile.
        call(&name.replace("__", "__x"), json!({}));
    }
    for query in [
        "",
        "locked",
        "hidden",
        "+locked",
        "-seen",
        "never comes back",
        "environment",
        "department 33",
    ] {
        call("tool_search", json!({"query": query}));
    }
    for name in ["hidden__test_simple_prompt", "hidden__test_prompt_with_arguments"] {
        all.push(("prompts/get", json!({"name": name})));
        let named = json!({"type": "ref/prompt", "name": name});
        let argument = json!({"name": "arg1", "value": "t"});
        all.push(("completion/complete", json!({"ref": named, "argument": argument})));
    }
    for uri in [
        "hidden+test://static-text",
        "hidden+test://template/1/data",
        "locked+x://y",
        "test://static-text",
    ] {
        all.push(("resources/read", json!({"uri": uri})));
        if era == Era::Older {
            all.push(("resources/subscribe", json!({"uri": uri})));
            all.push(("resources/unsubscribe", json!({"uri": uri})));
        }
    }
    let named = json!({"type": "ref/resource", "uri": "hidden+test://template/{id}/data"});
    let argument = json!({"name": "id", "value": "1"});
    all.push(("completion/complete", json!({"ref": named, "argument": argument})));
    if era == Era::Older {
        all.push(("logging/setLevel", json!({"level": "debug"})));
    }
    all
}

/// Waits until both servers of the profile are up.
fn ready(peer: &RawClient) {
    peer.ready("seen__echo");
    until_true("the books", || {
        peer.ask("prompts/list", json!({}))["prompts"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
    });
}

/// Sends the same questions to both gateways and compares the answers. Returns the number of questions.
fn compare(with: &RawClient, without: &RawClient, era: Era) -> usize {
    let questions = questions(era);
    for (method, params) in &questions {
        let (one, other) = (with.ask(method, params.clone()), without.ask(method, params.clone()));
        assert_eq!(one.to_string(), other.to_string(), "{era:?} {method} {params}");
    }
    questions.len()
}

#[test]
fn tools_outside_the_profile_do_not_exist_on_stdio() {
    for era in ERAS {
        let (environment, other) =
            (narrowed("scope-stdio"), without_excluded_servers("scope-stdio-alone"));
        let (with, without) = (environment.stdio_as(era, "narrow"), other.stdio_as(era, "narrow"));
        ready(&with);
        ready(&without);
        crate::print_figure("questions on stdio", compare(&with, &without, era));
        assert_eq!(
            count(&environment.log("locked"), "call"),
            0,
            "no tool outside the profile was run"
        );
        assert_eq!(
            count(&environment.log("seen"), "call env"),
            0,
            "no tool outside the profile was run"
        );
    }
}

#[test]
fn tools_outside_the_profile_do_not_exist_over_http() {
    let (environment, other) =
        (narrowed("scope-http"), without_excluded_servers("scope-http-alone"));
    let (gateway, other_gateway) = (environment.serve(), other.serve());
    // At the same time, another client without a profile uses everything.
    let wide = gateway.peer(Era::Older);
    until_true("everything up", || {
        wide.call("locked__echo", json!({}))["structuredContent"] == json!({})
            && wide.search("select:hidden__test_simple_text")["hits"][0].is_object()
    });
    wide.begin("locked__hang", json!({}));
    let calls = count(&environment.log("locked"), "call echo");
    for era in ERAS {
        let (with, without) =
            (gateway.peer_as(era, "narrow"), other_gateway.peer_as(era, "narrow"));
        ready(&with);
        ready(&without);
        crate::print_figure("questions over HTTP", compare(&with, &without, era));
    }
    assert_eq!(
        count(&environment.log("locked"), "call echo"),
        calls,
        "no tool outside the profile was run"
    );
    assert_eq!(
        count(&environment.log("seen"), "call env"),
        0,
        "no tool outside the profile was run"
    );
}

/// The name of a profile that does not exist is rejected, even if the profile existed before a reload.
#[test]
fn an_unknown_profile_is_rejected() {
    let environment = narrowed("scope-gone");
    let status = environment.toolcrib(&["mcp", "--profile", "nope"]).status().unwrap();
    assert_eq!(status.code(), Some(2));
    assert!(
        environment.stderr().contains("there is no profile `nope`"),
        "{}",
        environment.stderr()
    );

    let gateway = environment.serve();
    let post = |path: &str| {
        let headers = vec![
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Content-Type", "application/json".to_owned()),
        ];
        let request = Request { method: "POST", path, headers, body: b"{}" };
        http::ask(&gateway.address, &request).unwrap()
    };
    let absent = post("/mcp/nope");
    assert_eq!(absent, (404, String::new()));
    assert_ne!(post("/mcp/narrow").0, 404);
    let [old, new] = ERAS.map(|era| gateway.peer_as(era, "narrow"));
    let on_stdio = environment.stdio_as(Era::Older, "narrow");
    [&old, &new, &on_stdio].into_iter().for_each(ready);
    environment.write(environment.text().split_once("[profiles").unwrap().0);
    until_true("the profile is gone", || post("/mcp/narrow") == absent);
    for peer in [&old, &new] {
        assert_eq!(peer.call("seen__echo", json!({}))["error"]["status"], 404);
    }
    let refused = until_error(&on_stdio);
    assert_eq!(refused["error"]["message"], "there is no such profile", "{refused}");
    for (method, params) in questions(Era::Older) {
        if method != "logging/setLevel" {
            assert_eq!(on_stdio.ask(method, params), refused, "{method}");
        }
    }
}

fn until_error(peer: &RawClient) -> Value {
    let list = || Some(peer.ask("tools/list", json!({}))).filter(|list| list["error"].is_object());
    crate::probe::until("an error", list).0
}
