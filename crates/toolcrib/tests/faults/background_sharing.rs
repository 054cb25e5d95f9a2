//! Tests that the clients of a background gateway share one set of servers, and that nothing of one client reaches
//! another.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{count, is_alive, lines, until, until_true};
use crate::raw_client::{ERAS, Era, RawClient};

/// Calls the tool of a server that returns its arguments.
fn echo(peer: &RawClient, server: &str, value: &Value) -> Value {
    peer.call(&format!("{server}__echo"), value.clone())["structuredContent"].take()
}

/// Returns the servers of the background gateway with this name.
fn processes(environment: &TestEnvironment, name: &str) -> Vec<Value> {
    let status = environment.background_status().unwrap();
    let servers = status["servers"].as_array().unwrap().clone();
    servers.into_iter().filter(|server| server["name"] == name).collect()
}

#[test]
fn ten_clients_use_one_set_of_servers() {
    let environment =
        TestEnvironment::new("ten").faulty("one", &[]).faulty("two", &[]).background("1m");
    let clients: Vec<RawClient> =
        (0..10).map(|number| environment.shared(ERAS[number % 2])).collect();
    for (number, client) in clients.iter().enumerate() {
        client.ready("one__echo");
        client.ready("two__echo");
        assert_eq!(echo(client, "two", &json!({"n": number})), json!({"n": number}));
    }
    let status = environment.background_status().unwrap();
    assert_eq!(status["clients"].as_array().unwrap().len(), 10, "{status}");
    for name in ["one", "two"] {
        let found = processes(&environment, name);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["sharing"], "shared by all clients (default)");
        assert!(found[0]["requests"].as_u64().unwrap() >= 10, "{found:?}");
        assert!(found[0]["memory"].as_u64().unwrap() > 100_000, "{found:?}");
        assert_eq!(count(&environment.log(name), "start"), 1);
    }
    let own = environment.stdio(Era::Older);
    own.ready("one__echo");
    assert_eq!(count(&environment.log("one"), "start"), 2, "`--own` starts another process");
}

#[test]
fn a_server_that_refers_to_the_working_folder_has_a_process_for_each_folder() {
    let environment = TestEnvironment::new("folders")
        .faulty("plain", &[])
        .faulty_with("local", &[], "cwd = '${workspaceFolder}'")
        .background("1m");
    let (a, b) = (environment.folder.join("a"), environment.folder.join("b"));
    let clients = [&a, &b, &a].map(|folder| (folder, environment.shared_in(Era::Older, folder)));
    for (folder, client) in &clients {
        client.ready("plain__echo");
        client.ready("local__echo");
        let found = client.call("local__cwd", json!({}))["structuredContent"].to_string();
        assert!(found.contains(folder.to_str().unwrap()), "{found}");
    }
    assert_eq!(count(&environment.log("plain"), "start"), 1);
    assert_eq!(count(&environment.log("local"), "start"), 2);
    assert_eq!(processes(&environment, "local").len(), 2);
}

#[test]
fn servers_that_keep_state_have_a_process_for_each_client() {
    let environment = TestEnvironment::new("stateful").faulty("my-browser", &[]).background("1m");
    let pids = |log: &std::path::Path| {
        lines(log, "start").iter().map(|pid| pid.parse::<u32>().unwrap()).collect::<Vec<_>>()
    };
    let log = environment.log("my-browser");
    let one = environment.shared(Era::Older);
    one.ready("my-browser__echo");
    let before = pids(&log).len();
    let two = environment.shared(Era::Newer);
    two.ready("my-browser__echo");
    let started = pids(&log);
    assert_eq!(started.len(), before + 1, "the second client has its own process");
    let own = *started.last().unwrap();
    let found = processes(&environment, "my-browser");
    let clients: BTreeSet<_> = found.iter().filter_map(|it| it["client"].as_u64()).collect();
    assert_eq!(clients, [1, 2].into(), "{found:?}");
    drop(two);
    until_true("the process of the client ends with it", || !is_alive(own));
    assert_eq!(echo(&one, "my-browser", &json!({"n": 1})), json!({"n": 1}));
}

/// A server asks for its client's roots. As long as one client uses it, that client is asked. Then each client gets its
/// own process, which asks that client.
#[test]
fn a_server_that_asks_gets_a_process_for_each_client() {
    let environment = TestEnvironment::new("asks").faulty("nosy", &[]).background("1m");
    let ask = |peer: &RawClient, word: &str| {
        let call = peer.begin("nosy__elicit", json!({}));
        let question = peer.wait_for_question("elicitation/create").expect("a question");
        peer.reply(&question["id"], &json!({"action": "accept", "content": {"word": word}}));
        let answer = call.end();
        assert_eq!(answer["structuredContent"]["result"]["content"]["word"], word, "{answer}");
    };
    {
        let (one, two) = (environment.shared(Era::Older), environment.shared(Era::Older));
        one.ready("nosy__echo");
        assert_eq!(processes(&environment, "nosy").len(), 1);
        ask(&one, "first");
        // Now both clients ask at the same time, which a shared process could not tell apart.
        let calls = [&one, &two].map(|peer| peer.begin("nosy__elicit", json!({})));
        for (peer, word) in [(&two, "two"), (&one, "one")] {
            let question = peer.wait_for_question("elicitation/create").expect("a question");
            peer.reply(&question["id"], &json!({"action": "accept", "content": {"word": word}}));
        }
        for (call, word) in calls.iter().zip(["one", "two"]) {
            let answer = call.end();
            assert_eq!(answer["structuredContent"]["result"]["content"]["word"], word, "{answer}");
        }
        let found = processes(&environment, "nosy");
        let reason =
            "one process for each client (it asks questions without saying for which call)";
        assert!(found.iter().all(|server| server["sharing"] == reason), "{found:?}");
    }
    // The next background gateway knows this from the start.
    assert!(environment.toolcrib(&["stop"]).status().unwrap().success());
    let (one, two) = (environment.shared(Era::Older), environment.shared(Era::Older));
    ask(&one, "one");
    ask(&two, "two");
    let clients = processes(&environment, "nosy");
    let clients: Vec<_> = clients.iter().filter_map(|server| server["client"].as_u64()).collect();
    assert_eq!(clients, [1, 2]);
}

/// What a process lists may depend on what its client has done, so other clients must not see it.
#[test]
fn a_client_sees_the_lists_of_its_own_process() {
    let environment = TestEnvironment::new("own-lists")
        .faulty_with("app", &["--learns"], "share = 'session'")
        .with("[activation]\nmode = 'off'")
        .background("1m");
    let (one, two) = (environment.shared(Era::Older), environment.shared(Era::Newer));
    for client in [&one, &two] {
        client.ready("app__echo");
    }
    let has = |client: &RawClient, tool: &str| client.names().iter().any(|name| name == tool);
    // Only a client that has fetched the list before the change is notified.
    assert!(!has(&one, "app__close_account_of_one"));
    one.call("app__learn", json!({"name": "close_account_of_one"}));
    one.wait_for_message("notifications/tools/list_changed").expect("a notification");
    until_true("the client sees its tool", || has(&one, "app__close_account_of_one"));
    two.call("app__learn", json!({"name": "two"}));
    until_true("the other client sees its own", || has(&two, "app__two"));
    for (client, own, other) in
        [(&one, "close_account_of_one", "two"), (&two, "two", "close_account_of_one")]
    {
        let names = client.names();
        assert!(names.contains(&format!("app__{own}")), "{names:?}");
        assert!(!names.contains(&format!("app__{other}")), "{names:?}");
        assert_eq!(echo_tool(client, &format!("app__{own}")), json!({"n": 1}));
        let refused = client.call(&format!("app__{other}"), json!({}));
        let missing = format!("there is no tool `app__{other}`");
        assert_eq!(refused["error"]["message"], missing, "{refused}");
    }
    // A later client begins with what the server lists at its start.
    let three = environment.shared(Era::Older);
    three.ready("app__echo");
    assert!(!has(&three, "app__two") && !has(&three, "app__close_account_of_one"));
}

fn echo_tool(client: &RawClient, tool: &str) -> Value {
    client.call(tool, json!({"n": 1}))["structuredContent"].take()
}

#[test]
fn clients_with_different_profiles_share_processes_and_see_only_their_own_tools() {
    let environment = TestEnvironment::new("profiles")
        .faulty("left", &[])
        .faulty("right", &[])
        .with("[profiles.l]\nservers = ['left']\n[profiles.r]\nservers = ['right']")
        .background("1m");
    let client = |profile| {
        RawClient::stdio(environment.toolcrib(&["mcp", "--profile", profile]), Era::Older)
    };
    let (left, right) = (client("l"), client("r"));
    left.ready("left__echo");
    right.ready("right__echo");
    for (peer, hidden) in [(&left, "right"), (&right, "left")] {
        let answer = peer.call(&format!("{hidden}__echo"), json!({}));
        let missing = format!("there is no tool `{hidden}__echo`");
        assert_eq!(answer["error"]["message"], missing, "{answer}");
        assert!(!peer.ask("tools/list", json!({})).to_string().contains(hidden));
    }
    let status = environment.background_status().unwrap();
    assert_eq!(status["servers"].as_array().unwrap().len(), 2, "{status}");
}

/// Several clients with different folders and profiles make many requests at the same time, each with words of its own.
/// No message that one of them receives contains a word of another.
#[test]
fn nothing_crosses_between_clients() {
    let environment = TestEnvironment::new("crossing")
        .faulty("shared", &["--progress", "3", "--slow", "2", "--tools", "20"])
        .faulty_with("local", &["--slow", "1"], "cwd = '${workspaceFolder}'")
        .with("[profiles.some]\nservers = ['shared']")
        .background("1m");
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for number in 0..6_u64 {
            let (environment, failures) = (&environment, &failures);
            scope.spawn(move || {
                let folder = environment.folder.join(format!("word{number}x"));
                std::fs::create_dir_all(&folder).unwrap();
                let is_narrow = number % 3 == 2;
                let more: &[&str] = if is_narrow { &["--profile", "some"] } else { &[] };
                let mut command = environment.toolcrib(&[&["mcp"], more].concat());
                command.current_dir(&folder);
                let peer = RawClient::stdio(command, ERAS[number as usize % 2]);
                let own = format!("word{number}x");
                peer.ready("shared__echo");
                if !is_narrow {
                    peer.ready("local__echo");
                }
                // A different order for each client, without randomness.
                for step in 0..40_u64 {
                    let value = json!({"word": own, "step": step});
                    match (step * (number * 2 + 1) + number) % 5 {
                        0 | 1 => assert_eq!(echo(&peer, "shared", &value), value),
                        2 => {
                            let meta = json!({"progressToken": "same"});
                            let call =
                                json!({"name": "shared__progress", "arguments": {}, "_meta": meta});
                            assert_eq!(
                                peer.ask("tools/call", call)["content"][0]["text"],
                                "It is done."
                            );
                        }
                        3 if !is_narrow && number % 2 == 0 => {
                            let found = peer.call("local__cwd", json!({})).to_string();
                            assert!(found.contains(&own), "{found}");
                            let question = peer.begin("local__elicit", json!({}));
                            let asked = peer.wait_for_question("elicitation/create").unwrap();
                            let answer = json!({"action": "accept", "content": {"word": own}});
                            peer.reply(&asked["id"], &answer);
                            let answer = question.end().to_string();
                            assert!(
                                answer.contains(&own) || answer.contains("several clients"),
                                "{answer}"
                            );
                        }
                        _ => {
                            peer.search(&own);
                        }
                    }
                }
                let messages = peer.messages_so_far();
                let reports = messages.iter().filter(|it| it["method"] == "notifications/progress");
                let sent = (0..40_u64).filter(|step| (step * (number * 2 + 1) + number) % 5 == 2);
                assert_eq!(reports.count(), sent.count() * 3);
                for message in messages.iter().map(ToString::to_string) {
                    let other = (0..6).filter(|it| *it != number).map(|it| format!("word{it}x"));
                    let crossed = other.into_iter().any(|word| message.contains(&word));
                    let hidden = is_narrow && message.contains("local__");
                    if crossed || hidden {
                        failures.lock().unwrap().push((number, message));
                    }
                }
            });
        }
    });
    assert_eq!(failures.into_inner().unwrap(), []);
}

#[test]
fn a_changed_config_separates_clients_for_which_it_means_different_servers() {
    let environment = TestEnvironment::new("separate").faulty("plain", &[]).background("1m");
    let (a, b) = (environment.folder.join("a"), environment.folder.join("b"));
    let one = environment.shared_in(Era::Older, &a);
    let two = environment.shared_in(Era::Older, &b);
    one.ready("plain__echo");
    two.ready("plain__echo");
    let local = TestEnvironment::new("separate-text").faulty_with(
        "local",
        &[],
        "cwd = '${workspaceFolder}'",
    );
    environment.write(&format!("{}\n{}", environment.text(), local.text()));
    for (peer, folder) in [(&one, &a), (&two, &b)] {
        let found = until("the new server runs in the folder of the client", || {
            let found = peer.call("local__cwd", json!({}))["structuredContent"].to_string();
            found.contains("cwd").then_some(found)
        });
        assert!(found.0.contains(folder.to_str().unwrap()), "{found:?}");
    }
    assert_eq!(count(&environment.log("plain"), "start"), 1, "it is still shared");
}
