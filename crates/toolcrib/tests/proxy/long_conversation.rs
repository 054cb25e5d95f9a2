//! A long conversation between an agent and a provider that records every request.

use toolcrib_testkit::provider::{Options, Provider, Step};

use crate::agent::Agent;
use crate::prefix_check::breaks;
use crate::scenario::Scenario;
use crate::script_generator::calls;
use crate::tools::Tool;

pub(crate) struct LongConversation {
    scenario: Scenario,
    steps: Vec<Step>,
    pub(crate) provider: Provider,
    pub(crate) agent: Agent,
}

impl LongConversation {
    /// Starts a conversation in which the model plays these steps.
    pub(crate) fn new(scenario: Scenario, tools: &[Tool], steps: Vec<Step>) -> Self {
        let options = Options { call_ids: scenario.has_ids(), ..Options::steps(steps.clone()) };
        let provider = Provider::start(options).unwrap();
        Self { scenario, steps, provider, agent: Agent::new(scenario, tools, "any") }
    }

    /// Plays the next turn. Every other turn is streamed. Asserts that the agent sees the calls of the turn's step.
    pub(crate) fn turn(&mut self, url: &str) {
        let at = self.agent.turns.len();
        let turn = self.agent.turn(url, at.is_multiple_of(2));
        let received: Vec<_> =
            turn.calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect();
        assert_eq!(received, calls(&self.steps[at]), "{:?} turn {at}: {turn:?}", self.scenario);
    }

    /// Returns the index of each request that does not begin with the previous one, and what differs.
    pub(crate) fn breaks(&self) -> Vec<(usize, String)> {
        breaks(self.scenario, &self.provider.requests())
    }

    /// Asserts that every request begins with the previous one.
    pub(crate) fn assert_stable_prefix(&self) {
        let breaks = self.breaks();
        let first = breaks.first().map(|(at, why)| format!("first request {at}: {why}"));
        assert!(
            first.is_none(),
            "{:?}: {} breaks, {}",
            self.scenario,
            breaks.len(),
            first.unwrap()
        );
    }

    /// Asserts that there were hidden search rounds, unless the provider searches or the model does not need to search.
    pub(crate) fn assert_searched(&self) {
        let (requests, turns) = (self.provider.requests().len(), self.agent.turns.len());
        let hidden = requests - turns;
        let none = matches!(self.scenario.mode, "hosted" | "terse");
        assert!(
            none || hidden > turns / 20,
            "{:?}: {hidden} hidden of {requests} requests",
            self.scenario
        );
    }
}
