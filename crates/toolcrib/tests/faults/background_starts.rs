//! Tests of how a background gateway starts and ends: what it inherits, how a failed start is reported, and when it is
//! over.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{count, processes_with, until_true};
use crate::raw_client::{Era, RawClient};
use crate::slow_client::SlowClient;

fn echo(peer: &RawClient, value: &Value) -> Value {
    peer.call("shop__echo", value.clone())["structuredContent"].take()
}

/// Returns a command that runs another one in a shell after some setup.
fn after(setup: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{setup}; exec \"$@\""), "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stderr(Stdio::null());
    shell
}

fn has_open(pid: u32, file: &Path) -> bool {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|link| link == file)
}

/// A client may run under a lock, or with a pipe that another program reads to its end.
#[test]
fn a_background_gateway_inherits_no_open_files_of_its_first_client() {
    let environment = TestEnvironment::new("files").faulty("shop", &[]).background("1m");
    let file = environment.folder.join("held");
    let command = environment.toolcrib(&["mcp"]);
    let holding = after(&format!("exec 9>'{}'", file.display()), &command);
    let client = RawClient::stdio(holding, Era::Older);
    client.ready("shop__echo");
    assert!(has_open(client.gateway(), &file), "the client itself has it");
    assert!(!has_open(environment.background_pid(), &file));
}

/// Servers inherit the umask of the process that starts them.
#[test]
fn clients_with_different_umasks_have_servers_of_their_own() {
    let environment = TestEnvironment::new("umask").faulty("shop", &[]).background("1m");
    let client = |umask| {
        let command = after(&format!("umask {umask}"), &environment.toolcrib(&["mcp"]));
        RawClient::stdio(command, Era::Older)
    };
    let (open, private, same) = (client("022"), client("077"), client("022"));
    for client in [&open, &private, &same] {
        client.ready("shop__echo");
    }
    assert_eq!(count(&environment.log("shop"), "start"), 2);
    drop((open, private, same));
    assert!(environment.toolcrib(&["stop"]).status().unwrap().success());
}

/// The client would wait for ten minutes if it did not learn that the start has failed.
#[test]
fn a_background_gateway_that_cannot_start_is_reported_at_once() {
    let environment = TestEnvironment::new("no-start").faulty("shop", &[]).background("1m");
    drop(environment.shared(Era::Older));
    assert!(environment.toolcrib(&["stop"]).status().unwrap().success());
    let lock = std::fs::read_dir(environment.background_folder())
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "lock"))
        .unwrap();
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let client = environment.shared(Era::Older);
    client.ready("shop__echo");
    let log = environment.stderr();
    assert!(log.contains("servers of its own"), "{log}");
    assert!(log.contains("the background gateway cannot be started: "), "{log}");
    assert!(log.contains(lock.to_str().unwrap()), "{log}");
}

/// The next servers may use the same files as the last ones.
#[test]
fn a_stop_waits_until_the_servers_have_ended() {
    for share in ["all", "session"] {
        check_stop_waits_for_servers(share);
    }
}

fn check_stop_waits_for_servers(share: &str) {
    let environment = TestEnvironment::new(&format!("stop-waits-{share}"));
    let server = crate::environment::testkit("faulty-server");
    let script = format!("'{}'; sleep 1", server.display());
    let text = format!(
        "[servers.shop]\ncommand = 'sh'\nargs = ['-c', {}, '{}']\nshare = '{share}'\n",
        Value::from(script),
        environment.folder.join("server").display()
    );
    let environment = environment.with(&text).background("1m");
    let client = environment.shared(Era::Older);
    client.ready("shop__echo");
    let server = environment.folder.join("server");
    let server = server.to_str().unwrap();
    assert!(!processes_with(server).is_empty(), "the server runs");
    let stopped = environment.toolcrib(&["stop"]).stdout(Stdio::piped()).output().unwrap();
    assert!(String::from_utf8_lossy(&stopped.stdout).ends_with(": stopped\n"), "{stopped:?}");
    assert_eq!(processes_with(server), [].into(), "{share}");
    // A request that arrives while the servers are ending waits, and then uses the next background gateway.
    client.ready("shop__echo");
    assert!(!environment.stderr().contains("servers of its own"), "{}", environment.stderr());
}

/// A client closes its side, but another process still holds its pipe and does not read.
#[test]
fn a_relay_ends_although_nobody_reads_its_last_messages() {
    let environment =
        TestEnvironment::new("unread").faulty("shop", &["--huge-line", "4000000"]).background("1m");
    environment.shared(Era::Older).ready("shop__echo");
    let mut client = SlowClient::start_with(environment.toolcrib(&["mcp"]));
    for id in 1..4 {
        let call = json!({"name": "shop__huge", "arguments": {}});
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}));
    }
    until_true("a call arrives", || count(&environment.log("shop"), "call huge") > 0);
    client.end();
}

/// File names need not be UTF-8.
#[test]
fn a_client_in_a_folder_whose_name_is_not_utf8_shares_servers() {
    let environment = TestEnvironment::new("bytes").faulty("shop", &[]).background("1m");
    let name = OsString::from_vec(vec![b'f', 0xff]);
    let client = environment.shared_in(Era::Older, &environment.folder.join(name));
    client.ready("shop__echo");
    assert!(!environment.stderr().contains("servers of its own"), "{}", environment.stderr());
    assert_eq!(environment.background_status().unwrap()["clients"][0]["pid"], client.gateway());
}

/// The background gateway notices a change of the config only after a moment. A client must not depend on that.
#[test]
fn a_client_can_use_a_profile_that_was_just_added() {
    let environment = TestEnvironment::new("new-profile").faulty("shop", &[]).background("1m");
    let first = environment.shared(Era::Older);
    first.ready("shop__echo");
    environment.write(&format!("{}\n[profiles.fresh]\nservers = ['shop']\n", environment.text()));
    let command = environment.toolcrib(&["mcp", "--profile", "fresh"]);
    let client = RawClient::stdio(command, Era::Older);
    client.ready("shop__echo");
    assert_eq!(count(&environment.log("shop"), "start"), 1, "it uses the same server");
}

/// Replaces the file that defines the tools of a server, so that the server never reads half of it.
fn define(file: &Path, tools: &[&str]) {
    let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
    let written = file.with_extension("new");
    std::fs::write(&written, tools.iter().map(tool).collect::<Value>().to_string()).unwrap();
    std::fs::rename(&written, file).unwrap();
}

/// For a client of the newer protocol, a subscription lasts until the client ends it.
#[test]
fn a_subscription_survives_a_stop() {
    let environment = TestEnvironment::new("subscribed");
    let file = environment.folder.join("tools.json");
    define(&file, &["echo"]);
    let environment = environment
        .faulty("shop", &["--define", file.to_str().unwrap()])
        .with("[activation]\nmode = 'off'")
        .background("1m");
    let client = environment.shared(Era::Newer);
    client.ready("shop__echo");
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let subscription = client.start("subscriptions/listen", wanted);
    let acknowledged = "notifications/subscriptions/acknowledged";
    client.wait_for_message(acknowledged).expect("an acknowledgement");
    assert!(environment.toolcrib(&["stop"]).status().unwrap().success());
    assert_eq!(echo(&client, &json!({"n": 1})), json!({"n": 1}));
    let changes = || {
        let is_change = |message: &&Value| message["method"] == "notifications/tools/list_changed";
        let id = "io.modelcontextprotocol/subscriptionId";
        let messages = client.messages_so_far();
        let changes: Vec<_> = messages.iter().filter(is_change).collect();
        assert!(
            changes.iter().all(|it| it["params"]["_meta"][id] == subscription.id),
            "{changes:?}"
        );
        changes.len()
    };
    // The list may have changed while no gateway was running.
    until_true("a notification after the stop", || changes() == 1);
    define(&file, &["echo", "pay"]);
    until_true("a notification of a change", || changes() == 2);
}
