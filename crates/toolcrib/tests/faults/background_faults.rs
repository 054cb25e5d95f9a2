//! Tests of a background gateway that crashes, hangs or cannot be used, and tests of how it ends. The durations that they
//! print are in docs/gateway.md.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{count, is_alive, last_start, processes_with, signal, until_true};
use crate::raw_client::{ERAS, Era, RawClient};
use crate::{print_duration, print_figure};

fn echo(peer: &RawClient, value: &Value) -> Value {
    peer.call("shop__echo", value.clone())["structuredContent"].take()
}

/// Returns the socket of the background gateway.
fn socket(environment: &TestEnvironment) -> PathBuf {
    let entries = std::fs::read_dir(environment.background_folder()).unwrap().flatten();
    let mut sockets = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "sock"));
    sockets.next().expect("a socket")
}

#[test]
fn a_killed_background_gateway_is_replaced_and_each_open_call_gets_an_answer() {
    let environment = TestEnvironment::new("kill-background")
        .faulty("shop", &["--hang", "hang"])
        .background("1m");
    let clients: Vec<RawClient> = (0..5).map(|n| environment.shared(ERAS[n % 2])).collect();
    for client in &clients {
        client.ready("shop__echo");
    }
    let calls: Vec<_> = clients
        .iter()
        .flat_map(|client| (0..10).map(move |_| client.begin("shop__hang", json!({}))))
        .collect();
    let log = environment.log("shop");
    until_true("the server has all calls", || count(&log, "call hang") == 50);
    let (killed, server) = (environment.background_pid(), last_start(&log).unwrap());
    // A request that changes nothing is sent again.
    let lists: Vec<_> =
        clients.iter().map(|client| client.start("tools/list", json!({}))).collect();
    let began = Instant::now();
    signal(killed, "-KILL");
    for call in &calls {
        let answer = call.end();
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("may or may not have been executed"), "{answer}");
        assert_eq!(answer["isError"], true);
    }
    print_duration("50 calls answered after the background gateway was killed", began.elapsed());
    for list in lists {
        assert!(list.end()["tools"].is_array());
    }
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(echo(client, &json!({"n": number})), json!({"n": number}));
    }
    print_duration("5 clients call the server of the next background gateway", began.elapsed());
    assert_ne!(environment.background_pid(), killed);
    assert_eq!(count(&log, "call hang"), 50, "no call is sent twice");
    assert_eq!(count(&log, "start"), 2, "the clients share the next one as well");
    until_true("the server of the killed one ends", || !is_alive(server));
}

/// The log level of the client and its ability to answer questions survive the loss of a background gateway.
#[test]
fn the_log_level_and_questions_work_after_the_background_gateway_was_killed() {
    let environment =
        TestEnvironment::new("setup").fixture("fixture", "share = 'all'").background("1m");
    let peer = environment.shared(Era::Older);
    until_true("the server answers", || {
        peer.call("fixture__test_simple_text", json!({}))["content"].is_array()
    });
    assert_eq!(peer.ask("logging/setLevel", json!({"level": "debug"})), json!({}));
    for round in 0..3 {
        signal(environment.background_pid(), "-KILL");
        until_true("the server answers again", || {
            peer.call("fixture__test_simple_text", json!({}))["content"].is_array()
        });
        let call = peer.begin("fixture__test_elicitation", json!({"message": "Who?"}));
        let question = peer.wait_for_question("elicitation/create").expect("a question");
        peer.reply(&question["id"], &json!({"action": "decline"}));
        assert!(call.end().to_string().contains("decline"));
        let before = logs(&peer);
        peer.call("fixture__test_tool_with_logging", json!({}));
        assert_eq!(logs(&peer) - before, 3, "round {round}: the log level is set again");
    }
    let messages = peer.messages_so_far();
    let mut ids: Vec<String> = messages
        .iter()
        .filter(|message| message["method"] == "elicitation/create")
        .map(|message| message["id"].to_string())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each question has an id of its own");
}

fn logs(peer: &RawClient) -> usize {
    let messages = peer.messages_so_far();
    messages.iter().filter(|message| message["method"] == "notifications/message").count()
}

#[test]
fn a_server_that_is_killed_while_it_starts_fails_only_that_call() {
    let environment = TestEnvironment::new("lazy-kill-shared");
    let may_start = environment.folder.join("may-start");
    std::fs::write(&may_start, "").unwrap();
    let environment =
        environment.faulty("shop", &["--start-when", may_start.to_str().unwrap()]).background("1m");
    environment.shared(Era::Older).ready("shop__echo");
    assert!(environment.toolcrib(&["stop"]).status().unwrap().success());
    std::fs::remove_file(&may_start).unwrap();
    let log = environment.log("shop");
    let (one, two) = (environment.shared(Era::Older), environment.shared(Era::Newer));
    let handshakes = count(&log, "initialize");
    let first = one.begin("shop__echo", json!({"n": 1}));
    // A server that ends before the handshake is started again, because some servers exit on the probe.
    until_true("the call starts the server", || count(&log, "initialize") == handshakes + 1);
    let began = Instant::now();
    signal(last_start(&log).unwrap(), "-KILL");
    let answer = first.end();
    print_duration("the call that started a killed server gets an error", began.elapsed());
    let text = answer["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("killed by signal 9"), "{answer}");
    std::fs::write(&may_start, "").unwrap();
    until_true("a call of another client is answered", || {
        echo(&two, &json!({"n": 2})) == json!({"n": 2})
    });
    print_duration("another client has called the killed server", began.elapsed());
}

#[test]
fn a_background_gateway_ends_when_it_is_idle() {
    let environment = TestEnvironment::new("idle-end").faulty("shop", &[]).background("0.3s");
    let peer = environment.shared(Era::Older);
    peer.ready("shop__echo");
    let (gateway, server) =
        (environment.background_pid(), last_start(&environment.log("shop")).unwrap());
    drop(peer);
    until_true("the background gateway ends", || !is_alive(gateway));
    until_true("its server ends", || !is_alive(server));
    assert!(!socket_exists(&environment));
    assert!(environment.background_status().is_none());
}

/// A background gateway that neither ends nor answers, here because it is suspended.
#[test]
fn a_background_gateway_that_hangs_is_noticed_during_a_call_and_can_be_stopped() {
    let environment =
        TestEnvironment::new("hung").faulty("shop", &["--hang", "hang"]).background("1m");
    let first = environment.shared(Era::Older);
    first.ready("shop__echo");
    let config = environment.text();
    environment.write(&config.replace("= 600", "= 5\nbackground_check = 1"));
    let peer = environment.shared(Era::Older);
    peer.ready("shop__echo");
    let calls = [(); 3].map(|()| peer.begin("shop__hang", json!({})));
    until_true("the calls arrive", || count(&environment.log("shop"), "call hang") == 3);
    let gateway = environment.background_pid();
    let began = Instant::now();
    signal(gateway, "-STOP");
    for call in &calls {
        let answer = call.end().to_string();
        assert!(answer.contains("may or may not have been executed"), "{answer}");
    }
    print_duration("open calls answered after the background gateway hangs", began.elapsed());
    assert_eq!(echo(&peer, &json!({"n": 1})), json!({"n": 1}));
    print_duration("the client has a gateway of its own", began.elapsed());
    let log = environment.stderr();
    assert!(log.contains("the background gateway does not respond; `toolcrib stop` ends it"));
    assert!(log.contains("servers of its own"), "{log}");

    let stopped =
        environment.toolcrib(&["stop", "--json"]).stdout(Stdio::piped()).output().unwrap();
    assert!(stopped.status.success());
    let outcomes: Value = serde_json::from_slice(&stopped.stdout).unwrap();
    let expected = json!([{"pid": gateway, "done": "did not respond, and was killed"}]);
    assert_eq!(outcomes, expected);
    until_true("it is gone", || !is_alive(gateway));
    // The other client had no open request, so it did not notice anything.
    let answer = first.call("shop__echo", json!({"n": 2}));
    assert_eq!(answer["structuredContent"], json!({"n": 2}), "{answer}");
}

fn socket_exists(environment: &TestEnvironment) -> bool {
    let mut entries = std::fs::read_dir(environment.background_folder()).unwrap().flatten();
    entries.any(|entry| entry.path().extension().is_some_and(|ending| ending == "sock"))
}

#[test]
fn a_stopped_background_gateway_is_started_again_by_the_next_request() {
    let environment =
        TestEnvironment::new("stop").faulty("shop", &["--hang", "hang"]).background("1m");
    let peer = environment.shared(Era::Older);
    peer.ready("shop__echo");
    // A client of the newer protocol has a subscription that stays open.
    let subscriber = environment.shared(Era::Newer);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let subscription = subscriber.start("subscriptions/listen", wanted);
    let acknowledged = "notifications/subscriptions/acknowledged";
    subscriber.wait_for_message(acknowledged).expect("an acknowledgement");
    let hanging = peer.begin("shop__hang", json!({}));
    until_true("the call arrives", || count(&environment.log("shop"), "call hang") == 1);
    let server = last_start(&environment.log("shop")).unwrap();
    let stopped = environment.toolcrib(&["stop", "--json"]).output().unwrap();
    assert!(stopped.status.success());
    let text = hanging.end().to_string();
    assert!(text.contains("executed"), "{text}");
    until_true("the server ends", || !is_alive(server));
    let waits = "the background gateway was stopped; the next request starts it again";
    until_true("both clients wait", || environment.stderr().matches(waits).count() == 2);
    assert!(
        environment.background_status().is_none(),
        "an idle client does not start a background gateway"
    );
    assert_eq!(echo(&peer, &json!({"n": 1})), json!({"n": 1}));
    assert!(environment.background_status().is_some());
    assert_eq!(echo(&subscriber, &json!({"n": 2})), json!({"n": 2}));
    drop(subscription);
    let nothing = TestEnvironment::new("stop-nothing");
    assert_eq!(nothing.toolcrib(&["stop"]).status().unwrap().code(), Some(1));
}

#[test]
fn a_server_is_restarted_on_request() {
    let environment =
        TestEnvironment::new("restart").faulty("shop", &["--hang", "hang"]).background("1m");
    let peer = environment.shared(Era::Older);
    peer.ready("shop__echo");
    let log = environment.log("shop");
    let hanging = peer.begin("shop__hang", json!({}));
    until_true("the call arrives", || count(&log, "call hang") == 1);
    assert!(environment.toolcrib(&["restart", "shop"]).status().unwrap().success());
    let text = hanging.end().to_string();
    assert!(text.contains("it was restarted by the user"), "{text}");
    assert_eq!(echo(&peer, &json!({"n": 1})), json!({"n": 1}));
    assert_eq!(count(&log, "start"), 2, "{}", environment.background_log());
    let unknown = environment.toolcrib(&["restart", "shap"]).status().unwrap();
    assert_eq!(unknown.code(), Some(1));
    assert!(environment.stderr().contains("no server `shap`; its servers are: shop"));
}

/// For each reason why the socket may be unusable, the client is still served, and the log gives the reason.
#[test]
fn without_a_usable_socket_a_client_gets_servers_of_its_own() {
    let environment = TestEnvironment::new("unusable").faulty("shop", &[]).background("1m");
    let served = |reason: &str| {
        let before = environment.stderr().len();
        let began = Instant::now();
        let peer = environment.shared(Era::Older);
        peer.ready("shop__echo");
        print_duration(&format!("first call, if the socket {reason}"), began.elapsed());
        let log = environment.stderr()[before..].to_owned();
        assert!(log.contains("servers of its own"), "{reason}: {log}");
        assert!(log.contains(reason), "{reason}: {log}");
    };
    // The first start creates the folder.
    drop(environment.shared(Era::Older));
    assert!(environment.toolcrib(&["stop"]).status().unwrap().success());
    environment
        .write(&environment.text().replace("background_wait = 600", "background_wait = 0.3"));
    let name = std::fs::read_dir(environment.background_folder())
        .unwrap()
        .flatten()
        .find_map(|entry| {
            Some(entry.path().file_name()?.to_str()?.strip_suffix(".start")?.to_owned())
        })
        .unwrap();
    let socket = environment.background_folder().join(format!("{name}.sock"));

    // A process that accepts connections and never answers.
    let hanging = UnixListener::bind(&socket).unwrap();
    served("did not answer within 0.3 s");
    drop(hanging);
    std::fs::remove_file(&socket).unwrap();

    std::fs::write(&socket, "").unwrap();
    served("is not a socket of this user");
    std::fs::remove_file(&socket).unwrap();

    // Only root can give a file to another user.
    let foreign = UnixListener::bind(&socket).unwrap();
    if std::os::unix::fs::chown(&socket, Some(12_345), None).is_ok() {
        served("is not a socket of this user");
    }
    drop(foreign);
    std::fs::remove_file(&socket).unwrap();

    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(environment.background_folder(), open).unwrap();
    served("other users may write to");
    let private = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(environment.background_folder(), private).unwrap();
}

/// Nothing can be created below `/proc`, not even by root.
#[test]
fn on_a_disk_that_cannot_be_written_a_client_gets_servers_of_its_own() {
    let environment = TestEnvironment::new("read-only").faulty("shop", &[]).background("1m");
    let mut command = environment.toolcrib(&["mcp"]);
    command.env("XDG_STATE_HOME", "/proc/toolcrib-test");
    let began = Instant::now();
    let peer = RawClient::stdio(command, Era::Older);
    peer.ready("shop__echo");
    print_duration("first call, if the disk cannot be written", began.elapsed());
    assert!(environment.stderr().contains("servers of its own"), "{}", environment.stderr());
}

/// Some clients kill the process group of the command that they have started.
#[test]
fn a_background_gateway_survives_the_process_group_of_the_client_that_started_it() {
    let environment = TestEnvironment::new("group").faulty("shop", &[]).background("1m");
    let mut command = environment.toolcrib(&["mcp"]);
    command.process_group(0);
    let first = RawClient::stdio(command, Era::Older);
    first.ready("shop__echo");
    let second = environment.shared(Era::Older);
    let gateway = environment.background_pid();
    let group = format!("-{}", first.gateway());
    assert!(Command::new("kill").args(["-KILL", "--", &group]).status().unwrap().success());
    assert_eq!(echo(&second, &json!({"n": 1})), json!({"n": 1}));
    assert_eq!(environment.background_pid(), gateway);
    until_true("the killed client is gone", || {
        let status = environment.background_status().unwrap();
        status["clients"].as_array().unwrap().len() == 1
    });
}

/// Many clients start at the same moment, when no background gateway is running.
#[test]
fn clients_that_start_at_once_start_one_background_gateway() {
    let environment = TestEnvironment::new("at-once").faulty("shop", &[]).background("1m");
    environment.toolcrib(&["ps"]).status().unwrap();
    let clients: Vec<RawClient> = std::thread::scope(|scope| {
        let started: Vec<_> =
            (0..12).map(|_| scope.spawn(|| environment.shared(Era::Older))).collect();
        started.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for client in &clients {
        client.ready("shop__echo");
    }
    assert_eq!(count(&environment.log("shop"), "start"), 1);
    assert_eq!(
        environment.background_log().matches("the background gateway is running").count(),
        1
    );
    let folder = environment.folder.to_str().unwrap().to_owned();
    drop(clients);
    assert!(environment.toolcrib(&["stop"]).status().unwrap().success());
    until_true("nothing is left", || processes_with(&folder).is_empty());
    print_figure("sockets left", u8::from(socket_exists(&environment)));
    assert!(!socket_exists(&environment));
}

/// A socket that a killed background gateway has left behind is replaced.
#[test]
fn a_stale_socket_is_replaced() {
    let environment = TestEnvironment::new("stale").faulty("shop", &[]).background("1m");
    let peer = environment.shared(Era::Older);
    peer.ready("shop__echo");
    let killed = environment.background_pid();
    drop(peer);
    signal(killed, "-KILL");
    until_true("it is gone", || !is_alive(killed));
    assert!(socket(&environment).exists());
    assert!(environment.background_status().is_none());
    let began = Instant::now();
    let peer = environment.shared(Era::Older);
    peer.ready("shop__echo");
    print_duration("first call, if the socket is stale", began.elapsed());
    assert_ne!(environment.background_pid(), killed);
    assert!(!environment.stderr().contains("servers of its own"));
}
