//! A server that comes up and falls over, again and again.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::peer::Era;
use crate::probe::{count, descriptors, processes_with, until_true};
use crate::stage::Stage;
use crate::took;

/// It is tried less and less often, nothing is left behind, and clients see one and the same list.
#[test]
fn a_server_that_dies_again_and_again() {
    let dies = ["--die-after-list", "300"];
    let stage = Stage::new("flap").faulty("moth", &dies).faulty("oak", &[]);
    let before = Instant::now();
    let peer = stage.stdio(Era::Handshake);
    let has = |names: &[String], name: &str| names.iter().any(|known| known == name);
    until_true("both known", || {
        let names = peer.names();
        has(&names, "moth__echo") && has(&names, "oak__echo")
    });
    let log = stage.log("moth");
    let list = peer.ask("tools/list", json!({}));
    let idle = |fds: usize| {
        processes_with(log.to_str().unwrap()).is_empty() && descriptors(peer.gateway()) <= fds
    };
    until_true("it fell over", || idle(usize::MAX));
    let fds = descriptors(peer.gateway());
    let (mut lists, mut starts) = (0, Vec::new());
    until_true("four starts", || {
        assert_eq!(peer.ask("tools/list", json!({})), list, "the same bytes, up or down");
        assert_eq!(peer.call("oak__echo", json!({}))["structuredContent"], json!({}));
        lists += 1;
        starts.resize(count(&log, "start"), before.elapsed());
        starts.len() >= 4
    });
    crate::figure("lists compared", lists);
    took("four starts after", starts[3]);
    // It lives for at least 0.3 s; then come half a second, one and two, a fifth less at the least. A slow
    // machine only makes a start later.
    for (start, least) in starts.iter().zip([0, 700, 1_800, 3_700]) {
        assert!(*start >= Duration::from_millis(least), "{starts:?}: {least} ms at the least");
    }
    until_true("as many descriptors as before", || idle(fds));
}
