//! Tests of a server that announces ten thousand list changes at once.

use std::time::Instant;

use serde_json::json;

use crate::environment::TestEnvironment;
use crate::print_duration;
use crate::probe::{at_most, count, until_true};
use crate::raw_client::Era;

/// How long the gateway waits after the last announced change before it fetches the list again, in milliseconds (see
/// `upstream/debounce.rs`). If the announcements do not stop, it fetches every two seconds. In both cases, at least
/// this time passes between two fetches, on any machine.
const QUIET: u128 = 300;

/// A server announces many changes in a row, but its list is fetched only a few times.
#[test]
fn ten_thousand_list_changes_are_coalesced() {
    let environment = TestEnvironment::new("storm").faulty("wild", &["--storm", "10000"]);
    let peer = environment.stdio(Era::Older);
    peer.ready("wild__echo");
    let log = environment.log("wild");
    let fetches = || count(&log, "list");
    let (first, began) = (fetches(), Instant::now());
    for _ in 0..3 {
        let (before, storm) = (fetches(), Instant::now());
        peer.call("wild__storm", json!({}));
        // The server writes this response after all its announcements, on the same pipe.
        peer.call("wild__echo", json!({}));
        print_duration("10,000 list changes and a call", storm.elapsed());
        until_true("the list is fetched again", || fetches() > before);
    }
    let fetches = (fetches() - first) as u128;
    at_most("fetches of the list", fetches, 1 + began.elapsed().as_millis() / QUIET);
    // Each fetch returned the same list, so clients receive no notification, except perhaps one from when the server
    // came up.
    peer.call("wild__echo", json!({}));
    assert_eq!(count(&log, "start"), 1);
    let notifications = peer
        .messages_so_far()
        .iter()
        .filter(|m| m["method"] == "notifications/tools/list_changed")
        .count();
    assert!(notifications <= 1, "{notifications} notifications of a list that did not change");
}
