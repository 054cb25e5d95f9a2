//! Tools outside a caller's scope do not exist for it, and neither do the records of other callers' conversations.

use serde_json::{Value, json};
use toolcrib_proxy::ProxyConfig;
use toolcrib_testkit::provider::{Action, Options, Provider, Step};

use crate::client_requests::{ClientCase, GOAL, Tool, cases, tools};
use crate::setup::{TestSetup, config, get};

/// Returns `count` tools in the caller's scope, and one outside it.
fn with_secret(count: usize) -> Vec<Tool> {
    let secret = (
        "vault__open_safe".to_owned(),
        "Zebrafish: opens the safe in the cellar.".to_owned(),
        json!({"type": "object", "properties": {"okapi": {"type": "string"}}}),
    );
    let mut all = tools(count);
    all.insert(1, secret);
    all
}

async fn setup_with_scope(options: Options) -> TestSetup {
    let provider = Provider::start(options).unwrap();
    let callers = json!([
        {"name": "ci", "key": "virtual-ci", "hidden": ["vault__*"]},
        {"name": "crm", "key": "virtual-crm", "tools": ["crm__*", "office*"]}
    ]);
    let config =
        ProxyConfig { callers: serde_json::from_value(callers).unwrap(), ..config(&provider) };
    TestSetup::start(provider, config, None).await
}

#[tokio::test]
async fn a_tool_out_of_scope_appears_nowhere() {
    for case in cases() {
        for key in ["virtual-ci", "virtual-crm"] {
            let safe = json!({"okapi": "1"});
            let steps = [
                Step::new([Action::search("open the safe in the cellar, zebra fish")]),
                Step::new([Action::search("vault__open_safe")]),
                Step::new([Action::exact_call("vault__open_safe", safe.clone())]),
                Step::new([Action::exact_call(
                    "tool_call",
                    json!({"name": "vault__open_safe", "arguments": safe}),
                )]),
                Step::new([Action::exact_call(
                    "tool_describe",
                    json!({"names": ["vault__open_safe"]}),
                )]),
                Step::new([Action::call("crm__find_customer", json!({"q": "Ada"}))]),
            ];
            let setup = setup_with_scope(Options::steps(steps)).await;
            let request = setup.post(case, &case.ask("Go on", &with_secret(60)));
            let got = get(request.header("x-toolcrib-key", key)).await;
            let view = case.read(&got.body);
            assert!(!view.calls.iter().any(|call| call.name != "crm__find_customer"), "{view:?}");
            let texts = setup.texts();
            assert!(texts.len() > 3, "{case:?}: {texts:?}");
            for text in texts {
                assert!(!text.contains("Zebrafish") && !text.contains("\"okapi\":{"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn a_tool_out_of_scope_is_removed_even_if_nothing_is_deferred() {
    for case in cases() {
        let setup = setup_with_scope(Options::default()).await;
        for mode in ["off", "auto"] {
            let request = setup.post(case, &case.ask("Hi", &with_secret(3)));
            let request = request.header("x-toolcrib-mode", mode);
            assert_eq!(get(request.header("x-toolcrib-key", "virtual-ci")).await.status, 200);
        }
        let texts = setup.texts();
        assert_eq!(texts.len(), 2);
        assert!(texts.iter().all(|text| text.contains("crm__find_customer")));
        assert!(!texts.iter().any(|text| text.contains("vault__")), "{case:?}: {texts:?}");
    }
}

#[tokio::test]
async fn a_call_of_a_tool_out_of_scope_does_not_reach_the_client_even_if_nothing_is_deferred() {
    for case in cases() {
        let blind = Step::new([Action::exact_call("vault__open_safe", json!({"okapi": "1"}))]);
        let setup = setup_with_scope(Options::steps([blind])).await;
        let request = setup.post(case, &case.ask("Hi", &with_secret(3)));
        let got = get(request.header("x-toolcrib-key", "virtual-ci")).await;
        assert_eq!(case.read(&got.body).calls, [], "{case:?}");
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_rejected_for_a_limited_caller() {
    let setup = setup_with_scope(Options::default()).await;
    for case in cases() {
        for body in [&b"\x1f\x8b"[..], b"{\"tools\":[{\"name\":\"vault__open_safe\"}]"] {
            let url = format!("{}{}", setup.url, case.path());
            let request = setup.client.post(url).header("x-toolcrib-key", "virtual-ci");
            let got = get(request.header("content-encoding", "gzip").body(body)).await;
            assert!(got.status == 413 && case.is_error(&got.json(), 413), "{}", got.text());
        }
    }
    assert_eq!(setup.provider.requests().len(), 0);
}

/// If `again` is `None`, runs one turn with a hidden round, and returns the client's history after the turn. If `again`
/// contains such a history, only sends a request with this history, and returns an empty list.
async fn turn(
    setup: &TestSetup,
    case: ClientCase,
    credential: &str,
    again: Option<&[Value]>,
) -> Vec<Value> {
    let (name, before) = case.credential();
    let credential = format!("{before}{credential}");
    let mut history = vec![case.user(GOAL)];
    if let Some(history) = again {
        let request = setup.post(case, &case.body(history, &tools(60)));
        assert_eq!(get(request.header(name, &credential)).await.status, 200);
        return Vec::new();
    }
    let request = setup.post(case, &case.body(&history, &tools(60)));
    let view = case.read(&get(request.header(name, &credential)).await.body);
    history.extend(view.entries.clone());
    history.push(case.result(&view.calls[0], "Ada Lovelace"));
    history
}

#[tokio::test]
async fn hidden_rounds_are_not_shared_between_callers() {
    for case in cases() {
        let setup = TestSetup::new(Options::default()).await;
        let history = turn(&setup, case, "key-a", None).await;
        setup.provider.clear();
        turn(&setup, case, "key-a", Some(&history)).await;
        turn(&setup, case, "key-b", Some(&history)).await;
        let bodies = setup.bodies();
        let entries: Vec<usize> = bodies.iter().map(|body| case.history(body).len()).collect();
        assert_eq!(entries.len(), 2, "{case:?}");
        // The first caller's search and its result are restored; the other caller has neither.
        assert!(entries[0] >= history.len() + 2, "{case:?}: {entries:?}");
        assert_eq!(entries[1], history.len(), "{case:?}");
    }
}

#[tokio::test]
async fn a_limited_caller_cannot_bypass_its_scope() {
    let with_scope =
        |request: reqwest::RequestBuilder| request.header("x-toolcrib-tools", "crm__*");
    let setup = TestSetup::new(Options::default()).await;
    let post = |path: &str, body: &'static str| {
        let url = format!("{}{path}", setup.url);
        with_scope(setup.client.post(url).header("content-type", "application/json").body(body))
    };
    for (path, body, status) in [
        ("/v1/messages/batches", "{}", 403),
        ("/v1beta/openai/chat/completions", "{}", 403),
        ("/v1beta/cachedContents", "{}", 403),
        // The proxy cannot check bodies of APIs that it does not read, so their paths are closed unless the config
        // opens them.
        ("/v1/embeddings", "{}", 403),
        ("/v1/threads/runs", "{}", 403),
        ("/v1/chat/completions", "\u{feff}{\"tools\":[{\"name\":\"secret\"}]}", 400),
        ("/v1/chat/completions", "[NaN]", 400),
    ] {
        assert_eq!(get(post(path, body)).await.status, status, "{path} {body}");
    }
    assert_eq!(setup.provider.requests().len(), 0);
    let open = |config: &mut ProxyConfig| config.paths = vec!["POST /v1/embeddings".into()];
    let setup = TestSetup::with(Options::default(), open).await;
    let request = with_scope(setup.client.post(format!("{}/v1/embeddings", setup.url)));
    assert_eq!(get(request.body("{}")).await.status, 200);
}

/// Sends a request, and returns the body that the upstream received, or the status of the error.
async fn upstream_of(setup: &TestSetup, path: &str, body: &str) -> Result<String, u16> {
    setup.provider.clear();
    let url = format!("{}{path}", setup.url);
    let request = setup.client.post(url).header("content-type", "application/json");
    let got = get(request.header("x-toolcrib-tools", "crm__*").body(body.to_owned())).await;
    let sent = setup.texts();
    if sent.is_empty() {
        let text = got.text();
        assert!(text.contains("this caller's tools are limited, and "), "{text}");
        return Err(got.status);
    }
    Ok(sent.concat())
}

#[tokio::test]
async fn no_field_of_any_api_bypasses_the_scope() {
    let setup = TestSetup::new(Options::default()).await;
    let message = r#"{"role":"user","content":"Hi"}"#;
    let (chat, responses, messages, gemini) = (
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1beta/models/m:generateContent",
    );
    let namespace = r#"{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"crm__find","parameters":{}},{"type":"function","name":"secret","parameters":{}}]}"#;
    let rows = [
        (chat, format!(r#"{{"model":"m","messages":[{message}],"tools":[{{"type":"custom","custom":{{"name":"secret"}}}}]}}"#)),
        (chat, format!(r#"{{"model":"m","messages":[{message}],"n":2,"functions":[{{"name":"secret"}}]}}"#)),
        (responses, format!(r#"{{"model":"m","input":[{message}],"tools":[{namespace}]}}"#)),
        (responses, format!(r#"{{"model":"m","input":[{message},{{"type":"additional_tools","role":"developer","tools":[{namespace}]}}]}}"#)),
        (responses, format!(r#"{{"model":"m","input":[{message},{{"type":"tool_search_output","call_id":"c","tools":[{namespace}]}}]}}"#)),
        (responses, format!(r#"{{"model":"m","input":[{message}],"tools":[{{"type":"mcp","server_label":"secret","server_url":"https://x"}}]}}"#)),
        (messages, format!(r#"{{"model":"m","max_tokens":9,"messages":[{message}],"mcp_servers":[{{"type":"url","url":"https://x","name":"secret"}}]}}"#)),
        (gemini, r#"{"contents":[{"parts":[{"text":"Hi"}]}],"tools":[{"functionDeclarations":[{"name":"crm__find"}]},{"function_declarations":[{"name":"secret"}]}]}"#.to_owned()),
    ];
    for (path, body) in rows {
        let sent = upstream_of(&setup, path, &body).await.unwrap();
        assert!(!sent.contains("secret"), "{body}\n{sent}");
        assert_eq!(sent.contains("crm__find"), body.contains("crm__find"), "{sent}");
    }
    let rows = [
        (chat, format!(r#"{{"model":"m","messages":[{message}],"tools":[],"tools":[{{"name":"secret"}}]}}"#)),
        (chat, format!(r#"{{"model":"m","messages":[{message}],"Tools":[{{"name":"secret"}}]}}"#)),
        (chat, format!(r#"{{"model":"m","messages":[{message}],"tools":[{{"function":{{"name":"crm__a","na\u006de":"secret"}}}}]}}"#)),
        (responses, r#"{"model":"m","input":"Hi","conversation":"conv_1"}"#.to_owned()),
        (gemini, r#"{"contents":[],"cachedContent":"cachedContents/1"}"#.to_owned()),
        (gemini, r#"{"contents":[],"tools":[{"functionDeclarations":[],"function_declarations":[{"name":"secret"}]}]}"#.to_owned()),
    ];
    for (path, body) in rows {
        assert_eq!(upstream_of(&setup, path, &body).await, Err(400), "{body}");
    }
}

#[tokio::test]
async fn a_call_of_a_tool_out_of_scope_does_not_reach_the_client_if_deferral_is_off() {
    for case in cases() {
        let blind = Step::new([Action::exact_call("vault__open_safe", json!({"okapi": "1"}))]);
        let setup = setup_with_scope(Options::steps([blind])).await;
        let request = setup.post(case, &case.ask("Hi", &with_secret(3)));
        let request = request.header("x-toolcrib-mode", "off");
        let got = get(request.header("x-toolcrib-key", "virtual-ci")).await;
        assert_eq!(case.read(&got.body).calls, [], "{case:?}");
    }
}
