//! Tests of the API's native deferral: two kinds of references, and the hosted search.

use serde_json::{Value, json};
use toolcrib_core::Preset;
use toolcrib_dialect::mode::{HostedSearch, ReferenceKind};
use toolcrib_dialect::{Api, Mode};

use super::{
    BOTH, TARGET, answer, answers, call, client_tools, input_of, message, next_input, output,
    read_as_client, reasoning, request, search, user,
};
use crate::conversation::{TestConversation, begins_with};

fn new_conversation(mode: Mode) -> TestConversation {
    TestConversation::new(Api::Responses, mode)
}

const SEARCH_OUTPUT: Mode = Mode::Reference(ReferenceKind::SearchOutput);
const ADDITIONAL: Mode = Mode::Reference(ReferenceKind::AdditionalTools);
const HOSTED: Mode = Mode::Hosted(HostedSearch::Namespaces);

fn native_search(id: &str, query: &str) -> Value {
    json!({"id": "tsc_1", "type": "tool_search_call", "execution": "client", "call_id": id,
        "status": "completed", "arguments": {"query": query}})
}

/// Returns a call to a tool that was loaded by a search result or by an `additional_tools` item. The API adds a
/// namespace to such calls.
fn namespaced_call(id: &str, name: &str, namespace: &str, arguments: &str) -> Value {
    let mut call = call(id, name, arguments);
    call["namespace"] = json!(namespace);
    call
}

fn definition(name: &str) -> Value {
    let tools = client_tools();
    tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap().clone()
}

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn a_tool_search_call_is_answered_with_definitions() {
    for stream in BOTH {
        let mut conversation = new_conversation(SEARCH_OUTPUT);
        let found = namespaced_call(
            "call_find0000001",
            "crm__find_customer",
            "crm__find_customer",
            r#"{"q":"ada"}"#,
        );
        let first = [reasoning(1), native_search("call_search00001", "select:crm__find_customer")];
        let input = json!([user("Find Ada.")]);
        let rounds: [&[Value]; 2] = [&first, std::slice::from_ref(&found)];
        let got = conversation.send(TARGET, &request(&input, stream), &answers(&rounds, stream));

        let sent_tools = conversation.sent[0]["tools"].as_array().unwrap();
        assert_eq!(sent_tools.len(), 1);
        assert_eq!(
            (&sent_tools[0]["type"], &sent_tools[0]["execution"]),
            (&json!("tool_search"), &json!("client"))
        );
        assert!(!sent_tools[0]["description"].as_str().unwrap().is_empty());
        assert_eq!(sent_tools[0]["parameters"]["type"], "object");

        let mut loaded = definition("crm__find_customer");
        loaded["defer_loading"] = json!(true);
        assert_eq!(
            input_of(&conversation, 1)[1..],
            [
                &first[..],
                &[json!({"type": "tool_search_output", "execution": "client",
                "call_id": "call_search00001", "status": "completed", "tools": [loaded]})]
            ]
            .concat(),
            "the id is that of the finished item"
        );

        let client = read_as_client(&got, stream);
        let plain = call("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#);
        assert_eq!(client.output, [reasoning(1), plain], "no namespace");
        let input = next_input(&input, &client, &[output("call_find0000001", "Ada, 7")]);
        let again = namespaced_call(
            "call_find0000002",
            "crm__find_customer",
            "crm__find_customer",
            r#"{"q":"bo"}"#,
        );
        let got = conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(3, std::slice::from_ref(&again), stream)],
        );
        assert!(begins_with(&conversation.sent[2]["input"], &conversation.sent[1]["input"]));
        assert_eq!(conversation.sent[2]["tools"], conversation.sent[0]["tools"]);
        assert_eq!(input_of(&conversation, 2)[4..], [found, output("call_find0000001", "Ada, 7")]);

        // This turn had no hidden round. It is restored, too, because the namespace of the call was removed for the
        // client.
        let input = next_input(
            &input,
            &read_as_client(&got, stream),
            &[output("call_find0000002", "Bo, 8")],
        );
        conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(4, &[message(4, "Both.")], stream)],
        );
        assert_eq!(input_of(&conversation, 3)[6..], [again, output("call_find0000002", "Bo, 8")]);
    }
}

#[test]
fn a_tool_search_call_without_matches_is_answered_with_an_empty_list() {
    for stream in BOTH {
        let mut conversation = new_conversation(SEARCH_OUTPUT);
        conversation.settings = Preset::Words.settings();
        let rounds: [&[Value]; 2] =
            [&[native_search("call_search00001", "zebra xylophone")], &[message(2, "None.")]];
        conversation.send(
            TARGET,
            &request(&json!([user("Zebra?")]), stream),
            &answers(&rounds, stream),
        );
        assert_eq!(input_of(&conversation, 1)[2]["tools"], json!([]));
    }
}

#[test]
fn a_search_function_is_answered_with_additional_tools() {
    for stream in BOTH {
        let mut conversation = new_conversation(ADDITIONAL);
        let first = [
            search("call_search00001", "select:crm__find_customer"),
            search("call_search00002", "select:crm__find_customer,crm__update_customer"),
        ];
        let found = namespaced_call(
            "call_find0000001",
            "crm__find_customer",
            "crm__find_customer",
            r#"{"q":"ada"}"#,
        );
        let input = json!([user("Find Ada.")]);
        let rounds: [&[Value]; 2] = [&first, std::slice::from_ref(&found)];
        let got = conversation.send(TARGET, &request(&input, stream), &answers(&rounds, stream));
        assert_eq!(names(&conversation.sent[0]["tools"]), ["tool_search"]);
        let sent = input_of(&conversation, 1);
        assert_eq!(sent[1..3], first);
        assert_eq!(
            (&sent[3]["call_id"], &sent[4]["call_id"]),
            (&json!("call_search00001"), &json!("call_search00002"))
        );
        assert_eq!(
            sent[5..],
            [json!({"type": "additional_tools", "role": "developer", "tools":
                [definition("crm__find_customer"), definition("crm__update_customer")]})],
            "each once"
        );
        let client = read_as_client(&got, stream);
        let plain = call("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#);
        assert_eq!(client.output, [plain]);

        // A tool that was already declared is not declared again.
        let input = next_input(&input, &client, &[output("call_find0000001", "Ada, 7")]);
        let rounds: [&[Value]; 2] = [
            &[search("call_search00003", "select:crm__find_customer")],
            &[message(4, "I know it.")],
        ];
        conversation.send(TARGET, &request(&input, stream), &answers(&rounds, stream));
        assert!(begins_with(&conversation.sent[2]["input"], &conversation.sent[1]["input"]));
        let more = &input_of(&conversation, 3)[6..];
        assert_eq!(more[..2], [found, output("call_find0000001", "Ada, 7")]);
        assert_eq!(more.len(), 4, "the search and its result, and no declaration: {more:?}");
        assert!(more[3]["output"].as_str().unwrap().contains("crm__find_customer"));
    }
}

#[test]
fn a_tool_search_called_as_a_function_is_answered_as_a_function() {
    for stream in BOTH {
        let mut conversation = new_conversation(SEARCH_OUTPUT);
        let first = [
            search("call_search00001", "select:crm__find_customer"),
            search("call_search00002", "select:crm__find_customer"),
        ];
        let rounds: [&[Value]; 2] = [&first, &[message(2, "Loaded.")]];
        conversation.send(
            TARGET,
            &request(&json!([user("Load it.")]), stream),
            &answers(&rounds, stream),
        );
        assert_eq!(
            input_of(&conversation, 1)[3..],
            [
                output("call_search00001", "The tools are loaded."),
                output("call_search00002", "The tools are loaded."),
                json!({"type": "additional_tools", "role": "developer", "tools": [definition("crm__find_customer")]})
            ]
        );
    }
}

#[test]
fn a_called_tool_without_a_record_is_declared_at_the_end() {
    for mode in [SEARCH_OUTPUT, ADDITIONAL] {
        for stream in BOTH {
            let mut conversation = new_conversation(mode);
            let plain = call("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#);
            let input = json!([user("Find Ada."), plain, output("call_find0000001", "Ada, 7")]);
            let got = conversation.send(
                TARGET,
                &request(&input, stream),
                &[answer(1, &[message(1, "Seven.")], stream)],
            );
            let located = namespaced_call(
                "call_find0000001",
                "crm__find_customer",
                "crm__find_customer",
                r#"{"q":"ada"}"#,
            );
            assert_eq!(
                input_of(&conversation, 0)[1..],
                [
                    located,
                    output("call_find0000001", "Ada, 7"),
                    json!({"type": "additional_tools", "role": "developer", "tools": [definition("crm__find_customer")]})
                ]
            );
            let input = next_input(&input, &read_as_client(&got, stream), &[user("And Bo?")]);
            conversation.send(
                TARGET,
                &request(&input, stream),
                &[answer(2, &[message(2, "No.")], stream)],
            );
            assert!(
                begins_with(&conversation.sent[1]["input"], &conversation.sent[0]["input"]),
                "the declaration stays in its place"
            );
            assert_eq!(input_of(&conversation, 1)[4..], [message(1, "Seven."), user("And Bo?")]);
        }
    }
}

#[test]
fn a_call_without_a_search_gets_the_namespace_of_the_loaded_tool() {
    for stream in BOTH {
        let mut conversation = new_conversation(ADDITIONAL);
        let plain = call("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#);
        let input = json!([user("Find Ada.")]);
        let got = conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(1, std::slice::from_ref(&plain), stream)],
        );
        let client = read_as_client(&got, stream);
        assert_eq!(client.output, [plain]);
        let input = next_input(&input, &client, &[output("call_find0000001", "Ada, 7")]);
        conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(2, &[message(2, "Seven.")], stream)],
        );
        let sent = input_of(&conversation, 1);
        assert_eq!(sent[1]["namespace"], "crm__find_customer");
        assert_eq!(sent[3]["tools"], json!([definition("crm__find_customer")]));
    }
}

#[test]
fn the_hosted_search_gets_namespaces_and_is_hidden() {
    for stream in BOTH {
        let mut conversation = new_conversation(HOSTED);
        let loaded = json!({"type": "namespace", "name": "crm", "description": "d",
            "tools": [definition("crm__find_customer")]});
        let items = [
            json!({"id": "tsc_1", "type": "tool_search_call", "execution": "server", "call_id": null,
                "status": "completed", "arguments": {"paths": ["crm"]}}),
            json!({"id": "tso_1", "type": "tool_search_output", "execution": "server", "call_id": null,
                "status": "completed", "tools": [loaded]}),
            namespaced_call("call_find0000001", "crm__find_customer", "crm", r#"{"q":"ada"}"#),
        ];
        let input = json!([user("Find Ada.")]);
        let got = conversation.send(TARGET, &request(&input, stream), &[answer(1, &items, stream)]);
        let sent_tools = conversation.sent[0]["tools"].as_array().unwrap();
        assert_eq!(sent_tools.len(), 3);
        assert_eq!(names(&json!(sent_tools[..2])), ["crm", "office0"]);
        assert_eq!(sent_tools[2..], [json!({"type": "tool_search"})]);
        let mut member = definition("crm__find_customer");
        member["defer_loading"] = json!(true);
        assert_eq!(sent_tools[0]["type"], "namespace");
        assert_eq!(sent_tools[0]["tools"][0], member, "tools in a namespace keep their names");
        assert_eq!(
            sent_tools[0]["description"],
            "Tools of crm: crm__find_customer, crm__update_customer"
        );
        assert!(sent_tools[0].get("defer_loading").is_none());

        let client = read_as_client(&got, stream);
        let plain = call("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#);
        assert_eq!(client.output, [plain]);
        let input = next_input(&input, &client, &[output("call_find0000001", "Ada, 7")]);
        conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(2, &[message(2, "Seven.")], stream)],
        );
        assert_eq!(
            input_of(&conversation, 1)[1..],
            [&items[..], &[output("call_find0000001", "Ada, 7")]].concat()
        );
        assert!(conversation.sent[1]["tools"] == conversation.sent[0]["tools"]);

        // If the records are lost, the tool that was called is sent in full from then on.
        conversation.records.clear();
        let got = conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(2, &[message(2, "Seven.")], stream)],
        );
        assert_eq!(conversation.sent[2]["tools"][0], definition("crm__find_customer"));
        assert_eq!(conversation.sent[2]["input"], input, "the call is sent without a namespace");
        let input = next_input(&input, &read_as_client(&got, stream), &[user("Thanks.")]);
        conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(3, &[message(3, "Bye.")], stream)],
        );
        assert!(conversation.sent[3]["tools"] == conversation.sent[2]["tools"]);
        assert_eq!(conversation.sent[3]["input"], input);
    }
}

#[test]
fn a_namespace_has_a_unique_name() {
    let mut conversation = new_conversation(HOSTED);
    let mut body = request(&json!([user("hi")]), false);
    body["tools"].as_array_mut().unwrap().push(json!({"type": "custom", "name": "crm"}));
    conversation.send(TARGET, &body, &[answer(1, &[message(1, "Hello.")], false)]);
    let sent_tools = &conversation.sent[0]["tools"];
    let name = sent_tools[0]["name"].as_str().unwrap();
    assert!(name.starts_with("namespace__crm_h"), "{name}");
    assert_eq!(sent_tools[0]["tools"][0]["name"], "crm__find_customer");
    assert!(
        sent_tools.as_array().unwrap().contains(&json!({"type": "custom", "name": "crm"})),
        "unchanged"
    );
}
