//! Tests of malformed requests: each is answered with its id, and the next request is served.

use std::io::{Read as _, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{signal, until, until_true};
use crate::raw_client::Era;

/// Malformed lines, each with the error code and the id of the expected response.
const LINES: [(&str, i64, &str); 16] = [
    (r#"{"jsonrpc":"2.0","id":"a1","method":"tools/call","params":{"name":7}}"#, -32602, r#""a1""#),
    (r#"{"jsonrpc":"2.0","id":"a2","method":"tools/call"}"#, -32602, r#""a2""#),
    (r#"{"jsonrpc":"2.0","id":"a3","method":"tools/list","params":[]}"#, -32602, r#""a3""#),
    (
        r#"{"jsonrpc":"2.0","id":"a4","method":"tools/call","params":{"name":"x","_meta":7}}"#,
        -32602,
        r#""a4""#,
    ),
    (
        r#"{"jsonrpc":"2.0","id":"a5","method":"logging/setLevel","params":{"level":"loud"}}"#,
        -32602,
        r#""a5""#,
    ),
    (r#"{"jsonrpc":"2.0","id":"b1","method":7}"#, -32600, r#""b1""#),
    (r#"{"jsonrpc":"2.0","id":"b2"}"#, -32600, r#""b2""#),
    (r#"{"jsonrpc":"1.0","id":"b3","method":"ping"}"#, -32600, r#""b3""#),
    (r#"{"id":"b4","method":"ping"}"#, -32600, r#""b4""#),
    (r#"{"jsonrpc":"2.0","id":1.50,"method":"ping"}"#, -32600, "1.50"),
    (
        r#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"ping"}"#,
        -32600,
        "12345678901234567890123",
    ),
    (r#"{"jsonrpc":"2.0","id":"b5","method":"ping","result":{}}"#, -32600, r#""b5""#),
    (
        r#"[{"jsonrpc":"2.0","id":"b6","method":"ping"},{"jsonrpc":"2.0","method":"x"}]"#,
        -32600,
        r#""b6""#,
    ),
    (r#"{"jsonrpc":"2.0","id":"c1","method":"ping","params":"#, -32700, r#""c1""#),
    (
        r#"{"jsonrpc":"2.0","id":"c2","method":"tools/call","params":{"name":"x","arguments":{"n":1e400}}}"#,
        -32700,
        r#""c2""#,
    ),
    (r#"{"jsonrpc":"2.0","id":"c3","method":"no/such"}"#, -32601, r#""c3""#),
];

/// Messages that get no response.
const SILENT: [&str; 6] = [
    "no JSON",
    "7",
    r#"{"jsonrpc":"2.0","method":7}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
    r#"{"jsonrpc":"2.0","id":99,"result":{"n":1e400}}"#,
    r#"{"jsonrpc":"2.0","id":"x","result":7,"#,
];

#[test]
fn every_malformed_request_is_answered_with_its_id() {
    let environment = TestEnvironment::new("malformed").faulty("many", &[]);
    let peer = environment.stdio(Era::Older);
    for line in SILENT {
        peer.write(format!("{line}\n").as_bytes());
    }
    for (line, code, id) in LINES {
        peer.write(format!("{line}\n").as_bytes());
        let id: Value = serde_json::from_str(id).unwrap();
        let (error, _) = until(line, || {
            let answer = peer.messages_so_far().into_iter().find(|message| message["id"] == id)?;
            Some(answer["error"].clone())
        });
        assert_eq!(error["code"], code, "{line}: {error}");
    }
    peer.ready("many__echo");
    let answers =
        peer.messages_so_far().iter().filter(|message| message["error"].is_object()).count();
    assert_eq!(answers, LINES.len(), "{:?}", peer.messages_so_far());
}

/// A malformed request before the handshake is answered, too, and the handshake then continues.
#[test]
fn a_request_before_the_handshake_is_answered() {
    let environment = TestEnvironment::new("malformed-first").faulty("many", &[]);
    let peer = environment.before_handshake();
    let (line, code, _) = LINES[2];
    peer.write(format!("{line}\n").as_bytes());
    let find = || peer.messages_so_far().into_iter().find(|message| message["id"] == "a3");
    let (answer, _) = until(line, find);
    assert_eq!(answer["error"]["code"], code, "{answer}");
    let peer = peer.with_handshake();
    peer.ready("many__echo");
}

/// If a client's response to a server's question is malformed, the question ends with an error, and so does the call.
#[test]
fn an_unreadable_response_is_an_error_for_the_request_it_belongs_to() {
    let environment = TestEnvironment::new("malformed-answer").faulty("many", &[]);
    let peer = environment.stdio(Era::Older);
    peer.ready("many__echo");
    let pending = peer.begin("many__elicit", json!({}));
    let question = peer.wait_for_message("elicitation/create").unwrap();
    let id = &question["id"];
    peer.write(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"n\":1e400}}}}\n").as_bytes(),
    );
    let answer = pending.end();
    assert!(answer.to_string().contains("not valid JSON"), "{answer}");
}

/// Some clients write every key of a message, with `null` for absent ones.
#[test]
fn a_key_that_is_null_counts_as_absent() {
    let environment = TestEnvironment::new("malformed-null").faulty("many", &[]);
    let peer = environment.stdio(Era::Older);
    peer.ready("many__echo");
    peer.write(
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"notifications/roots/list_changed\"}\n",
    );
    let request = r#"{"jsonrpc":"2.0","id":"n1","method":"ping","result":null,"error":null}"#;
    peer.write(format!("{request}\n").as_bytes());
    let find = || peer.messages_so_far().into_iter().find(|message| message["id"] == "n1");
    assert_eq!(until(request, find).0["result"], json!({}));
    let pending = peer.begin("many__elicit", json!({}));
    let id = peer.wait_for_message("elicitation/create").unwrap()["id"].clone();
    let answer = json!({
        "jsonrpc": "2.0", "id": id, "method": null, "error": null, "result": {"action": "decline"},
    });
    peer.write(format!("{answer}\n").as_bytes());
    let ended = pending.end();
    assert_eq!(ended["structuredContent"]["result"]["action"], "decline", "{ended}");
    let refused = |messages: &Value| messages["error"]["code"] == -32600;
    assert!(!peer.messages_so_far().iter().any(refused), "{:?}", peer.messages_so_far());
}

#[test]
fn the_last_request_needs_no_newline() {
    let environment = TestEnvironment::new("malformed-last").faulty("many", &[]);
    let peer = environment.stdio(Era::Older);
    peer.ready("many__echo");
    peer.write(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#);
    peer.close();
    until_true("the answer", || {
        peer.messages_so_far().iter().any(|message| message["id"] == "last")
    });
}

/// The client does not read, so the pipe to it is full. The gateway cannot write any more, but must still exit on
/// SIGTERM.
#[test]
fn a_client_that_stopped_reading_does_not_keep_the_gateway_alive() {
    let environment = TestEnvironment::new("malformed-unread").faulty("many", &["--tools", "300"]);
    let mut command = environment.toolcrib(&["mcp", "--own", "--mode", "off"]);
    let mut gateway = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = gateway.stdin.take().unwrap();
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "deaf", "version": "1"},
    });
    let first = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    writeln!(input, "{first}").unwrap();
    writeln!(input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
    for id in 1..40 {
        writeln!(input, r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#).unwrap();
    }
    // This reads the result of `initialize` and the first byte of a list. From then on, the lists fill the pipe.
    let mut output = gateway.stdout.take().unwrap();
    let mut byte = [0];
    while byte != *b"\n" {
        output.read_exact(&mut byte).unwrap();
    }
    output.read_exact(&mut byte).unwrap();
    signal(gateway.id(), "-TERM");
    until_true("the end", || gateway.try_wait().unwrap().is_some());
}
