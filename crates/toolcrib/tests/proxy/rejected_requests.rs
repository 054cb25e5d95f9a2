//! Tests of requests that are rejected because of their head or their size, before anything is sent to a provider.

use std::fmt::Write as _;

use serde_json::json;
use toolcrib_testkit::provider::{Options, Provider};

use crate::http::{self, Response};
use crate::replica::Replica;

const OWN: &str = "Authorization: Bearer sk-own\r\n";
const ANN: &str = "Authorization: Bearer virtual-ann-key\r\n";
const SCOPED: &str = "Authorization: Bearer virtual-scoped-key\r\n";

struct TestProxy {
    provider: Provider,
    replica: Replica,
}

impl TestProxy {
    fn new() -> Self {
        let provider = Provider::start(Options::default()).unwrap();
        let url = &provider.url;
        let caller = |name: &str, more: &str| {
            format!(
                "[[proxy.callers]]\nname = '{name}'\nkey = 'virtual-{name}-key'\n{more}\n\
                 upstream_keys = {{ openai = 'real-key', gemini = 'real-key' }}\n"
            )
        };
        let replica = Replica::start(&format!(
            "[proxy]\nopenai = '{url}'\nanthropic = '{url}'\ngemini = '{url}'\n{}{}",
            caller("ann", ""),
            caller("scoped", "tools = ['github__*']"),
        ));
        Self { provider, replica }
    }

    /// Sends a request. Returns the response, and how many requests reached the provider.
    fn send(&self, target: &str, headers: &str, body: &str) -> (Response, usize) {
        self.provider.clear();
        let got = http::send(&self.replica.url, target, headers.as_bytes(), body).unwrap();
        (got, self.provider.requests().len())
    }
}

#[test]
fn other_spellings_of_toolcribs_own_paths_are_not_forwarded() {
    let proxy = TestProxy::new();
    for path in [
        "//",
        "///",
        "//?a=1",
        "/;",
        "/;a",
        "/;/;b=1/",
        "/%20",
        "/%20;x/",
        "/%C2%A0",
        "/metrics/",
        "//metrics",
        "/Metrics",
        "/healthz/",
        "//toolcrib/stats",
        "/%6dcp",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let (got, sent) = proxy.send(&format!("{method} {path}"), OWN, "");
            assert_eq!((got.status, sent), (404, 0), "{method} {path}: {}", got.body);
        }
    }
    let (got, sent) = proxy.send("GET /v1/files/;a", OWN, "");
    assert_eq!((got.status, sent), (200, 1), "{}", got.body);
}

#[test]
fn a_compressed_body_that_must_be_checked_is_rejected() {
    let proxy = TestProxy::new();
    let target = "POST /v1beta/models/gemini-x:countTokens";
    let body = r#"{"contents":[]}"#;
    for encoding in ["gzip", "identity, br"] {
        for headers in [SCOPED.to_owned(), format!("{OWN}x-toolcrib-tools: github__*\r\n")] {
            let headers = format!("{headers}content-encoding: {encoding}\r\n");
            let (got, sent) = proxy.send(target, &headers, body);
            assert_eq!((got.status, sent), (413, 0), "{headers}: {}", got.body);
        }
    }
    let headers = format!("{SCOPED}content-encoding: identity\r\n");
    let (got, sent) = proxy.send(target, &headers, body);
    assert_eq!((got.status, sent), (200, 1), "{}", got.body);
    assert_eq!(proxy.provider.requests()[0].header("content-encoding"), None);
}

#[test]
fn a_header_with_too_many_patterns_is_rejected() {
    let proxy = TestProxy::new();
    let patterns = |count: usize| {
        let mut all = String::from("*a");
        for at in 1..count {
            write!(all, ",a*b{at}").unwrap();
        }
        format!("{OWN}x-toolcrib-tools: {all}\r\n")
    };
    let long = format!("{OWN}x-toolcrib-tools: {}\r\n", "a".repeat(9_000));
    for headers in [patterns(257), patterns(4_000), long] {
        let (got, sent) = proxy.send("GET /v1/models", &headers, "");
        assert_eq!((got.status, sent), (400, 0), "{}", got.body);
        assert!(got.body.contains("x-toolcrib-tools"), "{}", got.body);
    }
    let (got, sent) = proxy.send("GET /v1/models", &patterns(256), "");
    assert_eq!((got.status, sent), (200, 1), "{}", got.body);
}

#[test]
fn a_body_with_too_many_references_is_rejected() {
    let proxy = TestProxy::new();
    let keys: String = (0..130_000).fold(String::new(), |mut keys, at| {
        write!(keys, r#","k{at:x}":0"#).unwrap();
        keys
    });
    let item = format!(r#"{{"model":"m","input":[{{"role":"user","content":"x"{keys}}}]}}"#);
    let references: Vec<_> = (0..5_000).map(|at| json!({"id": format!("msg_{at}")})).collect();
    let references = json!({"model": "m", "input": references}).to_string();
    for body in [item, references] {
        let (got, sent) = proxy.send("POST /v1/responses", ANN, &body);
        assert_eq!((got.status, sent), (400, 0), "{}", got.body);
        assert!(got.body.contains("at most"), "{}", got.body);
    }
}
