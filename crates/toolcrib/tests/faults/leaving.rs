//! A client leaves while its call is under way: the server is told.

use std::time::Instant;

use serde_json::json;

use crate::peer::{ERAS, Era, Peer};
use crate::probe::{count, until_true};
use crate::stage::Stage;
use crate::took;

/// A call that times out is cancelled too, so here none does before the deadline of the test.
fn stage(name: &str) -> Stage {
    Stage::new(name).faulty_with("deaf", &["--hang", "hang"], "call_timeout = 3600")
}

/// Calls what hangs, leaves in some way, and waits until the server has heard of it.
fn leave(
    stage: &Stage,
    what: &str,
    peer: &Peer,
    leave: impl FnOnce(&Peer, &crate::inbox::Pending),
) {
    peer.ready("deaf__echo");
    let log = stage.log("deaf");
    let (calls, cancelled) = (count(&log, "call hang"), count(&log, "cancelled"));
    let call = peer.begin("deaf__hang", json!({}));
    until_true("the call is at the server", || count(&log, "call hang") > calls);
    let began = Instant::now();
    leave(peer, &call);
    until_true(what, || count(&log, "cancelled") > cancelled);
    took(what, began.elapsed());
    assert_eq!(count(&log, "cancelled"), cancelled + 1, "it is told once");
}

#[test]
fn a_client_on_stdio_goes_away() {
    for era in ERAS {
        let stage = stage("gone");
        let peer = stage.stdio(era);
        leave(&stage, "cancelled after a client on stdio left", &peer, |peer, _| peer.close());
    }
}

#[test]
fn a_client_on_stdio_cancels() {
    for era in ERAS {
        let stage = stage("cancel");
        let peer = stage.stdio(era);
        leave(&stage, "cancelled by a client on stdio", &peer, |peer, call| {
            peer.notify(
                "notifications/cancelled",
                json!({"requestId": call.id, "reason": "enough"}),
            );
        });
        assert_eq!(peer.call("deaf__echo", json!({}))["structuredContent"], json!({}));
    }
}

#[test]
fn a_client_over_http_cancels_or_ends_its_session() {
    let stage = stage("session");
    let served = stage.serve();
    let peer = served.peer(Era::Handshake);
    leave(&stage, "cancelled by a client over HTTP", &peer, |peer, call| {
        peer.notify("notifications/cancelled", json!({"requestId": call.id, "reason": "enough"}));
    });
    leave(&stage, "cancelled when a session is deleted", &peer, |peer, _| {
        assert!((200..300).contains(&peer.delete()));
    });
}

/// In the newer era the end of a stream is the end of its request.
#[test]
fn a_client_of_the_newer_era_closes_its_stream() {
    let stage = stage("stream");
    let served = stage.serve();
    let peer = served.peer(Era::Stateless);
    leave(&stage, "cancelled when a stream is closed", &peer, |_, call| call.hang_up());
    assert_eq!(peer.call("deaf__echo", json!({}))["structuredContent"], json!({}));
}
