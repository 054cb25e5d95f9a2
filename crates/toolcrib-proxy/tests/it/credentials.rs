//! Tests that a client's credential is sent to its upstream and nowhere else.

use std::cell::RefCell;
use std::io;

use axum::http::HeaderMap;
use serde_json::json;
use toolcrib_proxy::{ProxyConfig, Secret};
use toolcrib_testkit::provider::{BodyPart, CannedResponse, Options, Provider, ReceivedRequest};

use crate::client_requests::{ClientCase, GOAL, cases, tools};
use crate::setup::{ReceivedResponse, TestSetup, config, get};

/// Request headers, each with a different credential.
const CREDENTIAL_HEADERS: [(&str, &str); 5] = [
    ("authorization", "Bearer canary-bearer"),
    ("x-api-key", "canary-anthropic"),
    ("x-goog-api-key", "canary-google"),
    ("cookie", "session=canary-cookie"),
    ("api-key", "canary-azure"),
];

type Headers<'a> = &'a [(&'a str, &'a str)];

/// The credentials in [`CREDENTIAL_HEADERS`], and the one that `ask` puts into the query.
const CANARIES: [&str; 6] = [
    "canary-bearer",
    "canary-anthropic",
    "canary-google",
    "canary-cookie",
    "canary-azure",
    "canary-query",
];

fn credential_headers() -> HeaderMap {
    CREDENTIAL_HEADERS
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect()
}

/// Sends a request with all of [`CANARIES`] and with additional headers.
async fn ask(
    setup: &TestSetup,
    case: ClientCase,
    model: &str,
    more: &[(&str, &str)],
) -> ReceivedResponse {
    let mut body = case.ask(GOAL, &tools(60));
    if body["model"].is_string() {
        body["model"] = model.into();
    }
    let path = case.path_of(model);
    let sign = if path.contains('?') { '&' } else { '?' };
    let url = format!("{}{path}{sign}prettyPrint=1&key=canary-query&$prettyPrint=2", setup.url);
    let mut headers = credential_headers();
    for (name, value) in more {
        let name: axum::http::HeaderName = name.parse().unwrap();
        headers.insert(name, value.parse().unwrap());
    }
    let request = setup.client.post(url).headers(headers).body(body.to_string());
    get(request.header("x-toolcrib-tools", "*")).await
}

/// Returns which of these words the upstream received, in a header or in the target.
fn received_words<'a>(request: &ReceivedRequest, words: &[&'a str]) -> Vec<&'a str> {
    let head = format!("{} {:?}", request.path, request.headers);
    words.iter().copied().filter(|word| head.contains(word)).collect()
}

/// Starts a proxy with three kinds of routes: one that sends no credential, one with a key of its own, and one that
/// forwards the client's credential.
async fn routed() -> TestSetup {
    let provider = Provider::start(Options::default()).unwrap();
    let url = &provider.url;
    let routes = json!([
        {"models": ["bare-*"], "url": url},
        {"models": ["keyed-*"], "url": url, "key": "route-key"},
        {"models": ["trusted-*"], "url": url, "client_key": true}
    ]);
    let callers = json!([
        {"name": "ci", "key": "virtual-ci", "upstream_keys": {"openai": "real-key", "anthropic": "real-key", "gemini": "real-key"}},
        {"name": "guest", "key": "virtual-guest"}
    ]);
    let config = ProxyConfig {
        routes: serde_json::from_value(routes).unwrap(),
        callers: serde_json::from_value(callers).unwrap(),
        ..config(&provider)
    };
    TestSetup::start(provider, config, None).await
}

#[tokio::test]
async fn a_credential_is_sent_to_the_clients_own_upstream() {
    let setup = routed().await;
    for case in cases() {
        for model in [case.model(), "trusted-1"] {
            setup.provider.clear();
            assert_eq!(ask(&setup, case, model, &[]).await.status, 200);
            // The credentials are sent in every round, including hidden ones.
            let requests = setup.provider.requests();
            assert_eq!(requests.len(), 2, "{case:?}");
            for request in &requests {
                assert_eq!(received_words(request, &CANARIES), CANARIES, "{case:?} {model}");
                assert_eq!(received_words(request, &["x-toolcrib"]), [""; 0]);
            }
        }
    }
}

#[tokio::test]
async fn a_credential_is_not_sent_to_a_route_without_client_key() {
    let setup = routed().await;
    for case in cases() {
        for (model, key) in [("bare-1", None), ("keyed-1", Some("route-key"))] {
            setup.provider.clear();
            assert_eq!(ask(&setup, case, model, &[]).await.status, 200);
            let (header, before) = case.credential();
            for request in setup.provider.requests() {
                assert_eq!(received_words(&request, &CANARIES), [""; 0], "{case:?} {model}");
                assert!(request.path.ends_with("prettyPrint=1&$prettyPrint=2"), "{}", request.path);
                let expected = key.map(|key| format!("{before}{key}"));
                assert_eq!(request.header(header), expected.as_deref(), "{case:?} {model}");
            }
        }
    }
}

#[tokio::test]
async fn a_toolcrib_key_is_never_forwarded() {
    let setup = routed().await;
    let ours = ["virtual-ci", "virtual-guest", "x-toolcrib"];
    for case in cases() {
        let (name, before) = case.credential();
        let (ci, guest) = (format!("{before}virtual-ci"), format!("{before}virtual-guest"));
        let rows: [(Headers<'_>, Option<String>, bool); 4] = [
            // The key is sent in addition to the provider's credential, which is forwarded.
            (&[("x-toolcrib-key", "virtual-ci")], None, true),
            // The key is sent in place of the provider's credential. The proxy sends the caller's configured credential
            // instead, or none if the caller has none.
            (&[(name, &ci)], Some(format!("{before}real-key")), false),
            (&[(name, &guest)], None, false),
            // The key is sent both in `x-toolcrib-key` and in place of the provider's credential.
            (
                &[("x-toolcrib-key", "virtual-ci"), (name, &ci)],
                Some(format!("{before}real-key")),
                false,
            ),
        ];
        for (headers, sent, own) in rows {
            setup.provider.clear();
            assert_eq!(ask(&setup, case, case.model(), headers).await.status, 200);
            for request in setup.provider.requests() {
                assert_eq!(received_words(&request, &ours), [""; 0], "{case:?} {headers:?}");
                let expected: &[&str] = if own { &CANARIES } else { &[] };
                assert_eq!(received_words(&request, &CANARIES), expected, "{case:?} {headers:?}");
                if !own {
                    assert_eq!(request.header(name), sent.as_deref(), "{case:?} {headers:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_toolcrib_key_is_recognised_in_every_place_for_credentials() {
    let setup = routed().await;
    let case = cases().next().unwrap();
    for (name, value) in [
        ("authorization", "Bearer virtual-ci"),
        ("x-api-key", "virtual-ci"),
        ("api-key", "virtual-ci"),
    ] {
        setup.provider.clear();
        assert_eq!(ask(&setup, case, case.model(), &[(name, value)]).await.status, 200);
        let request = &setup.provider.requests()[0];
        assert_eq!(received_words(request, &["virtual-ci"]), [""; 0], "{name}");
        assert_eq!(request.header("authorization"), Some("Bearer real-key"), "{name}");
    }
}

#[tokio::test]
async fn a_proxy_with_a_key_rejects_every_request_without_it() {
    let provider = Provider::start(Options::default()).unwrap();
    let config = config(&provider);
    let setup = TestSetup::start(provider, config, Some(Secret::from("door-key"))).await;
    let case = cases().next().unwrap();
    for headers in
        [&[][..], &[("x-toolcrib-key", "wrong")], &[("authorization", "Bearer door-key")]]
    {
        let got = ask(&setup, case, case.model(), headers).await;
        assert_eq!((got.status, got.header("www-authenticate")), (401, "Bearer"));
        assert!(got.text().contains("x-toolcrib-key"), "{}", got.text());
    }
    for path in ["/toolcrib/stats", "/v1/models", "/"] {
        let got = get(setup.client.get(format!("{}{path}", setup.url))).await;
        assert_eq!(got.status, 401, "{path}");
    }
    assert_eq!(setup.provider.requests().len(), 0);
    let got = ask(&setup, case, case.model(), &[("x-toolcrib-key", "door-key")]).await;
    assert_eq!(got.status, 200);
    assert_eq!(received_words(&setup.provider.requests()[0], &["door-key"]), [""; 0]);
    let stats = setup.client.get(format!("{}/toolcrib/stats", setup.url));
    assert_eq!(get(stats.header("x-toolcrib-key", "door-key")).await.status, 200);
}

thread_local! {
    /// The log of this thread. A test's proxy runs on the test's own thread, so this is the proxy's complete log.
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct LogWriter;

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn capture_log() {
    let level = tracing::Level::TRACE;
    let subscriber = tracing_subscriber::fmt().with_max_level(level).with_writer(|| LogWriter);
    // This fails if another test has already set the subscriber, which does no harm.
    let _ = tracing::subscriber::set_global_default(subscriber.finish());
}

fn logged() -> String {
    LOG.with_borrow(|log| String::from_utf8(log.clone()).unwrap())
}

#[tokio::test]
async fn no_secret_is_in_responses_statistics_or_logs() {
    capture_log();
    let provider = Provider::start(Options::default()).unwrap();
    let unused_address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut config = config(&provider);
    config.routes = serde_json::from_value(json!([
        {"models": ["keyed-*"], "url": provider.url, "key": "canary-route"},
        {"models": ["gone-*"], "url": format!("http://{unused_address}"), "key": "canary-route"},
    ]))
    .unwrap();
    config.callers = serde_json::from_value(json!([
        {"name": "ci", "key": "canary-virtual", "upstream_keys": {"openai": "canary-real", "anthropic": "canary-real", "gemini": "canary-real"}}
    ]))
    .unwrap();
    config.state.redis = Some(Secret::from(format!("redis://:canary-redis@{unused_address}")));
    let setup = TestSetup::start(provider, config, Some(Secret::from("canary-door"))).await;
    let mut texts = vec![format!("{:?}", setup.proxy)];
    for case in cases() {
        let cut = CannedResponse::json(200, &json!({})).then(BodyPart::Cut);
        let faults = [
            CannedResponse::error(case.dialect(), 401),
            cut,
            CannedResponse::Scripted,
            CannedResponse::Scripted,
        ];
        for fault in faults {
            setup.provider.queue_response(fault);
            for model in [case.model(), "keyed-1", "gone-1"] {
                for (name, key) in
                    [("x-toolcrib-key", "canary-door"), ("x-api-key", "canary-virtual")]
                {
                    let got = ask(&setup, case, model, &[(name, key)]).await;
                    texts.push(format!("{:?} {}", got.headers, got.text()));
                }
            }
        }
        texts
            .push(ask(&setup, case, case.model(), &[("x-toolcrib-key", "canary-no")]).await.text());
    }
    let stats = setup.client.get(format!("{}/toolcrib/stats", setup.url));
    texts.push(get(stats.header("x-toolcrib-key", "canary-door")).await.text());
    texts.push(setup.metrics());
    let log = logged();
    for expected in ["answered", "cannot be reached", "response was cut off", "state cannot be"] {
        assert!(log.contains(expected), "{expected}");
    }
    // The log also contains lines of other crates, which must not contain secrets either.
    texts.push(log);
    for text in texts {
        let at = text.find("canary");
        assert!(
            at.is_none(),
            "{}",
            &text[at.unwrap().saturating_sub(300)..][..400.min(text.len())]
        );
    }
}

#[tokio::test]
async fn a_line_break_in_a_name_does_not_break_a_log_line() {
    capture_log();
    let setup = TestSetup::new(Options::default()).await;
    for case in cases().filter(|case| !case.path().contains("/models/")) {
        ask(&setup, case, "gpt-5\n2026-01-01 INFO forged", &[]).await;
    }
    let log = logged();
    assert!(log.contains("forged"));
    assert!(!log.lines().any(|line| line.starts_with("2026-01-01")), "{log}");
}
