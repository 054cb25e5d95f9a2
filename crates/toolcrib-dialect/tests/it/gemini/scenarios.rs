//! Tests of whole turns, each streamed and not streamed: without a search, with one search, with several hidden rounds
//! and so on. The tests of the other APIs have the same scenarios.

use serde_json::json;

use super::*;

#[test]
fn no_search() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        let parts = json!([{"text": "I think.", "thought": true}, {"text": "Hello there."}]);
        let upstream = answer(1, &parts, "STOP", stream);
        let got = conversation.inner.send(
            target(stream),
            &request(&json!(conversation.contents)),
            std::slice::from_ref(&upstream),
        );
        assert_eq!(got.text, upstream, "the response is forwarded unchanged");
        assert!(got.done.records.is_empty());
        let sent = conversation.last();
        let groups = sent["tools"].as_array().unwrap();
        assert_eq!(groups.len(), 1, "functions are in one group");
        let names: Vec<&str> = groups[0]["functionDeclarations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["tool_search", "tool_describe", "tool_call"]);
        assert_eq!(sent["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
        assert_eq!(sent["generationConfig"], json!({"temperature": 0.25}));
    }
}

#[test]
fn one_search() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        let signed = json!({"functionCall": bridged()["functionCall"], "thoughtSignature": "dHdv"});
        let received =
            conversation.send(&[json!([{"text": "Let me look."}, search()]), json!([signed])]);
        let visible = json!({"functionCall": real()["functionCall"], "thoughtSignature": "dHdv"});
        assert_eq!(received, expected(&json!([{"text": "Let me look."}, visible]), "STOP", 2));

        // The request of the hidden round contains the search unchanged, including its signature, and the search
        // result.
        let hidden = &conversation.last()["contents"];
        assert_eq!(hidden.as_array().unwrap().len(), 3);
        assert_eq!(
            hidden[1],
            json!({"role": "model", "parts": [{"text": "Let me look."}, search()]})
        );
        assert_eq!(hidden[2]["role"], "user");
        assert_eq!(hidden[2]["parts"][0]["functionResponse"]["name"], "tool_search");
        assert!(outputs(&hidden[2])[0].contains("crm__find_customer"));

        // The client sends a result for the tool that it knows. The upstream gets it as the result of the bridge call
        // that the model made.
        let tail =
            conversation.reply(&received, &json!([response("crm__find_customer", "Ada, 7")]));
        assert_eq!(
            tail,
            [
                json!({"role": "model", "parts": [signed]}),
                json!({"role": "user", "parts": [response("tool_call", "Ada, 7")]})
            ]
        );
    }
}

#[test]
fn two_hidden_rounds() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        let other = call("tool_search", &json!({"query": "update customer"}));
        let received = conversation.send(&[
            json!([{"text": "Let me look."}, search()]),
            json!([{"text": "Once more."}, other]),
            json!([{"text": "Nobody is called so."}]),
        ]);
        let texts = ["Let me look.", "\n\nOnce more.", "\n\nNobody is called so."];
        let parts = if stream {
            json!([{"text": texts.concat()}])
        } else {
            json!(texts.iter().map(|text| json!({"text": text})).collect::<Vec<_>>())
        };
        assert_eq!(received, expected(&parts, "STOP", 3));
        let tail = conversation.reply(&received, &json!([{"text": "A pity."}]));
        assert_eq!(
            tail,
            [
                json!({"role": "model", "parts": [{"text": "Nobody is called so."}]}),
                user("A pity.")
            ]
        );
    }
}

#[test]
fn the_limit_of_hidden_rounds_is_reached() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        conversation.inner.rounds = 2;
        let look = json!([{"text": "Looking."}, search()]);
        let received = conversation.send(&[look.clone(), look.clone(), look.clone()]);
        let texts = ["Looking.", "\n\nLooking.", "\n\nLooking."];
        let parts = if stream {
            json!([{"text": texts.concat()}])
        } else {
            json!(texts.iter().map(|text| json!({"text": text})).collect::<Vec<_>>())
        };
        assert_eq!(received, expected(&parts, "STOP", 3));
        // The last search was not answered in its turn. Its result is sent before the client's next message.
        let tail = conversation.reply(&received, &json!([{"text": "Go on."}]));
        assert_eq!(tail[0], json!({"role": "model", "parts": look}));
        let is_last = |answer: &Value| outputs(answer)[0].contains("last search of this turn");
        // The result of the second search says that this was the last search of the turn. The result of the third does
        // not, because it is sent in the next turn, in which the model may search again.
        assert!(is_last(&conversation.inner.sent[2]["contents"][4]) && !is_last(&tail[1]));
        assert_eq!(tail[2..], [user("Go on.")]);
    }
}

#[test]
fn no_match() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        let nothing = call("tool_search", &json!({"query": "zzyzx qqqq"}));
        let received = conversation.send(&[json!([nothing]), json!([{"text": "There is none."}])]);
        assert_eq!(received, expected(&json!([{"text": "There is none."}]), "STOP", 2));
        let tail = conversation.reply(&received, &json!([{"text": "A pity."}]));
        assert_eq!(tail.len(), 2);
    }
}

#[test]
fn a_search_and_a_real_call_in_one_turn() {
    for stream in BOTH {
        for (calls, at) in [([search(), bridged()], 0), ([bridged(), search()], 1)] {
            let mut conversation = GeminiConversation::new(stream);
            let received = conversation.send(&[json!(calls)]);
            // No hidden round is needed. The client does not get the signature, because the signature belongs to the
            // search. In the next request, the record restores the signature.
            assert_eq!(received, expected(&json!([real()]), "STOP", 1));
            let client_parts =
                json!([response("crm__find_customer", "Ada, 7"), {"text": "And now?"}]);
            let tail = conversation.reply(&received, &client_parts);
            assert_eq!(tail[0], json!({"role": "model", "parts": calls}));
            let parts = tail[1]["parts"].as_array().unwrap();
            assert_eq!(parts.len(), 3, "as many results as calls, in one content");
            assert_eq!(parts[at]["functionResponse"]["name"], "tool_search");
            assert_eq!(parts[1 - at], response("tool_call", "Ada, 7"));
            assert_eq!(parts[2], json!({"text": "And now?"}));
        }
    }
}

#[test]
fn two_searches_in_one_turn() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        let other = call("tool_search", &json!({"query": "list invoice"}));
        let received = conversation.send(&[json!([search(), other]), json!([bridged()])]);
        assert_eq!(received, expected(&json!([real()]), "STOP", 2));
        let hidden = &conversation.last()["contents"];
        assert_eq!(hidden[1]["parts"], json!([search(), other]));
        let results = outputs(&hidden[2]);
        assert_eq!(results.len(), 2);
        assert!(results[0].contains("crm__find_customer"));
        assert!(results[1].contains("list_invoice"));
        let tail =
            conversation.reply(&received, &json!([response("crm__find_customer", "Ada, 7")]));
        assert_eq!(tail[1]["parts"], json!([response("tool_call", "Ada, 7")]));
    }
}

#[test]
fn a_deferred_tool_called_without_a_search_with_valid_arguments() {
    for stream in BOTH {
        for blind in [real(), bridged()] {
            let mut conversation = GeminiConversation::new(stream);
            let received = conversation.send(&[json!([blind])]);
            assert_eq!(received, expected(&json!([real()]), "STOP", 1));
            let tail =
                conversation.reply(&received, &json!([response("crm__find_customer", "Ada, 7")]));
            let name = blind["functionCall"]["name"].as_str().unwrap();
            assert_eq!(tail[0]["parts"], json!([blind]));
            assert_eq!(tail[1]["parts"], json!([response(name, "Ada, 7")]));
        }
    }
}

#[test]
fn a_deferred_tool_called_without_a_search_with_invalid_arguments() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        let bad = call("crm__find_customer", &json!({"name": "ada"}));
        let received = conversation.send(&[json!([bad]), json!([bridged()])]);
        assert_eq!(received, expected(&json!([real()]), "STOP", 2));
        let hidden = &conversation.last()["contents"];
        assert_eq!(hidden[1]["parts"], json!([bad]));
        let result = &hidden[2]["parts"][0]["functionResponse"];
        assert_eq!(result["name"], "crm__find_customer");
        assert!(result["response"]["error"].as_str().unwrap().contains("\"q\""), "{result}");
        let tail =
            conversation.reply(&received, &json!([response("crm__find_customer", "Ada, 7")]));
        assert_eq!(tail[1]["parts"], json!([response("tool_call", "Ada, 7")]));
    }
}

/// The model calls the same tool twice, and one call is refused. Without ids, only the position shows which
/// result belongs to which call.
#[test]
fn results_without_ids_are_matched_by_position() {
    for stream in BOTH {
        let bad = call("tool_call", &json!({"name": "crm__find_customer", "arguments": {}}));
        for (calls, at) in [([bad.clone(), bridged()], 0), ([bridged(), bad], 1)] {
            let mut conversation = GeminiConversation::new(stream);
            // The search is in a round of its own, so it does not affect the positions in the second round.
            let received = conversation.send(&[json!([search()]), json!(calls)]);
            assert_eq!(received, expected(&json!([real()]), "STOP", 2));
            let tail =
                conversation.reply(&received, &json!([response("crm__find_customer", "Ada, 7")]));
            let parts = tail[1]["parts"].as_array().unwrap();
            assert!(parts[at]["functionResponse"]["response"]["error"].is_string(), "{parts:?}");
            assert_eq!(parts[1 - at], response("tool_call", "Ada, 7"));
        }
    }
}

/// A client may send results in any order. If the proxy adds the result of a search to them, it puts all results in the
/// order of the calls.
#[test]
fn results_are_in_the_order_of_their_calls() {
    let update = json!({"name": "crm__update_customer", "arguments": {"id": 7}});
    let update = call("tool_call", &update);
    // The client's results have no ids, so they are matched by name.
    let mut conversation = GeminiConversation::new(false);
    let received = conversation.send(&[json!([bridged(), search(), update])]);
    let result =
        [response("crm__update_customer", "new"), response("crm__find_customer", "Ada, 7")];
    let tail = conversation.reply(&received, &json!(result));
    assert_eq!(tail[1]["parts"][0], response("tool_call", "Ada, 7"));
    assert_eq!(tail[1]["parts"][1]["functionResponse"]["name"], "tool_search");
    assert_eq!(tail[1]["parts"][2], response("tool_call", "new"));
    // The client's results are matched by id, and each is in a separate content.
    let with_id = |mut part: Value, key: &str, id: &str| {
        part[key]["id"] = json!(id);
        part
    };
    let mut conversation = GeminiConversation::new(false);
    let calls = ["a", "b"].map(|id| with_id(bridged(), "functionCall", id));
    let received = conversation.send(&[json!([search(), calls[0], calls[1]])]);
    conversation.contents.push(received.content);
    for id in ["b", "a"] {
        let result = with_id(response("crm__find_customer", id), "functionResponse", id);
        conversation.contents.push(json!({"role": "user", "parts": [result]}));
    }
    conversation.send(&[json!([{"text": "Very well."}])]);
    let sent = &conversation.last()["contents"];
    assert_eq!(sent.as_array().unwrap().len(), 3, "all results are in one content");
    for (at, id) in [(1, "a"), (2, "b")] {
        let result = with_id(response("tool_call", id), "functionResponse", id);
        assert_eq!(sent[2]["parts"][at], result);
    }
}

/// Models sometimes misspell the keys inside a bridge call. Then the client's result cannot be matched by name, so it
/// is matched to the first bridge call that has no result.
#[test]
fn a_result_for_a_bridge_call_with_a_misspelled_name() {
    let odd = json!({"tool_name": "crm__find_customer", "args": {"q": "ada"}});
    let odd = call("tool_call", &odd);
    let mut conversation = GeminiConversation::new(false);
    let received = conversation.send(&[json!([odd])]);
    assert_eq!(received, expected(&json!([real()]), "STOP", 1));
    let tail = conversation.reply(&received, &json!([response("crm__find_customer", "Ada, 7")]));
    assert_eq!(tail[1]["parts"], json!([response("tool_call", "Ada, 7")]));
}
