//! Tests of native features that an upstream does not support: the proxy uses a fallback, the client does not notice,
//! and the next request does not try the feature again.

use serde_json::{Value, json};
use toolcrib_dialect::Api;
use toolcrib_proxy::ProxyConfig;
use toolcrib_testkit::provider::{
    Action, CannedResponse, Options, Provider, ReceivedRequest, RejectedFeature, Step,
};

use crate::client_requests::{ClientCase, cases, tools};
use crate::setup::{TestSetup, config};

/// Starts a proxy that is configured to use the native features in `native`, with an upstream that rejects the features
/// in `refuses`.
async fn native(refuses: &[RejectedFeature], mode: &str, native: &Value) -> TestSetup {
    let call = Action::call("crm__find_customer", json!({"q": "Ada"}));
    let options = Options { rejects: refuses.to_vec(), ..Options::steps([Step::new([call])]) };
    let provider = Provider::start(options).unwrap();
    let routes = json!([{"models": ["*"], "url": provider.url, "mode": mode, "native": native}]);
    let config =
        ProxyConfig { routes: serde_json::from_value(routes).unwrap(), ..config(&provider) };
    TestSetup::start(provider, config, None).await
}

/// Whether a request uses a native feature.
fn is_native(request: &ReceivedRequest) -> bool {
    let body = String::from_utf8_lossy(&request.body).into_owned();
    [
        "defer_loading",
        "tool_reference",
        "tool_search_tool",
        "\"type\":\"tool_search",
        "additional_tools",
    ]
    .iter()
    .any(|word| body.contains(word))
}

#[tokio::test]
async fn each_unsupported_feature_is_tried_once() {
    let rows = [
        (Api::Messages, RejectedFeature::DeferLoading, "reference", json!({"references": true})),
        (Api::Messages, RejectedFeature::ToolReference, "reference", json!({"references": true})),
        (Api::Messages, RejectedFeature::ToolSearch, "hosted", json!({"hosted": "both"})),
        (Api::Messages, RejectedFeature::ToolSearch, "hosted", json!({"hosted": "regex"})),
        (Api::Responses, RejectedFeature::ToolSearch, "reference", json!({"client_search": true})),
        (Api::Responses, RejectedFeature::ToolSearch, "hosted", json!({"hosted": "openai"})),
        (Api::Responses, RejectedFeature::Namespace, "hosted", json!({"hosted": "openai"})),
        (
            Api::Responses,
            RejectedFeature::AdditionalTools,
            "reference",
            json!({"additional_tools": true}),
        ),
    ];
    for (api, refusal, mode, able) in rows {
        for case in cases().filter(|case| case.api == api) {
            let setup = native(&[refusal], mode, &able).await;
            let description = format!("{case:?} {refusal:?} {mode}");
            for first in [true, false] {
                setup.provider.clear();
                let got = setup.ask(case, &case.ask("Hi", &tools(60))).await;
                let view = case.read(&got.body);
                let found = [("crm__find_customer", &json!({"q": "Ada"}))];
                assert_eq!(view.called(), found, "{description}: {}", got.text());
                assert!(view.ended && view.error.is_none() && !got.cut, "{description}");
                let requests = setup.provider.requests();
                assert_eq!(requests.iter().any(is_native), first, "{description}");
            }
        }
    }
}

#[tokio::test]
async fn native_search_falls_back_from_words_to_patterns() {
    for case in cases().filter(|case| case.api == Api::Messages) {
        let setup = native(&[RejectedFeature::Bm25], "hosted", &json!({"hosted": "both"})).await;
        for first in [true, false] {
            setup.provider.clear();
            let view = setup.ask_and_read(case, &case.ask("Hi", &tools(60))).await;
            assert_eq!(view.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
            let tried: Vec<bool> =
                setup.texts().iter().map(|text| text.contains("tool_search_tool_bm25")).collect();
            assert_eq!(tried, if first { vec![true, false] } else { vec![false] }, "{case:?}");
        }
    }
}

#[tokio::test]
async fn supported_features_are_used() {
    for (api, mode, able) in [
        (Api::Messages, "reference", json!({"references": true})),
        (Api::Messages, "hosted", json!({"hosted": "both"})),
        (Api::Responses, "reference", json!({"client_search": true})),
        (Api::Responses, "reference", json!({"additional_tools": true})),
        (Api::Responses, "hosted", json!({"hosted": "openai"})),
    ] {
        for case in cases().filter(|case| case.api == api) {
            let setup = native(&[], mode, &able).await;
            let got = setup.ask(case, &case.ask("Hi", &tools(60))).await;
            let view = case.read(&got.body);
            let called = view.called();
            assert_eq!(called, [("crm__find_customer", &json!({"q": "Ada"}))], "{}", got.text());
            assert_eq!(got.header("x-toolcrib-mode"), mode, "{case:?}");
            assert!(setup.provider.requests().iter().any(is_native), "{case:?} {mode}");
        }
    }
}

/// An error with a different cause is forwarded, even if the request uses a native feature.
#[tokio::test]
async fn other_errors_are_forwarded_to_the_client() {
    let case = ClientCase { api: Api::Messages, stream: false };
    let setup = native(&[], "reference", &json!({"references": true})).await;
    setup.provider.queue_response(CannedResponse::error(case.dialect(), 400));
    let got = setup.ask(case, &case.ask("Hi", &tools(60))).await;
    assert_eq!((got.status, setup.provider.requests().len()), (400, 1));
    let got = setup.ask(case, &case.ask("Hi", &tools(60))).await;
    assert_eq!((got.status, got.header("x-toolcrib-mode")), (200, "reference"));
}
