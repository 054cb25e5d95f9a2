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
