//! Ten thousand announcements at once.

use std::time::Instant;

use serde_json::json;

use crate::peer::Era;
use crate::probe::{at_most, count, ms, until_true};
use crate::stage::Stage;

/// However often a server says that its list changed, it is looked at once or twice.
#[test]
fn ten_thousand_list_changes() {
    let stage = Stage::new("storm").faulty("wild", &["--storm", "10000"]);
    let peer = stage.stdio(Era::Handshake);
    peer.ready("wild__echo");
    let (log, before) = (stage.log("wild"), count(&stage.log("wild"), "list"));
    let began = Instant::now();
    peer.call("wild__storm", json!({}));
    // On one pipe this answer comes after all of them.
    peer.call("wild__echo", json!({}));
    at_most("10,000 list changes and a call", began.elapsed(), ms(1_000));
    until_true("one look", ms(5_000), || count(&log, "list") > before);
    // A burst is put off for two seconds at most, so whatever is still to come comes within three.
    while began.elapsed() < ms(3_000) {
        peer.call("wild__echo", json!({}));
    }
    at_most("looks at the list", count(&log, "list") - before, 2);
    assert_eq!(count(&log, "start"), 1);
    let told =
        peer.heard().iter().filter(|m| m["method"] == "notifications/tools/list_changed").count();
    assert!(told <= 1, "the list is what it was, so there is nothing to tell: {told}");
}
