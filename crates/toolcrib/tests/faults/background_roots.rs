//! Tests that a shared server that asks for its client's roots gets those of the right client, and that clients without
//! roots share such a server.

use std::time::Duration;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{count, until, until_true};
use crate::raw_client::{ERAS, Era, RawClient};

/// What `toolcrib ps --json` reports about a server that asks for roots.
const SHARING: &str = "one process for each client that has roots, and one for all others (it asks for roots without saying for which call)";

fn environment(name: &str) -> TestEnvironment {
    TestEnvironment::new(name).faulty("files", &["--asks-for-roots"]).background("1m")
}

fn client_without_roots(environment: &TestEnvironment, era: Era) -> RawClient {
    let command = environment.toolcrib(&["mcp"]);
    RawClient::before_handshake(command, era).without_roots().with_handshake()
}

/// Returns the answer of a client whose only root is this folder.
fn roots(folder: &str) -> Value {
    json!({"roots": [{"uri": format!("file:///{folder}")}]})
}

/// Returns what the server knows about the roots of its client, or null before the client has answered.
fn known_roots(client: &RawClient) -> Value {
    client.call("files__known_roots", json!({}))["structuredContent"].take()
}

/// Waits until the server has learned that the client has no roots.
fn wait_until_server_knows_there_are_no_roots(client: &RawClient) {
    let known = until("the server asks for roots", || {
        Some(known_roots(client)).filter(|known| !known.is_null())
    });
    assert!(known.0["error"]["message"].is_string(), "{known:?}");
}

/// Answers all questions about roots until the server knows the roots of the client.
fn wait_for_roots(client: &RawClient, folder: &str) {
    until_true(folder, || {
        client.reply_to_all("roots/list", &roots(folder));
        known_roots(client)["result"] == roots(folder)
    });
}

/// Returns the clients of the server's processes. A process that clients share has none.
fn owners(environment: &TestEnvironment) -> Vec<Option<u64>> {
    let status = environment.background_status().unwrap();
    let servers = status["servers"].as_array().unwrap();
    assert!(servers.iter().all(|server| server["sharing"] == SHARING), "{status}");
    servers.iter().map(|server| server["client"].as_u64()).collect()
}

#[test]
fn clients_without_roots_share_a_server_that_asks_for_roots() {
    let environment = environment("no-roots");
    let clients: Vec<_> =
        (0..4).map(|number| client_without_roots(&environment, ERAS[number % 2])).collect();
    for client in &clients {
        wait_until_server_knows_there_are_no_roots(client);
    }
    assert_eq!(owners(&environment), [None]);
    assert_eq!(count(&environment.log("files"), "start"), 1);
}

/// Some servers decide by the roots what a call may do, so the call that starts such a server must wait until the server knows
/// the roots of its client.
#[test]
fn the_first_call_comes_after_the_roots() {
    let environment = environment("first-call");
    // The tools of the server are known from this client, and that it asks for roots.
    let plain = client_without_roots(&environment, Era::Older);
    wait_until_server_knows_there_are_no_roots(&plain);
    for folder in ["one", "two", "three"] {
        let client = environment.shared(Era::Older);
        let call = client.begin("files__known_roots", json!({}));
        until("the first call is answered", || {
            client.reply_to_all("roots/list", &roots(folder));
            call.answer(Duration::from_millis(10))
        });
        let log = std::fs::read_to_string(environment.log("files")).unwrap();
        let of_last_process = log.rsplit_once("start").unwrap().1;
        let received: Vec<&str> = of_last_process
            .lines()
            .filter(|line| ["answered", "call known_roots"].contains(line))
            .collect();
        assert_eq!(received, ["answered", "call known_roots"], "{log}");
    }
}

#[test]
fn each_client_is_asked_for_its_own_roots() {
    let environment = environment("own-roots").with("[profiles.some]\nservers = ['files']");
    let plain = client_without_roots(&environment, Era::Older);
    wait_until_server_knows_there_are_no_roots(&plain);
    let a = environment.shared(Era::Older);
    let b = RawClient::stdio(environment.toolcrib(&["mcp", "--profile", "some"]), Era::Older);
    let clients = [(&a, "a"), (&b, "b")];
    for (client, folder) in clients {
        wait_for_roots(client, folder);
    }
    wait_until_server_knows_there_are_no_roots(&plain);
    assert_eq!(owners(&environment), [None, Some(2), Some(3)]);

    // Both clients are asked at the same time.
    let calls = clients.map(|(client, _)| client.begin("files__roots", json!({})));
    for ((client, folder), call) in clients.iter().zip(calls) {
        let question = client.wait_for_question("roots/list").expect("a question");
        client.reply(&question["id"], &roots(folder));
        assert_eq!(call.end()["structuredContent"]["result"], roots(folder));
    }

    // A change of one client's roots concerns only its own process.
    let questions = |client: &RawClient| {
        let messages = client.messages_so_far();
        messages.iter().filter(|message| message["method"] == "roots/list").count()
    };
    let before = questions(&b);
    a.notify("notifications/roots/list_changed", json!({}));
    wait_for_roots(&a, "a2");
    wait_for_roots(&b, "b");
    assert_eq!(questions(&b), before);
    wait_until_server_knows_there_are_no_roots(&plain);
    assert_eq!(questions(&plain), 0);
}

/// The first client is asked for its roots while the server still counts as shareable. Later clients must not use the
/// process that has learned these roots.
#[test]
fn a_process_that_knows_the_roots_of_a_client_is_not_shared() {
    let environment = environment("first-roots");
    {
        let first = environment.shared(Era::Older);
        wait_for_roots(&first, "first");
        let plain = [(); 2].map(|()| client_without_roots(&environment, Era::Older));
        for client in &plain {
            wait_until_server_knows_there_are_no_roots(client);
        }
        wait_for_roots(&first, "first");
    }
    // The next background gateway knows from the start that the server asks for roots.
    assert!(environment.toolcrib(&["stop"]).status().unwrap().success());
    let starts = count(&environment.log("files"), "start");
    let plain = [(); 2].map(|()| client_without_roots(&environment, Era::Older));
    for client in &plain {
        wait_until_server_knows_there_are_no_roots(client);
    }
    let client = environment.shared(Era::Older);
    wait_for_roots(&client, "later");
    assert_eq!(owners(&environment), [None, Some(3)]);
    assert_eq!(count(&environment.log("files"), "start"), starts + 2);
}

/// A server that asks for roots only during calls is found to do so by its first such call.
#[test]
fn a_process_that_learned_roots_during_a_call_is_stopped_after_it() {
    for era in ERAS {
        let environment = TestEnvironment::new(&format!("call-roots-{era:?}"))
            .faulty("files", &[])
            .background("1m");
        let plain = client_without_roots(&environment, era);
        plain.ready("files__echo");
        let client = environment.shared(Era::Older);
        let call = client.begin("files__roots", json!({}));
        let question = client.wait_for_question("roots/list").expect("a question");
        client.reply(&question["id"], &roots("mine"));
        assert_eq!(call.end()["structuredContent"]["result"], roots("mine"));
        until_true("the process is stopped", || count(&environment.log("files"), "exit") == 1);
        let answer = plain.call("files__echo", json!({"n": 1}));
        assert_eq!(answer["structuredContent"], json!({"n": 1}));
        assert_eq!(owners(&environment), [None]);
        assert_eq!(count(&environment.log("files"), "start"), 2);
    }
}
