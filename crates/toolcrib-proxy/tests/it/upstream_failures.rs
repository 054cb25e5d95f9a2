//! Tests of upstreams that fail: the client gets the same response as without the proxy, or an error in the format of
//! its API.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_dialect::Api;
use toolcrib_testkit::provider::{
    Action, BodyPart, CannedResponse, ChatQuirk, Options, Script, Step, StreamFault,
};

use crate::client_requests::{ClientCase, GOAL, cases, streams, tools};
use crate::setup::{ReceivedResponse, TEST_TIMEOUT, TestSetup, begin, get, more, rest, until};

const CANARY: &str = "sk-canary-4711";

/// Returns the options of a provider whose first response is a search and whose second response is `answer`.
fn after_search(answer: CannedResponse) -> Options {
    Options::responses([CannedResponse::Scripted, answer])
}

fn long_text() -> Options {
    let text = "Nine letters each, and so a dozen events of text for whoever reads them all.";
    Options::steps([Step::new([Action::text(text)])])
}

#[tokio::test]
async fn an_unreachable_upstream_is_an_api_error_without_secrets() {
    let unused_address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let setup = TestSetup::with(Options::default(), |config| {
        let url = format!("http://{unused_address}");
        (config.openai, config.anthropic, config.gemini) = (url.clone(), url.clone(), url);
    })
    .await;
    for case in cases() {
        for body in [case.ask(GOAL, &tools(60)).to_string(), "{".to_owned()] {
            let sign = if case.path().contains('?') { '&' } else { '?' };
            let url = format!("{}{}{sign}key={CANARY}", setup.url, case.path());
            let request = setup.client.post(url).header("authorization", CANARY).body(body);
            let got = get(request.header("x-api-key", CANARY)).await;
            assert!(got.status == 502 && case.is_error(&got.json(), 502), "{}", got.text());
            assert!(!got.text().contains(CANARY), "{}", got.text());
            assert!(got.text().contains("cannot be reached"), "{}", got.text());
        }
    }
    let models = setup.client.get(format!("{}/v1/models?key={CANARY}", setup.url));
    let got = get(models).await;
    assert!(got.status == 502 && !got.text().contains(CANARY), "{}", got.text());
}

#[tokio::test]
async fn an_error_of_the_first_round_is_forwarded_unchanged() {
    for case in cases() {
        for status in [400, 401, 429, 500, 529] {
            let error = CannedResponse::error(case.dialect(), status);
            let setup = TestSetup::new(Options::responses([error.clone(), error])).await;
            let body = case.ask(GOAL, &tools(60));
            let direct = format!("{}{}", setup.provider.url, case.path());
            let direct = get(setup.client.post(direct).body(body.to_string())).await;
            let got = setup.ask(case, &body).await;
            assert_eq!((got.status, &got.body), (status, &direct.body), "{case:?}");
            for name in ["retry-after", "x-request-id", "content-type"] {
                assert_eq!(got.headers.get(name), direct.headers.get(name), "{case:?} {name}");
            }
            assert_eq!(got.header("x-toolcrib-mode"), "bridge");
        }
    }
}

#[tokio::test]
async fn an_error_of_a_hidden_round_is_forwarded_unchanged_or_as_an_event() {
    for case in cases() {
        for status in [400, 401, 429, 500, 529] {
            let setup =
                TestSetup::new(after_search(CannedResponse::error(case.dialect(), status))).await;
            let got = setup.ask(case, &case.ask(GOAL, &tools(60))).await;
            assert_eq!(setup.provider.requests().len(), 2, "{case:?}");
            let view = case.read(&got.body);
            let error = view.error.expect("an error");
            let own = case.dialect().error(status, "")["error"]["type"].clone();
            let message = error["message"].as_str().unwrap();
            assert!(message.ends_with('.') || message == "Overloaded", "{case:?}: {error}");
            assert_eq!(view.calls, []);
            if case.stream {
                assert_eq!((got.status, got.cut), (200, false), "{case:?}");
                assert!(!view.ended, "{case:?}: an error does not complete the response");
            } else {
                assert_eq!((got.status, &error["type"]), (status, &own), "{case:?}");
                let after = if matches!(status, 429 | 529) { "7" } else { "" };
                assert_eq!(got.header("retry-after"), after, "{case:?}");
                assert_eq!(got.header("x-request-id"), format!("req_error_{status}"));
            }
        }
    }
}

#[tokio::test]
async fn a_hidden_round_that_is_cut_off_is_an_api_error() {
    for case in cases() {
        let broken = CannedResponse::json(200, &json!({})).then(BodyPart::Cut);
        let setup = TestSetup::new(after_search(broken)).await;
        let got = setup.ask(case, &case.ask(GOAL, &tools(60))).await;
        let view = case.read(&got.body);
        assert!(view.error.is_some() && !view.ended, "{case:?}: {}", got.text());
        assert_eq!(got.status, if case.stream { 200 } else { 502 }, "{case:?}");
    }
}

#[tokio::test]
async fn the_proxy_waits_for_an_upstream_that_stalls_before_the_headers() {
    for case in cases() {
        for hidden in [false, true] {
            let stall = CannedResponse::Faulty(StreamFault::StallFirst);
            let queue = if hidden { vec![CannedResponse::Scripted, stall] } else { vec![stall] };
            let setup = TestSetup::new(Options::responses(queue)).await;
            let body = case.ask(GOAL, &tools(60));
            let release = async {
                setup.wait_for_requests(if hidden { 2 } else { 1 }).await;
                setup.provider.release();
            };
            let (view, ()) = tokio::join!(setup.ask_and_read(case, &body), release);
            assert_eq!(view.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
        }
    }
}

#[tokio::test]
async fn bytes_before_a_stall_are_forwarded_at_once() {
    for case in streams() {
        let mut options = long_text();
        options.responses = vec![CannedResponse::Faulty(StreamFault::StallAfter(6))];
        let setup = TestSetup::new(options).await;
        let mut answer = begin(setup.post(case, &case.ask("Hi", &tools(60)))).await;
        let first = until(&mut answer, "Nine lett").await;
        assert!(!case.read(first.as_bytes()).ended);
        setup.provider.release();
        let (rest, _) = rest(answer).await;
        let view = case.read(&[first.as_bytes(), &rest].concat());
        assert!(view.ended && view.text.ends_with("reads them all."), "{case:?}: {view:?}");
    }
}

/// The test pauses the clock instead of waiting for the keep-alives. While every task waits, a paused clock jumps to
/// the next timer.
#[tokio::test]
async fn a_client_that_waits_long_gets_keep_alives() {
    // Google's own clients treat any line as data, so they get no keep-alives.
    for case in streams().filter(|case| case.api != Api::Gemini) {
        for (queue, rounds) in [
            (vec![CannedResponse::Faulty(StreamFault::StallAfter(2))], 1),
            (vec![CannedResponse::Scripted, CannedResponse::Faulty(StreamFault::StallFirst)], 2),
        ] {
            let mut options = Options::responses(queue);
            options.script = Script::steps([Step::new([Action::call(
                "crm__find_customer",
                json!({"q": "Ada"}),
            )])
            .preamble("I look.")]);
            let setup = TestSetup::new(options).await;
            let mut answer = begin(setup.post(case, &case.ask("Hi", &tools(60)))).await;
            let mut all = more(&mut answer).await.to_vec();
            setup.wait_for_requests(rounds).await;
            let sign = if case.api == Api::Messages { "event: ping" } else { ": " };
            let is_there = |all: &[u8]| {
                let text = String::from_utf8_lossy(all).into_owned();
                text.lines().filter(|line| *line == sign || *line == sign.trim_end()).count() > 1
            };
            tokio::time::pause();
            while !is_there(&all) {
                // The paused clock jumps to the timer of the keep-alive, because the timeout of the test is longer.
                all.extend(more(&mut answer).await);
            }
            tokio::time::resume();
            setup.provider.release();
            let (rest, cut) = rest(answer).await;
            all.extend(rest);
            let view = case.read(&all);
            assert!(!cut && view.ended, "{case:?} {rounds}");
            assert_eq!(view.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_off_is_cut_off_for_the_client() {
    for case in streams() {
        let source = TestSetup::new(long_text()).await;
        let (whole, _) = send_directly_and_through_proxy(&source, case).await;
        let events: Vec<String> = whole.text().split_inclusive("\n\n").map(str::to_owned).collect();
        for half in ["", &events[6][..events[6].len() / 2]] {
            let received = events[..6].concat() + half;
            // The upstream cuts the connection only after the client has read the events. Bytes in flight may be lost
            // when a connection is cut, with or without the proxy.
            let cut =
                CannedResponse::sse([received.clone()]).then(BodyPart::Stall).then(BodyPart::Cut);
            let setup = TestSetup::new(Options::responses([cut])).await;
            let mut answer = begin(setup.post(case, &case.ask("Hi", &tools(60)))).await;
            let first = until(&mut answer, "Nine lett").await;
            setup.provider.release();
            let (last, cut) = rest(answer).await;
            let all = [first.as_bytes(), &last].concat();
            assert!(cut && !case.read(&all).ended, "{case:?}");
            let all = String::from_utf8(all).unwrap();
            assert_eq!(complete_events(&all), complete_events(&received), "{case:?}");
        }
    }
}

#[tokio::test]
async fn a_truncated_stream_is_not_completed_by_the_proxy() {
    for case in streams() {
        for fault in [StreamFault::EndAfter(5), StreamFault::EndInside(5), StreamFault::EndAfter(0)]
        {
            let mut options = long_text();
            options.responses = vec![CannedResponse::Faulty(fault), CannedResponse::Faulty(fault)];
            let setup = TestSetup::new(options).await;
            let (direct, got) = send_directly_and_through_proxy(&setup, case).await;
            assert_eq!(complete_events(&got.text()), complete_events(&direct.text()), "{case:?}");
            assert!(!case.read(&got.body).ended, "{case:?} {fault:?}: {}", got.text());
        }
    }
}

/// Sends the same request directly to the provider and through the proxy. Returns the direct response and the response
/// through the proxy.
async fn send_directly_and_through_proxy(
    setup: &TestSetup,
    case: ClientCase,
) -> (ReceivedResponse, ReceivedResponse) {
    let body = case.ask("Hi", &tools(60));
    let direct = format!("{}{}", setup.provider.url, case.path());
    let direct = get(setup.client.post(direct).body(body.to_string())).await;
    (direct, setup.ask(case, &body).await)
}

/// Returns the complete events of a stream, without the parts that differ between any two responses of the provider:
/// ids and token counts.
fn complete_events(text: &str) -> Vec<String> {
    let (whole, _) = text.rsplit_once("\n\n").unwrap_or_default();
    let data = whole.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| {
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        let delta = [&event["delta"], &event["choices"][0]["delta"], &event["candidates"][0]];
        format!("{} {delta:?}", event["type"])
    })
    .collect()
}

#[tokio::test]
async fn events_may_arrive_byte_by_byte() {
    for case in streams() {
        let bent = CannedResponse::Faulty(StreamFault::ByteByByte);
        let setup = TestSetup::new(Options::responses([bent.clone(), bent])).await;
        let view = setup.ask_and_read(case, &case.ask(GOAL, &tools(60))).await;
        assert_eq!(view.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
        assert_eq!(setup.provider.requests().len(), 2);
    }
}

#[tokio::test]
async fn calls_in_unusual_formats_are_recognised() {
    for quirk in [
        ChatQuirk::WholeCall,
        ChatQuirk::NoIndex,
        ChatQuirk::SameIndex,
        ChatQuirk::SplitName,
        ChatQuirk::StopWithCalls,
        ChatQuirk::ObjectArguments,
    ] {
        for case in cases().filter(|case| case.api == Api::Chat) {
            let two = Step::new([
                Action::call("crm__find_customer", json!({"q": "Ada"})),
                Action::call("office0__list_invoice", json!({"key": "7"})),
            ]);
            let options = Options {
                quirks: vec![quirk],
                ..Options::steps([two, Step::new([Action::report("Done: ")])])
            };
            let setup = TestSetup::new(options).await;
            let first = case.user("Hi");
            let view = setup
                .ask_and_read(case, &case.body(std::slice::from_ref(&first), &tools(60)))
                .await;
            let ada = ("crm__find_customer", &json!({"q": "Ada"}));
            let called = view.called();
            assert_eq!(called, [ada, ("office0__list_invoice", &json!({"key": "7"}))], "{quirk:?}");
            let results = view.calls.iter().map(|call| case.result(call, "fine"));
            let history: Vec<Value> =
                [first].into_iter().chain(view.entries.clone()).chain(results).collect();
            let view = setup.ask_and_read(case, &case.body(&history, &tools(60))).await;
            assert!(view.text.starts_with("Done: "), "{quirk:?} {case:?}: {view:?}");
        }
    }
}

#[tokio::test]
async fn a_response_with_the_other_kind_of_body_is_forwarded_unchanged() {
    for case in cases() {
        let other = ClientCase { stream: !case.stream, ..case };
        let source = TestSetup::new(long_text()).await;
        let response = source.ask(other, &other.ask("Hi", &tools(60))).await;
        let odd = if case.stream {
            CannedResponse::json(200, &response.json())
        } else {
            CannedResponse::sse([response.body.clone()])
        };
        let setup = TestSetup::new(Options::responses([odd])).await;
        let got = setup.ask(case, &case.ask("Hi", &tools(60))).await;
        assert_eq!(got.status, 200);
        if case.stream {
            assert_eq!(got.json(), response.json(), "{case:?}");
        } else {
            assert_eq!(got.body, response.body, "{case:?}");
        }
        assert_eq!(got.header("content-type"), response.header("content-type"), "{case:?}");
    }
}

#[tokio::test]
async fn an_upstream_that_comes_back_is_used_again() {
    let case = ClientCase { api: Api::Chat, stream: false };
    let setup = TestSetup::new(Options::default()).await;
    let body = case.ask(GOAL, &tools(60));
    setup.ask_and_read(case, &body).await;
    let TestSetup { provider, url, client, proxy } = setup;
    let address = provider.address();
    drop(provider);
    let post = || client.post(format!("{url}{}", case.path())).body(body.to_string());
    assert_eq!(get(post()).await.status, 502);
    let back = async {
        // The port becomes free only once the threads of the old provider have ended, so starting a new one is retried.
        loop {
            let options = Options { listen: address, ..Options::default() };
            match toolcrib_testkit::provider::Provider::start(options) {
                Ok(provider) => return provider,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let provider = tokio::time::timeout(TEST_TIMEOUT, back).await.unwrap();
    let setup = TestSetup { provider, proxy, url, client };
    let view = setup.ask_and_read(case, &body).await;
    assert_eq!(view.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
}
