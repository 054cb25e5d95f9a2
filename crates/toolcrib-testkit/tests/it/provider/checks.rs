//! Tests that the provider rejects the requests that the real APIs reject, with the same messages.

use serde_json::{Value, json};
use toolcrib_testkit::provider::{Action, Dialect, Options, Provider, RejectedFeature, Step};

use super::agent::{ALL, Agent, post};

async fn refused(provider: &Provider, path: &str, body: Value) -> String {
    let (status, answer) = post(&format!("{}{path}", provider.url), &body).await;
    assert_eq!(status, 400, "{answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[tokio::test]
async fn a_call_without_a_result_is_rejected_in_every_dialect() {
    let steps =
        [Step::new([Action::call("a", json!({"q": "1"})), Action::call("b", json!({"q": "2"}))])];
    let provider = Provider::start(Options::steps(steps)).unwrap();
    let words = [
        "did not have response messages: call_",
        "No tool output found for function call call_",
        "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_",
        "the number of function response parts is equal to the number of function call parts",
    ];
    for (dialect, words) in ALL.into_iter().zip(words) {
        let mut agent = Agent::new(dialect, &provider.url, &["a", "b"], "Go.");
        let message = agent.turn().await;
        agent.results(&[(&message.calls[0], "only one".into())]);
        let (status, answer) = post(&agent.endpoint(), &agent.body()).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(status, 400, "{dialect:?}");
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn anthropic_rejects_invalid_caching_deferral_and_references() {
    let provider = Provider::start(Options::default()).unwrap();
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let with = |name: &str, extra: Value| {
        let mut tool = tool(name);
        tool.as_object_mut().unwrap().append(&mut extra.as_object().unwrap().clone());
        tool
    };
    let marked = json!({"cache_control": {"type": "ephemeral"}});
    let deferred = json!({"defer_loading": true});
    let both = json!({"defer_loading": true, "cache_control": {"type": "ephemeral"}});
    let messages = json!([user("hi")]);
    let referring = json!([
        user("hi"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "a", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
            "content": [{"type": "tool_reference", "tool_name": "gone"}]}]},
    ]);
    let unasked = json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_9", "content": "x"}]}]);
    let late = json!([
        user("hi"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "a", "input": {}}]},
        {"role": "user", "content": [{"type": "text", "text": "Here:"},
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]},
    ]);
    let five: Vec<Value> = (0..5).map(|n| with(&format!("t{n}"), marked.clone())).collect();
    for (tools, messages, words) in [
        (
            json!([tool("a"), with("b", both)]),
            &messages,
            "Tools with defer_loading cannot use prompt caching",
        ),
        (
            json!([with("a", deferred)]),
            &messages,
            "At least one tool must have defer_loading=false",
        ),
        (json!([tool("a"), tool("a")]), &messages, "Tool names must be unique"),
        (
            json!(five),
            &messages,
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
        (json!([tool("a")]), &referring, "Tool reference 'gone' not found in available tools"),
        (
            json!([tool("a")]),
            &unasked,
            "unexpected `tool_use_id` found in `tool_result` blocks: toolu_9",
        ),
        (json!([tool("a")]), &late, "without `tool_result` blocks immediately after: toolu_1"),
    ] {
        let body = json!({"model": "m", "max_tokens": 9, "tools": tools, "messages": messages});
        let message = refused(&provider, "/v1/messages", body).await;
        assert!(message.contains(words), "{message}");
    }
    let search =
        json!({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"});
    let body = json!({"model": "m", "tools": [search], "messages": messages});
    let message = refused(&provider, "/v1/messages/count_tokens", body).await;
    assert_eq!(message, "Server tools are not supported in the token counting API.");
}

#[tokio::test]
async fn thinking_is_bound_to_the_prompt_before_it() {
    let steps = [
        Step::new([Action::thinking("First."), Action::call("a", json!({"q": "1"}))]),
        Step::new([Action::thinking("Second."), Action::call("a", json!({"q": "2"}))]),
        Step::new([Action::thinking("Third."), Action::call("a", json!({"q": "3"}))]),
        Step::new([Action::text("Done.")]),
    ];
    let provider =
        Provider::start(Options { bind_thinking: true, ..Options::steps(steps) }).unwrap();
    let mut agent = Agent::new(Dialect::Anthropic, &provider.url, &["a"], "Go.");
    for _ in 0..3 {
        let message = agent.turn().await;
        agent.results(&[(&message.calls[0], "ok".into())]);
    }
    let good = agent.body();
    let url = agent.endpoint();
    let status = async |edit: &dyn Fn(&mut Value)| {
        let mut body = good.clone();
        edit(&mut body);
        let (status, answer) = post(&url, &body).await;
        (status, answer["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    let kept = |body: &mut Value| {
        body["tools"][0]["cache_control"] = json!({"type": "ephemeral"});
        let late =
            json!({"name": "late", "input_schema": {"type": "object"}, "defer_loading": true});
        body["tools"].as_array_mut().unwrap().push(late);
        body["messages"][0]["content"] = json!([{"type": "text", "text": "Go."}]);
    };
    let first_tools = |body: &mut Value| {
        body["messages"][1]["content"].as_array_mut().unwrap().remove(0);
    };
    assert_eq!(status(&|_| {}).await.0, 200);
    assert_eq!(status(&kept).await.0, 200);
    assert_eq!(status(&first_tools).await.0, 200);
    let bound = |place: &str| {
        let words = "Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
        (400, format!("{place}: {words}"))
    };
    let tools = |body: &mut Value| body["tools"][0]["description"] = "other".into();
    let system = |body: &mut Value| body["system"] = "new".into();
    let result = |body: &mut Value| body["messages"][2]["content"][0]["content"] = "edited".into();
    let middle = |body: &mut Value| {
        body["messages"][3]["content"].as_array_mut().unwrap().remove(0);
    };
    let swapped = |body: &mut Value| {
        body["messages"][1]["content"][0]["signature"] =
            body["messages"][3]["content"][0]["signature"].clone();
    };
    assert_eq!(status(&tools).await, bound("messages.1.content.0"));
    assert_eq!(status(&system).await, bound("messages.1.content.0"));
    assert_eq!(status(&result).await, bound("messages.3.content.0"));
    assert_eq!(status(&middle).await, bound("messages.5.content.0"));
    assert_eq!(status(&swapped).await, bound("messages.1.content.0"));
}

#[tokio::test]
async fn responses_rejects_deferral_without_a_search_and_calls_without_a_namespace() {
    let provider = Provider::start(Options::default()).unwrap();
    let deferred =
        json!({"type": "function", "name": "a", "parameters": {}, "defer_loading": true});
    let inside = json!({"type": "namespace", "name": "n", "description": "d", "tools": [deferred]});
    let words = "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.";
    for tool in [deferred.clone(), inside] {
        let body = json!({"model": "m", "input": "hi", "tools": [tool]});
        assert_eq!(refused(&provider, "/v1/responses", body).await, words);
    }
    let call =
        json!({"type": "function_call", "call_id": "call_1", "name": "a", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "call_1", "output": "ok"});
    let body = json!({"model": "m", "input": [user("hi"), call, output], "tools": [{"type": "tool_search"}, deferred]});
    let words =
        "Missing namespace for function_call 'a'. It does not exist in the default namespace.";
    assert_eq!(refused(&provider, "/v1/responses", body).await, words);
    let body = json!({"model": "m", "input": [user("hi"), call, output, output], "tools": []});
    let words = "Multiple tool outputs found for function call call_1.";
    assert_eq!(refused(&provider, "/v1/responses", body).await, words);
    let body = json!({"model": "m", "input": "hi", "previous_response_id": "resp_gone"});
    let words = "Previous response with id 'resp_gone' not found.";
    assert_eq!(refused(&provider, "/v1/responses", body).await, words);
}

#[tokio::test]
async fn gemini_requires_signatures_and_rejects_tools_with_cached_content() {
    let provider = Provider::start(Options::default()).unwrap();
    let path = "/v1beta/models/gemini-3-pro:generateContent";
    let history = |part: Value| {
        json!({"contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [part]},
            {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {"output": "ok"}}}]},
        ]})
    };
    let missing =
        refused(&provider, path, history(json!({"functionCall": {"name": "a", "args": {}}}))).await;
    assert!(
        missing.starts_with("Function call is missing a thought_signature in functionCall parts"),
        "{missing}"
    );
    let strange = json!({"functionCall": {"name": "a", "args": {}}, "thoughtSignature": "abc"});
    assert_eq!(refused(&provider, path, history(strange)).await, "Corrupted thought signature.");
    let cached = json!({"cachedContent": "cachedContents/1", "tools": [], "contents": []});
    let words = "CachedContent can not be used with GenerateContent request setting system_instruction, tools";
    assert!(refused(&provider, path, cached).await.starts_with(words));
    let filler = json!({"functionCall": {"name": "a", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"});
    assert_eq!(post(&format!("{}{path}", provider.url), &history(filler)).await.0, 200);
}

#[tokio::test]
async fn native_features_are_rejected_as_configured() {
    let all = vec![
        RejectedFeature::DeferLoading,
        RejectedFeature::ToolSearch,
        RejectedFeature::ToolReference,
        RejectedFeature::Namespace,
        RejectedFeature::AdditionalTools,
    ];
    let provider = Provider::start(Options { rejects: all, ..Options::default() }).unwrap();
    let messages = |tool: Value| json!({"model": "m", "messages": [user("hi")], "tools": [tool]});
    let deferred = json!({"name": "a", "input_schema": {"type": "object"}, "defer_loading": true});
    let words = "tools.0.custom.defer_loading: Extra inputs are not permitted";
    assert_eq!(refused(&provider, "/v1/messages", messages(deferred)).await, words);
    let search = json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"});
    let message = refused(&provider, "/v1/messages", messages(search.clone())).await;
    assert!(
        message.starts_with("tools.0: Input tag 'tool_search_tool_bm25_20251119'"),
        "{message}"
    );
    let responses =
        |input: Value, tool: Value| json!({"model": "m", "input": input, "tools": [tool]});
    let namespace =
        json!({"type": "namespace", "name": "n", "description": "d", "tools": [{"name": "a"}]});
    let function = json!({"type": "function", "name": "a", "parameters": {}});
    let added = json!([{"type": "additional_tools", "role": "developer", "tools": [function]}]);
    for (body, words) in [
        (responses(json!("hi"), json!({"type": "tool_search"})), "Invalid value: 'tool_search'."),
        (responses(json!("hi"), namespace), "Invalid value: 'namespace'."),
        (responses(added, function), "Invalid value: 'additional_tools'."),
    ] {
        let message = refused(&provider, "/v1/responses", body).await;
        assert!(message.starts_with(words), "{message}");
    }
    let bedrock =
        Provider::start(Options { rejects: vec![RejectedFeature::Bm25], ..Options::default() })
            .unwrap();
    let message = refused(&bedrock, "/v1/messages", messages(search)).await;
    assert_eq!(message, "BM25 tool search is not supported on Bedrock");
}
