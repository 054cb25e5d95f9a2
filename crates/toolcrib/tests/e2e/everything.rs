//! Tests with `server-everything`: every kind of content must reach a client unchanged.
//!
//! Every call is made directly to the server and through `tool_call`. The complete values are compared: the response,
//! and all messages received in the meantime (progress, and questions to the client).

use serde_json::{Value, json};

use crate::support::client::{Client, Era};
use crate::support::gateway::{CONNECTIONS, Home};
use crate::support::pair::Pair;
use crate::support::{Program, assert_same, node, peer};

pub(crate) fn everything() -> Program {
    node(&peer("node_modules/@modelcontextprotocol/server-everything/dist/index.js"), &["stdio"])
}

pub(crate) fn direct(program: &Program, home: &Home) -> Client {
    let mut client = Client::of(program, home.path(), Era::Older);
    // The server requests the roots once, at some time after the handshake. Waiting here keeps that request out of the
    // comparisons.
    client.wait_for_message("roots/list");
    client
}

/// Returns one call for each kind of content, and for each kind of question to the client.
pub(crate) fn calls() -> Vec<(&'static str, Value)> {
    let file =
        |kind: &str| json!({"name": "a.gz", "data": "data:text/plain,hello", "outputType": kind});
    vec![
        ("echo", json!({"message": "Grüße \u{1f980} \"quoted\"\n"})),
        ("get-sum", json!({"a": 1.5, "b": -3})),
        ("get-annotated-message", json!({"messageType": "error"})),
        ("get-annotated-message", json!({"messageType": "success", "includeImage": true})),
        ("get-annotated-message", json!({"messageType": "debug", "includeImage": false})),
        ("get-tiny-image", json!({})),
        ("get-structured-content", json!({"location": "Chicago"})),
        ("get-resource-links", json!({"count": 10})),
        ("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})),
        ("get-resource-reference", json!({"resourceType": "Blob", "resourceId": 2})),
        // This call fails inside the server, which returns an error result.
        ("get-resource-reference", json!({"resourceType": "Text", "resourceId": -1})),
        ("gzip-file-as-resource", file("resource")),
        ("gzip-file-as-resource", file("resourceLink")),
        ("trigger-long-running-operation", json!({"duration": 0.2, "steps": 4})),
        ("trigger-elicitation-request", json!({})),
        ("trigger-sampling-request", json!({"prompt": "Which fruit?", "maxTokens": 10})),
        ("get-roots-list", json!({})),
        (
            "trigger-url-elicitation",
            json!({"url": "https://example.com/in", "message": "Sign in.", "elicitationId": "e-1"}),
        ),
    ]
}

/// Tools that are not in `calls`, each with the reason.
const NOT_COMPARED: [(&str, &str); 4] = [
    ("simulate-research-query", "runs only as a task, and has a test of its own, below"),
    ("get-env", "tells its environment, which the gateway clears"),
    ("toggle-simulated-logging", "logs at random"),
    ("toggle-subscriber-updates", "has a test of its own, below"),
];

#[test]
fn every_tool_of_the_server_is_called_or_excluded() {
    let home = Home::new("");
    let mut client = direct(&everything(), &home);
    let mut listed: Vec<String> =
        client.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    let calls = calls();
    let mut known: Vec<&str> = calls.iter().map(|(tool, _)| *tool).collect();
    known.extend(NOT_COMPARED.iter().map(|(tool, _)| *tool));
    known.sort_unstable();
    known.dedup();
    listed.sort_unstable();
    assert_eq!(listed, known);
}

fn arrives_unchanged(connection: (&'static str, Era)) {
    let mut pair = Pair::new("everything", &everything(), connection, direct);
    for (tool, arguments) in calls() {
        pair.call(tool, &arguments);
    }
}

#[test]
fn every_kind_of_content_arrives_unchanged_over_stdio_in_a_session() {
    arrives_unchanged(CONNECTIONS[0]);
}

#[test]
fn every_kind_of_content_arrives_unchanged_over_stdio_without_a_session() {
    arrives_unchanged(CONNECTIONS[1]);
}

#[test]
fn every_kind_of_content_arrives_unchanged_over_http_in_a_session() {
    arrives_unchanged(CONNECTIONS[2]);
}

#[test]
fn every_kind_of_content_arrives_unchanged_over_http_without_a_session() {
    arrives_unchanged(CONNECTIONS[3]);
}

/// Adds `before` to the name or URI of each entry of a server's list, as the gateway does.
fn renamed(mut exchange: Value, list: &str, key: &str, before: &str) -> Value {
    for entry in exchange["answer"]["result"][list].as_array_mut().unwrap() {
        entry[key] = format!("{before}{}", entry[key].as_str().unwrap()).into();
    }
    exchange
}

#[test]
fn prompts_and_resources_arrive_unchanged_except_for_their_names() {
    for connection in CONNECTIONS {
        let mut pair = Pair::new("everything", &everything(), connection, direct);
        for (method, list, key, before) in [
            ("prompts/list", "prompts", "name", "everything__"),
            ("resources/list", "resources", "uri", "everything+"),
            ("resources/templates/list", "resourceTemplates", "uriTemplate", "everything+"),
        ] {
            let (through, direct) = pair.ask(method, &json!({}), &json!({}));
            assert_same(
                &through,
                &renamed(direct, list, key, before),
                &format!("{connection:?} {method}"),
            );
        }
        for (name, arguments) in [
            ("simple-prompt", json!({})),
            ("args-prompt", json!({"city": "Oslo", "state": "none"})),
            ("completable-prompt", json!({"department": "Sales", "name": "Eve"})),
            ("resource-prompt", json!({"resourceType": "Blob", "resourceId": "1"})),
            // The server rejects this request with its own error message, which must arrive unchanged.
            ("resource-prompt", json!({"resourceType": "Pudding", "resourceId": "1"})),
        ] {
            let ask = |name: String| json!({"name": name, "arguments": arguments});
            let known_as = ask(format!("everything__{name}"));
            let (through, direct) = pair.ask("prompts/get", &ask(name.to_owned()), &known_as);
            assert_same(&through, &direct, &format!("{connection:?} {name} {arguments}"));
        }
        for uri in [
            "demo://resource/static/document/features.md",
            "demo://resource/dynamic/text/7",
            "demo://resource/dynamic/blob/7",
        ] {
            let known_as = json!({"uri": format!("everything+{uri}")});
            let (through, direct) = pair.ask("resources/read", &json!({"uri": uri}), &known_as);
            let direct = renamed(direct, "contents", "uri", "everything+");
            assert_same(&through, &direct, &format!("{connection:?} {uri}"));
        }
    }
}

#[test]
fn completions_come_from_the_server() {
    for connection in CONNECTIONS {
        let mut pair = Pair::new("everything", &everything(), connection, direct);
        let ask = |reference: Value, argument: &str, value: &str| {
            let context = json!({"arguments": {"department": "Sales"}});
            let argument = json!({"name": argument, "value": value});
            json!({"ref": reference, "argument": argument, "context": context})
        };
        let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
        let template = |uri: &str| json!({"type": "ref/resource", "uri": uri});
        let uri = "demo://resource/dynamic/text/{resourceId}";
        for (argument, value, own_tools, known_as) in [
            (
                "department",
                "S",
                prompt("completable-prompt"),
                prompt("everything__completable-prompt"),
            ),
            ("name", "", prompt("completable-prompt"), prompt("everything__completable-prompt")),
            ("resourceId", "12", template(uri), template(&format!("everything+{uri}"))),
        ] {
            let (own_tools, known_as) =
                (ask(own_tools, argument, value), ask(known_as, argument, value));
            let (through, direct) = pair.ask("completion/complete", &own_tools, &known_as);
            assert_ne!(direct["answer"]["result"]["completion"]["values"], json!([]), "{direct}");
            assert_same(&through, &direct, &format!("{connection:?} {argument}"));
        }
    }
}

#[test]
fn an_update_of_a_resource_has_the_uri_of_the_subscription() {
    for transport in ["stdio", "http"] {
        let mut pair = Pair::new("everything", &everything(), (transport, Era::Older), direct);
        let uri = "everything+demo://resource/dynamic/text/1";
        pair.through.result("resources/subscribe", &json!({"uri": uri}));
        let started = pair.through.start(
            "tools/call",
            json!({"name": "tool_call", "arguments": {"name": "everything__toggle-subscriber-updates", "arguments": {}}}),
        );
        let notification = pair.through.wait_for_message("notifications/resources/updated");
        assert_eq!(notification["params"], json!({"uri": uri}), "{transport}");
        assert!(pair.through.finish(started).get("result").is_some(), "{transport}");
    }
}

/// The server's tool runs only as a task, as in version 2025-11-25, and rejects calls without one. The gateway runs it
/// as a task and waits. The task asks a question while it runs.
#[test]
fn the_gateway_waits_for_a_task_of_an_older_server() {
    let tool = "everything__simulate-research-query";
    let arguments = json!({"topic": "python", "ambiguous": true});
    for (at, connection) in CONNECTIONS.into_iter().enumerate() {
        let mut pair = Pair::new("everything", &everything(), connection, direct);
        let rejected = pair.direct.call("simulate-research-query", &arguments).answer.to_string();
        assert!(rejected.contains("requires task augmentation"), "{rejected}");
        let by_its_name = at % 2 == 0;
        let call = |client: &mut Client| {
            if by_its_name {
                client.call(tool, &arguments)
            } else {
                client.bridge(tool, &arguments)
            }
        };
        let exchange = call(&mut pair.through);
        let text = exchange.answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("python"), "{connection:?}: {}", exchange.value());
        let meta = &exchange.answer["result"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/related-task"], Value::Null);
        let heard = |method: &str| {
            let heard = exchange.messages.iter().filter(|message| message["method"] == method);
            heard.map(|message| &message["params"]["message"]).collect::<Vec<_>>()
        };
        let question = heard("elicitation/create")[0].as_str().unwrap();
        assert!(question.starts_with("[server \"everything\"] The research query"), "{question}");
        // Which stages of the work are seen depends on when the gateway polls.
        let stages = heard("notifications/progress").into_iter().filter_map(Value::as_str);
        assert!(
            stages.clone().any(|stage| stage.ends_with("...")),
            "{:?}",
            stages.collect::<Vec<_>>()
        );
    }
}
