//! Requests and responses that pass unchanged. Each request is sent twice, directly to the provider and through the
//! proxy: the provider must receive the same request, and the client the same response.

use axum::body::Body;
use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use futures::StreamExt as _;
use serde_json::json;
use toolcrib_dialect::Api;
use toolcrib_testkit::provider::{
    BodyPart, CannedResponse, ExactResponse, Options, ReceivedRequest, StreamFault,
};

use crate::client_requests::{ClientCase, GOAL, cases, streams, tools};
use crate::setup::{ReceivedResponse, TestSetup, begin, get, more, rest, until};

/// Returns a response with several headers, one of them repeated, and a body with unusual formatting.
fn odd(status: u16) -> CannedResponse {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    CannedResponse::Exact(ExactResponse {
        status,
        headers: vec![
            header("content-type", "application/json; charset=utf-8"),
            header("x-request-id", "req_1"),
            header("set-cookie", "a=1"),
            header("set-cookie", "b=2"),
            header("retry-after", "3"),
        ],
        parts: vec![BodyPart::Bytes(Bytes::from_static(b"{ \"odd\" :\t1.50,\"odd\":2 }\n"))],
    })
}

/// Returns the parts of a request that must be the same directly and through the proxy: method, path, headers and body.
fn comparable_request(request: &ReceivedRequest) -> (String, String, Vec<(String, String)>, Bytes) {
    // `host` differs, and hop-by-hop headers are not forwarded.
    let own = ["host", "connection", "te", "x-hop", "keep-alive"];
    let mut headers: Vec<(String, String)> =
        request.headers.iter().filter(|(name, _)| !own.contains(&name.as_str())).cloned().collect();
    headers.sort();
    (request.method.clone(), request.path.clone(), headers, request.body.clone())
}

fn comparable_response(got: &ReceivedResponse) -> (u16, Vec<(String, String)>, Bytes) {
    let ours = |name: &str| name == "date" || name.starts_with("x-toolcrib-");
    let headers = got.headers.iter().filter(|(name, _)| !ours(name.as_str()));
    let mut headers: Vec<(String, String)> =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().into())).collect();
    headers.sort();
    (got.status, headers, got.body.clone())
}

/// Sends a request directly and through the proxy, and checks that the provider receives the same request and the
/// client the same response. Returns the response that arrived through the proxy.
async fn same(
    setup: &TestSetup,
    method: Method,
    path: &str,
    more: &HeaderMap,
    body: &[u8],
) -> ReceivedResponse {
    setup.provider.clear();
    let send = |url: &str| {
        let request = setup.client.request(method.clone(), format!("{url}{path}"));
        let request = request
            .header("accept-encoding", "gzip, br")
            .header("user-agent", "agent/1.2")
            .header("authorization", "Bearer sk-1")
            .header("x-stainless-lang", "python")
            .header("anthropic-beta", "one-2025-01-01")
            .header("anthropic-beta", "two-2025-01-01")
            .header("cookie", "c=1")
            .header("te", "trailers")
            .header("connection", "x-hop, te")
            .header("x-hop", "1")
            .headers(more.clone());
        let body = body.to_vec();
        get(if body.is_empty() { request } else { request.body(body) })
    };
    let (direct, through) = (send(&setup.provider.url).await, send(&setup.url).await);
    let requests = setup.provider.requests();
    let case = format!("{method} {path} {}", String::from_utf8_lossy(body));
    assert_eq!(requests.len(), 2, "{case}");
    let mut expected = comparable_request(&requests[0]);
    expected.2.retain(|(name, _)| !name.starts_with("x-toolcrib-"));
    assert_eq!(comparable_request(&requests[1]), expected, "{case}");
    assert_eq!(comparable_response(&through), comparable_response(&direct), "{case}");
    through
}

async fn same_post(
    setup: &TestSetup,
    case: ClientCase,
    more: &[(&'static str, &str)],
    body: &[u8],
) -> ReceivedResponse {
    for _ in 0..2 {
        setup.provider.queue_response(odd(422));
    }
    let mut headers: HeaderMap =
        more.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    headers.insert("content-type", "application/json".parse().unwrap());
    let path = case.path();
    let query = if path.contains('?') { "&trace=a%20b" } else { "?beta=true&trace=a%20b" };
    same(setup, Method::POST, &format!("{path}{query}"), &headers, body).await
}

#[tokio::test]
async fn an_invalid_request_passes_and_the_upstream_rejects_it() {
    let setup = TestSetup::new(Options::default()).await;
    for case in cases() {
        for body in [
            &b"{"[..],
            b"",
            b"null",
            b"[]",
            b"\"tools\"",
            b"{\"tools\":",
            b"{\"model\":\"m\",\"tools\":7,\"messages\":7,\"input\":7,\"contents\":7}",
            b"{\"tools\":[{}],\"messages\":[7],\"input\":[7],\"contents\":[7]}",
            b"\xff\xfe not text",
            b"{\"model\":\"m\",\"tools\":[]} and more",
        ] {
            let got = same_post(&setup, case, &[], body).await;
            assert_eq!(got.header("x-toolcrib-mode"), "bypass", "{case:?} {body:?}");
        }
    }
}

#[tokio::test]
async fn requests_that_must_not_change_pass_with_a_reason() {
    let setup = TestSetup::new(Options::default()).await;
    for case in cases() {
        let many = case.ask(GOAL, &tools(60));
        let (none, few) = (case.ask(GOAL, &[]).to_string(), case.ask(GOAL, &tools(3)).to_string());
        let mut several = many.clone();
        match case.api {
            Api::Gemini => several["generationConfig"] = json!({"candidateCount": 2}),
            _ => several["n"] = 2.into(),
        }
        // This upstream does not support namespaces, but with tool search off they must be sent unchanged.
        let mut grouped = many.clone();
        grouped["tools"] = json!([{"type": "namespace", "name": "crm", "tools": many["tools"]}]);
        let grouped = grouped.to_string();
        let off = [("x-toolcrib-mode", "off")];
        let gzip = [("content-encoding", "gzip")];
        let (many, several) = (many.to_string(), several.to_string());
        let mut rows = vec![
            (&none, &[][..], "bypass", "no tools"),
            (&few, &[], "pass-through", ""),
            (&many, &off, "bypass", "tool search is off"),
            (&many, &gzip, "bypass", "the body is compressed"),
        ];
        if matches!(case.api, Api::Chat | Api::Gemini) {
            rows.push((&several, &[], "bypass", "several choices requested"));
        }
        if case.api == Api::Responses {
            rows.push((&grouped, &off, "bypass", "tool search is off"));
        }
        for (body, headers, mode, why) in rows {
            let got = same_post(&setup, case, headers, body.as_bytes()).await;
            let reported = (got.header("x-toolcrib-mode"), got.header("x-toolcrib-why"));
            assert!(reported.0 == mode && reported.1.contains(why), "{case:?}: {reported:?}");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_to_be_read_passes_unchanged() {
    let setup = TestSetup::with(Options::default(), |config| config.request_bytes = 1_000).await;
    for case in cases() {
        let body = case.ask(GOAL, &tools(60)).to_string();
        let got = same_post(&setup, case, &[], body.as_bytes()).await;
        assert_eq!(got.header("x-toolcrib-why"), "the body is too large to be read");
    }
}

#[tokio::test]
async fn an_unknown_mode_is_an_error_that_lists_the_modes() {
    let setup = TestSetup::new(Options::default()).await;
    for case in cases() {
        let request = setup.post(case, &case.ask(GOAL, &tools(60)));
        let got = get(request.header("x-toolcrib-mode", "fast")).await;
        assert!(got.status == 400 && case.is_error(&got.json(), 400), "{}", got.text());
        let message = got.json()["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(
            message,
            "toolcrib: `x-toolcrib-mode: fast` is not one of auto, off, bridge, reveal, terse, append, \
             reference, hosted"
        );
        assert_eq!(setup.provider.requests().len(), 0);
    }
}

#[tokio::test]
async fn other_paths_of_the_apis_pass_through() {
    let setup = TestSetup::new(Options::default()).await;
    let json = HeaderMap::from_iter([(
        "content-type".parse().unwrap(),
        "application/json".parse().unwrap(),
    )]);
    let octets = HeaderMap::from_iter([(
        "content-type".parse().unwrap(),
        "application/octet-stream".parse().unwrap(),
    )]);
    for (method, path, headers, body) in [
        (Method::GET, "/v1/models?limit=2&after=a%2Fb", &HeaderMap::new(), &b""[..]),
        (Method::GET, "/v1/responses/resp_1?include[]=x", &HeaderMap::new(), b""),
        (Method::DELETE, "/v1/files/f_1", &HeaderMap::new(), b""),
        (Method::DELETE, "/v1/files/f_1", &json, b"{\"force\":true}"),
        (Method::POST, "/v1/embeddings", &json, b"{\"input\" : \"x\"}"),
        (Method::POST, "/v1/messages/batches", &json, b"{\"requests\":[{\"tools\":[]}]}"),
        (Method::POST, "/v1beta/models/g:batchEmbedContents?x=1", &json, b"{}"),
        (Method::PUT, "/upload/v1beta/files?upload_id=1", &octets, b"\x00\xff\x00"),
        (Method::PATCH, "/anything/at/all", &octets, b"bytes"),
        (Method::GET, "/v1/chat/completions?limit=1", &HeaderMap::new(), b""),
    ] {
        same(&setup, method, path, headers, body).await;
    }
}

#[tokio::test]
async fn bodies_of_other_paths_stream_in_both_directions() {
    let echo = axum::Router::new().fallback(|request: axum::extract::Request| async move {
        axum::response::Response::new(Body::from_stream(request.into_body().into_data_stream()))
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, echo).await });
    let setup = TestSetup::with(Options::default(), |config| config.openai = url).await;
    let (speak, body) = futures::channel::mpsc::unbounded::<&'static str>();
    speak.unbounded_send("one;").unwrap();
    let body = reqwest::Body::wrap_stream(body.map(Ok::<_, std::io::Error>));
    let request = setup.client.post(format!("{}/v1/audio", setup.url)).body(body);
    let mut answer = begin(request).await;
    assert_eq!(until(&mut answer, "one;").await, "one;");
    speak.unbounded_send("two;").unwrap();
    assert_eq!(until(&mut answer, "two;").await, "two;");
    drop(speak);
    assert_eq!(answer.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn an_unchanged_stream_is_forwarded_as_it_arrives() {
    for case in streams() {
        let setup = TestSetup::new(Options::responses([CannedResponse::Faulty(
            StreamFault::StallAfter(2),
        )]))
        .await;
        let mut answer = begin(setup.post(case, &case.ask("Hi", &[]))).await;
        // The provider sends the rest of the stream only after `release` is called.
        let first = more(&mut answer).await;
        assert!(!case.read(&first).ended);
        setup.provider.release();
        let (last, cut) = rest(answer).await;
        let view = case.read(&[first, last].concat());
        assert!(!cut && view.ended, "{case:?}: {view:?}");
        assert_eq!(view.text, "Hello.");
    }
}
