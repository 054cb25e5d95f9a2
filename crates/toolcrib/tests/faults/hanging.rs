//! Servers that never answer, answer late, or are not there at all.

use std::time::Instant;

use serde_json::{Value, json};

use crate::peer::Era;
use crate::probe::{at_most, ms, until_true};
use crate::stage::Stage;

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// One of twenty hangs for ever: the gateway is ready at once, and nineteen work as they answer.
#[test]
fn one_of_twenty_never_answers() {
    let mut stage = Stage::new("twenty").faulty("s00", &["--never-answer"]);
    for n in 1..20 {
        stage = stage.faulty(&format!("s{n:02}"), &["--tools", "3"]);
    }
    let began = Instant::now();
    let peer = stage.stdio(Era::Handshake);
    let names_at_once = peer.names();
    at_most("first list with one of 20 hanging", began.elapsed(), ms(1_000));
    assert!(names_at_once.contains(&"tool_search".to_owned()), "{names_at_once:?}");
    let mut left: Vec<String> = (1..20).map(|n| format!("s{n:02}__echo")).collect();
    until_true("19 usable", ms(10_000), || {
        left.retain(|tool| peer.call(tool, json!({}))["structuredContent"] != json!({}));
        left.is_empty()
    });
    crate::figure("19 of 20 usable after", format!("{:?}", began.elapsed()));
    let found = peer.search("select:s01__tool_0");
    assert_eq!(names(&found["connecting"]), ["s00"], "{found}");
    // Nothing fits, so it waits, and no longer than it may.
    let began = Instant::now();
    let missed = peer.search("zebra quantum harpsichord");
    let took = began.elapsed();
    assert!(took >= ms(1_900), "it waited {took:?} for the one that connects");
    at_most("a search that waits in vain", took, ms(2_500));
    assert_eq!(names(&missed["connecting"]), ["s00"], "{missed}");
}

/// A search without a strong hit waits for a server that is on its way, and finds its tool.
#[test]
fn a_search_waits_for_a_slow_server() {
    let stage = Stage::new("slow").faulty("slow", &["--start-delay", "1000", "--tools", "3"]);
    let peer = stage.stdio(Era::Handshake);
    let began = Instant::now();
    let found = peer.search("find customers of a department");
    at_most("a search that waits for a server of 1 s", began.elapsed(), ms(2_500));
    assert_eq!(found["hits"][0]["name"], "slow__tool_0", "{found}");
    assert_eq!(names(&found["connecting"]), [""; 0], "{found}");
}

/// What is known of a server that is down stays listed and marked, and a call says at once why not.
#[test]
fn a_server_that_is_down_is_told_so_at_once() {
    let stage = Stage::new("down").faulty("shop", &["--tools", "2"]);
    let before = {
        let peer = stage.stdio(Era::Handshake);
        until_true("up", ms(5_000), || peer.names().contains(&"shop__tool_1".to_owned()));
        peer.ask("tools/list", json!({}))
    };
    // A server that cannot open its log ends with an error.
    std::fs::remove_file(stage.log("shop")).unwrap();
    std::fs::create_dir(stage.log("shop")).unwrap();
    let peer = stage.stdio(Era::Handshake);
    let reason = "exited with code 1";
    let why = || peer.search("select:shop__tool_1")["down"][0]["why"].as_str().map(str::to_owned);
    until_true("down", ms(5_000), || why().is_some_and(|why| why.contains(reason)));
    let began = Instant::now();
    let answer = peer.call("shop__tool_1", json!({"query": "x"}));
    at_most("a call to a server that is down", began.elapsed(), ms(50));
    let text = answer["content"][0]["text"].as_str().unwrap_or_default();
    assert!(answer["isError"] == true && text.contains(reason), "{answer}");
    let hit = &peer.search("select:shop__tool_1")["hits"][0];
    assert!(hit["unavailable"].as_str().unwrap().contains(reason), "{hit}");
    assert_eq!(peer.ask("tools/list", json!({})), before, "its tools stay listed");
}

/// A server that never worked does not make the list change each time it is tried again. What it has is not
/// known, so whether deferring pays is not decided: the short list stands.
#[test]
fn a_server_that_never_works_leaves_the_list_alone() {
    let limit = "start_timeout = 0.5";
    let stage =
        Stage::new("never").faulty("fine", &[]).faulty_with("mute", &["--never-answer"], limit);
    let peer = stage.stdio(Era::Handshake);
    let down = || peer.search("select:fine__echo")["down"][0].is_object();
    until_true("it failed once", ms(5_000), || {
        down() && peer.names().contains(&"tool_search".to_owned())
    });
    let list = peer.ask("tools/list", json!({}));
    // Three tries lie within this time: after half a second, one, and two; each lasts half a second.
    let began = Instant::now();
    while began.elapsed() < ms(6_000) {
        assert_eq!(peer.ask("tools/list", json!({})), list, "after {:?}", began.elapsed());
    }
    assert!(stage.said().matches("server is down").count() >= 3, "{}", stage.said());
}
