//! Tests of servers that write too much, or write output that cannot be parsed.

use serde_json::json;

use crate::environment::{TestEnvironment, testkit};
use crate::probe::{at_most, peak_memory, until_true};
use crate::raw_client::Era;

const MIB: u64 = 1 << 20;

/// A response of one gibibyte on one line fails its call, but takes little memory and does not affect the next call.
#[test]
fn a_line_of_one_gibibyte_takes_bounded_memory() {
    let size = (1_u64 << 30).to_string();
    let environment = TestEnvironment::new("huge").faulty("big", &["--huge-line", &size]);
    let peer = environment.stdio(Era::Older);
    peer.ready("big__echo");
    let base = peak_memory(peer.gateway());
    let answer = peer.call("big__huge", json!({}));
    let text = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains("larger than the limit"), "{answer}");
    assert_eq!(peer.call("big__echo", json!({"n": 1}))["structuredContent"], json!({"n": 1}));
    at_most(
        "MiB over base after a 1 GiB line",
        peak_memory(peer.gateway()).saturating_sub(base) / MIB,
        64,
    );
}

/// The server surrounds its responses with text, a byte order mark, CRLF, invalid UTF-8, a batch, a response without a
/// request, and half a document.
#[test]
fn noise_around_every_response_is_ignored() {
    let environment =
        TestEnvironment::new("garbage").faulty("loud", &["--garbage", "--tools", "2"]);
    let peer = environment.stdio(Era::Older);
    until_true("up", || peer.names().contains(&"loud__tool_1".to_owned()));
    for n in 0..50 {
        assert_eq!(peer.call("loud__echo", json!({"n": n}))["structuredContent"], json!({"n": n}));
    }
    assert_eq!(
        crate::probe::count(&environment.log("loud"), "start"),
        1,
        "the server is never restarted"
    );
}

/// The SDK first probes for the newer protocol, and gives up after 10 s. A server that starts slowly answers the probe
/// later, after the handshake has been sent. That response must not be taken for the response to the handshake.
#[test]
fn a_late_response_to_the_probe_is_not_taken_for_the_handshake_response() {
    let environment = TestEnvironment::new("late-probe");
    let script = r#"
        echo start >> "$1"
        read -r probe
        read -r initialize
        id=$(printf '%s' "$probe" | sed 's/.*"id":\([0-9]*\).*/\1/')
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}\n' "$id"
        { printf '%s\n' "$initialize"; cat; } | "$2"
    "#;
    let (log, server) = (environment.log("slow"), testkit("faulty-server"));
    let args = json!(["-c", script, "sh", log, server]);
    let entry = format!("[servers.slow]\ncommand = \"sh\"\nstart_timeout = 600\nargs = {args}\n");
    let environment = environment.with(&entry);
    let peer = environment.stdio(Era::Older);
    peer.ready("slow__echo");
    assert_eq!(crate::probe::count(&log, "start"), 1, "the server is never restarted");
}

/// An endless list is read up to the limit, and a note reports this.
#[test]
fn a_list_of_a_million_pages_is_cut_off() {
    // The baseline is the memory for 64 tools in 64 pages.
    let base = {
        let environment = TestEnvironment::new("few-pages").faulty("ends", &["--pages", "64"]);
        let peer = environment.stdio(Era::Older);
        peer.ready("ends__echo");
        peak_memory(peer.gateway())
    };
    let environment = TestEnvironment::new("pages").faulty("endless", &["--pages", "1000000"]);
    let peer = environment.stdio(Era::Older);
    peer.ready("endless__echo");
    let found = peer.search("select:endless__tool_63");
    assert_eq!(found["hits"][0]["name"], "endless__tool_63", "{found}");
    let over = peak_memory(peer.gateway()).saturating_sub(base) / MIB;
    at_most("MiB over 64 pages after a million", over, 64);
    assert_eq!(crate::probe::count(&environment.log("endless"), "list"), 64);
    let server = &environment.doctor()[0];
    let note = "its tools have more than 64 pages; the first 64 are used";
    assert_eq!((&server["tools"], &server["notes"]), (&json!(64), &json!([note])), "{server}");
}
