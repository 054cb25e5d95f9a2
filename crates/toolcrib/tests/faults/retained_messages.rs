//! Tests of how much the gateway keeps of a server's messages after it has sent them to HTTP clients. This must not
//! grow with what the server sends.

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{at_most, peak_memory};
use crate::raw_client::Era;

const MIB: u64 = 1 << 20;

/// The server sends progress or log messages of several megabytes. The SDK keeps the last messages of each stream, even
/// if the client has read them, so long messages must be truncated.
#[test]
fn long_messages_are_truncated() {
    for (method, field) in
        [("notifications/progress", "message"), ("notifications/message", "data")]
    {
        let flood =
            ["--flood", method, "--flood-count", "100", "--flood-bytes", "4000000", "--logging"];
        let environment = TestEnvironment::new("kept-messages").faulty("wild", &flood);
        let gateway = environment.serve();
        let peer = gateway.peer(Era::Older);
        peer.ready("wild__echo");
        peer.ask("logging/setLevel", json!({"level": "debug"}));
        let base = peak_memory(gateway.pid());
        let params =
            json!({"name": "wild__flood", "arguments": {}, "_meta": {"progressToken": "kept"}});
        let answer = peer.ask("tools/call", params);
        assert_eq!(answer["content"][0]["text"], "It is over.", "{answer}");
        let over = peak_memory(gateway.pid()).saturating_sub(base) / MIB;
        at_most(&format!("MiB over base after 400 MB of {method}"), over, 160);
        let messages = peer.messages_so_far();
        let mut texts = messages.iter().filter(|message| message["method"] == method);
        let text = texts.next().unwrap()["params"][field].as_str().unwrap();
        assert!(text.len() < 70_000 && text.ends_with("… [cut: 4000000 bytes]"), "{}", text.len());
    }
}

/// Responses with fields that the SDK does not know are stored until the SDK has sent them. They must be stored as
/// text, because as parsed values they can take sixteen times as much memory.
#[test]
fn responses_with_unknown_fields_take_bounded_memory() {
    const CALLS: usize = 16;
    let result = |number: usize| {
        let zeros = vec![0; 1_000_000];
        json!([{"result": {"content": [], "number": number, "zeros": zeros}}])
    };
    let tools: serde_json::Map<String, Value> =
        (0..CALLS).map(|number| (format!("go{number}"), result(number))).collect();
    let environment =
        TestEnvironment::new("kept-answers").scripted("wild", &json!({"tools": tools}), "");
    let gateway = environment.serve();
    let peer = gateway.peer(Era::Older);
    let base = peak_memory(gateway.pid());
    for number in 0..CALLS {
        crate::probe::until_true("an answer with all its fields", || {
            peer.call(&format!("wild__go{number}"), json!({}))["number"] == number
        });
    }
    let over = peak_memory(gateway.pid()).saturating_sub(base) / MIB;
    at_most("MiB over base after 16 answers of 2 MB", over, 320);
}
