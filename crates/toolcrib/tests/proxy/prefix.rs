//! Two hundred turns, each request of which begins with the one before it: the provider's cache never
//! misses.

use std::thread;

use toolcrib_testkit::provider::{CannedResponse, StreamFault};
use toolcrib_testkit::redis::Server;

use crate::replica::Replica;
use crate::stage::Stage;
use crate::talk::Talk;
use crate::tools::{Size, tools};
use crate::voice::Api;
use crate::way::{Ids, Way, ways, ways_of_ids, ways_of_presets};

const TURNS: usize = 200;
/// Turns with ids that are not both given and kept.
const ID_TURNS: usize = 100;
/// Turns under a preset: the suite above shows long conversations in every mode that keeps `tools`.
const PRESET_TURNS: usize = 40;
/// Turns under a preset with ids that are not both given and kept.
const PRESET_ID_TURNS: usize = 20;
const TOOLS: usize = 100;

fn turns(way: Way) -> usize {
    match (way.preset, way.ids) {
        ("", Ids::Kept) => TURNS,
        ("", _) => ID_TURNS,
        (_, Ids::Kept) => PRESET_TURNS,
        _ => PRESET_ID_TURNS,
    }
}

fn stage(way: Way) -> Stage {
    let tools = tools(TOOLS, Size::Usual);
    let steps = Talk::new(&tools, 7, way.calls_blind()).steps(turns(way));
    Stage::new(way, &tools, steps)
}

fn one_replica(way: Way) {
    let mut stage = stage(way);
    let replica = Replica::start(&way.config(&stage.provider.url, None));
    for _ in 0..turns(way) {
        stage.turn(&replica.url);
    }
    stage.unbroken();
    stage.searched();
    assert_eq!(replica.modes(), [way.mode], "{way:?}");
}

/// By turns with two replicas. Half-way one is killed in the middle of a request, and the agent asks the
/// other one again, and from then on.
fn two_replicas(way: Way) {
    let redis = Server::start();
    let mut stage = stage(way);
    let config = way.config(&stage.provider.url, Some(&redis.url()));
    let (mut one, other) = (Replica::start(&config), Replica::start(&config));
    let half = turns(way) / 2;
    for at in 0..half {
        stage.turn(if at % 2 == 0 { &one.url } else { &other.url });
    }
    stage.provider.queue_response(CannedResponse::Faulty(StreamFault::StallFirst));
    thread::scope(|scope| {
        let url = one.url.clone();
        let asked = scope.spawn({
            let agent = &stage.agent;
            move || agent.ask(&url, true)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(stage.provider.wait_for_open_responses(1));
        one.kill();
        assert!(asked.join().unwrap().is_err());
    });
    for _ in half..turns(way) {
        stage.turn(&other.url);
    }
    stage.unbroken();
    stage.searched();
}

#[test]
fn chat_with_one_replica() {
    ways(Api::Chat).for_each(one_replica);
}

#[test]
fn responses_with_one_replica() {
    ways(Api::Responses).for_each(one_replica);
}

#[test]
fn messages_with_one_replica() {
    ways(Api::Messages).for_each(one_replica);
}

#[test]
fn gemini_with_one_replica() {
    ways(Api::Gemini).for_each(one_replica);
}

#[test]
fn chat_with_two_replicas() {
    ways(Api::Chat).for_each(two_replicas);
}

#[test]
fn responses_with_two_replicas() {
    ways(Api::Responses).for_each(two_replicas);
}

#[test]
fn messages_with_two_replicas() {
    ways(Api::Messages).for_each(two_replicas);
}

#[test]
fn gemini_with_two_replicas() {
    ways(Api::Gemini).for_each(two_replicas);
}

#[test]
fn chat_with_changed_ids() {
    ways_of_ids(Api::Chat).for_each(one_replica);
}

#[test]
fn responses_with_changed_ids() {
    ways_of_ids(Api::Responses).for_each(one_replica);
}

#[test]
fn messages_with_changed_ids() {
    ways_of_ids(Api::Messages).for_each(one_replica);
}

#[test]
fn gemini_with_changed_ids() {
    ways_of_ids(Api::Gemini).for_each(one_replica);
}

#[test]
fn gemini_with_changed_ids_and_two_replicas() {
    ways_of_ids(Api::Gemini).for_each(two_replicas);
}

#[test]
fn chat_under_every_preset() {
    ways_of_presets(Api::Chat).for_each(one_replica);
}

#[test]
fn responses_under_every_preset() {
    ways_of_presets(Api::Responses).for_each(one_replica);
}

#[test]
fn messages_under_every_preset() {
    ways_of_presets(Api::Messages).for_each(one_replica);
}

#[test]
fn gemini_under_every_preset() {
    ways_of_presets(Api::Gemini).for_each(one_replica);
}
