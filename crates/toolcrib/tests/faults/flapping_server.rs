//! Tests of a server that starts and crashes repeatedly.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::environment::TestEnvironment;
use crate::print_duration;
use crate::probe::{count, descriptors, processes_with, until_true};
use crate::raw_client::Era;

/// The server is retried less and less often, its crashes leak no processes or file descriptors, and the list that
/// clients see does not change.
#[test]
fn a_server_that_crashes_repeatedly_is_retried_less_and_less_often() {
    let dies = ["--die-after-list", "300"];
    let environment = TestEnvironment::new("flap").faulty("moth", &dies).faulty("oak", &[]);
    let before = Instant::now();
    let peer = environment.stdio(Era::Older);
    let has = |names: &[String], name: &str| names.iter().any(|known| known == name);
    until_true("both servers' tools are listed", || {
        let names = peer.names();
        has(&names, "moth__echo") && has(&names, "oak__echo")
    });
    let log = environment.log("moth");
    let list = peer.ask("tools/list", json!({}));
    let idle = |fds: usize| {
        processes_with(log.to_str().unwrap()).is_empty() && descriptors(peer.gateway()) <= fds
    };
    until_true("the server exits", || idle(usize::MAX));
    let fds = descriptors(peer.gateway());
    let (mut lists, mut starts) = (0, Vec::new());
    until_true("four starts", || {
        assert_eq!(
            peer.ask("tools/list", json!({})),
            list,
            "the list does not depend on the server's state"
        );
        assert_eq!(peer.call("oak__echo", json!({}))["structuredContent"], json!({}));
        lists += 1;
        starts.resize(count(&log, "start"), before.elapsed());
        starts.len() >= 4
    });
    crate::print_figure("lists compared", lists);
    print_duration("four starts after", starts[3]);
    // Each run of the server lasts at least 0.3 s. The delays between runs are 0.5 s, 1 s and 2 s, minus at most a
    // fifth. On a slow machine the starts can only be later.
    for (start, least) in starts.iter().zip([0, 700, 1_800, 3_700]) {
        assert!(*start >= Duration::from_millis(least), "{starts:?}: earlier than {least} ms");
    }
    until_true("as many descriptors as before", || idle(fds));
}
