//! Tests of invisible characters in a server's texts. None of them reach a client, except in results of calls, where
//! they are passed on and logged.

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::http::{self, Request};
use crate::probe::until_true;
use crate::raw_client::{ERAS, Era, RawClient};

/// The word "word" with a tag character, a bidirectional override, a zero-width space and a terminal escape.
const HIDDEN: &str = "w\u{e0041}o\u{202e}r\u{200b}d\u{1b}[31m";
/// Ordinary text that needs invisible characters: a family emoji, and Persian.
const ORDINARY: &str = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}";

fn script() -> Value {
    let text = json!({"type": "text", "text": format!("{HIDDEN} {ORDINARY}")});
    json!({
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}},
        "serverInfo": {"name": format!("name{HIDDEN}"), "version": "1"},
        "methods": {
            "prompts/list": {"prompts": [
                {"name": "p", "title": HIDDEN, "description": HIDDEN, "arguments": [{"name": "a", "description": HIDDEN}]},
                {"name": format!("p{HIDDEN}")},
                {"name": "q", "arguments": [{"name": "a\u{200b}"}]},
            ]},
            "prompts/get": {"description": HIDDEN, "messages": [{"role": "user", "content": text}]},
            "resources/list": {"resources": [
                {"uri": "x://r", "name": HIDDEN, "title": HIDDEN, "description": HIDDEN},
                {"uri": format!("x://{HIDDEN}"), "name": "n"},
            ]},
            "resources/templates/list": {"resourceTemplates": [
                {"uriTemplate": "x://t/{id}", "name": HIDDEN, "description": HIDDEN},
                {"uriTemplate": "x://\u{202e}/{id}", "name": "n"},
            ]},
            "resources/read": {"contents": [{"uri": "x://r", "text": HIDDEN}]},
            "completion/complete": {"completion": {"values": [HIDDEN]}},
            "logging/setLevel": {},
        },
        "tools": {
            "answer": [{"result": {"content": [text], "structuredContent": {"said": HIDDEN}}}],
            "refuse": [{"error": {"code": -32050, "message": HIDDEN, "data": {"why": HIDDEN, "k\u{200b}": 1}}}],
            "report": [
                {"notify": {"method": "notifications/progress", "params": {"progress": 1, "message": HIDDEN}}},
                {"notify": {"method": "notifications/message", "params": {"level": "error", "logger": HIDDEN, "data": {"text": HIDDEN}}}},
                {"result": {"content": []}},
            ],
        },
    })
}

#[track_caller]
fn is_clean(stderr: &Value) {
    let text = stderr.to_string();
    let has = |c: char| text.contains(c);
    assert!(!has('\u{e0041}') && !has('\u{202e}') && !has('\u{200b}'), "{text}");
    assert!(!text.contains("\\u001b"), "{text}");
}

fn ready(peer: &RawClient) {
    until_true("the server answers a call", || {
        peer.call("odd__report", json!({}))["content"] == json!([])
    });
}

#[test]
fn hidden_characters_reach_a_client_only_in_results() {
    let environment = TestEnvironment::new("hidden").scripted("odd", &script(), "");
    let gateway = environment.serve();
    for era in ERAS {
        let peer = gateway.peer(era);
        ready(&peer);
        let prompts = peer.ask("prompts/list", json!({}));
        is_clean(&prompts);
        assert_eq!(prompts["prompts"].as_array().map(Vec::len), Some(1), "{prompts}");
        assert_eq!(prompts["prompts"][0]["title"], "word");
        assert_eq!(prompts["prompts"][0]["arguments"][0]["description"], "word");
        let prompt = peer.ask("prompts/get", json!({"name": "odd__p"}));
        is_clean(&prompt);
        let text = format!("word {ORDINARY}");
        assert_eq!(prompt["messages"][0]["content"]["text"], text, "ordinary text is unchanged");
        let resources = peer.ask("resources/list", json!({}));
        is_clean(&resources);
        assert_eq!(resources["resources"].as_array().map(Vec::len), Some(1), "{resources}");
        let templates = peer.ask("resources/templates/list", json!({}));
        is_clean(&templates);
        assert_eq!(templates["resourceTemplates"].as_array().map(Vec::len), Some(1));
        let reference = json!({"type": "ref/prompt", "name": "odd__p"});
        let asked = json!({"ref": reference, "argument": {"name": "a", "value": ""}});
        let values = peer.ask("completion/complete", asked);
        assert_eq!(values["completion"]["values"], json!(["word"]), "{values}");
        let refused = peer.call("odd__refuse", json!({}));
        let error = json!({"code": -32050, "message": "word", "data": {"why": "word", "k": 1}});
        assert_eq!(refused["error"], error);
        // Results of calls are the tool's data, so they are passed on unchanged.
        let answer = peer.call("odd__answer", json!({}));
        assert_eq!(answer["content"][0]["text"], format!("{HIDDEN} {ORDINARY}"));
        assert_eq!(answer["structuredContent"]["said"], HIDDEN);
        let read = peer.ask("resources/read", json!({"uri": "odd+x://r"}));
        assert_eq!(read["contents"][0]["text"], HIDDEN, "{read}");
    }
    // Hidden characters are logged once for each tool, resource or prompt, but every occurrence is counted in the
    // metrics.
    let stderr = environment.stderr();
    let lines = |of: &str| {
        stderr
            .lines()
            .filter(|line| line.contains("hidden characters in a result") && line.contains(of))
            .count()
    };
    assert_eq!(
        (lines("name=\"answer\""), lines("kind=\"resources\""), lines("name=\"p\"")),
        (1, 1, 1),
        "{stderr}"
    );
    assert!(stderr.contains("passed on: terminal escapes, bidirectional marks"), "{stderr}");
    let request = Request { method: "GET", path: "/metrics", headers: Vec::new(), body: b"" };
    let (_, metrics) = http::ask(&gateway.address, &request).unwrap();
    assert!(metrics.contains("toolcrib_hidden_texts_total{server=\"odd\"} 6\n"), "{metrics}");
}

#[test]
fn progress_and_log_messages_have_no_hidden_characters() {
    let environment = TestEnvironment::new("hidden-progress").scripted("odd", &script(), "");
    let peer = environment.stdio(Era::Older);
    ready(&peer);
    assert_eq!(peer.ask("logging/setLevel", json!({"level": "debug"})), json!({}));
    let ask = json!({"name": "odd__report", "arguments": {}, "_meta": {"progressToken": 1}});
    peer.ask("tools/call", ask);
    let progress = peer.wait_for_message("notifications/progress").unwrap();
    assert_eq!(progress["params"]["message"], "word", "{progress}");
    let line = peer.wait_for_message("notifications/message").unwrap();
    assert_eq!(
        (&line["params"]["logger"], &line["params"]["data"]["text"]),
        (&json!("odd/word"), &json!("word"))
    );
    for message in peer.messages_so_far() {
        is_clean(&message);
    }
}

#[test]
fn results_are_cleaned_if_configured() {
    let environment = TestEnvironment::new("hidden-cleaned").scripted("odd", &script(), "");
    let environment = environment.with("[gateway]\nclean_results = true\n");
    let peer = environment.stdio(Era::Older);
    ready(&peer);
    let answer = peer.call("odd__answer", json!({}));
    assert_eq!(answer["content"][0]["text"], format!("word {ORDINARY}"));
    assert_eq!(answer["structuredContent"]["said"], "word");
    let read = peer.ask("resources/read", json!({"uri": "odd+x://r"}));
    assert_eq!(read["contents"][0]["text"], "word", "{read}");
    assert!(
        environment.stderr().contains("hidden characters in a result, removed"),
        "{}",
        environment.stderr()
    );
}

#[test]
fn doctor_shows_a_clean_name() {
    let environment = TestEnvironment::new("hidden-doctor").scripted("odd", &script(), "");
    let rows = environment.doctor();
    assert_eq!(rows[0]["calls_itself"], "nameword 1", "{rows:?}");
}
