//! Tests of how requests are read, which requests are passed through, and how tools are rewritten.

use serde_json::json;
use toolcrib_dialect::request::ToolChoice;
use toolcrib_dialect::{PassthroughReason, Request};

use super::*;

fn read(target: &str, body: &Value) -> Result<Request, PassthroughReason> {
    Request::read(Api::Gemini, target, body.to_string().into_bytes())
        .map_err(|unread| unread.reason)
}

fn with(key: &str, value: Value) -> Value {
    let mut body = request(&json!([user("hi")]));
    body[key] = value;
    body
}

#[test]
fn the_path_selects_model_and_streaming() {
    let body = request(&json!([user("hi")]));
    let model_and_stream = |target| read(target, &body).map(|read| (read.model, read.stream));
    for (target, model, stream) in [
        (WHOLE, "gemini-3-pro-preview", false),
        (EVENTS, "gemini-3-pro-preview", true),
        ("/v1/models/gemini-2.5-flash:generateContent?key=k", "gemini-2.5-flash", false),
        (
            "/v1/projects/p/locations/global/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse",
            "gemini-3-pro",
            true,
        ),
    ] {
        assert_eq!(model_and_stream(target), Ok((model.to_owned(), stream)));
    }
    // Without `alt=sse`, this endpoint returns one JSON array in pieces, so there are no events that could be edited.
    assert_eq!(
        model_and_stream("/v1beta/models/m:streamGenerateContent"),
        Err(PassthroughReason::JsonArrayStream)
    );
    assert_eq!(
        model_and_stream("/v1beta/models/m:streamGenerateContent?alt=json"),
        Err(PassthroughReason::JsonArrayStream)
    );
    for other in ["/v1beta/models/m:countTokens", "/v1beta/models/m", "/", ""] {
        assert_eq!(model_and_stream(other), Err(PassthroughReason::Malformed), "{other}");
    }
}

#[test]
fn requests_that_are_passed_through() {
    for (key, value, why) in [
        ("cachedContent", json!("cachedContents/1"), PassthroughReason::CachedContent),
        ("cached_content", json!("cachedContents/1"), PassthroughReason::CachedContent),
        ("tools", json!([]), PassthroughReason::NoTools),
        ("tools", json!(null), PassthroughReason::NoTools),
        ("tools", json!("all"), PassthroughReason::Malformed),
        ("contents", json!("hi"), PassthroughReason::Malformed),
        ("contents", json!(["hi"]), PassthroughReason::Malformed),
        ("generationConfig", json!({"candidateCount": 2}), PassthroughReason::MultipleChoices),
        (
            "toolConfig",
            json!({"functionCallingConfig": {"streamFunctionCallArguments": true}}),
            PassthroughReason::StreamedArguments,
        ),
    ] {
        let body = with(key, value);
        assert_eq!(read(WHOLE, &body).unwrap_err(), why, "{key}");
    }
    let mut snake = with("generation_config", json!({"candidate_count": 2}));
    snake.as_object_mut().unwrap().remove("generationConfig");
    assert_eq!(read(WHOLE, &snake).unwrap_err(), PassthroughReason::MultipleChoices);
    let bytes = b"\xff{".to_vec();
    assert_eq!(
        Request::read(Api::Gemini, WHOLE, bytes.clone())
            .map_err(|unread| (unread.reason, unread.body))
            .unwrap_err(),
        (PassthroughReason::Malformed, bytes)
    );
}

#[test]
fn tool_choices_are_read_in_all_forms() {
    let choice = |config: Value| read(WHOLE, &with("toolConfig", config)).unwrap().choice;
    let calling = |config: Value| choice(json!({"functionCallingConfig": config}));
    assert_eq!(calling(json!({"mode": "AUTO"})), ToolChoice::Auto);
    assert_eq!(calling(json!({"mode": "NONE"})), ToolChoice::None);
    assert_eq!(calling(json!({"mode": "ANY"})), ToolChoice::Required);
    assert_eq!(calling(json!({"mode": "VALIDATED"})), ToolChoice::Auto);
    let named = ToolChoice::Named(vec!["a".into(), "b".into()]);
    assert_eq!(calling(json!({"mode": "ANY", "allowedFunctionNames": ["a", "b"]})), named);
    assert_eq!(calling(json!({"mode": "VALIDATED", "allowedFunctionNames": ["a", "b"]})), named);
    let snake =
        json!({"function_calling_config": {"mode": "ANY", "allowed_function_names": ["a", "b"]}});
    assert_eq!(choice(snake.clone()), named);
    assert_eq!(read(WHOLE, &with("tool_config", snake)).unwrap().choice, named);
}

#[test]
fn a_forced_tool_is_sent_in_full_from_then_on() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        let mut body = request(&json!(conversation.contents));
        body["toolConfig"] = json!({"functionCallingConfig":
            {"mode": "ANY", "allowedFunctionNames": ["crm__find_customer"]}});
        let upstream = answer(1, &json!([real()]), "STOP", stream);
        let got = conversation.inner.send(target(stream), &body, std::slice::from_ref(&upstream));
        assert_eq!(got.text, upstream, "the response is forwarded unchanged");
        let sent = conversation.last();
        assert_eq!(sent["toolConfig"], body["toolConfig"]);
        let group = &sent["tools"][0]["functionDeclarations"];
        let whole = &body["tools"][0]["functionDeclarations"][0];
        assert_eq!((group.as_array().unwrap().len(), &group[0]), (4, whole));
        let tail = conversation.reply(
            &read_as_client(&got, stream),
            &json!([response("crm__find_customer", "Ada, 7")]),
        );
        assert_eq!(tail[1]["parts"], json!([response("crm__find_customer", "Ada, 7")]));
    }
}

#[test]
fn none_and_any_do_not_change_the_tools() {
    for mode in ["NONE", "ANY"] {
        let mut conversation = GeminiConversation::new(false);
        conversation.send(&[json!([{"text": "Hello."}])]);
        let before = conversation.last()["tools"].clone();
        let mut body = request(&json!(conversation.contents));
        body["toolConfig"] = json!({"functionCallingConfig": {"mode": mode}});
        let rounds = [json!([search()]), json!([bridged()])];
        let answers: Vec<String> =
            rounds.iter().zip(1..).map(|(parts, n)| answer(n, parts, "STOP", false)).collect();
        conversation.inner.send(WHOLE, &body, &answers);
        for sent in &conversation.inner.sent[1..] {
            assert_eq!(sent["tools"], before);
            assert_eq!(sent["toolConfig"], body["toolConfig"]);
        }
    }
}

fn sent_tools(tools: &Value) -> Value {
    let mut body = request(&json!([user("hi")]));
    body["tools"] = tools.clone();
    let conversation = TestConversation::new(Api::Gemini, Mode::Bridge);
    let sent: Value =
        serde_json::from_str(&conversation.turn(WHOLE, &body.to_string()).request()).unwrap();
    sent["tools"].clone()
}

fn names(group: &Value, key: &str) -> Vec<String> {
    let list = group[key].as_array().unwrap();
    list.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn provider_tools_stay_and_our_tools_join_a_remaining_group() {
    let ours = ["tool_search", "tool_describe", "tool_call"];
    let all = request(&json!([]))["tools"][0]["functionDeclarations"].clone();
    // One provider tool is in the same entry as the declarations, and one is in a separate entry.
    let mixed = sent_tools(
        &json!([{"functionDeclarations": all, "codeExecution": {}}, {"googleSearch": {}}]),
    );
    assert_eq!(mixed[0], json!({"codeExecution": {}}));
    assert_eq!(mixed[1], json!({"googleSearch": {}}));
    assert_eq!(names(&mixed[2], "functionDeclarations"), ours);
    assert_eq!(mixed.as_array().unwrap().len(), 3);

    // The first group has a tool that is never deferred. The group uses snake case and the older form of schemas.
    let kept = json!({"name": "read_file", "description": "Reads a file.",
        "parameters": {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}}});
    let groups =
        sent_tools(&json!([{"function_declarations": [kept]}, {"functionDeclarations": all}]));
    assert_eq!(groups.as_array().unwrap().len(), 1);
    assert_eq!(groups[0]["function_declarations"][0], kept);
    assert_eq!(names(&groups[0], "function_declarations")[1..], ours);
    let own = json!({"functionDeclarations": [kept]});
    let last = json!({"functionDeclarations": [{"name": "bash", "description": "Runs a command.",
        "parametersJsonSchema": {"type": "object", "properties": {"command": {"type": "string"}}}}]});
    let both = sent_tools(&json!([own, last, {"functionDeclarations": all}]));
    assert_eq!(both[0], own, "unchanged");
    assert_eq!(names(&both[1], "functionDeclarations")[1..], ours);
    let schema = &groups[0]["function_declarations"][1]["parametersJsonSchema"];
    assert_eq!(schema["type"], "object");
}

#[test]
fn a_client_tool_with_our_name_keeps_it() {
    let mut conversation = GeminiConversation::new(false);
    let mut body = request(&json!(conversation.contents));
    let own = json!({"name": "tool_call", "description": "Calls the shed.",
        "parametersJsonSchema": {"type": "object"}});
    body["tools"][0]["functionDeclarations"].as_array_mut().unwrap().push(own);
    let sent: Value =
        serde_json::from_str(&conversation.inner.turn(WHOLE, &body.to_string()).request()).unwrap();
    let declared = names(&sent["tools"][0], "functionDeclarations");
    let second = declared.iter().find(|name| name.contains("search")).unwrap();
    assert_ne!(second, "tool_search");
    let hidden = call(second, &json!({"query": "find customer"}));
    let answers = [
        answer(1, &json!([hidden]), "STOP", false),
        answer(2, &json!([{"text": "Found."}]), "STOP", false),
    ];
    let got = conversation.inner.send(WHOLE, &body, &answers);
    assert_eq!(read_as_client(&got, false), expected(&json!([{"text": "Found."}]), "STOP", 2));
}

/// Converts every key of a value to snake case, except inside schemas and data.
fn in_snake_case(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| {
                let snake: String = key
                    .chars()
                    .flat_map(|c| c.is_ascii_uppercase().then_some('_').into_iter().chain([c]))
                    .collect();
                let is_data = matches!(key.as_str(), "parametersJsonSchema" | "args" | "response");
                let value = if is_data { value.clone() } else { in_snake_case(value) };
                (snake.to_ascii_lowercase(), value)
            })
            .collect(),
        Value::Array(items) => items.iter().map(in_snake_case).collect(),
        other => other.clone(),
    }
}

/// If every key of a conversation is in snake case, the searches, calls and records are the same as in camel case.
#[test]
fn a_request_in_snake_case_is_handled_the_same() {
    for stream in BOTH {
        let mut conversation = GeminiConversation::new(stream);
        let mut send = |contents: &[Value], rounds: &[Value]| {
            let body = in_snake_case(&request(&json!(contents)));
            let answers: Vec<String> =
                rounds.iter().zip(1..).map(|(parts, n)| answer(n, parts, "STOP", stream)).collect();
            let got = conversation.inner.send(target(stream), &body, &answers);
            (read_as_client(&got, stream), conversation.inner.sent.clone())
        };
        let mut contents = vec![user("Find Ada.")];
        let (received, sent) = send(&contents, &[json!([search()]), json!([bridged()])]);
        assert_eq!(received, expected(&json!([real()]), "STOP", 2));
        // The search result contains the schema, which the client sent under a key in snake case.
        let result = sent[1]["contents"][2].to_string();
        assert!(
            result.contains("crm__find_customer") && result.contains(r#"\"required\""#),
            "{result}"
        );
        contents.push(in_snake_case(&json!({"role": "model", "parts": [real()]})));
        let result = json!({"role": "user", "parts": [response("crm__find_customer", "Ada, 7")]});
        contents.push(in_snake_case(&result));
        let (_, sent) = send(&contents, &[json!([{"text": "Found."}])]);
        let [.., before, last] = &sent[..] else { panic!("three requests") };
        assert!(begins_with(&last["contents"], &before["contents"]), "the search was restored");
        let renamed =
            in_snake_case(&json!({"role": "user", "parts": [response("tool_call", "Ada, 7")]}));
        assert_eq!(last["contents"].as_array().unwrap().last(), Some(&renamed));
        assert_eq!(last["tools"], before["tools"]);
    }
}
