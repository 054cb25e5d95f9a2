//! Tests of the client's next requests: with records, without them, and with a shortened history.

use serde_json::json;

use super::*;

/// Plays a turn with a search and a call that has an id, and adds the client's result for the call to the history.
/// Returns the conversation and what the client received.
fn two_turns(stream: bool) -> (GeminiConversation, ReceivedTurn) {
    let mut conversation = GeminiConversation::new(stream);
    let id = "call-0123456789ab";
    let mut bridged = bridged();
    bridged["functionCall"]["id"] = json!(id);
    bridged["thoughtSignature"] = json!("dHdv");
    let received =
        conversation.send(&[json!([{"text": "Let me look."}, search()]), json!([bridged])]);
    assert_eq!(received.content["parts"][1]["functionCall"]["id"], id);
    let mut result = response("crm__find_customer", "Ada, 7");
    result["functionResponse"]["id"] = json!(id);
    conversation.contents.push(received.content.clone());
    conversation.contents.push(json!({"role": "user", "parts": [result]}));
    (conversation, received)
}

#[test]
fn without_its_record_a_turn_loses_only_the_search() {
    for stream in BOTH {
        let (mut conversation, _) = two_turns(stream);
        conversation.inner.records.clear();
        let received = conversation.send(&[json!([{"text": "Found."}])]);
        let sent = conversation.last()["contents"].clone();
        let mut wrapped = bridged();
        wrapped["functionCall"]["id"] = json!("call-0123456789ab");
        wrapped["thoughtSignature"] = json!("dHdv");
        assert_eq!(sent[1], json!({"role": "model", "parts": [{"text": "Let me look."}, wrapped]}));
        assert_eq!(sent[2]["parts"][0]["functionResponse"]["name"], "tool_call");
        // From here on, the history that is sent upstream only grows.
        let tail = conversation.reply(&received, &json!([{"text": "Thanks."}]));
        assert_eq!(
            tail,
            [json!({"role": "model", "parts": [{"text": "Found."}]}), user("Thanks.")]
        );
    }
}

#[test]
fn parallel_calls_without_ids_and_without_a_record() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        let second =
            call("tool_call", &json!({"name": "crm__update_customer", "arguments": {"id": 7}}));
        let received = conversation.send(&[json!([bridged(), second])]);
        conversation.inner.records.clear();
        conversation.contents.push(received.content);
        // The results are not in the order of the calls, and each is in a separate content.
        for name in ["crm__update_customer", "crm__find_customer"] {
            conversation
                .contents
                .push(json!({"role": "function", "parts": [response(name, "ok")]}));
        }
        conversation.send(&[json!([{"text": "Done."}])]);
        let sent = &conversation.last()["contents"];
        // The signature was lost with the record, so the placeholder that the API accepts is sent.
        let mut first = bridged();
        first["thoughtSignature"] = json!("skip_thought_signature_validator");
        assert_eq!(sent[1]["parts"], json!([first, second]));
        for at in [2, 3] {
            assert_eq!(
                sent[at],
                json!({"role": "function", "parts": [response("tool_call", "ok")]})
            );
        }
    }
}

#[test]
fn records_of_a_shortened_history_are_found_by_call_ids() {
    for stream in BOTH {
        let (mut conversation, _) = two_turns(stream);
        conversation.send(&[json!([{"text": "Found."}])]);
        let before = conversation.last()["contents"].as_array().unwrap()[1..].to_vec();
        conversation.contents[0] = user("Summary: we look for Ada.");
        conversation.send(&[json!([{"text": "Found."}])]);
        let sent = conversation.last()["contents"].as_array().unwrap();
        assert_eq!(sent[0], user("Summary: we look for Ada."));
        assert_eq!(sent[1..], before[..], "the search was restored");
    }
}

/// Removes the ids from the conversation of [`two_turns`], as some clients do.
fn without_ids(contents: &mut [Value]) {
    for part in contents.iter_mut().flat_map(|content| content["parts"].as_array_mut().unwrap()) {
        for key in ["functionCall", "functionResponse"] {
            if let Some(inner) = part.get_mut(key).and_then(Value::as_object_mut) {
                inner.remove("id");
            }
        }
    }
}

#[test]
fn a_client_may_omit_the_ids_it_received() {
    for stream in BOTH {
        let (mut conversation, _) = two_turns(stream);
        let before = conversation.last()["contents"].clone();
        without_ids(&mut conversation.contents);
        let received = conversation.send(&[json!([{"text": "Found."}])]);
        assert!(begins_with(&conversation.last()["contents"], &before), "the search was restored");
        let mut result = response("tool_call", "Ada, 7");
        result["functionResponse"]["id"] = json!("call-0123456789ab");
        let known = before.as_array().unwrap().len();
        assert_eq!(
            conversation.last()["contents"][known + 1],
            json!({"role": "user", "parts": [result]})
        );
        conversation.reply(&received, &json!([{"text": "Thanks."}]));
    }
}

/// Changes a history like Gemini CLI, which requires an id on every call and a signature on the first call of each
/// content. It invents those that are missing, and prefixes an existing id with the tool's name.
fn with_other_ids(contents: &mut [Value]) {
    let mut count = 0;
    for content in contents {
        let mut first = true;
        for part in content["parts"].as_array_mut().unwrap() {
            let Some(call) = part.get_mut("functionCall") else { continue };
            let name = call["name"].as_str().unwrap().to_owned();
            let id = match call["id"].as_str() {
                Some(id) => format!("{name}__{id}"),
                None => format!("{name}_1763326_{count}"),
            };
            call["id"] = json!(id);
            count += 1;
            if first && part.get("thoughtSignature").is_none() {
                part["thoughtSignature"] = json!("skip_thought_signature_validator");
            }
            first = false;
        }
    }
}

#[test]
fn a_client_may_invent_ids_and_signatures() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        let bridged = |q: &str| {
            call("tool_call", &json!({"name": "crm__find_customer", "arguments": {"q": q}}))
        };
        let received =
            conversation.send(&[json!([search()]), json!([bridged("ada"), bridged("eve")])]);
        let before = conversation.last()["contents"].clone();
        conversation.contents.push(received.content);
        with_other_ids(&mut conversation.contents);
        let ids: Vec<Value> = (0..2)
            .map(|at| conversation.contents[1]["parts"][at]["functionCall"]["id"].clone())
            .collect();
        assert_eq!(ids[0], "crm__find_customer_1763326_0");
        let result = |at: usize, text: &str| {
            let mut result = response("crm__find_customer", text);
            result["functionResponse"]["id"] = ids[at].clone();
            result
        };
        // The results are not in the order of the calls, so only the client's ids show which result belongs to
        // which call.
        let answers = json!([result(1, "Eve, 8"), result(0, "Ada, 7"), {"text": "Both."}]);
        conversation.contents.push(json!({"role": "user", "parts": answers}));
        let received = conversation.send(&[json!([search()]), json!([{"text": "Found."}])]);
        let sent = conversation.last()["contents"].as_array().unwrap();
        assert!(begins_with(&json!(sent), &before), "the search was restored");
        let known = before.as_array().unwrap().len();
        assert_eq!(sent[known]["parts"], json!([bridged("ada"), bridged("eve")]));
        let results = json!([
            response("tool_call", "Ada, 7"), response("tool_call", "Eve, 8"), {"text": "Both."}]);
        assert_eq!(sent[known + 1]["parts"], results);
        // The search of the second turn is restored, even though that turn has no calls of its own and the ids of the
        // calls before it were invented by the client.
        let tail = conversation.reply(&received, &json!([{"text": "Thanks."}]));
        assert_eq!(tail[0]["parts"], json!([{"text": "Found."}]));
    }
}

#[test]
fn a_client_may_change_the_ids_it_received() {
    for stream in BOTH {
        let (mut conversation, _) = two_turns(stream);
        let before = conversation.last()["contents"].clone();
        with_other_ids(&mut conversation.contents);
        let id = conversation.contents[1]["parts"][1]["functionCall"]["id"].clone();
        assert_eq!(id, "crm__find_customer__call-0123456789ab");
        conversation.contents[2]["parts"][0]["functionResponse"]["id"] = id;
        conversation.send(&[json!([{"text": "Found."}])]);
        let sent = &conversation.last()["contents"];
        assert!(begins_with(sent, &before), "the search was restored");
        let known = before.as_array().unwrap().len();
        for at in [known, known + 1] {
            let part = &sent[at]["parts"][0];
            let inner = part.get("functionCall").unwrap_or(&part["functionResponse"]);
            assert_eq!(inner["id"], "call-0123456789ab");
        }
    }
}

#[test]
fn a_result_sent_twice_has_the_same_name_both_times() {
    let (mut conversation, _) = two_turns(true);
    let result = conversation.contents[2]["parts"][0].clone();
    conversation.contents[2]["parts"].as_array_mut().unwrap().push(result);
    conversation.send(&[json!([{"text": "Found."}])]);
    let sent = conversation.last()["contents"].as_array().unwrap().last().unwrap();
    assert_eq!(sent["parts"][0]["functionResponse"]["name"], "tool_call");
    assert_eq!(sent["parts"][1], sent["parts"][0]);
}

#[test]
fn records_belong_to_one_caller() {
    let (mut conversation, _) = two_turns(false);
    conversation.inner.caller = [8; 32];
    conversation.send(&[json!([{"text": "Found."}])]);
    assert!(
        !conversation.inner.sent_bodies.last().unwrap().contains("find customer"),
        "another's search"
    );
}

#[test]
fn a_turn_that_the_client_serialised_differently_is_recognised() {
    let mut conversation = GeminiConversation::new(true);
    let args = json!({"name": "crm__update_customer", "arguments": {"id": 7, "name": "Ada"}});
    let thought = json!({"text": "Hm.", "thought": true});
    conversation.send(&[
        json!([thought, search()]),
        json!([{"text": "I  do\nit."}, call("tool_call", &args)]),
    ]);
    let before = conversation.last()["contents"].clone();
    // The client's copy uses snake case, different whitespace, a different order of keys, no thoughts, and no role for
    // the user.
    let echo = r#"{"role":"model","parts":[{"text":"I do it."},
        {"function_call":{"args":{"name":"Ada", "id":7},"name":"crm__update_customer"}}]}"#;
    conversation.contents.push(serde_json::from_str(echo).unwrap());
    conversation.contents.push(json!({"parts": [{"function_response":
        {"name": "crm__update_customer", "response": {"output": "ok"}}}]}));
    conversation.send(&[json!([{"text": "Done."}])]);
    assert!(begins_with(&conversation.last()["contents"], &before));
    assert_eq!(
        conversation.last()["contents"][4],
        json!({"parts": [{"function_response": {"name": "tool_call", "response": {"output": "ok"}}}]})
    );
}

#[test]
fn missing_and_empty_arguments_are_the_same() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        let mut body = request(&json!(conversation.contents));
        let read = json!({"name": "read_file", "description": "Reads a file."});
        body["tools"][0]["functionDeclarations"].as_array_mut().unwrap().push(read);
        let calls = json!([search(), {"functionCall": {"name": "read_file"}}]);
        let got =
            conversation.inner.send(target(stream), &body, &[answer(1, &calls, "STOP", stream)]);
        let bare = json!([{"functionCall": {"name": "read_file"}}]);
        assert_eq!(read_as_client(&got, stream), expected(&bare, "STOP", 1));
        let echo = json!({"role": "model", "parts": [call("read_file", &json!({}))]});
        body["contents"] = json!([user("Find Ada."), echo,
            {"role": "user", "parts": [response("read_file", "text")]}]);
        conversation.inner.send(
            target(stream),
            &body,
            &[answer(2, &json!([{"text": "So."}]), "STOP", stream)],
        );
        assert_eq!(conversation.last()["contents"][1]["parts"], calls, "the record was found");
    }
}

#[test]
fn found_tools_can_be_appended() {
    for mode in [Mode::Append, Mode::Reveal] {
        for stream in BOTH {
            let mut conversation = GeminiConversation::new(stream);
            conversation.inner.mode = mode;
            conversation.inner.settings.activation.mode = toolcrib_core::policy::ActivationMode::On;
            let received = conversation.send(&[json!([search()]), json!([real()])]);
            assert_eq!(received, expected(&json!([real()]), "STOP", 2));
            let declared =
                conversation.last()["tools"][0]["functionDeclarations"].as_array().unwrap();
            let full = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
            let found = declared.iter().find(|tool| tool["name"] == "crm__find_customer").unwrap();
            assert_eq!(found["parametersJsonSchema"], full);
            let tail =
                conversation.reply(&received, &json!([response("crm__find_customer", "Ada, 7")]));
            assert_eq!(tail[1]["parts"], json!([response("crm__find_customer", "Ada, 7")]));
        }
    }
}
