//! What is reported about a request: in headers and trailers, in the statistics, and in the metrics.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolcrib_dialect::Api;
use toolcrib_testkit::provider::Options;

use crate::client_requests::{ClientCase, GOAL, cases, streams, tools};
use crate::setup::{ReceivedResponse, TestSetup};

/// Headers or trailers whose values are known only at the end of a turn.
const SUMMARY_HEADERS: [&str; 4] = [
    "x-toolcrib-rounds",
    "x-toolcrib-searches",
    "x-toolcrib-last-input-tokens",
    "x-toolcrib-last-output-tokens",
];

#[tokio::test]
async fn a_deferred_request_reports_its_mode_and_tokens() {
    for case in cases() {
        let setup = TestSetup::new(Options::default()).await;
        let got = setup.ask(case, &case.ask(GOAL, &tools(60))).await;
        assert_eq!(got.header("x-toolcrib-mode"), "bridge", "{case:?}");
        assert!(!got.header("x-toolcrib-why").is_empty());
        assert_eq!((got.number("x-toolcrib-tools"), got.number("x-toolcrib-deferred")), (60, 60));
        let (before, after) =
            (got.number("x-toolcrib-tokens-before"), got.number("x-toolcrib-tokens-after"));
        assert!(before > 4 * after && after > 0, "{case:?}: {before} {after}");
        if case.stream {
            assert!(
                SUMMARY_HEADERS.iter().all(|name| got.header("trailer").contains(name)),
                "{case:?}"
            );
            continue;
        }
        let last = setup.provider.requests()[1].body.len().div_ceil(4);
        assert_eq!(got.header("x-toolcrib-rounds"), "2", "{case:?}");
        assert_eq!(got.header("x-toolcrib-searches"), "1", "{case:?}");
        assert_eq!(got.number("x-toolcrib-last-input-tokens"), last as u64, "{case:?}");
        assert!(got.number("x-toolcrib-last-output-tokens") > 0);
    }
}

#[tokio::test]
async fn a_request_that_passes_through_reports_that() {
    for case in cases() {
        let setup = TestSetup::new(Options::default()).await;
        let few = setup.ask(case, &case.ask("Hi", &tools(3))).await;
        assert_eq!(few.header("x-toolcrib-mode"), "pass-through", "{case:?}");
        assert_eq!((few.number("x-toolcrib-tools"), few.number("x-toolcrib-deferred")), (3, 0));
        assert_eq!(few.header("x-toolcrib-tokens-before"), few.header("x-toolcrib-tokens-after"));
        let none = setup.ask(case, &case.ask("Hi", &[])).await;
        assert_eq!(none.header("x-toolcrib-mode"), "bypass");
        assert_eq!(none.headers.get("x-toolcrib-tools"), None);
    }
}

/// Sends a request over its own socket, and returns all bytes of the response.
async fn raw(setup: &TestSetup, case: ClientCase, more: &str) -> String {
    let host = setup.url.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(host).await.unwrap();
    let mut body = case.ask(GOAL, &tools(60));
    if case.api == Api::Chat {
        body["stream_options"] = json!({"include_usage": true});
    }
    let body = body.to_string();
    let (path, length) = (case.path(), body.len());
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\n{more}\r\n\r\n"
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_stream_reports_its_summary_in_trailers() {
    for case in streams() {
        let setup = TestSetup::new(Options::default()).await;
        let answer = raw(&setup, case, "te: trailers\r\nconnection: te, close").await;
        let (_, trailers) = answer.rsplit_once("\r\n0\r\n").unwrap();
        let last = setup.provider.requests()[1].body.len().div_ceil(4);
        for line in [
            "x-toolcrib-rounds: 2".to_owned(),
            "x-toolcrib-searches: 1".to_owned(),
            format!("x-toolcrib-last-input-tokens: {last}"),
        ] {
            assert!(trailers.lines().any(|said| said == line), "{case:?} {line}: {trailers:?}");
        }
        let answer = raw(&setup, case, "connection: close").await;
        assert!(answer.ends_with("\r\n0\r\n\r\n"), "{case:?}: trailers are sent only on request");
    }
}

#[tokio::test]
async fn the_statistics_add_up_all_requests() {
    for case in cases() {
        let setup = TestSetup::new(Options::default()).await;
        let mut responses: Vec<ReceivedResponse> = Vec::new();
        for agent in ["one/1.0", "two/2.0 (linux)", "one/1.1"] {
            for body in [case.ask(GOAL, &tools(60)), case.ask("Hi", &tools(3)), case.ask("Hi", &[])]
            {
                let request = setup.post(case, &body).header("user-agent", agent);
                responses.push(crate::setup::get(request).await);
            }
        }
        let stats = setup.stats().await;
        let rows = stats["rows"].as_array().unwrap();
        let names: Vec<(&str, &str)> = rows
            .iter()
            .map(|row| (row["model"].as_str().unwrap(), row["client"].as_str().unwrap()))
            .collect();
        assert_eq!(names, [(case.model(), "one"), (case.model(), "two")]);
        let sum = |name: &str| rows.iter().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
        let reported = |name: &str| {
            responses
                .iter()
                .filter(|got| got.headers.contains_key(name))
                .map(|got| got.number(name))
                .sum::<u64>()
        };
        // The provider received three requests without tools, which the statistics do not count.
        let rounds = setup.provider.requests().len() as u64 - 3;
        assert_eq!(
            [sum("requests"), sum("deferred"), sum("rounds"), sum("searches")],
            [6, 3, rounds, 3],
            "{case:?}"
        );
        assert_eq!(sum("tokens_before"), reported("x-toolcrib-tokens-before"));
        assert_eq!(sum("tokens_after"), reported("x-toolcrib-tokens-after"));
        assert!(rows.iter().all(|row| row["saved"].as_i64().unwrap() > 0), "{case:?}: {rows:?}");
        check_metrics(&setup, case, &stats);
    }
}

/// Checks that the metrics agree with the statistics.
fn check_metrics(setup: &TestSetup, case: ClientCase, stats: &Value) {
    let text = setup.metrics();
    let api = case.api.name();
    let value = |name: &str, mode: &str| {
        let start = format!("toolcrib_proxy_{name}_total{{api=\"{api}\",mode=\"{mode}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("no line starts with `{start}`: {text}"))
            .parse::<u64>()
            .unwrap()
    };
    let rows = stats["rows"].as_array().unwrap();
    let sum = |name: &str| rows.iter().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(value("requests", "bridge"), 3);
    assert_eq!(value("requests", "pass-through"), 3);
    assert_eq!(value("requests", "bypass"), 3);
    let both = |name| value(name, "bridge") + value(name, "pass-through");
    assert_eq!(both("upstream_rounds"), sum("rounds"));
    assert_eq!(both("searches"), sum("searches"));
    assert_eq!(both("tool_tokens_before"), sum("tokens_before"));
    assert_eq!(both("tool_tokens_after"), sum("tokens_after"));
    assert!(text.contains("toolcrib_proxy_open_requests 0"), "{text}");
}
