//! Tests that the server is notified if a client disconnects while its call is running.

use std::time::Instant;

use serde_json::json;

use crate::environment::TestEnvironment;
use crate::print_duration;
use crate::probe::{count, until_true};
use crate::raw_client::{ERAS, Era, RawClient};

/// Configures a server with a tool that hangs. Calls that time out are cancelled, too, so the call timeout is longer
/// than the deadline of the test. Every cancellation then comes from the client.
fn environment(name: &str) -> TestEnvironment {
    TestEnvironment::new(name).faulty_with("deaf", &["--hang", "hang"], "call_timeout = 3600")
}

/// Calls a tool that hangs, disconnects in the given way, and waits until the server receives the cancellation.
fn disconnect_during_call(
    environment: &TestEnvironment,
    what: &str,
    peer: &RawClient,
    disconnect: impl FnOnce(&RawClient, &crate::received_messages::PendingRequest),
) {
    peer.ready("deaf__echo");
    let log = environment.log("deaf");
    let (calls, cancelled) = (count(&log, "call hang"), count(&log, "cancelled"));
    let call = peer.begin("deaf__hang", json!({}));
    until_true("the server receives the call", || count(&log, "call hang") > calls);
    let began = Instant::now();
    disconnect(peer, &call);
    until_true(what, || count(&log, "cancelled") > cancelled);
    print_duration(what, began.elapsed());
    assert_eq!(
        count(&log, "cancelled"),
        cancelled + 1,
        "the server receives only one cancellation"
    );
}

#[test]
fn a_client_on_stdio_disconnects() {
    for era in ERAS {
        let environment = environment("gone");
        let peer = environment.stdio(era);
        disconnect_during_call(
            &environment,
            "cancelled after a client on stdio left",
            &peer,
            |peer, _| {
                peer.close();
            },
        );
    }
}

/// A client of the newer protocol gets a question as the result of its call. The call stays open at the server.
#[test]
fn a_client_on_stdio_disconnects_before_it_answers_a_question() {
    let environment = environment("unanswered").background("1m");
    // Another client keeps the gateway running.
    let other = environment.shared(Era::Older);
    other.ready("deaf__echo");
    let peer = environment.shared(Era::Newer);
    let asked = peer.call("deaf__elicit", json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let log = environment.log("deaf");
    assert_eq!(count(&log, "cancelled"), 0);
    peer.close();
    until_true("the call is cancelled", || count(&log, "cancelled") == 1);
    other.call("deaf__echo", json!({}));
}

#[test]
fn a_client_on_stdio_cancels() {
    for era in ERAS {
        let environment = environment("cancel");
        let peer = environment.stdio(era);
        disconnect_during_call(
            &environment,
            "cancelled by a client on stdio",
            &peer,
            |peer, call| {
                peer.notify(
                    "notifications/cancelled",
                    json!({"requestId": call.id, "reason": "enough"}),
                );
            },
        );
        assert_eq!(peer.call("deaf__echo", json!({}))["structuredContent"], json!({}));
    }
}

#[test]
fn a_client_over_http_cancels_or_ends_its_session() {
    let environment = environment("session");
    let gateway = environment.serve();
    let peer = gateway.peer(Era::Older);
    disconnect_during_call(&environment, "cancelled by a client over HTTP", &peer, |peer, call| {
        peer.notify("notifications/cancelled", json!({"requestId": call.id, "reason": "enough"}));
    });
    disconnect_during_call(
        &environment,
        "cancelled when a session is deleted",
        &peer,
        |peer, _| {
            assert!((200..300).contains(&peer.delete()));
        },
    );
}

/// In the newer protocol, closing the stream of a request cancels the request.
#[test]
fn a_stateless_client_closes_its_stream() {
    let environment = environment("stream");
    let gateway = environment.serve();
    let peer = gateway.peer(Era::Newer);
    disconnect_during_call(&environment, "cancelled when a stream is closed", &peer, |_, call| {
        call.close_connection();
    });
    assert_eq!(peer.call("deaf__echo", json!({}))["structuredContent"], json!({}));
}
