//! Tests that of two clients of one gateway, neither receives messages that belong to the other.

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{count, until_true};
use crate::raw_client::{Era, RawClient};

fn methods(peer: &RawClient) -> Vec<String> {
    let named = |message: Value| message["method"].as_str().map(str::to_owned);
    // List changes are ignored, because they are sent to every client.
    let own = |method: &String| !method.ends_with("/list_changed");
    peer.messages_so_far().into_iter().filter_map(named).filter(own).collect()
}

/// Two clients use the same progress token at the same time, so their notifications could be mixed up.
#[test]
fn progress_reaches_only_the_caller() {
    let environment =
        TestEnvironment::new("progress").faulty("busy", &["--progress", "5", "--slow", "50"]);
    let gateway = environment.serve();
    let (one, two) = (gateway.peer(Era::Older), gateway.peer(Era::Older));
    let silent = gateway.peer(Era::Older);
    one.ready("busy__echo");
    let ask =
        json!({"name": "busy__progress", "arguments": {}, "_meta": {"progressToken": "same"}});
    let calls = [one.start("tools/call", ask.clone()), two.start("tools/call", ask)];
    let quiet = silent.begin("busy__progress", json!({}));
    for call in &calls {
        assert_eq!(call.end()["content"][0]["text"], "It is done.");
    }
    quiet.end();
    for (peer, reports) in [(&one, 5), (&two, 5), (&silent, 0)] {
        let messages = methods(peer).iter().filter(|m| *m == "notifications/progress").count();
        assert_eq!(messages, reports);
    }
}

/// A server's log messages and questions go to the client whose call the server is working on. If the gateway cannot
/// tell which client that is, they go to no client. By default, each client of such a server gets its own process, so
/// the config makes the clients share one.
#[test]
fn log_messages_and_questions_reach_only_the_caller() {
    let environment = TestEnvironment::new("logs").faulty_with(
        "loud",
        &["--garbage", "--hang", "hang"],
        "share = 'all'",
    );
    let gateway = environment.serve();
    let (one, two) = (gateway.peer(Era::Older), gateway.peer(Era::Older));
    one.ready("loud__echo");
    for peer in [&one, &two] {
        peer.listen();
        assert_eq!(peer.ask("logging/setLevel", json!({"level": "debug"})), json!({}));
    }
    // Only one call is running, so the messages belong to it.
    until_true("the client receives a log message", || {
        one.call("loud__echo", json!({}));
        methods(&one).contains(&"notifications/message".to_owned())
    });
    assert_eq!(methods(&two), [""; 0]);
    // Only the client whose call is running is asked.
    let call = one.begin("loud__elicit", json!({}));
    let question = one.wait_for_message("elicitation/create").expect("the first client is asked");
    one.reply(&question["id"], &json!({"action": "accept", "content": {"word": "mine"}}));
    let answer = call.end();
    assert_eq!(answer["structuredContent"]["result"]["content"]["word"], "mine", "{answer}");
    // Calls of both clients are running, so the gateway cannot tell whose question it is, and asks neither of them.
    two.begin("loud__hang", json!({}));
    until_true("the server receives the other client's call", || {
        count(&environment.log("loud"), "call hang") == 1
    });
    let answer = one.call("loud__elicit", json!({}));
    let error = &answer["structuredContent"]["error"]["message"];
    assert!(error.as_str().unwrap_or_default().contains("several clients"), "{answer}");
    let asked = methods(&one).iter().filter(|method| *method == "elicitation/create").count();
    assert_eq!(
        (asked, methods(&two)),
        (1, Vec::new()),
        "only the first client is asked, and only once"
    );
}

/// If a client has no GET stream open, it receives the log messages of a call on the stream of the call, all of them
/// before the response.
#[test]
fn log_messages_are_sent_on_the_stream_of_their_call() {
    let environment = TestEnvironment::new("log-stream").fixture("fixture", "");
    let gateway = environment.serve();
    let peer = gateway.peer(Era::Older);
    assert_eq!(peer.ask("logging/setLevel", json!({"level": "info"})), json!({}));
    let call = || peer.call("fixture__test_tool_with_logging", json!({}));
    until_true("the call succeeds", || call()["content"][0]["text"] == "It is done.");
    let before = peer.messages_so_far().len();
    call();
    let messages = peer.messages_so_far().split_off(before);
    let lines: Vec<&Value> = messages.iter().map(|message| &message["params"]["data"]).collect();
    // The last message is the response, which has no parameters.
    let expected = [json!("Started."), json!("Half way."), json!("Finished."), Value::Null];
    assert_eq!(lines, expected.each_ref(), "{messages:?}");
}

/// A server ignores a cancellation, and asks a question for a call that the client has cancelled. Another client has
/// the same name and the only running call. The question must not be sent to that client instead.
#[test]
fn a_question_from_a_cancelled_call_reaches_no_client() {
    let environment = TestEnvironment::new("ghost").faulty("deaf", &["--slow", "600"]);
    let gateway = environment.serve();
    let (one, two) = (gateway.peer(Era::Older), gateway.peer(Era::Older));
    one.ready("deaf__echo");
    two.listen();
    let asked = one.begin("deaf__elicit", json!({}));
    let log = environment.log("deaf");
    until_true("the server receives the call", || count(&log, "call elicit") == 1);
    one.notify("notifications/cancelled", json!({"requestId": asked.id}));
    until_true("the server receives the cancellation", || count(&log, "cancelled") == 1);
    // This call starts later and is just as slow as the cancelled one. So when it is answered, the server has already
    // sent the question of the cancelled call.
    assert_eq!(two.call("deaf__echo", json!({"n": 1}))["structuredContent"], json!({"n": 1}));
    assert_eq!(methods(&two), [""; 0]);
}

/// A call that waits for its client's input can be continued only by a client of the same profile, only for the same
/// tool, and only once.
#[test]
fn only_the_caller_can_continue_a_call_that_waits_for_input() {
    let environment =
        TestEnvironment::new("parked").faulty("shy", &[]).with("[profiles.one]\n[profiles.two]\n");
    let gateway = environment.serve();
    let one = gateway.peer_as(Era::Newer, "one");
    let two = gateway.peer_as(Era::Newer, "two");
    one.ready("shy__echo");
    let asked = one.call("shy__elicit", json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let answer = |peer: &RawClient, tool: &str| {
        let given = json!({"action": "accept", "content": {"word": "stolen"}});
        let params = json!({
            "name": tool,
            "arguments": {},
            "inputResponses": {"question": given},
            "requestState": asked["requestState"],
        });
        peer.ask("tools/call", params)
    };
    let refused = answer(&two, "shy__elicit");
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let refused = answer(&one, "shy__sample");
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(count(&environment.log("shy"), "call elicit"), 1, "the refused calls are not run");
    assert_eq!(count(&environment.log("shy"), "call sample"), 0);
    let done = answer(&one, "shy__elicit");
    assert_eq!(done["structuredContent"]["result"]["content"]["word"], "stolen", "{done}");
    let again = answer(&one, "shy__elicit");
    assert_eq!(again["error"]["code"], -32602, "a call can be continued only once: {again}");
    assert_eq!(count(&environment.log("shy"), "call elicit"), 1);
}

/// After a restart, a gateway does not know the calls that were waiting for input before. It must not run them again,
/// even if a client continues one while the server is still starting.
#[test]
fn a_call_that_waits_for_input_is_not_run_again_by_the_next_gateway() {
    let environment = TestEnvironment::new("restarted").faulty("shy", &["--start-delay", "700"]);
    let asked = {
        let gateway = environment.serve();
        let peer = gateway.peer(Era::Newer);
        peer.ready("shy__echo");
        peer.call("shy__elicit", json!({}))
    };
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let gateway = environment.serve();
    let answer = gateway.peer(Era::Newer).ask(
        "tools/call",
        json!({
            "name": "shy__elicit",
            "arguments": {},
            "inputResponses": {"question": {"action": "accept", "content": {"word": "late"}}},
            "requestState": asked["requestState"],
        }),
    );
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(count(&environment.log("shy"), "call elicit"), 1);
}
