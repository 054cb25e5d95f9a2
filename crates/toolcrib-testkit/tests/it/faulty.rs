//! Tests each fault of `faulty-server`.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::peer::Peer;

fn start(arguments: &[&str]) -> Peer {
    Peer::start(env!("CARGO_BIN_EXE_faulty-server"), arguments)
}

fn names(list: &Value) -> Vec<&str> {
    list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn without_faults_it_is_a_server_of_the_older_protocol() {
    let mut peer = start(&["--tools", "2"]);
    assert_eq!(peer.initialize()["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(peer.ask("server/discover", json!({}))["error"]["code"], -32601);
    assert_eq!(
        names(&peer.ask("tools/list", json!({}))),
        ["echo", "elicit", "sample", "roots", "env", "cwd", "cargo", "tool_0", "tool_1"]
    );
    let arguments = json!({"b": 1, "a": [2.5, null]});
    assert_eq!(
        peer.call("echo", arguments.clone()),
        json!({
            "content": [{"type": "text", "text": arguments.to_string()}],
            "structuredContent": arguments,
        })
    );
    assert_eq!(peer.end(), (Some(0), String::new()));
}

#[test]
fn unknown_fields_are_sent_as_written() {
    let mut peer = start(&[]);
    peer.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let list = String::from_utf8(peer.line()).unwrap();
    assert!(list.contains(r#"{"zone":"unknown field before the name","name":"cargo""#), "{list}");
    assert!(list.contains(r#""default":1.50"#), "{list}");
    peer.send(
        &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "cargo"}}),
    );
    let result = String::from_utf8(peer.line()).unwrap();
    assert!(result.contains(r#"{"type":"hologram","depth":3.0"#), "{result}");
    assert!(serde_json::from_str::<Value>(&result).is_ok());
}

#[test]
fn a_hanging_call_does_not_block_others_and_its_cancellation_is_logged() {
    let mut peer = start(&["--hang", "stuck"]);
    peer.send(
        &json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "stuck"}}),
    );
    assert_eq!(peer.call("echo", json!({}))["structuredContent"], json!({}));
    peer.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7},
    }));
    assert_eq!(peer.end(), (Some(0), "cancelled 7\n".to_owned()));
}

#[test]
fn a_huge_line_has_the_requested_size() {
    let mut peer = start(&["--huge-line", "1000000"]);
    peer.send(
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "huge"}}),
    );
    let line = peer.line();
    assert_eq!(line.len(), 1_000_001);
    assert!(serde_json::from_slice::<Value>(&line).is_ok());
}

#[test]
fn garbage_precedes_the_response() {
    let mut peer = start(&["--garbage"]);
    peer.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    let lines: Vec<_> = (0..8).map(|_| peer.line()).collect();
    assert_eq!(lines[7], b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n");
    assert!(lines.iter().any(|line| std::str::from_utf8(line).is_err()));
    assert!(lines.iter().any(|line| line.starts_with(b"[")));
}

#[test]
fn each_page_has_one_tool_and_the_last_has_no_cursor() {
    let mut peer = start(&["--pages", "1000000"]);
    let first = peer.ask("tools/list", json!({}));
    assert_eq!((names(&first), &first["result"]["nextCursor"]), (vec!["echo"], &json!("1")));
    let last = peer.ask("tools/list", json!({"cursor": "999999"}));
    assert_eq!((names(&last), last["result"].get("nextCursor")), (vec!["tool_999999"], None));
}

#[test]
fn it_exits_as_configured() {
    let mut peer = start(&["--die-on", "echo"]);
    peer.send(
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}),
    );
    assert_eq!(peer.line(), b"");
    assert_eq!(peer.end().0, Some(1));
    let mut peer = start(&["--die-after", "50", "--never-answer"]);
    peer.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    assert_eq!(peer.line(), b"");
    assert_eq!(peer.end().0, Some(1));
}

#[test]
fn slow_calls_overlap() {
    let slow = Duration::from_millis(500);
    let mut peer = start(&["--slow", &slow.as_millis().to_string()]);
    let begin = Instant::now();
    for id in 0..100 {
        let params = json!({"name": "echo"});
        peer.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    for _ in 0..100 {
        peer.receive();
    }
    let took = begin.elapsed();
    // If the calls did not overlap, the 100 calls would take at least 50 s on any machine.
    assert!(took >= slow && took < slow * 100, "{took:?}");
}

#[test]
fn it_waits_for_a_file_and_exits_after_its_list() {
    let folder = tempfile::tempdir().unwrap();
    let [file, log] = ["go", "log"].map(|name| folder.path().join(name));
    let [when, to] = [&file, &log].map(|path| path.to_str().unwrap());
    let mut peer = start(&["--start-when", when, "--die-after-list", "1", "--log", to]);
    peer.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}));
    while !fs::read_to_string(&log).is_ok_and(|log| log.contains("initialize")) {
        std::thread::yield_now();
    }
    fs::write(file, "").unwrap();
    assert_eq!(peer.receive()["id"], 1);
    assert!(names(&peer.ask("tools/list", json!({}))).contains(&"echo"));
    assert_eq!(peer.line(), b"");
    assert_eq!(peer.end().0, Some(1));
}

#[test]
fn a_storm_of_changes_follows_the_response_and_list_requests_are_counted() {
    let mut peer = start(&["--storm", "1000"]);
    peer.call("storm", json!({}));
    for _ in 0..1000 {
        assert_eq!(peer.receive()["method"], "notifications/tools/list_changed");
    }
    peer.ask("tools/list", json!({}));
    assert_eq!(peer.call("lists", json!({}))["structuredContent"], json!({"lists": 1}));
}

#[test]
fn progress_is_reported_if_the_call_has_a_token() {
    let mut peer = start(&["--progress", "2"]);
    assert!(peer.call("progress", json!({})).is_object());
    let params = json!({"name": "progress", "_meta": {"progressToken": "p"}});
    peer.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    for done in 1..=2 {
        assert_eq!(
            peer.receive()["params"],
            json!({"progressToken": "p", "progress": done, "total": 2})
        );
    }
    assert_eq!(peer.receive()["id"], 1);
}

#[test]
fn the_clients_answer_is_returned() {
    for (tool, method) in [
        ("elicit", "elicitation/create"),
        ("sample", "sampling/createMessage"),
        ("roots", "roots/list"),
    ] {
        let mut peer = start(&[]);
        peer.send(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}),
        );
        let question = peer.receive();
        assert_eq!(question["method"], method);
        peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"said": tool}}));
        let reply = json!({"result": {"said": tool}});
        assert_eq!(peer.receive()["result"]["structuredContent"], reply);
    }
}

#[test]
fn events_are_written_to_the_journal() {
    let path = std::env::temp_dir().join(format!("toolcrib-journal-{}", std::process::id()));
    let mut peer = start(&["--log", path.to_str().unwrap(), "--start-delay", "10"]);
    peer.initialize();
    peer.ask("tools/list", json!({}));
    peer.call("cwd", json!({}));
    peer.end();
    let journal = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let (start, rest) = journal.split_once('\n').unwrap();
    assert!(start.starts_with("start "), "{start}");
    assert_eq!(rest, "initialize\nlist\ncall cwd\nexit\n");
}

#[cfg(target_os = "linux")]
#[test]
fn one_grandchild_is_in_the_process_group_and_one_is_not() {
    /// Returns the process group and the session of a process, from `/proc`.
    fn group_and_session(pid: &Value) -> (String, String) {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        (fields[2].to_owned(), fields[3].to_owned())
    }
    let mut peer = start(&["--grandchild"]);
    let pids = peer.call("pids", json!({}))["structuredContent"].take();
    // `setsid` needs a moment to create its session.
    let (begin, own) = (Instant::now(), pids["session"].to_string());
    while group_and_session(&pids["session"]).1 != own {
        assert!(
            begin.elapsed() < Duration::from_mins(2),
            "the grandchild has no session of its own"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(group_and_session(&pids["group"]), group_and_session(&pids["own"]));
    for name in ["group", "session"] {
        let pid = pids[name].to_string();
        assert!(std::process::Command::new("kill").arg(pid).status().unwrap().success());
    }
}

#[test]
fn tools_can_be_read_from_a_file_and_a_change_is_announced() {
    let folder = tempfile::tempdir().unwrap();
    let [file, draft] = ["tools.json", "draft.json"].map(|name| folder.path().join(name));
    // The file is replaced atomically, because the server would also announce a partly written file.
    let define = |names: &[&str]| {
        let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
        let tools: Vec<Value> = names.iter().map(tool).collect();
        fs::write(&draft, Value::from(tools).to_string()).unwrap();
        fs::rename(&draft, &file).unwrap();
    };
    define(&["elicit", "env"]);
    let mut peer = start(&["--define", file.to_str().unwrap()]);
    assert_eq!(names(&peer.ask("tools/list", json!({}))), ["elicit", "env"]);
    for name in ["elicit", "env"] {
        assert_eq!(peer.call(name, json!({"a": 1}))["structuredContent"], json!({"a": 1}));
    }
    define(&["other"]);
    assert_eq!(peer.receive()["method"], "notifications/tools/list_changed");
    assert_eq!(names(&peer.ask("tools/list", json!({}))), ["other"]);
    let unknown = peer.ask("tools/call", json!({"name": "env"}));
    assert_eq!(unknown["error"]["message"], "unknown tool: `env`");
}
