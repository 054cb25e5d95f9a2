//! Tests of a client that requests a WebSocket.

use serde_json::Value;
use toolcrib_testkit::provider::{Options, Provider};

use crate::api::Api;
use crate::http;
use crate::replica::Replica;
use crate::scenario::SCENARIOS;

#[test]
fn a_websocket_upgrade_is_answered_with_an_http_error() {
    let provider = Provider::start(Options::default()).unwrap();
    let scenario = SCENARIOS.iter().find(|scenario| scenario.api == Api::Responses).unwrap();
    let replica = Replica::start(&scenario.config(&provider.url, None));
    let answer = http::upgrade(&replica.url, "/v1/responses").unwrap();
    assert_eq!((answer.status, answer.header("upgrade")), (426, Some("HTTP/1.1")));
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(
        body["error"]["message"],
        "toolcrib: WebSockets are not supported: send the request with POST"
    );
    assert!(provider.requests().is_empty(), "nothing is sent to the upstream");
}
