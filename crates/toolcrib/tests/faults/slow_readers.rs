//! Tests of a client on stdio that sends more than the gateway can keep: requests with many tiny values, and requests
//! whose responses the client does not read.

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{at_most, count, cpu_time, peak_memory, until_true};
use crate::raw_client::Era;
use crate::slow_client::SlowClient;

const MIB: u64 = 1 << 20;

/// Parsed values take up to sixty times the memory of their text, so requests with too many values are refused.
#[test]
fn a_request_of_tiny_objects_takes_bounded_memory() {
    let environment = TestEnvironment::new("tiny").faulty("one", &[]);
    let peer = environment.stdio(Era::Older);
    peer.ready("one__echo");
    let base = peak_memory(peer.gateway());
    let tiny = format!("[{}0]", r#"{"":0},"#.repeat(590_000));
    let call = |id: u64, tiny: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"one__echo","arguments":{{"a":{tiny}}}}}}}"#
        )
    };
    let meta = format!(
        r#"{{"jsonrpc":"2.0","method":"ping","params":{{"_meta":{{"a":{tiny}}}}},"id":902}}"#
    );
    for (id, line) in [(901, call(901, &tiny)), (902, meta)] {
        peer.write(format!("{line}\n").as_bytes());
        let error = &peer.answer_to(id)["error"];
        let message = json!({"code": -32600, "message": "the request has too many values for its size: send fewer"});
        assert_eq!(*error, message);
    }
    // A batch has no id, so it is refused with an error without an id.
    peer.write(format!("[{}0]\n", r#"{"id":1,"method":1},"#.repeat(200_000)).as_bytes());
    until_true("an error without an id", || {
        let messages = peer.messages_so_far();
        messages
            .iter()
            .any(|message| message.get("id").is_none() && message["error"]["code"] == -32600)
    });
    at_most(
        "MiB over base after 12 MB of tiny objects",
        peak_memory(peer.gateway()).saturating_sub(base) / MIB,
        60,
    );
    // Plain text of the same size is an ordinary request.
    peer.write(format!("{}\n", call(903, &format!("{:?}", "x".repeat(4_000_000)))).as_bytes());
    assert!(peer.answer_to(903)["result"]["structuredContent"]["a"].is_string());
}

/// The client requests 400 lists of 2 MB and reads none of them until the gateway is idle. Without a limit they would
/// take 800 MB.
#[test]
fn responses_that_a_client_does_not_read_take_bounded_memory() {
    const LISTS: u64 = 400;
    let text = "x".repeat(16_000);
    let resources: Vec<Value> = (0..130)
        .map(|n| json!({"uri": format!("note://{n}"), "name": "n", "description": text}))
        .collect();
    let script = json!({
        "capabilities": {"tools": {}, "resources": {}},
        "methods": {
            "resources/list": {"resources": resources},
            "resources/templates/list": {"resourceTemplates": []},
        },
        "tools": {"ready": [{"result": {"content": []}}]},
    });
    let environment = TestEnvironment::new("not-read").scripted("one", &script, "");
    let mut client = SlowClient::start(&environment);
    let mut id = 0;
    until_true("the list is complete", || {
        id += 1;
        client.ask(id, "resources/list", json!({})).1 > 2_000_000
    });
    let base = peak_memory(client.gateway());
    let lists = 10_000..10_000 + LISTS;
    for id in lists.clone() {
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "resources/list"}));
    }
    let (mut last, mut same) = (cpu_time(client.gateway()), 0);
    until_true("the gateway is idle", || {
        let now = cpu_time(client.gateway());
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same > 50
    });
    at_most(
        "MiB over base with 800 MB unread",
        peak_memory(client.gateway()).saturating_sub(base) / MIB,
        200,
    );
    // No response is lost, even if the client closes its side of the pipe first.
    client.close_input();
    let id = |_| client.next_answer().0["id"].as_u64().unwrap();
    let mut answered: Vec<u64> = lists.clone().map(id).collect();
    answered.sort_unstable();
    assert_eq!(answered, lists.collect::<Vec<_>>());
    client.end();
}

/// While the maximum number of requests is in flight, further requests wait. Responses, cancellations and pings must
/// not wait behind them.
#[test]
fn responses_and_cancellations_overtake_queued_requests() {
    let environment = TestEnvironment::new("overtake")
        .faulty_with("deaf", &["--hang", "hang"], "call_timeout = 3600")
        .with("[gateway.limits]\nserver_calls = 1000\n");
    let log = environment.log("deaf");
    let peer = environment.stdio(Era::Older);
    peer.ready("deaf__echo");
    let asks = peer.begin("deaf__elicit", json!({}));
    let question = peer.wait_for_message("elicitation/create").unwrap();
    let calls: Vec<_> = (0..300).map(|_| peer.begin("deaf__hang", json!({}))).collect();
    let cancel = |id: u64| peer.notify("notifications/cancelled", json!({"requestId": id}));
    // The last call is still waiting, so it is cancelled before it starts.
    cancel(calls[299].id);
    peer.reply(&question["id"], &json!({"action": "decline"}));
    assert_eq!(asks.end()["structuredContent"]["result"]["action"], "decline");
    until_true("the server receives 256 calls", || count(&log, "call hang") >= 256);
    assert_eq!(peer.ask("ping", json!({})), json!({}));
    assert_eq!(count(&log, "call hang"), 256, "no more than 256 are in flight");
    cancel(calls[0].id);
    until_true("the server receives the cancellation", || count(&log, "cancelled") == 1);
    until_true("the server receives the next call", || count(&log, "call hang") == 257);
    calls[1..299].iter().for_each(|call| cancel(call.id));
    peer.ready("deaf__echo");
    until_true("the server receives all cancellations", || {
        count(&log, "cancelled") >= count(&log, "call hang")
    });
    assert!(count(&log, "call hang") <= 299, "a call cancelled while it waits never starts");
}
