//! Native features that an upstream refuses: the request goes another way, the client sees nothing of it,
//! and the next one does not try.

use serde_json::{Value, json};
use toolcrib_dialect::Api;
use toolcrib_proxy::Config;
use toolcrib_testkit::provider::{
    Action, CannedResponse, Options, Provider, ReceivedRequest, RejectedFeature, Step,
};

use crate::dialects::{Case, cases, tools};
use crate::support::{Stage, config};

/// A proxy that takes its upstream for one that can do all of this.
async fn native(refuses: &[RejectedFeature], mode: &str, native: &Value) -> Stage {
    let call = Action::call("crm__find_customer", json!({"q": "Ada"}));
    let options = Options { rejects: refuses.to_vec(), ..Options::steps([Step::new([call])]) };
    let provider = Provider::start(options).unwrap();
    let routes = json!([{"models": ["*"], "url": provider.url, "mode": mode, "native": native}]);
    let config = Config { routes: serde_json::from_value(routes).unwrap(), ..config(&provider) };
    Stage::start(provider, config, None).await
}

/// What a body has in it of what is native.
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
async fn each_is_met_once() {
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
            let stage = native(&[refusal], mode, &able).await;
            let what = format!("{case:?} {refusal:?} {mode}");
            for first in [true, false] {
                stage.provider.clear();
                let got = stage.ask(case, &case.ask("Hi", &tools(60))).await;
                let seen = case.read(&got.body);
                let found = [("crm__find_customer", &json!({"q": "Ada"}))];
                assert_eq!(seen.called(), found, "{what}: {}", got.text());
                assert!(seen.ended && seen.error.is_none() && !got.cut, "{what}");
                let requests = stage.provider.requests();
                assert_eq!(requests.iter().any(is_native), first, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn the_search_by_words_gives_way_to_the_one_by_patterns() {
    for case in cases().filter(|case| case.api == Api::Messages) {
        let stage = native(&[RejectedFeature::Bm25], "hosted", &json!({"hosted": "both"})).await;
        for first in [true, false] {
            stage.provider.clear();
            let seen = stage.see(case, &case.ask("Hi", &tools(60))).await;
            assert_eq!(seen.called(), [("crm__find_customer", &json!({"q": "Ada"}))]);
            let tried: Vec<bool> =
                stage.texts().iter().map(|text| text.contains("tool_search_tool_bm25")).collect();
            assert_eq!(tried, if first { vec![true, false] } else { vec![false] }, "{case:?}");
        }
    }
}

#[tokio::test]
async fn what_is_not_refused_is_used() {
    for (api, mode, able) in [
        (Api::Messages, "reference", json!({"references": true})),
        (Api::Messages, "hosted", json!({"hosted": "both"})),
        (Api::Responses, "reference", json!({"client_search": true})),
        (Api::Responses, "reference", json!({"additional_tools": true})),
        (Api::Responses, "hosted", json!({"hosted": "openai"})),
    ] {
        for case in cases().filter(|case| case.api == api) {
            let stage = native(&[], mode, &able).await;
            let got = stage.ask(case, &case.ask("Hi", &tools(60))).await;
            let seen = case.read(&got.body);
            let called = seen.called();
            assert_eq!(called, [("crm__find_customer", &json!({"q": "Ada"}))], "{}", got.text());
            assert_eq!(got.header("x-toolcrib-mode"), mode, "{case:?}");
            assert!(stage.provider.requests().iter().any(is_native), "{case:?} {mode}");
        }
    }
}

/// An error that is no refusal of a feature is not one because a feature was in use.
#[tokio::test]
async fn another_error_is_the_clients() {
    let case = Case { api: Api::Messages, stream: false };
    let stage = native(&[], "reference", &json!({"references": true})).await;
    stage.provider.queue_response(CannedResponse::error(case.dialect(), 400));
    let got = stage.ask(case, &case.ask("Hi", &tools(60))).await;
    assert_eq!((got.status, stage.provider.requests().len()), (400, 1));
    let got = stage.ask(case, &case.ask("Hi", &tools(60))).await;
    assert_eq!((got.status, got.header("x-toolcrib-mode")), (200, "reference"));
}
