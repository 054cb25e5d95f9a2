//! Tests that the replies of `tool_search` and `tool_describe` match their declared schemas, and contain what a client
//! needs to ask for approval.

use serde_json::{Value, json};
use toolcrib_core::TokenCounter as _;
use toolcrib_tokens::{Vocabulary, VocabularyCounter};

use crate::support::client::{Client, Era, Exchange};
use crate::support::gateway::{CONNECTIONS, DEFERRED, Home, connect, server, wait_until_ready};
use crate::support::{assert_same, eventually, node, peer, testkit_program};

fn structured(exchange: &Exchange) -> &Value {
    &exchange.answer["result"]["structuredContent"]
}

#[test]
fn structured_results_match_their_declared_schema() {
    let many = server("many", &testkit_program("faulty-server", &["--tools", "30"]), "");
    let unavailable = server("gone", &["/no/such/program".to_owned()].to_vec(), "");
    for connection in CONNECTIONS {
        let home = Home::new(&format!("{DEFERRED}{many}{unavailable}"));
        let (mut client, _gateway) = connect(&home, connection);
        eventually("one server up, the other down", || {
            let exchange = client.call("tool_search", &json!({"query": ""}));
            let reply = structured(&exchange);
            (reply.get("connecting").is_none() && reply["down"][0]["server"] == "gone")
                .then_some(())
        });
        let tools = client.tools();
        let schema = |name: &str| {
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            jsonschema::validator_for(&tool["outputSchema"]).unwrap()
        };
        for (tool, arguments) in [
            ("tool_search", json!({"query": "export invoices"})),
            ("tool_search", json!({"query": "xyzzy plugh"})),
            ("tool_search", json!({"query": "exprot invoces"})),
            ("tool_search", json!({"query": "select:many__tool_3,many__tool_4,many__nothing"})),
            ("tool_search", json!({"queries": ["count photos", "archive alerts"], "limit": 2})),
            ("tool_search", json!({"query": ""})),
            ("tool_describe", json!({"name": "many__tool_3"})),
            ("tool_describe", json!({"name": "many__cargo"})),
        ] {
            let exchange = client.call(tool, &arguments);
            let errors: Vec<String> = schema(tool)
                .iter_errors(structured(&exchange))
                .map(|error| error.to_string())
                .collect();
            assert!(
                errors.is_empty(),
                "{connection:?} {tool} {arguments}: {errors:?}: {}",
                exchange.answer
            );
            assert_eq!(
                exchange.answer["result"]["content"][0]["type"], "text",
                "{}",
                exchange.answer
            );
        }
    }
}

#[test]
fn hits_have_the_annotations_of_their_server() {
    let script = peer("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let program = node(&script, &["stdio"]);
    let alone = Home::new("");
    let direct_tools = Client::of(&program, alone.path(), Era::Older).tools();
    let home = Home::new(&format!("{DEFERRED}{}", server("everything", &program, "")));
    let mut client = home.stdio("test", Era::Older);
    wait_until_ready(&mut client);
    for tool in &direct_tools {
        let name = format!("everything__{}", tool["name"].as_str().unwrap());
        let found = client.call("tool_search", &json!({"query": format!("select:{name}")}));
        let hit = &structured(&found)["hits"][0];
        assert_eq!(hit["name"], name, "{hit}");
        assert_same(&hit["annotations"], &tool["annotations"], &name);
    }
}

/// A preset that replies in JSON sends the document as text and as structured content, and declares an output schema. A
/// preset that replies in text declares no schema.
#[test]
fn text_and_structured_content_agree_in_every_preset() {
    let many = server("many", &testkit_program("faulty-server", &["--tools", "30"]), "");
    let calls = [
        ("tool_search", json!({"query": "export invoices"})),
        ("tool_search", json!({"query": "many__tool_3"})),
        ("tool_search", json!({"query": "xyzzy plugh"})),
        ("tool_describe", json!({"name": "many__tool_3"})),
    ];
    for (preset, is_json) in [
        ("default", true),
        ("words", true),
        ("everruns", true),
        ("hermes", true),
        ("opencode", false),
        ("claude-code", false),
    ] {
        let wait = "[gateway]\nfirst_list_wait = 600\n";
        let home = Home::new(&format!("preset = \"{preset}\"\n{DEFERRED}{wait}{many}"));
        let mut client = home.stdio("test", Era::Older);
        let tools = client.tools();
        for (tool, arguments) in &calls {
            let exchange = client.call(tool, arguments);
            let result = &exchange.answer["result"];
            let text = result["content"][0]["text"].as_str().unwrap();
            let listed = tools.iter().find(|listed| listed["name"] == *tool);
            let schema = listed.and_then(|listed| listed.get("outputSchema"));
            let case = format!("{preset} {tool} {arguments}: {result}");
            if !is_json {
                assert!(result.get("structuredContent").is_none(), "{case}");
                assert!(schema.is_none(), "{case}");
                continue;
            }
            let document: Value = serde_json::from_str(text).unwrap();
            assert_eq!(result["structuredContent"], document, "{case}");
            if let Some(listed) = listed {
                let schema = &listed["outputSchema"];
                let valid = jsonschema::validator_for(schema).unwrap();
                let errors: Vec<String> =
                    valid.iter_errors(&document).map(|error| error.to_string()).collect();
                assert!(errors.is_empty() && schema.is_object(), "{case}: {errors:?}");
                // The schema must reject an empty object. Otherwise it would accept any reply.
                assert!(!valid.is_valid(&json!({})), "{case}");
            }
        }
    }
}

/// The instructions of real servers, of both protocol versions, come with their first hit. Prints what they cost.
#[test]
#[expect(clippy::print_stdout, reason = "the figures are read by people")]
fn instructions_of_real_servers_come_with_their_first_hit() {
    let script = peer("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let everything = server("everything", &node(&script, &["stdio"]), "");
    let fixture = server("fixture", &testkit_program("fixture-server", &[]), "");
    let config = format!("{DEFERRED}{everything}{fixture}");
    let counter = VocabularyCounter::exact(Vocabulary::O200k);
    let tokens = |text: &Value| counter.count(&text.to_string());
    for connection in CONNECTIONS {
        let home = Home::new(&config);
        let (mut client, _gateway) = connect(&home, connection);
        wait_until_ready(&mut client);
        let query = json!({"query": "select:everything__get-sum,fixture__test_simple_text"});
        let first = structured(&client.call("tool_search", &query)).clone();
        let second = structured(&client.call("tool_search", &query)).clone();
        let about = &first["servers"];
        let tools = client.tools();
        let tool = tools.iter().find(|tool| tool["name"] == "tool_search").unwrap();
        let schema = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        assert!(schema.is_valid(&first) && !about.is_null(), "{first}");
        let mut wrong = first.clone();
        wrong["servers"] = json!({"fixture": "instructions"});
        assert!(!schema.is_valid(&wrong), "the schema describes `servers`");
        let fixture = "A server for tests. Every tool does what its description says.";
        assert_eq!(about["fixture"]["instructions"], fixture, "{first}");
        let text = about["everything"]["instructions"].as_str().unwrap();
        assert!(text.starts_with("# Everything Server – Server Instructions Audience:"), "{text}");
        assert!(text.ends_with('…') && text.chars().count() <= 600, "{text}");
        let is_session = connection != ("http", Era::Newer);
        assert_eq!(second.get("servers").is_none(), is_session, "{connection:?}: {second}");
        println!(
            "figure: {connection:?}: the first reply has {} tokens, {} of them instructions of two servers; the second has {}",
            tokens(&first),
            tokens(about),
            tokens(&second),
        );
    }
}
