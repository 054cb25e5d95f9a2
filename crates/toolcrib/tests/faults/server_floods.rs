//! Tests of servers that send too much and could exhaust the gateway's memory.
//!
//! Every flood is a fixed number of messages, or lasts until the gateway closes the pipe.

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{at_most, count, peak_memory, until_true};
use crate::raw_client::{Era, RawClient};
use crate::slow_client::SlowClient;

const MIB: u64 = 1 << 20;
/// Maximum memory that a flood may take, in MiB. Without limits, 200,000 pings would take 280 MiB and large progress
/// messages 1,500 MiB.
const COST: u64 = 160;

/// Configures a server that floods the gateway, and one that does not.
fn environment(name: &str, flood: &[&str], limits: &str) -> TestEnvironment {
    TestEnvironment::new(&format!("exhaust-{name}"))
        .faulty("wild", flood)
        .faulty("calm", &[])
        .with(&format!("[gateway.limits]\n{limits}\n"))
}

fn ready(environment: &TestEnvironment) -> (RawClient, u64) {
    let peer = environment.stdio(Era::Older);
    peer.ready("wild__echo");
    peer.ready("calm__echo");
    let base = peak_memory(peer.gateway());
    (peer, base)
}

#[track_caller]
fn assert_memory_bounded(what: &str, gateway: u32, base: u64) {
    at_most(what, peak_memory(gateway).saturating_sub(base) / MIB, COST);
}

/// Waits until the log contains the reason why a server was disconnected.
#[track_caller]
fn wait_until_disconnected(environment: &TestEnvironment, why: &str) {
    let is_reason = |line: &str| line.contains("server is down") && line.contains(why);
    until_true(why, || environment.stderr().lines().any(is_reason));
}

/// Parsed values take up to sixty times the memory of their text, so a limit on the size of the text is not enough.
#[test]
fn a_response_of_tiny_objects_takes_bounded_memory() {
    let bytes = (8 * MIB - 1).to_string();
    let environment = environment("objects", &["--tiny-objects", &bytes], "");
    let (peer, base) = ready(&environment);
    let error = peer.call("wild__objects", json!({}));
    let text = error.to_string();
    assert!(text.contains("has too many values for its size"), "{text}");
    assert_eq!(peer.call("calm__echo", json!({"n": 1}))["structuredContent"], json!({"n": 1}));
    assert_memory_bounded("MiB over base after 8 MiB of tiny objects", peer.gateway(), base);
    // Ordinary responses of the same size are accepted.
    let environment = self::environment("text", &["--huge-line", &bytes], "");
    let (peer, _) = ready(&environment);
    let text = peer.call("wild__huge", json!({}))["content"][0]["text"].to_string();
    assert!(text.len() > 8_000_000, "{}", text.len());
}

/// If the server reads the responses, each of its pings is answered, no matter how many there are.
#[test]
fn pings_from_a_server_that_reads_are_answered() {
    let flood = ["--flood", "ping", "--flood-count", "200000"];
    let environment = environment("ping", &flood, "");
    let (peer, base) = ready(&environment);
    let call = peer.begin("wild__flood", json!({}));
    until_true("the flood has begun", || count(&environment.log("wild"), "granted") > 0);
    assert_eq!(peer.call("calm__echo", json!({"n": 1}))["structuredContent"], json!({"n": 1}));
    assert_eq!(call.end()["content"][0]["text"], "It is over.");
    until_true("all pings are answered", || count(&environment.log("wild"), "granted") == 200_000);
    assert_memory_bounded("MiB over base after 200,000 pings", peer.gateway(), base);
    assert_eq!(count(&environment.log("wild"), "start"), 1, "the server is never restarted");
}

/// If a server does not read the responses to its requests, the gateway stops reading from it, and disconnects it soon
/// after.
#[test]
fn a_server_that_does_not_read_is_disconnected() {
    for method in ["ping", "sampling/createMessage", "roots/list", "no/such/method"] {
        let flood = ["--flood", method, "--flood-count", "300000", "--deaf"];
        let environment = environment("deaf", &flood, "server_stall = 1");
        let (peer, base) = ready(&environment);
        let call = peer.begin("wild__flood", json!({}));
        assert_eq!(peer.call("calm__echo", json!({"n": 1}))["structuredContent"], json!({"n": 1}));
        let answer = call.end();
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        let why =
            "it does not read the answers to its requests: 64 wait, and none was read for 1 s";
        assert!(answer["isError"] == true && text.contains(why), "{method}: {answer}");
        wait_until_disconnected(&environment, why);
        assert_memory_bounded(
            &format!("MiB over base after {method} of a deaf server"),
            peer.gateway(),
            base,
        );
        assert_eq!(peer.call("calm__echo", json!({"n": 2}))["structuredContent"], json!({"n": 2}));
    }
}

/// The number of open questions to the client is limited. Further questions are rejected, and a server that continues
/// is disconnected.
#[test]
fn endless_questions_are_limited() {
    for method in ["sampling/createMessage", "elicitation/create"] {
        let flood = ["--flood", method, "--flood-count", "200000"];
        let environment = environment("questions", &flood, "server_requests = 20");
        let (peer, base) = ready(&environment);
        let call = peer.begin("wild__flood", json!({}));
        let answer = call.end();
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("continued after 320 were rejected"), "{answer}");
        wait_until_disconnected(
            &environment,
            "it had 20 requests open and continued after 320 were rejected",
        );
        assert_memory_bounded(
            &format!("MiB over base after 200,000 {method}"),
            peer.gateway(),
            base,
        );
        let asked =
            peer.messages_so_far().iter().filter(|message| message["method"] == method).count();
        assert!(asked <= 20, "{asked} questions reached the client");
        assert_eq!(peer.call("calm__echo", json!({"n": 2}))["structuredContent"], json!({"n": 2}));
    }
}

/// At the limit, all questions reach the client. One more question is rejected with an error and does not affect the
/// others.
#[test]
fn one_question_over_the_limit_is_rejected() {
    for (questions, refused) in [(3, 0), (4, 1)] {
        let many = questions.to_string();
        let flood = ["--flood", "elicitation/create", "--flood-count", &many];
        let environment = environment("one-more", &flood, "server_requests = 3");
        let (peer, _) = ready(&environment);
        let call = peer.begin("wild__flood", json!({}));
        let asked = || -> Vec<Value> {
            let messages = peer.messages_so_far().into_iter();
            messages.filter(|message| message["method"] == "elicitation/create").collect()
        };
        until_true("the client receives three questions", || asked().len() == 3);
        let log = environment.log("wild");
        until_true("further questions are refused", || count(&log, "refused") == refused);
        for question in asked() {
            peer.reply(&question["id"], &json!({"action": "decline"}));
        }
        until_true("the server receives three answers", || count(&log, "granted") == 3);
        assert_eq!(call.end()["content"][0]["text"], "It is over.");
        assert_eq!((asked().len(), count(&log, "refused")), (3, refused));
    }
}

/// Notifications with large texts must not be kept in memory.
#[test]
fn large_notifications_take_bounded_memory() {
    for method in [
        "notifications/message",
        "notifications/progress",
        "notifications/resources/updated",
        "notifications/cancelled",
        "notifications/unknown",
    ] {
        let flood = ["--flood", method, "--flood-count", "400", "--flood-bytes", "4000000"];
        let environment = environment("large", &flood, "");
        let (peer, base) = ready(&environment);
        assert_eq!(peer.call("wild__flood", json!({}))["content"][0]["text"], "It is over.");
        assert_memory_bounded(
            &format!("MiB over base after 1.6 GB of {method}"),
            peer.gateway(),
            base,
        );
        assert_eq!(peer.call("calm__echo", json!({"n": 2}))["structuredContent"], json!({"n": 2}));
    }
}

/// The server sends large progress messages, one after another, but the client has stopped reading.
#[test]
fn large_progress_messages_to_a_client_that_does_not_read_take_bounded_memory() {
    let flood =
        ["--flood", "notifications/progress", "--flood-count", "400", "--flood-bytes", "4000000"];
    let environment = environment("slow-client", &flood, "");
    let mut client = SlowClient::start(&environment);
    let mut id = 0;
    until_true("the server is up", || {
        id += 1;
        let params = json!({"name": "wild__echo", "arguments": {}});
        let (answer, _) = client.ask(id, "tools/call", params);
        answer["result"]["structuredContent"] == json!({})
    });
    let base = peak_memory(client.gateway());
    let params =
        json!({"name": "wild__flood", "arguments": {}, "_meta": {"progressToken": "slow"}});
    client.send(json!({"jsonrpc": "2.0", "id": 9999, "method": "tools/call", "params": params}));
    // The client reads nothing until the server has written all its messages.
    until_true("the flood is over", || count(&environment.log("wild"), "flooded") == 1);
    assert_memory_bounded("MiB over base after 1.6 GB of progress", client.gateway(), base);
    let (answer, _) = client.next_answer();
    let text = &answer["result"]["content"][0]["text"];
    assert_eq!((&answer["id"], text), (&json!(9999), &json!("It is over.")));
    client.end();
}

/// `doctor` shows why a server was disconnected, with a hint.
#[test]
fn doctor_shows_why_a_server_was_disconnected() {
    let flood = ["--flood", "ping", "--flood-count", "300000", "--deaf", "--flood-before-list"];
    let environment = environment("doctor", &flood, "server_stall = 1");
    let rows = environment.doctor();
    let states: Vec<_> = rows.iter().map(|row| row["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["up", "down"], "{rows:#?}");
    let why = rows[1]["error"].as_str().unwrap();
    assert!(why.contains("it does not read the answers to its requests"), "{why}");
    assert!(rows[1]["hint"].as_str().unwrap().contains("server_requests"), "{}", rows[1]);
}
