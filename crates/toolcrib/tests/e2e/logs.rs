//! Lines of a server's log reach the client whose call they are about, if it wants to see them.

use serde_json::{Value, json};

use crate::support::client::{Client, Era};
use crate::support::gateway::{DEFERRED, Home, WAYS, come, server, settled};
use crate::support::{eventually, own};

/// Calls a tool that logs, and gives the lines that arrived before its answer.
fn lines(client: &mut Client, era: Era, level: &str) -> Vec<Value> {
    let mut params = json!({
        "name": "tool_call",
        "arguments": {"name": "fixture__test_tool_with_logging", "arguments": {}},
    });
    match era {
        Era::Old => drop(client.result("logging/setLevel", &json!({"level": level}))),
        Era::New => params["_meta"] = json!({"io.modelcontextprotocol/logLevel": level}),
    }
    let mut told = client.ask("tools/call", &params);
    assert!(told.answer.get("result").is_some(), "{}", told.answer);
    // That the server came up is told too, whenever that was.
    told.heard.retain(|message| message["method"] == "notifications/message");
    told.heard
}

#[test]
fn in_order_and_from_the_level_on_that_was_asked_for() {
    let fixture = server("fixture", &own("fixture-server", &[]), "");
    let line = |text: &str| {
        let params = json!({"level": "info", "logger": "fixture", "data": text});
        json!({"method": "notifications/message", "params": params})
    };
    let all = [line("Started."), line("Half way."), line("Finished.")];
    for (door, era) in WAYS {
        let home = Home::new(&format!("{DEFERRED}{fixture}"));
        let (mut client, _served) = come(&home, (door, era));
        settled(&mut client);
        // The SDK hands each line to a task of its own, so on a busy machine the answer may overtake the
        // last ones; no call may bring anything else.
        eventually("a call with all its lines", || {
            let seen = lines(&mut client, era, "info");
            assert!(seen.iter().all(|line| all.contains(line)), "{door} {era:?}: {seen:?}");
            (seen == all).then_some(())
        });
        assert!(lines(&mut client, era, "error").is_empty(), "{door} {era:?}");
    }
}
