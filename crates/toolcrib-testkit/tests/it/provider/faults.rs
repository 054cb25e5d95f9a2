//! Tests of the queue of canned responses, such as statuses, stalls and aborted connections, and of the recorded
//! requests.

use bytes::Bytes;
use serde_json::json;
use toolcrib_testkit::provider::{
    Action, BodyPart, CannedResponse, Dialect, Options, Pace, Provider, Step, StreamFault,
};

use super::agent::{ALL, Agent, client, post};

fn agent(provider: &Provider) -> Agent {
    Agent::new(Dialect::Anthropic, &provider.url, &["a"], "Go.")
}

async fn stream(provider: &Provider) -> reqwest::Response {
    let mut body = agent(provider).body();
    body["stream"] = true.into();
    client().post(agent(provider).endpoint()).json(&body).send().await.unwrap()
}

#[tokio::test]
async fn errors_have_the_format_of_the_dialect_and_then_the_script_continues() {
    for dialect in ALL {
        let provider =
            Provider::start(Options::responses([CannedResponse::error(dialect, 429)])).unwrap();
        let agent = Agent::new(dialect, &provider.url, &["a"], "Go.");
        let answer = client().post(agent.endpoint()).json(&agent.body()).send().await.unwrap();
        assert_eq!(answer.status(), 429);
        assert_eq!(answer.headers()["retry-after"], "7");
        assert_eq!(
            answer.text().await.unwrap(),
            dialect.error(429, "Rate limit reached for requests.").to_string()
        );
        assert_eq!(post(&agent.endpoint(), &agent.body()).await.0, 200);
    }
}

#[tokio::test]
async fn an_aborted_connection_is_an_error_and_a_truncated_body_is_not() {
    let bends = [
        StreamFault::CutAfter(3),
        StreamFault::HalfEvent(3),
        StreamFault::EndInside(3),
        StreamFault::EndAfter(3),
        StreamFault::ByteByByte,
    ];
    let provider = Provider::start(Options::responses(bends.map(CannedResponse::Faulty))).unwrap();
    let mut statuses = Vec::new();
    for _ in bends {
        let mut answer = stream(&provider).await;
        let mut text = Vec::new();
        let whole = loop {
            match answer.chunk().await {
                Ok(Some(chunk)) => text.extend(chunk),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let text = String::from_utf8(text).unwrap();
        statuses.push((whole, text.matches("\n\n").count(), text.ends_with("\n\n")));
    }
    let last = stream(&provider).await.text().await.unwrap();
    let all = last.matches("\n\n").count();
    let expected =
        [(false, 3, true), (false, 3, false), (true, 3, false), (true, 3, true), (true, all, true)];
    assert_eq!(statuses, expected);
}

#[tokio::test]
async fn a_stall_lasts_until_it_is_released() {
    let stalls = [
        CannedResponse::Faulty(StreamFault::StallAfter(2)),
        CannedResponse::Faulty(StreamFault::StallFirst),
    ];
    let provider = Provider::start(Options::responses(stalls)).unwrap();
    let mut answer = stream(&provider).await;
    let mut text = Vec::new();
    while text.windows(2).filter(|pair| pair == b"\n\n").count() < 2 {
        text.extend(answer.chunk().await.unwrap().unwrap());
    }
    assert_eq!(provider.open_responses(), 1);
    provider.release();
    while let Some(chunk) = answer.chunk().await.unwrap() {
        text.extend(chunk);
    }
    assert!(String::from_utf8(text).unwrap().contains("message_stop"));
    // The second response is released before it stalls, so it does not stall at all.
    provider.release();
    assert!(stream(&provider).await.text().await.unwrap().contains("message_stop"));
    provider.wait_until_idle().await;
}

#[tokio::test]
async fn a_client_that_disconnects_is_noticed() {
    let stall = CannedResponse::sse([Bytes::from_static(b": hello\n\n")]).then(BodyPart::Stall);
    let provider = Provider::start(Options::responses([
        stall,
        CannedResponse::Faulty(StreamFault::StallFirst),
    ]))
    .unwrap();
    let answer = stream(&provider).await;
    provider.wait_for_open_responses(1).await;
    drop(answer);
    provider.wait_until_idle().await;
    let waiting = tokio::spawn({
        let (url, body) = (agent(&provider).endpoint(), agent(&provider).body());
        async move { post(&url, &body).await }
    });
    provider.wait_for_open_responses(1).await;
    waiting.abort();
    provider.wait_until_idle().await;
}

#[tokio::test]
async fn requests_are_recorded_unchanged() {
    let provider = Provider::start(Options::default()).unwrap();
    let client = client();
    let url = format!("{}/v1/messages?beta=true", provider.url);
    let body = "{\"messages\" : [ {\"role\":\"user\",\"content\":\"hi\"} ] }";
    client.post(url).header("X-Api-Key", "secret").body(body).send().await.unwrap();
    let other =
        client.put(format!("{}/v1/files/7", provider.url)).body("any").send().await.unwrap();
    assert_eq!(other.text().await.unwrap(), "any");
    let requests = provider.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(
        (requests[0].path.as_str(), &requests[0].body[..]),
        ("/v1/messages?beta=true", body.as_bytes())
    );
    assert_eq!(requests[0].header("x-api-key"), Some("secret"));
    let lines = client
        .get(format!("{}/_requests", provider.url))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert_eq!(lines.lines().count(), 2);
    client.delete(format!("{}/_requests", provider.url)).send().await.unwrap();
    assert_eq!(provider.requests().len(), 0);
}

#[tokio::test]
async fn tokens_are_a_quarter_of_the_bytes() {
    let provider =
        Provider::start(Options::steps([Step::new([Action::text("four and nine")])])).unwrap();
    for dialect in ALL {
        let agent = Agent::new(dialect, &provider.url, &["a"], "Go.");
        let (_, answer) = post(&agent.endpoint(), &agent.body()).await;
        let input = agent.body().to_string().len().div_ceil(4) as u64;
        let usage = match dialect {
            Dialect::Chat => {
                json!([answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]])
            }
            Dialect::Gemini => {
                let usage = &answer["usageMetadata"];
                json!([usage["promptTokenCount"], usage["candidatesTokenCount"]])
            }
            _ => json!([answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]]),
        };
        assert_eq!(usage, json!([input, 4]), "{dialect:?}");
    }
    let agent = agent(&provider);
    let (_, counted) = post(&format!("{}/count_tokens", agent.endpoint()), &agent.body()).await;
    assert_eq!(counted, json!({"input_tokens": agent.body().to_string().len().div_ceil(4)}));
}

#[tokio::test]
async fn a_conversation_continues_after_a_restart_and_ids_do_not_repeat() {
    let steps: Vec<Step> =
        (0..4).map(|n| Step::new([Action::call("a", json!({"q": n.to_string()}))])).collect();
    let mut provider = Provider::start(Options::steps(steps.clone())).unwrap();
    let mut agent = agent(&provider);
    let mut calls = Vec::new();
    for _ in 0..4 {
        let message = agent.turn().await;
        agent.results(&[(&message.calls[0], "ok".into())]);
        calls.extend(message.calls);
        let listen = provider.address();
        drop(provider);
        provider = loop {
            // The port stays in use until the threads of the old provider have ended.
            if let Ok(next) = Provider::start(Options { listen, ..Options::steps(steps.clone()) }) {
                break next;
            }
        };
    }
    let numbers: Vec<&str> =
        calls.iter().map(|call| call.arguments["q"].as_str().unwrap()).collect();
    assert_eq!(numbers, ["0", "1", "2", "3"]);
    let mut ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[tokio::test]
async fn a_paced_stream_has_the_configured_number_of_deltas() {
    let pace = Pace { deltas: 20, pause: std::time::Duration::from_micros(100) };
    let provider =
        Provider::start(Options { pace: Some(pace), keep_requests: false, ..Options::default() })
            .unwrap();
    let text = stream(&provider).await.text().await.unwrap();
    assert_eq!(text.matches("text_delta").count(), 20);
    assert_eq!(provider.requests().len(), 0);
}
