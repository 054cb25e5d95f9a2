//! Generates scripts for the model from a seed.

use serde_json::Value;
use toolcrib_testkit::provider::{Action, Step};

use crate::rng::Rng;
use crate::tools::{Tool, arguments};

/// The text that the scripted model writes before a search, in steps that have one.
pub(crate) const PREAMBLE: &str = "I'll look for a tool.";
/// What the scripted model thinks before it searches.
pub(crate) const THOUGHT: &str = "A tool for this must be found first.";

/// Returns the calls of a step that an agent must see.
pub(crate) fn calls(step: &Step) -> Vec<(&str, &Value)> {
    step.actions
        .iter()
        .filter_map(|say| match say {
            Action::Call { tool, arguments, .. } | Action::ExactCall { tool, arguments } => {
                Some((tool.as_str(), arguments))
            }
            _ => None,
        })
        .collect()
}

/// Generates steps, and records which tools they use.
pub(crate) struct ScriptGenerator<'a> {
    tools: &'a [Tool],
    rng: Rng,
    /// Positions of the tools that have been called.
    pub(crate) used: Vec<usize>,
    /// Whether the model may call tools that it has not searched for.
    calls_unfound_tools: bool,
    step_number: usize,
}

impl<'a> ScriptGenerator<'a> {
    pub(crate) fn new(tools: &'a [Tool], seed: u64, calls_unfound_tools: bool) -> Self {
        Self { tools, rng: Rng(seed), used: Vec::new(), calls_unfound_tools, step_number: 0 }
    }

    /// Generates a step of a random kind.
    pub(crate) fn step(&mut self) -> Step {
        self.step_number += 1;
        let mut says = Vec::new();
        if self.rng.below(4) == 0 {
            says.push(Action::thinking(format!("Thought number {}.", self.step_number)));
        }
        let kind = self.rng.below(10);
        match kind {
            0 => says.push(Action::text(format!("That was answer number {}.", self.step_number))),
            1 | 2 => says.push(Action::report("Done: ")),
            3 | 4 => says.push(self.known()),
            5 => says.push(self.fresh()),
            6 => {
                // Several calls at once, one of them to a tool that was used before.
                says.push(Action::text("All of this at once. "));
                says.extend([self.fresh(), self.known(), self.fresh()]);
            }
            7 => says.extend([self.known(), self.known()]),
            8 => {
                // A search together with a call that needs no search.
                says.push(Action::search(format!("tools for {}", self.any_name())));
                says.push(self.known());
            }
            _ if self.calls_unfound_tools => says.push(self.unfound_call()),
            _ => says.push(self.fresh()),
        }
        let step = Step::new(says);
        if kind == 5 { step.preamble(PREAMBLE) } else { step }
    }

    /// Generates this many steps of random kinds.
    pub(crate) fn steps(&mut self, count: usize) -> Vec<Step> {
        (0..count).map(|_| self.step()).collect()
    }

    /// Generates a step for each used tool, which calls the tool again.
    pub(crate) fn again(&mut self) -> Vec<Step> {
        let used = self.used.clone();
        used.into_iter().map(|at| Step::new([self.call(at)])).collect()
    }

    fn any_name(&mut self) -> String {
        self.rng.one(self.tools).name.replace('_', " ")
    }

    fn call(&mut self, at: usize) -> Action {
        let tool = &self.tools[at];
        if !self.used.contains(&at) {
            self.used.push(at);
        }
        Action::call(&tool.name, arguments(tool, &mut self.rng))
    }

    /// Generates a call of a tool that was used before, or of any tool if there is none.
    fn known(&mut self) -> Action {
        if self.used.is_empty() {
            return self.fresh();
        }
        let at = *self.rng.one(&self.used);
        self.call(at)
    }

    /// Generates a call of a tool that was not used before, or of any tool if all were.
    fn fresh(&mut self) -> Action {
        let start = self.rng.below(self.tools.len());
        let all = (0..self.tools.len()).map(|at| (start + at) % self.tools.len());
        let unused = all.into_iter().find(|at| !self.used.contains(at));
        self.call(unused.unwrap_or(start))
    }

    /// Generates a call of a tool that the model has not searched for.
    fn unfound_call(&mut self) -> Action {
        let at = self.rng.below(self.tools.len());
        let tool = &self.tools[at];
        Action::exact_call(&tool.name, arguments(tool, &mut self.rng))
    }
}
