//! Tests of stored responses, of tool choices, and of requests that are passed through.

use serde_json::{Value, json};
use toolcrib_dialect::mode::ReferenceKind;
use toolcrib_dialect::request::{ClientDeferral, ToolChoice};
use toolcrib_dialect::{Api, Mode, PassthroughReason, Request};

use super::{
    BOTH, TARGET, answer, answers, bridge, call, client_tools, input_of, message, new_conversation,
    output, read_as_client, request, search, user,
};
use crate::conversation::TestConversation;

fn stored(input: &Value, previous: Option<&str>, stream: bool) -> Value {
    let mut body = request(input, stream);
    body["store"] = json!(true);
    if let Some(previous) = previous {
        body["previous_response_id"] = json!(previous);
    }
    body
}

#[test]
fn a_client_continues_a_stored_response() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let rounds: [&[Value]; 2] = [
            &[search("call_search00001", "find customer")],
            &[
                search("call_search00002", "update customer"),
                bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"})),
            ],
        ];
        let got = conversation.send(
            TARGET,
            &stored(&json!([user("Find Ada.")]), None, stream),
            &answers(&rounds, stream),
        );
        let client = read_as_client(&got, stream);
        let input = json!([output("call_find0000001", "Ada, 7")]);
        let next = conversation.send(
            TARGET,
            &stored(&input, Some(&client.id), stream),
            &[answer(3, &[message(3, "Seven.")], stream)],
        );
        // The client continues from the only response that it knows. The proxy continues from the response of the last
        // round, and adds the result of the second search, which was not sent in that turn.
        assert_eq!(conversation.sent[2]["previous_response_id"], "resp_2");
        let sent = input_of(&conversation, 2);
        assert_eq!(
            (&sent[0]["type"], &sent[0]["call_id"]),
            (&json!("function_call_output"), &json!("call_search00002"))
        );
        assert_eq!(sent[1..], [output("call_find0000001", "Ada, 7")]);
        assert_eq!(conversation.sent[2]["tools"], conversation.sent[0]["tools"]);

        // The response repeats the `previous_response_id` that the client sent.
        let repeated: Vec<Value> = if stream {
            next.events().iter().filter_map(|event| event.get("response").cloned()).collect()
        } else {
            vec![next.json()]
        };
        assert!(
            repeated.iter().all(|response| response["previous_response_id"] == json!(client.id))
        );
    }
}

#[test]
fn known_tools_carry_over_between_stored_responses() {
    for stream in BOTH {
        let mode = Mode::Reference(ReferenceKind::AdditionalTools);
        let mut conversation = TestConversation::new(Api::Responses, mode);
        let rounds: [&[Value]; 2] =
            [&[search("call_search00001", "select:crm__find_customer")], &[message(2, "Loaded.")]];
        let got = conversation.send(
            TARGET,
            &stored(&json!("Load it."), None, stream),
            &answers(&rounds, stream),
        );
        let mut id = read_as_client(&got, stream).id;
        for n in 3..5 {
            let body = stored(&json!("Wait."), Some(&id), stream);
            let got =
                conversation.send(TARGET, &body, &[answer(n, &[message(n, "Waiting.")], stream)]);
            id = read_as_client(&got, stream).id;
        }
        let rounds: [&[Value]; 2] = [
            &[search("call_search00005", "select:crm__find_customer")],
            &[message(6, "I know it.")],
        ];
        conversation.send(
            TARGET,
            &stored(&json!("Again."), Some(&id), stream),
            &answers(&rounds, stream),
        );
        let kinds: Vec<&Value> =
            input_of(&conversation, 5).iter().map(|item| &item["type"]).collect();
        assert_eq!(kinds, ["message", "function_call", "function_call_output"], "declared once");
    }
}

#[test]
fn a_forced_tool_is_sent_in_full_from_then_on() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let input = json!([user("Find Ada.")]);
        let mut body = request(&input, stream);
        body["tool_choice"] = json!({"type": "function", "name": "crm__find_customer"});
        let forced = call("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#);
        let got =
            conversation.send(TARGET, &body, &[answer(1, std::slice::from_ref(&forced), stream)]);
        assert_eq!(conversation.sent[0]["tools"][0], client_tools()[0]);
        assert_eq!(conversation.sent[0]["tool_choice"], body["tool_choice"]);
        let client = read_as_client(&got, stream);
        assert_eq!(client.output, [forced]);
        let input = super::next_input(&input, &client, &[output("call_find0000001", "Ada, 7")]);
        conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(2, &[message(2, "Seven.")], stream)],
        );
        assert!(conversation.sent[1]["tools"] == conversation.sent[0]["tools"]);
    }
}

#[test]
fn other_choices_are_sent_unchanged() {
    for choice in [json!("none"), json!("required"), json!({"type": "web_search"})] {
        let mut conversation = new_conversation();
        let mut body = request(&json!([user("hi")]), false);
        body["tool_choice"] = choice.clone();
        conversation.send(TARGET, &body, &[answer(1, &[message(1, "Hello.")], false)]);
        assert_eq!(conversation.sent[0]["tool_choice"], choice);
        assert_eq!(conversation.sent[0]["tools"].as_array().unwrap().len(), 3);
    }
}

fn read(body: &Value) -> Result<Request, PassthroughReason> {
    Request::read(Api::Responses, TARGET, body.to_string().into_bytes())
        .map_err(|unread| unread.reason)
}

#[test]
fn tool_choices_are_read_in_all_forms() {
    let read = |choice: Value| {
        let mut body = request(&json!("hi"), false);
        body["tool_choice"] = choice;
        read(&body).unwrap().choice
    };
    assert_eq!(read(json!("auto")), ToolChoice::Auto);
    assert_eq!(read(json!("none")), ToolChoice::None);
    assert_eq!(read(json!("required")), ToolChoice::Required);
    assert_eq!(read(json!({"type": "mcp", "server_label": "x", "name": "y"})), ToolChoice::Auto);
    let allowed = json!({"type": "allowed_tools", "mode": "auto", "tools": [
        {"type": "function", "name": "a"}, {"type": "mcp", "server_label": "x"}, {"type": "custom", "name": "b"}]});
    assert_eq!(read(allowed), ToolChoice::Named(vec!["a".into(), "b".into()]));
}

#[test]
fn requests_that_cannot_have_hidden_rounds_are_passed_through() {
    let with = |key: &str, value: Value| {
        let mut body = request(&json!("hi"), false);
        body[key] = value;
        read(&body).map(|_| ())
    };
    assert_eq!(with("background", json!(true)), Err(PassthroughReason::Background));
    assert_eq!(with("conversation", json!("conv_1")), Err(PassthroughReason::StoredConversation));
    assert_eq!(
        with("conversation", json!({"id": "conv_1"})),
        Err(PassthroughReason::StoredConversation)
    );
    assert_eq!(with("tools", json!([])), Err(PassthroughReason::NoTools));
    assert_eq!(with("tools", Value::Null), Err(PassthroughReason::NoTools));
    assert_eq!(with("tools", json!({})), Err(PassthroughReason::Malformed));
    assert_eq!(with("input", json!(7)), Err(PassthroughReason::Malformed));
    assert_eq!(with("model", Value::Null), Err(PassthroughReason::Malformed));
    assert_eq!(with("background", json!(false)), Ok(()));
    assert_eq!(with("conversation", Value::Null), Ok(()));
}

#[test]
fn the_path_selects_token_counting() {
    let body = request(&json!("hi"), false).to_string().into_bytes();
    for (target, counts) in
        [("/v1/responses/input_tokens?x=1", true), ("/v1/responses?x=/input_tokens", false)]
    {
        assert_eq!(
            Request::read(Api::Responses, target, body.clone()).unwrap().counts_tokens,
            counts
        );
    }
}

#[test]
fn clients_that_defer_themselves_are_recognised() {
    let with = |tool: Value, item: Value| {
        let mut body = request(&json!([user("hi"), item]), false);
        body["tools"].as_array_mut().unwrap().push(tool);
        read(&body).unwrap().client_deferral
    };
    let other = || json!({"type": "web_search"});
    assert_eq!(with(json!({"type": "tool_search"}), user("x")), Some(ClientDeferral::Hosted));
    assert_eq!(
        with(json!({"type": "openrouter:tool_search"}), user("x")),
        Some(ClientDeferral::Hosted)
    );
    assert_eq!(
        with(json!({"type": "tool_search", "execution": "client"}), user("x")),
        Some(ClientDeferral::References)
    );
    assert_eq!(
        with(other(), json!({"type": "additional_tools", "role": "developer", "tools": []})),
        Some(ClientDeferral::References)
    );
    assert_eq!(with(other(), user("x")), None);
}

#[test]
fn the_clients_namespaces_are_restored() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let input = json!([user("Find Ada.")]);
        let mut body = request(&input, stream);
        let tools = body["tools"].as_array_mut().unwrap();
        let members: Vec<Value> = tools.drain(..2).collect();
        let kept = json!({"type": "custom", "name": "sql"});
        tools.push(json!({"type": "namespace", "name": "crm", "description": "d",
            "tools": [members[0], members[1], kept]}));
        let called = bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"}));
        let got = conversation.send(TARGET, &body, &[answer(1, &[called], stream)]);
        let sent_tools = conversation.sent[0]["tools"].as_array().unwrap();
        assert_eq!(
            sent_tools[0],
            json!({"type": "namespace", "name": "crm", "description": "d", "tools": [kept]})
        );
        let item = if stream {
            got.events().iter().find(|event| event["type"] == "response.output_item.done").unwrap()
                ["item"]
                .clone()
        } else {
            got.json()["output"][0].clone()
        };
        let mut expected = call("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#);
        expected["namespace"] = json!("crm");
        assert_eq!(item, expected);
    }
}
