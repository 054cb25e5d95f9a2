//! Tests of what a limited caller cannot do: keep a stream after its key is revoked, send a request that the provider
//! reads differently from the proxy, or use objects that the provider stores for other callers.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::Settings;
use toolcrib_dialect::Api;
use toolcrib_proxy::{Proxy, ProxyConfig, Secret};
use toolcrib_server::access::{Access, AccessControl};
use toolcrib_testkit::provider::{CannedResponse, Options, Provider, StreamFault};

use crate::client_requests::{streams, tools};
use crate::setup::{ReceivedResponse, TestSetup, begin, config, get, rest, serve, until};

const ANN: &[(&str, &str)] = &[("authorization", "Bearer virtual-ann")];
const BOB: &[(&str, &str)] = &[("authorization", "Bearer virtual-bob")];

fn with_callers(provider: &Provider) -> ProxyConfig {
    let keys = json!({"openai": "real-key", "anthropic": "real-key", "gemini": "real-key"});
    let callers = json!([
        {"name": "ann", "key": "virtual-ann", "upstream_keys": keys},
        {"name": "bob", "key": "virtual-bob", "upstream_keys": keys},
        {"name": "cloud", "key": "virtual-cloud", "upstream_keys": keys, "paths": ["/v1/projects/p1/*"]},
        {"name": "scoped", "key": "virtual-scoped", "upstream_keys": keys, "tools": ["crm__*"]}
    ]);
    ProxyConfig { callers: serde_json::from_value(callers).unwrap(), ..config(provider) }
}

async fn stage(access: &AccessControl, options: Options) -> TestSetup {
    let provider = Provider::start(options).unwrap();
    let config = with_callers(&provider);
    let proxy = Proxy::new(config, Settings::default(), access.clone(), Arc::default()).unwrap();
    let proxy = Arc::new(proxy);
    let url = serve(&proxy).await;
    TestSetup { provider, proxy, url, client: toolcrib_tls::client_builder().build().unwrap() }
}

async fn open() -> TestSetup {
    stage(&AccessControl::from(None), Options::default()).await
}

async fn send(
    setup: &TestSetup,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> ReceivedResponse {
    let (method, path) = target.split_once(' ').unwrap();
    let url = format!("{}{path}", setup.url);
    let mut request = setup.client.request(method.parse().unwrap(), url).body(body.to_owned());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    get(request).await
}

fn chat() -> String {
    json!({"model": "any", "messages": [{"role": "user", "content": "Hi."}]}).to_string()
}

#[tokio::test]
async fn streams_end_when_the_listeners_token_is_revoked() {
    for case in streams() {
        // With few tools the proxy forwards the stream unchanged, and with many it writes the stream itself. Both kinds
        // of streams must end.
        let counts: &[usize] = if case.api == Api::Chat { &[3, 60] } else { &[3] };
        for count in counts {
            let access = AccessControl::from(Some(Secret::from("old-token")));
            let stalled = Options::responses([CannedResponse::Faulty(StreamFault::StallAfter(1))]);
            let setup = stage(&access, stalled).await;
            let request = setup.post(case, &case.ask("Hi.", &tools(*count)));
            let request = request.header("authorization", "Bearer sk-own");
            let mut answer = begin(request.header("x-toolcrib-key", "old-token")).await;
            until(&mut answer, "data: ").await;
            access.replace(Access::Bearer(Secret::from("new-token")));
            let (last, _) = rest(answer).await;
            let last = String::from_utf8_lossy(&last);
            assert!(last.contains("error") && last.contains("revoked"), "{case:?} {count}: {last}");
        }
    }
}

#[tokio::test]
async fn a_revoked_token_is_not_forwarded_as_a_credential() {
    let access = AccessControl::from(Some(Secret::from("old-token")));
    let setup = stage(&access, Options::default()).await;
    access.replace(Access::Bearer(Secret::from("new-token")));
    let target = "POST /v1/chat/completions";
    let both = [("x-toolcrib-key", "new-token"), ("authorization", "Bearer old-token")];
    assert_eq!(send(&setup, target, &both, &chat()).await.status, 401);
    access.replace(Access::Open);
    for key in ["old-token", "new-token"] {
        assert_eq!(send(&setup, target, &[("x-api-key", key)], &chat()).await.status, 401, "{key}");
    }
    assert_eq!(setup.provider.requests().len(), 0);
    // A token that is valid again is accepted, and so is a revoked token that is also the key of a caller.
    access.replace(Access::Bearer(Secret::from("virtual-ann")));
    access.replace(Access::Bearer(Secret::from("old-token")));
    let own = [("x-toolcrib-key", "old-token"), ("authorization", "Bearer sk-own")];
    for headers in [&own[..], ANN] {
        assert_eq!(send(&setup, target, headers, &chat()).await.status, 200, "{headers:?}");
    }
}

#[tokio::test]
async fn the_body_is_declared_as_json_for_the_provider() {
    let setup = open().await;
    for kind in [
        "application/json; charset=utf-7",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "",
    ] {
        for (target, body) in [
            ("POST /v1/chat/completions", chat()),
            ("POST /v1beta/models/gemini-x:countTokens", r#"{"contents":[]}"#.to_owned()),
        ] {
            for key in ["Bearer virtual-ann", "Bearer virtual-scoped"] {
                setup.provider.clear();
                let mut headers = vec![("authorization", key), ("content-type", kind)];
                headers.truncate(if kind.is_empty() { 1 } else { 2 });
                send(&setup, target, &headers, &body).await;
                let requests = setup.provider.requests();
                let sent: Vec<&str> = requests[0]
                    .headers
                    .iter()
                    .filter_map(|(name, value)| (name == "content-type").then_some(value.as_str()))
                    .collect();
                assert_eq!(sent, ["application/json"], "{target} {kind}");
            }
        }
    }
}

#[tokio::test]
async fn stored_items_and_containers_can_be_used_only_by_their_owner() {
    let setup = open().await;
    let respond = async |headers: &[(&str, &str)], body: &Value| {
        send(&setup, "POST /v1/responses", headers, &body.to_string()).await
    };
    let output = json!({"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5", "output": [
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_1", "code": "1", "status": "completed"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []},
    ]});
    setup.provider.queue_response(CannedResponse::json(200, &output));
    let body = json!({"model": "gpt-5", "input": "Hi."});
    assert_eq!(respond(ANN, &body).await.status, 200);
    for more in [
        json!({"input": [{"type": "image_generation_call", "id": "ig_1"}]}),
        json!({"input": [{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "x"}]}]}),
        json!({"input": [{"type": "message", "id": "msg_1", "role": "assistant"}]}),
        json!({"input": [{"id": "msg_1", "role": null, "content": "x"}]}),
        json!({"tools": [{"type": "code_interpreter", "container": "cntr_1"}]}),
        json!({"tools": [{"type": "shell", "environment": {"type": "container_reference", "container_id": "cntr_1"}}]}),
    ] {
        let mut body = body.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        setup.provider.clear();
        let got = respond(BOB, &body).await;
        assert_eq!((got.status, setup.provider.requests().len()), (403, 0), "{more}");
        respond(ANN, &body).await;
        assert_eq!(setup.provider.requests().len(), 1, "{more}");
    }
}

#[tokio::test]
async fn a_wrong_key_is_rejected_even_with_a_right_one() {
    for access in [AccessControl::from(None), AccessControl::from(Some(Secret::from("door")))] {
        let setup = stage(&access, Options::default()).await;
        let wrong = [("x-toolcrib-key", "wrong"), ANN[0]];
        assert_eq!(send(&setup, "POST /v1/chat/completions", &wrong, &chat()).await.status, 401);
        assert_eq!(setup.provider.requests().len(), 0);
    }
}

#[tokio::test]
async fn only_allowed_headers_of_a_limited_caller_are_forwarded() {
    let setup = open().await;
    let kept = [
        ("accept", "application/json"),
        ("accept-language", "de"),
        ("user-agent", "agent/1"),
        ("anthropic-version", "2023-06-01"),
        ("x-stainless-lang", "python"),
        ("openai-beta", "responses=v1"),
        ("idempotency-key", "i-1"),
        ("traceparent", "00-1"),
    ];
    let dropped = [
        ("x-http-method-override", "DELETE"),
        ("x-forwarded-uri", "/v1/files"),
        ("forwarded", "for=1"),
        ("x-goog-user-project", "other"),
        ("openai-organization", "other"),
        ("x-ms-original-url", "/v1/files"),
        ("cookie", "a=1"),
    ];
    let headers: Vec<_> = ANN.iter().chain(&kept).chain(&dropped).copied().collect();
    for target in ["POST /v1/chat/completions", "GET /v1/models"] {
        setup.provider.clear();
        send(&setup, target, &headers, &chat()).await;
        let sent = &setup.provider.requests()[0];
        for (name, value) in kept {
            assert_eq!(sent.header(name), Some(value), "{target} {name}");
        }
        for (name, _) in dropped {
            assert_eq!(sent.header(name), None, "{target} {name}");
        }
    }
    // A client that sends its own credential may also choose the organisation and project of its account.
    setup.provider.clear();
    let own = [
        ("authorization", "Bearer sk-own"),
        ("openai-organization", "org-own"),
        ("x-toolcrib-tools", "crm__*"),
        ("x-original-url", "/v1/files"),
    ];
    send(&setup, "POST /v1/chat/completions", &own, &chat()).await;
    let sent = &setup.provider.requests()[0];
    assert_eq!(sent.header("authorization"), Some("Bearer sk-own"));
    assert_eq!(sent.header("openai-organization"), Some("org-own"));
    assert_eq!(sent.header("x-original-url"), None);
}

#[tokio::test]
async fn a_caller_with_a_key_can_choose_neither_another_method_nor_a_project() {
    let setup = open().await;
    let project = |name: &str| {
        format!("POST /v1/projects/{name}/locations/l/publishers/google/models/g:generateContent")
    };
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}).to_string();
    let cloud = &[("authorization", "Bearer virtual-cloud")];
    for (target, headers, status) in [
        ("GET /v1/models?x=1;_method=DELETE".to_owned(), ANN, 400),
        (project("p1"), ANN, 403),
        (project("p2"), cloud, 403),
    ] {
        let got = send(&setup, &target, headers, &body).await;
        assert_eq!(got.status, status, "{target}: {}", got.text());
    }
    assert_eq!(setup.provider.requests().len(), 0);
    send(&setup, &project("p1"), cloud, &body).await;
    let scoped = [("x-goog-api-key", "AIza-own"), ("x-toolcrib-tools", "crm__*")];
    send(&setup, &project("p3"), &scoped, &body).await;
    assert_eq!(setup.provider.requests().len(), 2);
}

#[tokio::test]
async fn requests_that_clients_usually_send_are_accepted() {
    let setup = open().await;
    let scoped = ("authorization", "Bearer virtual-scoped");
    for (encoding, status) in
        [("identity", 200), ("", 200), ("Identity, identity", 200), ("identity, gzip", 413)]
    {
        let headers = [scoped, ("content-encoding", encoding)];
        let got = send(&setup, "POST /v1/chat/completions", &headers, &chat()).await;
        assert_eq!(got.status, status, "{encoding}: {}", got.text());
    }
    for (path, status) in [
        ("/v1/models/meta-llama/llama-3", 200),
        ("/v1/models/a/b/c", 200),
        ("/v1/models/a/b/c/d", 403),
        ("/v1/models/a/b:verb", 403),
        ("/v1beta/models/a/operations", 403),
    ] {
        let got = send(&setup, &format!("GET {path}"), ANN, "").await;
        assert_eq!(got.status == 403, status == 403, "{path}: {} {}", got.status, got.text());
    }
    let google = [("x-goog-api-key", "virtual-ann")];
    assert_eq!(send(&setup, "GET /v1/models/a/operations", &google, "").await.status, 403);
}
