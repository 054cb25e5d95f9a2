//! Tests that a server's log messages reach the client whose call they belong to, if that client requested them.

use serde_json::{Value, json};

use crate::support::client::{Client, Era};
use crate::support::gateway::{CONNECTIONS, DEFERRED, Home, connect, server, wait_until_ready};
use crate::support::{eventually, testkit_program};

/// Calls a tool that logs, and returns the log messages that arrived before its response.
fn lines(client: &mut Client, era: Era, level: &str) -> Vec<Value> {
    let mut params = json!({
        "name": "tool_call",
        "arguments": {"name": "fixture__test_tool_with_logging", "arguments": {}},
    });
    match era {
        Era::Older => drop(client.result("logging/setLevel", &json!({"level": level}))),
        Era::Newer => params["_meta"] = json!({"io.modelcontextprotocol/logLevel": level}),
    }
    let mut exchange = client.ask("tools/call", &params);
    assert!(exchange.answer.get("result").is_some(), "{}", exchange.answer);
    // This ignores other notifications, which may come at any time, such as the one sent when the server is up.
    exchange.messages.retain(|message| message["method"] == "notifications/message");
    exchange.messages
}

#[test]
fn log_messages_arrive_in_order_and_from_the_requested_level_on() {
    let fixture = server("fixture", &testkit_program("fixture-server", &[]), "");
    let line = |text: &str| {
        let params = json!({"level": "info", "logger": "fixture", "data": text});
        json!({"method": "notifications/message", "params": params})
    };
    let all = [line("Started."), line("Half way."), line("Finished.")];
    for (transport, era) in CONNECTIONS {
        let home = Home::new(&format!("{DEFERRED}{fixture}"));
        let (mut client, _gateway) = connect(&home, (transport, era));
        wait_until_ready(&mut client);
        // The SDK handles each message in a separate task, so on a busy machine the response may overtake the last log
        // messages. So the call is repeated until all its log messages arrive before its response. No call may receive
        // any other message.
        eventually("a call with all its lines", || {
            let received = lines(&mut client, era, "info");
            assert!(
                received.iter().all(|line| all.contains(line)),
                "{transport} {era:?}: {received:?}"
            );
            (received == all).then_some(())
        });
        assert!(lines(&mut client, era, "error").is_empty(), "{transport} {era:?}");
    }
}
