//! Tests of streams: the order of events in each API, and the content that they add up to.

use serde_json::{Value, json};
use toolcrib_testkit::provider::{Action, ChatQuirk, Dialect, Options, Provider, Step};

use super::agent::{Agent, client, post};

const ARGUMENTS: &str = r#"{"q":"ada lovelace"}"#;

fn provider(quirks: Vec<ChatQuirk>) -> Provider {
    let arguments: Value = serde_json::from_str(ARGUMENTS).unwrap();
    let steps = [Step::new([
        Action::thinking("Hm."),
        Action::text("Looking now."),
        Action::call("a", arguments),
    ])];
    Provider::start(Options { quirks, ..Options::steps(steps) }).unwrap()
}

/// Requests the first message of a conversation as a stream, and returns the raw stream.
async fn stream(provider: &Provider, dialect: Dialect) -> String {
    let agent = Agent::new(dialect, &provider.url, &["a"], "Go.");
    let mut body = agent.body();
    let mut url = agent.endpoint();
    if dialect == Dialect::Gemini {
        url = url.replace(":generateContent", ":streamGenerateContent?alt=sse");
    } else {
        body["stream"] = true.into();
    }
    if dialect == Dialect::Chat {
        body["stream_options"] = json!({"include_usage": true});
    }
    let answer = client().post(url).json(&body).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream; charset=utf-8");
    answer.text().await.unwrap()
}

fn events(stream: &str) -> Vec<Value> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter(|line| *line != "[DONE]").map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the types of the events. Consecutive events of the same type are listed once.
fn kinds(events: &[Value]) -> Vec<String> {
    let mut kinds: Vec<String> = events
        .iter()
        .map(|event| {
            let kind = event["type"].as_str().unwrap();
            event["delta"]["type"]
                .as_str()
                .map_or(kind.to_owned(), |delta| format!("{kind} {delta}"))
        })
        .collect();
    kinds.dedup();
    kinds
}

fn joined<'a>(pieces: impl Iterator<Item = &'a Value>) -> String {
    pieces.filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn anthropic_events_are_in_order() {
    let events = events(&stream(&provider(vec![]), Dialect::Anthropic).await);
    let expected = [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta thinking_delta",
        "content_block_delta signature_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta text_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta input_json_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(joined(events.iter().map(|event| &event["delta"]["text"])), "Looking now.");
    assert_eq!(joined(events.iter().map(|event| &event["delta"]["partial_json"])), ARGUMENTS);
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
}

#[tokio::test]
async fn responses_events_are_in_order() {
    let events = events(&stream(&provider(vec![]), Dialect::Responses).await);
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(kinds(&events), expected);
    let numbers: Vec<u64> =
        events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let whole = &events.last().unwrap()["response"];
    assert_eq!(whole["output"][2]["arguments"], ARGUMENTS);
    assert_eq!(whole["tools"], events[0]["response"]["tools"]);
    assert_eq!(whole["tools"][0]["name"], "a");
}

#[tokio::test]
async fn gemini_events_are_in_order() {
    let events = events(&stream(&provider(vec![]), Dialect::Gemini).await);
    let parts: Vec<&Value> =
        events.iter().map(|event| &event["candidates"][0]["content"]["parts"][0]).collect();
    let text = parts.iter().filter(|part| part["thought"] != true).map(|part| &part["text"]);
    assert_eq!(joined(text), "Looking now.");
    let calls: Vec<&Value> =
        parts.iter().filter(|part| part["functionCall"].is_object()).copied().collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["functionCall"]["args"].to_string(), ARGUMENTS);
    assert!(calls[0]["thoughtSignature"].is_string());
    let finished: Vec<bool> =
        events.iter().map(|event| event["candidates"][0]["finishReason"] == "STOP").collect();
    assert_eq!(finished.iter().position(|finished| *finished), Some(events.len() - 1));
}

/// Joins the fragments of the only call in a stream. Returns the number of fragments, the call and the
/// `finish_reason`.
async fn chat_calls(quirks: Vec<ChatQuirk>) -> (usize, Value, String) {
    let text = stream(&provider(quirks), Dialect::Chat).await;
    assert!(text.ends_with("data: [DONE]\n\n"));
    let events = events(&text);
    let usage = events.last().unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert!(usage["usage"]["prompt_tokens"].as_u64().unwrap() > 0);
    let fragments: Vec<&Value> = events
        .iter()
        .map(|event| &event["choices"][0]["delta"]["tool_calls"][0])
        .filter(|fragment| fragment.is_object())
        .collect();
    let call = json!({
        "name": joined(fragments.iter().map(|fragment| &fragment["function"]["name"])),
        "arguments": joined(fragments.iter().map(|fragment| &fragment["function"]["arguments"])),
        "index": fragments[0]["index"],
    });
    let finish = joined(events.iter().map(|event| &event["choices"][0]["finish_reason"]));
    (fragments.len(), call, finish)
}

#[tokio::test]
async fn chat_streams_calls_with_and_without_quirks() {
    let call = json!({"name": "a", "arguments": ARGUMENTS, "index": 0});
    let bare = json!({"name": "a", "arguments": ARGUMENTS, "index": null});
    assert_eq!(chat_calls(vec![]).await, (4, call.clone(), "tool_calls".into()));
    assert_eq!(
        chat_calls(vec![ChatQuirk::WholeCall]).await,
        (1, call.clone(), "tool_calls".into())
    );
    assert_eq!(
        chat_calls(vec![ChatQuirk::SplitName]).await,
        (5, call.clone(), "tool_calls".into())
    );
    assert_eq!(chat_calls(vec![ChatQuirk::NoIndex]).await, (4, bare, "tool_calls".into()));
    assert_eq!(chat_calls(vec![ChatQuirk::StopWithCalls]).await, (4, call, "stop".into()));
}

#[tokio::test]
async fn parallel_calls_have_different_indices_unless_a_quirk_makes_them_equal() {
    let two =
        [Step::new([Action::call("a", json!({"q": "1"})), Action::call("a", json!({"q": "2"}))])];
    for (quirks, expected) in [(vec![], [0, 1]), (vec![ChatQuirk::SameIndex], [0, 0])] {
        let provider = Provider::start(Options { quirks, ..Options::steps(two.clone()) }).unwrap();
        let events = events(&stream(&provider, Dialect::Chat).await);
        let fragments = events.iter().map(|event| &event["choices"][0]["delta"]["tool_calls"][0]);
        let named = fragments.filter(|fragment| fragment["function"]["name"].is_string());
        let indices: Vec<u64> = named.map(|fragment| fragment["index"].as_u64().unwrap()).collect();
        assert_eq!(indices, expected);
    }
}

#[tokio::test]
async fn only_the_first_of_several_calls_is_signed() {
    let two =
        [Step::new([Action::call("a", json!({"q": "1"})), Action::call("a", json!({"q": "2"}))])];
    for ids in [true, false] {
        let options = Options { call_ids: ids, ..Options::steps(two.clone()) };
        let provider = Provider::start(options).unwrap();
        let agent = Agent::new(Dialect::Gemini, &provider.url, &["a"], "Go.");
        let (_, answer) = post(&agent.endpoint(), &agent.body()).await;
        let parts = answer["candidates"][0]["content"]["parts"].as_array().unwrap();
        let signed: Vec<bool> =
            parts.iter().map(|part| part["thoughtSignature"].is_string()).collect();
        let with_id: Vec<bool> =
            parts.iter().map(|part| part["functionCall"]["id"].is_string()).collect();
        assert_eq!((signed, with_id), (vec![true, false], vec![ids, ids]));
    }
}

#[tokio::test]
async fn the_id_of_a_client_search_changes_between_added_and_done() {
    let provider =
        Provider::start(Options::steps([Step::new([Action::call("a", json!({"q": "1"}))])]))
            .unwrap();
    let search = json!({"type": "tool_search", "execution": "client", "description": "Find tools", "parameters": {}});
    let body = json!({"model": "m", "input": "Go.", "tools": [search], "stream": true});
    let url = format!("{}/v1/responses", provider.url);
    let text = client().post(url).json(&body).send().await.unwrap().text().await.unwrap();
    let events = events(&text);
    let item = |kind: &str| &events.iter().find(|event| event["type"] == kind).unwrap()["item"];
    let (added, done) = (item("response.output_item.added"), item("response.output_item.done"));
    assert_eq!(added["arguments"], json!({}));
    assert_eq!(done["arguments"], json!({"query": "a"}));
    assert_ne!(added["call_id"], done["call_id"]);
}

#[tokio::test]
async fn chat_can_send_arguments_as_an_object() {
    let provider = provider(vec![ChatQuirk::ObjectArguments]);
    let agent = Agent::new(Dialect::Chat, &provider.url, &["a"], "Go.");
    let (_, answer) = post(&agent.endpoint(), &agent.body()).await;
    let call = &answer["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"].to_string(), ARGUMENTS);
}
