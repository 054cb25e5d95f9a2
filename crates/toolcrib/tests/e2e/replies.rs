//! What `tool_search` and `tool_describe` answer: what is declared, with what a client needs to approve.

use serde_json::{Value, json};

use crate::support::client::{Client, Era, Told};
use crate::support::gateway::{DEFERRED, Home, WAYS, come, server, settled};
use crate::support::{assert_same, eventually, node, own, peer};

fn structured(told: &Told) -> &Value {
    &told.answer["result"]["structuredContent"]
}

#[test]
fn structured_results_are_as_declared() {
    let many = server("many", &own("faulty-server", &["--tools", "30"]), "");
    let gone = server("gone", &["/no/such/program".to_owned()].to_vec(), "");
    for way in WAYS {
        let home = Home::new(&format!("{DEFERRED}{many}{gone}"));
        let (mut client, _served) = come(&home, way);
        eventually("one server up, the other down", || {
            let told = client.call("tool_search", &json!({"query": ""}));
            let reply = structured(&told);
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
            let told = client.call(tool, &arguments);
            let errors: Vec<String> = schema(tool)
                .iter_errors(structured(&told))
                .map(|error| error.to_string())
                .collect();
            assert!(errors.is_empty(), "{way:?} {tool} {arguments}: {errors:?}: {}", told.answer);
            assert_eq!(told.answer["result"]["content"][0]["type"], "text", "{}", told.answer);
        }
    }
}

#[test]
fn hits_carry_the_annotations_that_their_server_gave() {
    let script = peer("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let program = node(&script, &["stdio"]);
    let alone = Home::new("");
    let own = Client::of(&program, alone.path(), Era::Old).tools();
    let home = Home::new(&format!("{DEFERRED}{}", server("everything", &program, "")));
    let mut client = home.stdio("test", Era::Old);
    settled(&mut client);
    for tool in &own {
        let name = format!("everything__{}", tool["name"].as_str().unwrap());
        let found = client.call("tool_search", &json!({"query": format!("select:{name}")}));
        let hit = &structured(&found)["hits"][0];
        assert_eq!(hit["name"], name, "{hit}");
        assert_same(&hit["annotations"], &tool["annotations"], &name);
    }
}

/// A preset that replies in JSON sends one document twice and declares it; one that replies in text declares nothing.
#[test]
fn text_and_structured_content_agree_in_every_preset() {
    let many = server("many", &own("faulty-server", &["--tools", "30"]), "");
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
        let mut client = home.stdio("test", Era::Old);
        let tools = client.tools();
        for (tool, arguments) in &calls {
            let told = client.call(tool, arguments);
            let result = &told.answer["result"];
            let text = result["content"][0]["text"].as_str().unwrap();
            let listed = tools.iter().find(|listed| listed["name"] == *tool);
            let schema = listed.and_then(|listed| listed.get("outputSchema"));
            let what = format!("{preset} {tool} {arguments}: {result}");
            if !is_json {
                assert!(result.get("structuredContent").is_none(), "{what}");
                assert!(schema.is_none(), "{what}");
                continue;
            }
            let document: Value = serde_json::from_str(text).unwrap();
            assert_eq!(result["structuredContent"], document, "{what}");
            if let Some(listed) = listed {
                let schema = &listed["outputSchema"];
                let valid = jsonschema::validator_for(schema).unwrap();
                let errors: Vec<String> =
                    valid.iter_errors(&document).map(|error| error.to_string()).collect();
                assert!(errors.is_empty() && schema.is_object(), "{what}: {errors:?}");
                // Other forms than the declared one must not fit by being empty.
                assert!(!valid.is_valid(&json!({})), "{what}");
            }
        }
    }
}
