//! Upstreams that fail: the client gets what it would have got directly, or the API's own error.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_dialect::Api;
use toolcrib_testkit::provider::{
    Action, BodyPart, CannedResponse, ChatQuirk, Options, Script, Step, StreamFault,
};

use crate::dialects::{Case, GOAL, cases, streams, tools};
use crate::support::{Got, PATIENCE, Stage, begin, get, more, rest, until};

const CANARY: &str = "sk-canary-4711";

/// A first round that searches, and then this.
fn then(answer: CannedResponse) -> Options {
    Options::responses([CannedResponse::Scripted, answer])
}

fn long_text() -> Options {
    let text = "Nine letters each, and so a dozen events of text for whoever reads them all.";
    Options::steps([Step::new([Action::text(text)])])
}

#[tokio::test]
async fn nobody_there_is_told_in_the_shape_of_the_api_and_without_a_secret() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let stage = Stage::with(Options::default(), |config| {
        let url = format!("http://{nobody}");
        (config.openai, config.anthropic, config.gemini) = (url.clone(), url.clone(), url);
    })
    .await;
    for case in cases() {
        for body in [case.ask(GOAL, &tools(60)).to_string(), "{".to_owned()] {
            let sign = if case.path().contains('?') { '&' } else { '?' };
            let url = format!("{}{}{sign}key={CANARY}", stage.url, case.path());
            let request = stage.client.post(url).header("authorization", CANARY).body(body);
            let got = get(request.header("x-api-key", CANARY)).await;
            assert!(got.status == 502 && case.is_error(&got.json(), 502), "{}", got.text());
            assert!(!got.text().contains(CANARY), "{}", got.text());
            assert!(got.text().contains("cannot be reached"), "{}", got.text());
        }
    }
    let models = stage.client.get(format!("{}/v1/models?key={CANARY}", stage.url));
    let got = get(models).await;
    assert!(got.status == 502 && !got.text().contains(CANARY), "{}", got.text());
}

#[tokio::test]
async fn an_error_of_the_first_round_comes_as_it_came() {
    for case in cases() {
        for status in [400, 401, 429, 500, 529] {
            let error = CannedResponse::error(case.dialect(), status);
            let stage = Stage::new(Options::responses([error.clone(), error])).await;
            let body = case.ask(GOAL, &tools(60));
            let direct = format!("{}{}", stage.provider.url, case.path());
            let direct = get(stage.client.post(direct).body(body.to_string())).await;
            let got = stage.ask(case, &body).await;
            assert_eq!((got.status, &got.body), (status, &direct.body), "{case:?}");
            for name in ["retry-after", "x-request-id", "content-type"] {
                assert_eq!(got.headers.get(name), direct.headers.get(name), "{case:?} {name}");
            }
            assert_eq!(got.header("x-toolcrib-mode"), "bridge");
        }
    }
}

#[tokio::test]
async fn an_error_of_a_hidden_round_comes_as_it_came_or_as_an_event() {
    for case in cases() {
        for status in [400, 401, 429, 500, 529] {
            let stage = Stage::new(then(CannedResponse::error(case.dialect(), status))).await;
            let got = stage.ask(case, &case.ask(GOAL, &tools(60))).await;
            assert_eq!(stage.provider.requests().len(), 2, "{case:?}");
            let seen = case.read(&got.body);
            let error = seen.error.expect("an error");
            let own = case.dialect().error(status, "")["error"]["type"].clone();
            let message = error["message"].as_str().unwrap();
            assert!(message.ends_with('.') || message == "Overloaded", "{case:?}: {error}");
            assert_eq!(seen.calls, []);
            if case.stream {
                assert_eq!((got.status, got.cut), (200, false), "{case:?}");
                assert!(!seen.ended, "{case:?}: an error is no end");
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
async fn a_hidden_round_that_breaks_off_is_an_error_of_the_api() {
    for case in cases() {
        let broken = CannedResponse::json(200, &json!({})).then(BodyPart::Cut);
        let stage = Stage::new(then(broken)).await;
        let got = stage.ask(case, &case.ask(GOAL, &tools(60))).await;
        let seen = case.read(&got.body);
        assert!(seen.error.is_some() && !seen.ended, "{case:?}: {}", got.text());
        assert_eq!(got.status, if case.stream { 200 } else { 502 }, "{case:?}");
    }
}

#[tokio::test]
async fn a_stall_before_the_headers_is_waited_for() {
    for case in cases() {
        for hidden in [false, true] {
            let stall = CannedResponse::Faulty(StreamFault::StallFirst);
            let queue = if hidden { vec![CannedResponse::Scripted, stall] } else { vec![stall] };
            let stage = Stage::new(Options::responses(queue)).await;
            let body = case.ask(GOAL, &tools(60));
            let release = async {
                stage.reached(if hidden { 2 } else { 1 }).await;
                stage.provider.release();
            };
            let (seen, ()) = tokio::join!(stage.see(case, &body), release);
            assert_eq!(seen.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
        }
    }
}

#[tokio::test]
async fn a_stall_in_the_midst_keeps_back_nothing_that_came() {
    for case in streams() {
        let mut options = long_text();
        options.responses = vec![CannedResponse::Faulty(StreamFault::StallAfter(6))];
        let stage = Stage::new(options).await;
        let mut answer = begin(stage.post(case, &case.ask("Hi", &tools(60)))).await;
        let first = until(&mut answer, "Nine lett").await;
        assert!(!case.read(first.as_bytes()).ended);
        stage.provider.release();
        let (rest, _) = rest(answer).await;
        let seen = case.read(&[first.as_bytes(), &rest].concat());
        assert!(seen.ended && seen.text.ends_with("reads them all."), "{case:?}: {seen:?}");
    }
}

/// The clock stands still until nothing else is left to do: then it jumps to the next thing that waits.
#[tokio::test]
async fn a_client_that_waits_long_is_shown_that_somebody_is_there() {
    // Google's own clients take any line for data: theirs wait in silence.
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
            let stage = Stage::new(options).await;
            let mut answer = begin(stage.post(case, &case.ask("Hi", &tools(60)))).await;
            let mut all = more(&mut answer).await.to_vec();
            stage.reached(rounds).await;
            let sign = if case.api == Api::Messages { "event: ping" } else { ": " };
            let is_there = |all: &[u8]| {
                let text = String::from_utf8_lossy(all).into_owned();
                text.lines().filter(|line| *line == sign || *line == sign.trim_end()).count() > 1
            };
            tokio::time::pause();
            while !is_there(&all) {
                // On this clock, patience is longer than a client waits for a sign.
                all.extend(more(&mut answer).await);
            }
            tokio::time::resume();
            stage.provider.release();
            let (rest, cut) = rest(answer).await;
            all.extend(rest);
            let seen = case.read(&all);
            assert!(!cut && seen.ended, "{case:?} {rounds}");
            assert_eq!(seen.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_is_cut_for_the_client() {
    for case in streams() {
        let source = Stage::new(long_text()).await;
        let (whole, _) = both(&source, case).await;
        let events: Vec<String> = whole.text().split_inclusive("\n\n").map(str::to_owned).collect();
        for half in ["", &events[6][..events[6].len() / 2]] {
            let came = events[..6].concat() + half;
            // The cut waits until the client has read: what is on its way when a connection goes may be
            // lost, with us and without.
            let cut = CannedResponse::sse([came.clone()]).then(BodyPart::Stall).then(BodyPart::Cut);
            let stage = Stage::new(Options::responses([cut])).await;
            let mut answer = begin(stage.post(case, &case.ask("Hi", &tools(60)))).await;
            let first = until(&mut answer, "Nine lett").await;
            stage.provider.release();
            let (last, cut) = rest(answer).await;
            let all = [first.as_bytes(), &last].concat();
            assert!(cut && !case.read(&all).ended, "{case:?}");
            let all = String::from_utf8(all).unwrap();
            assert_eq!(whole_events(&all), whole_events(&came), "{case:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_too_soon_is_not_ended_for_it() {
    for case in streams() {
        for fault in [StreamFault::EndAfter(5), StreamFault::EndInside(5), StreamFault::EndAfter(0)]
        {
            let mut options = long_text();
            options.responses = vec![CannedResponse::Faulty(fault), CannedResponse::Faulty(fault)];
            let stage = Stage::new(options).await;
            let (direct, got) = both(&stage, case).await;
            assert_eq!(whole_events(&got.text()), whole_events(&direct.text()), "{case:?}");
            assert!(!case.read(&got.body).ended, "{case:?} {fault:?}: {}", got.text());
        }
    }
}

/// The same request, straight to the provider and through the proxy.
async fn both(stage: &Stage, case: Case) -> (Got, Got) {
    let body = case.ask("Hi", &tools(60));
    let direct = format!("{}{}", stage.provider.url, case.path());
    let direct = get(stage.client.post(direct).body(body.to_string())).await;
    (direct, stage.ask(case, &body).await)
}

/// Texts of the whole events. What differs between any two answers of the provider is left out: ids, and
/// what is counted of a request.
fn whole_events(text: &str) -> Vec<String> {
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
async fn events_may_come_byte_by_byte() {
    for case in streams() {
        let bent = CannedResponse::Faulty(StreamFault::ByteByByte);
        let stage = Stage::new(Options::responses([bent.clone(), bent])).await;
        let seen = stage.see(case, &case.ask(GOAL, &tools(60))).await;
        assert_eq!(seen.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
        assert_eq!(stage.provider.requests().len(), 2);
    }
}

#[tokio::test]
async fn calls_in_odd_shapes_are_calls() {
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
            let stage = Stage::new(options).await;
            let first = case.user("Hi");
            let seen = stage.see(case, &case.body(std::slice::from_ref(&first), &tools(60))).await;
            let ada = ("crm__find_customer", &json!({"q": "Ada"}));
            let called = seen.called();
            assert_eq!(called, [ada, ("office0__list_invoice", &json!({"key": "7"}))], "{quirk:?}");
            let results = seen.calls.iter().map(|call| case.result(call, "fine"));
            let history: Vec<Value> =
                [first].into_iter().chain(seen.entries.clone()).chain(results).collect();
            let seen = stage.see(case, &case.body(&history, &tools(60))).await;
            assert!(seen.text.starts_with("Done: "), "{quirk:?} {case:?}: {seen:?}");
        }
    }
}

#[tokio::test]
async fn a_whole_answer_to_a_streaming_request_comes_as_it_came_and_the_other_way_round() {
    for case in cases() {
        let other = Case { stream: !case.stream, ..case };
        let source = Stage::new(long_text()).await;
        let said = source.ask(other, &other.ask("Hi", &tools(60))).await;
        let odd = if case.stream {
            CannedResponse::json(200, &said.json())
        } else {
            CannedResponse::sse([said.body.clone()])
        };
        let stage = Stage::new(Options::responses([odd])).await;
        let got = stage.ask(case, &case.ask("Hi", &tools(60))).await;
        assert_eq!(got.status, 200);
        if case.stream {
            assert_eq!(got.json(), said.json(), "{case:?}");
        } else {
            assert_eq!(got.body, said.body, "{case:?}");
        }
        assert_eq!(got.header("content-type"), said.header("content-type"), "{case:?}");
    }
}

#[tokio::test]
async fn an_upstream_that_comes_back_is_asked_again() {
    let case = Case { api: Api::Chat, stream: false };
    let stage = Stage::new(Options::default()).await;
    let body = case.ask(GOAL, &tools(60));
    stage.see(case, &body).await;
    let Stage { provider, url, client, proxy } = stage;
    let address = provider.address();
    drop(provider);
    let post = || client.post(format!("{url}{}", case.path())).body(body.to_string());
    assert_eq!(get(post()).await.status, 502);
    let back = async {
        // The port is free once the old provider's threads have let it go.
        loop {
            let options = Options { listen: address, ..Options::default() };
            match toolcrib_testkit::provider::Provider::start(options) {
                Ok(provider) => return provider,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let provider = tokio::time::timeout(PATIENCE, back).await.unwrap();
    let stage = Stage { provider, proxy, url, client };
    let seen = stage.see(case, &body).await;
    assert_eq!(seen.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
}
