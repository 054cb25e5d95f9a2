//! State that is lost on purpose in the middle of a conversation: at most one request does not begin with
//! the one before it, and every tool that was called can be called again.

use toolcrib_testkit::redis::Server;

use crate::replica::Replica;
use crate::stage::Stage;
use crate::talk::Talk;
use crate::tools::{Size, tools};
use crate::voice::Api;
use crate::way::{WAYS, Way, ways};

/// Turns before the loss, and some after every tool was called again.
const BEFORE: usize = 40;
const AFTER: usize = 15;
const TOOLS: usize = 100;

/// Holds a conversation; `lose` takes the state and says where it goes on.
fn forget(
    way: Way,
    thinks: bool,
    start: impl Fn(&str) -> Replica,
    lose: impl Fn(&mut Replica, &str),
) {
    let tools = tools(TOOLS, Size::Usual);
    let mut talk = Talk::new(&tools, 11, way.calls_blind());
    let mut steps = talk.steps(BEFORE);
    steps.extend(talk.again());
    steps.extend(talk.steps(AFTER));
    let turns = steps.len();
    let mut stage = Stage::new(way, &tools, steps);
    stage.agent.thinks = thinks;
    let mut replica = start(&stage.provider.url);
    for _ in 0..BEFORE {
        stage.turn(&replica.url);
    }
    stage.unbroken();
    let known = stage.provider.requests().len();
    let url = stage.provider.url.clone();
    lose(&mut replica, &url);
    for _ in BEFORE..turns {
        stage.turn(&replica.url);
    }
    let breaks = stage.breaks();
    let places: Vec<usize> = breaks.iter().map(|(at, _)| *at).collect();
    assert_eq!(places, [known], "{way:?}: {:?}", breaks.iter().find(|(at, _)| *at != known));
}

/// A replica that keeps its state in memory is killed, and another takes its place.
fn restarted(way: Way, thinks: bool) {
    let start = |url: &str| Replica::start(&way.config(url, None));
    forget(way, thinks, start, |replica, url| *replica = start(url));
}

/// Somebody empties the Redis.
fn flushed(way: Way) {
    let redis = Server::start();
    let start = |url: &str| Replica::start(&way.config(url, Some(&redis.url())));
    forget(way, true, start, |_, _| {
        assert_eq!(redis.ask(&["FLUSHALL"]), "OK");
    });
}

#[test]
fn chat_is_restarted() {
    ways(Api::Chat).for_each(|way| restarted(way, true));
}

#[test]
fn responses_is_restarted() {
    ways(Api::Responses).for_each(|way| restarted(way, true));
}

#[test]
fn messages_is_restarted() {
    ways(Api::Messages).for_each(|way| restarted(way, true));
}

#[test]
fn messages_without_thinking_is_restarted() {
    // Only then is it shown again at the end of the history what was found.
    ways(Api::Messages).for_each(|way| restarted(way, false));
}

#[test]
fn gemini_is_restarted() {
    ways(Api::Gemini).for_each(|way| restarted(way, true));
}

#[test]
fn the_redis_is_emptied() {
    WAYS.into_iter().for_each(flushed);
}
