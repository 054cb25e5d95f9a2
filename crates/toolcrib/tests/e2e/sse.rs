//! Tests with real servers over HTTP+SSE, the HTTP transport of protocol version 2024-11-05.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::everything::{calls, direct, everything};
use crate::support::client::Era;
use crate::support::gateway::{CONNECTIONS, DEFERRED, Home, IN_FULL, connect, wait_until_ready};
use crate::support::pair::Pair;
use crate::support::wire::Process;
use crate::support::{Program, eventually, node, peer, root};

/// A server that listens on a free port. It is killed when this is dropped.
struct SseServer {
    url: String,
    _process: Process,
}

impl SseServer {
    /// Starts a server. `program` returns its command for a port.
    fn start(program: impl FnOnce(u16) -> Program) -> Self {
        // The port is free again before the server takes it. Another process could take it in between, but the system
        // reuses ports only after all others.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let program = program(address.port());
        let child = Command::new(&program[0])
            .args(&program[1..])
            .env("PORT", address.port().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let process = Process(child);
        eventually("the server listens", || TcpStream::connect(address).ok());
        Self { url: format!("http://{address}/sse"), _process: process }
    }

    fn everything() -> Self {
        let script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
        Self::start(|_| node(&peer(script), &["sse"]))
    }

    fn python() -> Self {
        let script = root().join("tests/servers/sse_server.py").to_str().unwrap().to_owned();
        Self::start(|port| vec![peer("python/bin/python"), script, port.to_string()])
    }

    /// Returns the server's section of the config.
    fn section(&self, name: &str, more: &str) -> String {
        let url = &self.url;
        format!("[servers.{name}]\nurl = '{url}'\nstart_timeout = 600\ncall_timeout = 600\n{more}")
    }
}

/// Results, progress and questions to the client are the same as from the server over stdio.
fn arrives_unchanged(connection: (&'static str, Era)) {
    let server = SseServer::everything();
    let section = server.section("everything", "transport = 'sse'\n");
    let mut pair = Pair::with_config("everything", &section, &everything(), connection, direct);
    for (tool, arguments) in calls() {
        pair.call(tool, &arguments);
    }
}

#[test]
fn every_kind_of_content_arrives_unchanged_from_sse_in_a_session() {
    arrives_unchanged(CONNECTIONS[0]);
}

#[test]
fn every_kind_of_content_arrives_unchanged_from_sse_without_a_session() {
    arrives_unchanged(CONNECTIONS[3]);
}

#[test]
fn an_update_of_a_resource_arrives_from_sse() {
    let server = SseServer::everything();
    let home = Home::new(&format!("{DEFERRED}{}", server.section("everything", "")));
    let (mut client, _gateway) = connect(&home, CONNECTIONS[2]);
    wait_until_ready(&mut client);
    let uri = "everything+demo://resource/dynamic/text/1";
    client.result("resources/subscribe", &json!({"uri": uri}));
    let toggle = json!({"name": "everything__toggle-subscriber-updates", "arguments": {}});
    let started = client.start("tools/call", json!({"name": "tool_call", "arguments": toggle}));
    let notification = client.wait_for_message("notifications/resources/updated");
    assert_eq!(notification["params"], json!({"uri": uri}));
    assert!(client.finish(started).get("result").is_some());
}

/// A server of the Python SDK is found without `transport`. Its progress, its questions and its changes arrive.
#[test]
fn a_python_server_over_sse_is_found_without_configuration() {
    let server = SseServer::python();
    let home = Home::new(&format!("{IN_FULL}{}", server.section("events", "")));
    let doctor = home.doctor();
    let mut command = Command::new(&doctor[0]);
    command.args(&doctor[1..]).env("HOME", home.path());
    let report = command.env("XDG_STATE_HOME", home.path().join("state")).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let row = &report["servers"][0];
    assert_eq!((&row["state"], &row["transport"]), (&"up".into(), &"sse".into()), "{row}");

    let (mut client, _gateway) = connect(&home, CONNECTIONS[0]);
    eventually("the server's tools", || (client.tools().len() == 3).then_some(()));
    let counted = client.call("events__count", &json!({"to": 3}));
    assert_eq!(counted.answer["result"]["structuredContent"], json!({"result": 3}));
    let progress: Vec<&Value> =
        counted.messages.iter().map(|message| &message["params"]["progress"]).collect();
    assert_eq!(progress, [1.0, 2.0, 3.0]);
    let asked = client.call("events__ask", &json!({}));
    assert_eq!(asked.messages[0]["params"]["message"], "[server \"events\"] Which word?");
    assert_eq!(asked.answer["result"]["content"][0]["text"], "accept: kiwi");
    let started = client.start("tools/call", json!({"name": "events__grow", "arguments": {}}));
    client.wait_for_message("notifications/tools/list_changed");
    client.finish(started);
    let grown = client.call("events__grown", &json!({}));
    assert_eq!(grown.answer["result"]["content"][0]["text"], "grown");
}
