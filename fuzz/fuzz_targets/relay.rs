//! Sends arbitrary lines from a client and from a background gateway through a relay, and ends the gateway at arbitrary
//! points.
//!
//! The first byte of each line of the input says who sends it: `>` the client, `<` the gateway. A line with any other first
//! byte ends the gateway.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolcrib_mcp::fuzzing::FuzzedRelay;

fuzz_target!(|bytes: &[u8]| {
    let mut relay = FuzzedRelay::default();
    let mut is_first_gateway = true;
    // How often each id was used in a request of the client, and how often the relay itself has answered it.
    let mut requests = BTreeMap::<String, usize>::new();
    let mut answers = BTreeMap::<String, usize>::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        match line {
            [b'>', line @ ..] => {
                if let Some(id) = request_id(line) {
                    *requests.entry(id).or_default() += 1;
                }
                if let Some(sent) = relay.client_line(line.to_vec()) {
                    check(line, &sent, is_first_gateway);
                }
            }
            [b'<', line @ ..] => {
                let Ok(text) = str::from_utf8(line) else { continue };
                if let Some(shown) = relay.gateway_line(text.to_owned()) {
                    check(line, shown.as_bytes(), is_first_gateway);
                }
            }
            _ => {
                is_first_gateway = false;
                let (to_client, to_gateway) = relay.lose_gateway();
                for line in to_client.iter().chain(&to_gateway) {
                    assert!(!line.contains('\n'));
                    serde_json::from_str::<Value>(line).expect("JSON");
                }
                for line in to_client {
                    let line: Value = serde_json::from_str(&line).expect("JSON");
                    if line.get("method").is_none() {
                        *answers.entry(line["id"].to_string()).or_default() += 1;
                    }
                }
            }
        }
    }
    for (id, count) in answers {
        assert!(requests.get(&id).is_some_and(|requested| count <= *requested), "{id}");
    }
});

/// With the first gateway, every line passes unchanged. Later, ids change, but JSON remains JSON on one line.
fn check(before: &[u8], after: &[u8], is_first_gateway: bool) {
    if is_first_gateway {
        assert_eq!(before, after);
    }
    assert!(!after.contains(&b'\n'));
    if serde_json::from_slice::<Value>(before).is_ok() {
        serde_json::from_slice::<Value>(after).expect("JSON");
    }
}

/// Returns the id of a line that is a request.
fn request_id(line: &[u8]) -> Option<String> {
    let line: Value = serde_json::from_slice(line).ok()?;
    line.get("method")?.as_str()?;
    Some(line.get("id")?.to_string())
}
