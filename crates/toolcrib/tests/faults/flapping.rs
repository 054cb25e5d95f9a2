//! A server that comes up and falls over, again and again.

use std::time::Instant;

use serde_json::json;

use crate::peer::Era;
use crate::probe::{at_most, count, descriptors, ms, processes_with, until_true};
use crate::stage::Stage;

/// It is tried less and less often, nothing is left behind, and clients see one and the same list.
#[test]
fn a_server_that_dies_every_300_ms() {
    let stage = Stage::new("flap").faulty("moth", &["--die-after", "300"]).faulty("oak", &[]);
    let before = Instant::now();
    let peer = stage.stdio(Era::Handshake);
    let has = |names: &[String], name: &str| names.iter().any(|known| known == name);
    until_true("both known", ms(5_000), || {
        let names = peer.names();
        has(&names, "moth__echo") && has(&names, "oak__echo")
    });
    let (began, log) = (Instant::now(), stage.log("moth"));
    let list = peer.ask("tools/list", json!({}));
    let idle = |fds: usize| {
        processes_with(log.to_str().unwrap()).is_empty() && descriptors(peer.gateway()) <= fds
    };
    until_true("it fell over", ms(5_000), || idle(usize::MAX));
    let fds = descriptors(peer.gateway());
    let (mut lists, mut starts) = (0, Vec::new());
    while began.elapsed() < ms(8_000) {
        assert_eq!(peer.ask("tools/list", json!({})), list, "the same bytes, up or down");
        assert_eq!(peer.call("oak__echo", json!({}))["structuredContent"], json!({}));
        lists += 1;
        starts.resize(count(&log, "start"), before.elapsed());
        std::thread::sleep(ms(10));
    }
    crate::figure("lists compared", lists);
    at_most("starts in 8 s", starts.len(), 5);
    assert!(starts.len() >= 4, "it is tried again: {}", starts.len());
    // It lives for 0.3 s; then come half a second, one, two and four, a fifth less at the least.
    for (start, least) in starts.iter().zip([0, 700, 1_800, 3_700, 7_200]) {
        assert!(*start >= ms(least), "{starts:?}: {least} ms at the least");
    }
    until_true("as many descriptors as before", ms(5_000), || idle(fds));
}
