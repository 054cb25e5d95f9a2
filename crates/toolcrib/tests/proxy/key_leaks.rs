//! Tests of keys that pass through the proxy. None of Toolcrib's own keys reaches a provider, wherever a client puts
//! it. Nothing about a provider's account reaches a caller that does not own the account.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_testkit::provider::{BodyPart, CannedResponse, ExactResponse, Options, Provider};

use crate::http::{self, Response};
use crate::replica::Replica;

/// Maximum time to wait for a reload, which is far longer than a poll of the config file takes.
const PATIENCE: Duration = Duration::from_mins(2);
const ADMIN: &str = "admin-token-0123456789";
const LISTENER: &str = "listener-token-0123456789";
const ANN: &str = "virtual-ann-key";
const BOB: &str = "virtual-bob-key";
/// A path whose bodies the proxy does not read. The test provider answers it like the path without `other`.
const UNREAD: &str = "POST /v1/other/chat/completions";
const REAL: &str = "real-key-0123456789";

fn config(url: &str, http: &str, callers: &[(&str, &str)], more: &str) -> String {
    let caller = |(name, key): &(&str, &str)| {
        format!(
            "[[proxy.callers]]\nname = '{name}'\nkey = '{key}'\n\
             upstream_keys = {{ openai = '{REAL}', anthropic = '{REAL}', gemini = '{REAL}' }}\n"
        )
    };
    let callers: String = callers.iter().map(caller).collect();
    format!(
        "[http]\n{http}\n[proxy]\nopenai = '{url}'\nanthropic = '{url}'\ngemini = '{url}'\npaths = ['/v1/other/*']\n{callers}{more}"
    )
}

fn send(replica: &Replica, target: &str, headers: &str, body: &str) -> Response {
    http::send(&replica.url, target, headers.as_bytes(), body).unwrap()
}

fn chat(model: &str) -> String {
    json!({"model": model, "messages": [{"role": "user", "content": "Hi."}]}).to_string()
}

fn bearer(key: &str) -> String {
    format!("Authorization: Bearer {key}\r\n")
}

/// Sends a secret in every place except those that are meant for keys, and checks that each request is rejected.
/// `identity` contains headers that the client sends in addition.
fn misplace(replica: &Replica, provider: &Provider, identity: &str, secret: &str) {
    provider.clear();
    let mut requests = Vec::new();
    for header in [
        "x-api-key: Bearer SECRET",
        "x-goog-api-key: \"SECRET\"",
        "cookie: a=1; session=SECRET",
        "x-auth-token: SECRET",
        "proxy-authorization: Bearer SECRET",
        "user-agent: agent/1 (SECRET)",
        "x-request-id: SECRET",
    ] {
        let headers = format!("{identity}{}\r\n", header.replace("SECRET", secret));
        requests.push(("/v1/models".to_owned(), headers));
    }
    for header in ["Bearer \"SECRET\"", "Bearer SECRET, x", "Bearer x SECRET", "key=SECRET"] {
        // A request with two `Authorization` headers would be rejected for a different reason.
        if !identity.contains("Authorization") {
            let header = header.replace("SECRET", secret);
            requests
                .push(("/v1/files".to_owned(), format!("{identity}Authorization: {header}\r\n")));
        }
    }
    let encoded = secret.replacen('-', "%2D", 1);
    for target in [
        "/v1/models?key=%20SECRET",
        "/v1/models?key=SECRET%0a",
        "/v1/models?key=ENCODED%0a",
        "/v1/models?key=Bearer+SECRET",
        "/v1/models?api-key=SECRET",
        "/v1/models?apikey=ENCODED",
        "/v1/models?token=SECRET",
        "/v1/models?SECRET",
        "/v1/models?a=1;key=SECRET",
        "/v1/models?a=TWICE",
        "/v1/models/SECRET",
        "/v1/models/ENCODED",
    ] {
        let twice = encoded.replace('%', "%25");
        let target = target.replace("SECRET", secret).replace("ENCODED", &encoded);
        requests.push((target.replace("TWICE", &twice), identity.to_owned()));
    }
    for (path, headers) in requests {
        let got = send(replica, &format!("GET {path}"), &headers, "");
        assert_eq!(got.status, 401, "{path} {headers}: {}", got.body);
        assert!(got.body.contains("x-toolcrib-key"), "{path} {headers}: {}", got.body);
        assert!(!got.body.contains(secret), "{path} {headers}: {}", got.body);
        assert!(provider.requests().is_empty(), "{path} {headers}");
    }
}

#[test]
fn a_callers_key_in_a_wrong_place_is_rejected() {
    let provider = Provider::start(Options::default()).unwrap();
    let admin = format!("admin_token = '{ADMIN}'");
    let both = config(&provider.url, &admin, &[("ann", ANN), ("bob", BOB)], "");
    let replica = Replica::start(&both);
    for secret in [ANN, BOB, ADMIN] {
        for identity in ["", &bearer("sk-own"), &bearer(ANN), &format!("x-toolcrib-key: {ANN}\r\n")]
        {
            misplace(&replica, &provider, identity, secret);
        }
    }
    // A key that was revoked is rejected in the wrong places as well.
    replica.rewrite(&config(&provider.url, &admin, &[("ann", ANN)], ""));
    let end = Instant::now() + PATIENCE;
    while send(&replica, "GET /v1/models", &bearer(BOB), "").status != 401 {
        assert!(Instant::now() < end, "{}", replica.log());
        thread::sleep(Duration::from_millis(20));
    }
    misplace(&replica, &provider, &bearer("sk-own"), BOB);
    // The places that are meant for keys still work.
    for headers in [
        bearer(ANN),
        format!("x-api-key: {ANN}\r\n"),
        format!("x-goog-api-key: {ANN}\r\n"),
        format!("api-key: {ANN}\r\n"),
        format!("x-toolcrib-key: {ANN}\r\n{}", bearer("sk-own")),
    ] {
        assert_eq!(send(&replica, "GET /v1/models", &headers, "").status, 200, "{headers}");
    }
    assert_eq!(send(&replica, &format!("GET /v1/models?key={ANN}"), "", "").status, 200);
}

#[test]
fn the_listeners_token_in_a_wrong_place_is_rejected() {
    let provider = Provider::start(Options::default()).unwrap();
    let token = format!("token = '{LISTENER}'");
    let replica = Replica::start(&config(&provider.url, &token, &[], ""));
    let identity = format!("x-toolcrib-key: {LISTENER}\r\n");
    misplace(&replica, &provider, &identity, LISTENER);
    misplace(&replica, &provider, &format!("{identity}{}", bearer("sk-own")), LISTENER);
    let headers = format!("{identity}{}", bearer("sk-own"));
    assert_eq!(send(&replica, "GET /v1/models", &headers, "").status, 200);
}

#[test]
fn a_route_that_forwards_the_clients_key_never_forwards_a_callers_key() {
    let provider = Provider::start(Options::default()).unwrap();
    let other = Provider::start(Options::default()).unwrap();
    let route = |models: &str, more: &str| {
        let url = &other.url;
        format!(
            "[[proxy.routes]]\nmodels = ['{models}']\nurl = '{url}'\nclient_key = true\n{more}\n"
        )
    };
    let routes = route("plain*", "") + &route("translated*", "speaks = 'chat'");
    let replica = Replica::start(&config(&provider.url, "", &[("ann", ANN)], &routes));
    let messages = |model: &str| {
        let messages = json!([{"role": "user", "content": "Hi."}]);
        json!({"model": model, "max_tokens": 9, "messages": messages}).to_string()
    };
    for (path, body) in [
        ("/v1/chat/completions", chat("plain-1")),
        ("/v1/messages", messages("plain-1")),
        ("/v1/messages", messages("translated-1")),
    ] {
        for (headers, sent) in [
            (bearer(ANN), None),
            (format!("x-toolcrib-key: {ANN}\r\n{}", bearer("sk-own")), Some("Bearer sk-own")),
            (bearer("sk-own"), Some("Bearer sk-own")),
        ] {
            other.clear();
            let got = send(&replica, &format!("POST {path}"), &headers, &body);
            assert_eq!(got.status, 200, "{path}: {}", got.body);
            let request = &other.requests()[0];
            assert!(!format!("{:?}", request.headers).contains(REAL), "{path}");
            assert_eq!(request.header("authorization"), sent, "{path} {headers}");
            assert_eq!(request.header("x-api-key"), None, "{path} {headers}");
        }
    }
}

/// Returns a provider's error response that repeats the credential `key`: in a header, and in a body that is sent in
/// two pieces.
fn echo(status: u16, key: &str) -> CannedResponse {
    let (start, end) = key.split_at(5);
    let body = format!("{{\"error\":{{\"message\":\"Incorrect API key: {start}");
    CannedResponse::Exact(ExactResponse {
        status,
        headers: vec![
            ("content-type".into(), "application/json".into()),
            ("x-echo".into(), format!("Bearer {key}")),
        ],
        parts: vec![
            BodyPart::Bytes(body.into()),
            BodyPart::Bytes(format!("{end} and {key}.\"}}}}").into()),
        ],
    })
}

#[test]
fn a_providers_error_shows_no_credential_except_the_clients_own() {
    let provider = Provider::start(Options::default()).unwrap();
    let url = &provider.url;
    let routes = format!("[[proxy.routes]]\nmodels = ['routed*']\nurl = '{url}'\nkey = '{REAL}'\n");
    let replica = Replica::start(&config(url, "", &[("ann", ANN)], &routes));
    for (target, headers, body) in [
        ("POST /v1/chat/completions", bearer(ANN), chat("any")),
        ("POST /v1/chat/completions", bearer("sk-own"), chat("routed-1")),
        ("POST /v1/responses", bearer(ANN), json!({"model": "any", "input": "Hi."}).to_string()),
        (UNREAD, bearer(ANN), chat("any")),
    ] {
        for status in [401, 500] {
            provider.queue_response(echo(status, REAL));
            let got = send(&replica, target, &headers, &body);
            assert_eq!(got.status, status, "{target}: {}", got.body);
            assert!(got.body.contains("Incorrect API key: *** and ***."), "{target}: {}", got.body);
            assert_eq!(got.header("x-echo"), Some("Bearer ***"), "{target}");
        }
    }
    // A client may see its own credential, so this is not masked.
    let own = "sk-own-0123456789";
    provider.queue_response(echo(401, own));
    let got = send(&replica, UNREAD, &bearer(own), &chat("any"));
    assert!(got.body.contains(&format!("{own} and {own}")), "{}", got.body);
    assert_eq!(got.header("x-echo"), Some(format!("Bearer {own}").as_str()));
}

#[test]
fn account_headers_are_not_forwarded_to_callers() {
    const ABOUT: [&str; 7] = [
        "set-cookie",
        "openai-organization",
        "openai-project",
        "anthropic-organization-id",
        "clear-site-data",
        "alt-svc",
        "strict-transport-security",
    ];
    let provider = Provider::start(Options::default()).unwrap();
    let replica = Replica::start(&config(&provider.url, "", &[("ann", ANN)], ""));
    let answer = || {
        let about = ABOUT.iter().map(|name| ((*name).to_owned(), "value".to_owned()));
        let kept = ["content-type", "x-request-id"].map(|name| (name.into(), "text/x".into()));
        CannedResponse::Exact(ExactResponse {
            status: 200,
            headers: about.chain(kept).collect(),
            parts: vec![BodyPart::Bytes("{}".into())],
        })
    };
    for target in [UNREAD, "POST /v1/chat/completions"] {
        let body = chat("any");
        for (headers, is_own) in [(bearer(ANN), false), (bearer("sk-own"), true)] {
            provider.queue_response(answer());
            let got = send(&replica, target, &headers, &body);
            assert_eq!(got.header("x-request-id"), Some("text/x"), "{target}");
            for name in ABOUT {
                assert_eq!(got.header(name).is_some(), is_own, "{target} {headers} {name}");
            }
        }
    }
}

#[test]
fn a_provider_that_switches_to_another_protocol_is_a_bad_gateway() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && connection.read(&mut byte).unwrap() > 0 {
                head.push(byte[0]);
            }
            let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
            connection.write_all(switch.as_bytes()).unwrap();
        }
    });
    let replica = Replica::start(&config(&url, "", &[("ann", ANN)], ""));
    for headers in [bearer(ANN), bearer("sk-own")] {
        for (target, body) in
            [("GET /v1/models", String::new()), ("POST /v1/chat/completions", chat("any"))]
        {
            let got = send(&replica, target, &headers, &body);
            assert_eq!(got.status, 502, "{target} {headers}: {}", got.body);
        }
    }
}
