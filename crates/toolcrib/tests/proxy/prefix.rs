//! Tests with conversations of up to two hundred turns, in which each request must begin with the previous one, so that
//! the provider's prompt cache always hits.

use std::thread;

use toolcrib_testkit::provider::{CannedResponse, StreamFault};
use toolcrib_testkit::redis::Server;

use crate::api::Api;
use crate::long_conversation::LongConversation;
use crate::replica::Replica;
use crate::scenario::{CallIdPolicy, Scenario, id_scenarios, preset_scenarios, scenarios};
use crate::script_generator::ScriptGenerator;
use crate::tools::{Size, tools};

const TURNS: usize = 200;
/// Number of turns in scenarios with absent or changed call ids.
const ID_TURNS: usize = 100;
/// Number of turns in scenarios with a preset. It is lower, because the scenarios without a preset already have long
/// conversations in the modes `bridge`, `reference` and `hosted`.
const PRESET_TURNS: usize = 40;
/// Number of turns in scenarios with a preset and with absent or changed call ids.
const PRESET_ID_TURNS: usize = 20;
const TOOLS: usize = 100;

fn turns(scenario: Scenario) -> usize {
    match (scenario.preset, scenario.ids) {
        ("", CallIdPolicy::Kept) => TURNS,
        ("", _) => ID_TURNS,
        (_, CallIdPolicy::Kept) => PRESET_TURNS,
        _ => PRESET_ID_TURNS,
    }
}

fn conversation(scenario: Scenario) -> LongConversation {
    let tools = tools(TOOLS, Size::Usual);
    let steps =
        ScriptGenerator::new(&tools, 7, scenario.can_call_unfound_tools()).steps(turns(scenario));
    LongConversation::new(scenario, &tools, steps)
}

fn one_replica(scenario: Scenario) {
    let mut conversation = conversation(scenario);
    let replica = Replica::start(&scenario.config(&conversation.provider.url, None));
    for _ in 0..turns(scenario) {
        conversation.turn(&replica.url);
    }
    conversation.assert_stable_prefix();
    conversation.assert_searched();
    assert_eq!(replica.modes(), [scenario.mode], "{scenario:?}");
}

/// Plays a conversation that alternates between two replicas. Halfway, one replica is killed in the middle of a
/// request. The agent sends the request again to the other replica, and uses only that one from then on.
fn two_replicas(scenario: Scenario) {
    let redis = Server::start();
    let mut conversation = conversation(scenario);
    let config = scenario.config(&conversation.provider.url, Some(&redis.url()));
    let (mut one, other) = (Replica::start(&config), Replica::start(&config));
    let half = turns(scenario) / 2;
    for at in 0..half {
        conversation.turn(if at % 2 == 0 { &one.url } else { &other.url });
    }
    conversation.provider.queue_response(CannedResponse::Faulty(StreamFault::StallFirst));
    thread::scope(|scope| {
        let url = one.url.clone();
        let asked = scope.spawn({
            let agent = &conversation.agent;
            move || agent.ask(&url, true)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(conversation.provider.wait_for_open_responses(1));
        one.kill();
        assert!(asked.join().unwrap().is_err());
    });
    for _ in half..turns(scenario) {
        conversation.turn(&other.url);
    }
    conversation.assert_stable_prefix();
    conversation.assert_searched();
}

#[test]
fn the_prefix_is_stable_for_chat_with_one_replica() {
    scenarios(Api::Chat).for_each(one_replica);
}

#[test]
fn the_prefix_is_stable_for_responses_with_one_replica() {
    scenarios(Api::Responses).for_each(one_replica);
}

#[test]
fn the_prefix_is_stable_for_messages_with_one_replica() {
    scenarios(Api::Messages).for_each(one_replica);
}

#[test]
fn the_prefix_is_stable_for_gemini_with_one_replica() {
    scenarios(Api::Gemini).for_each(one_replica);
}

#[test]
fn the_prefix_is_stable_for_chat_with_two_replicas() {
    scenarios(Api::Chat).for_each(two_replicas);
}

#[test]
fn the_prefix_is_stable_for_responses_with_two_replicas() {
    scenarios(Api::Responses).for_each(two_replicas);
}

#[test]
fn the_prefix_is_stable_for_messages_with_two_replicas() {
    scenarios(Api::Messages).for_each(two_replicas);
}

#[test]
fn the_prefix_is_stable_for_gemini_with_two_replicas() {
    scenarios(Api::Gemini).for_each(two_replicas);
}

#[test]
fn the_prefix_is_stable_for_chat_with_changed_ids() {
    id_scenarios(Api::Chat).for_each(one_replica);
}

#[test]
fn the_prefix_is_stable_for_responses_with_changed_ids() {
    id_scenarios(Api::Responses).for_each(one_replica);
}

#[test]
fn the_prefix_is_stable_for_messages_with_changed_ids() {
    id_scenarios(Api::Messages).for_each(one_replica);
}

#[test]
fn the_prefix_is_stable_for_gemini_with_changed_ids() {
    id_scenarios(Api::Gemini).for_each(one_replica);
}

#[test]
fn the_prefix_is_stable_for_gemini_with_changed_ids_and_two_replicas() {
    id_scenarios(Api::Gemini).for_each(two_replicas);
}

#[test]
fn the_prefix_is_stable_for_chat_under_every_preset() {
    preset_scenarios(Api::Chat).for_each(one_replica);
}

#[test]
fn the_prefix_is_stable_for_responses_under_every_preset() {
    preset_scenarios(Api::Responses).for_each(one_replica);
}

#[test]
fn the_prefix_is_stable_for_messages_under_every_preset() {
    preset_scenarios(Api::Messages).for_each(one_replica);
}

#[test]
fn the_prefix_is_stable_for_gemini_under_every_preset() {
    preset_scenarios(Api::Gemini).for_each(one_replica);
}
