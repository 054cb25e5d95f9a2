//! Tests of state that is deleted in the middle of a conversation. Only the first request after that does not begin
//! with the previous one, and every tool that was called can be called again.

use toolcrib_testkit::redis::Server;

use crate::api::Api;
use crate::long_conversation::LongConversation;
use crate::replica::Replica;
use crate::scenario::{SCENARIOS, Scenario, scenarios};
use crate::script_generator::ScriptGenerator;
use crate::tools::{Size, tools};

/// Number of turns before the state is deleted. After that, every used tool is called again, and then `AFTER` more
/// turns follow.
const BEFORE: usize = 40;
const AFTER: usize = 15;
const TOOLS: usize = 100;

/// Plays a conversation. In the middle, `lose` deletes the state, and may replace the replica. Asserts that only the
/// first request after that does not begin with the previous request.
fn forget(
    scenario: Scenario,
    thinks: bool,
    start: impl Fn(&str) -> Replica,
    lose: impl Fn(&mut Replica, &str),
) {
    let tools = tools(TOOLS, Size::Usual);
    let mut generator = ScriptGenerator::new(&tools, 11, scenario.can_call_unfound_tools());
    let mut steps = generator.steps(BEFORE);
    steps.extend(generator.again());
    steps.extend(generator.steps(AFTER));
    let turns = steps.len();
    let mut conversation = LongConversation::new(scenario, &tools, steps);
    conversation.agent.thinks = thinks;
    let mut replica = start(&conversation.provider.url);
    for _ in 0..BEFORE {
        conversation.turn(&replica.url);
    }
    conversation.assert_stable_prefix();
    let known = conversation.provider.requests().len();
    let url = conversation.provider.url.clone();
    lose(&mut replica, &url);
    for _ in BEFORE..turns {
        conversation.turn(&replica.url);
    }
    let breaks = conversation.breaks();
    let places: Vec<usize> = breaks.iter().map(|(at, _)| *at).collect();
    assert_eq!(places, [known], "{scenario:?}: {:?}", breaks.iter().find(|(at, _)| *at != known));
}

/// Tests the loss of state in memory: the replica is killed, and a new one takes over.
fn restarted(scenario: Scenario, thinks: bool) {
    let start = |url: &str| Replica::start(&scenario.config(url, None));
    forget(scenario, thinks, start, |replica, url| *replica = start(url));
}

/// Tests the loss of state in Redis: all keys are deleted.
fn flushed(scenario: Scenario) {
    let redis = Server::start();
    let start = |url: &str| Replica::start(&scenario.config(url, Some(&redis.url())));
    forget(scenario, true, start, |_, _| {
        assert_eq!(redis.ask(&["FLUSHALL"]), "OK");
    });
}

#[test]
fn a_chat_conversation_survives_a_restart() {
    scenarios(Api::Chat).for_each(|scenario| restarted(scenario, true));
}

#[test]
fn a_responses_conversation_survives_a_restart() {
    scenarios(Api::Responses).for_each(|scenario| restarted(scenario, true));
}

#[test]
fn a_messages_conversation_survives_a_restart() {
    scenarios(Api::Messages).for_each(|scenario| restarted(scenario, true));
}

#[test]
fn a_messages_conversation_without_thinking_survives_a_restart() {
    // Without thinking, the proxy loads the tools again in a turn that it adds at the end of the history. With thinking
    // it cannot, because a turn with calls would have to begin with a signed thinking block.
    scenarios(Api::Messages).for_each(|scenario| restarted(scenario, false));
}

#[test]
fn a_gemini_conversation_survives_a_restart() {
    scenarios(Api::Gemini).for_each(|scenario| restarted(scenario, true));
}

#[test]
fn conversations_survive_an_emptied_redis() {
    SCENARIOS.into_iter().for_each(flushed);
}
