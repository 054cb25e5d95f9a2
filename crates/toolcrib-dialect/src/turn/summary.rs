//! Counts the rounds, searches and tokens of a turn.

use crate::usage::Usage;

/// The numbers of rounds, searches and tokens of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnSummary {
    /// The number of requests to the upstream.
    pub rounds: usize,
    /// The number of searches that were answered.
    pub searches: usize,
    /// The tokens of all rounds together.
    pub usage: Usage,
    /// The tokens of the first round. Without Toolcrib, the turn would have had only this round, with all tools sent in
    /// full.
    pub first: Usage,
    /// The tokens of the last round. They show how full the model's context is.
    pub last: Usage,
}

impl TurnSummary {
    /// Counts a round and its tokens.
    pub(super) fn add_round(&mut self, usage: Usage) {
        if self.rounds == 0 {
            self.first = usage;
        }
        self.rounds += 1;
        self.usage += usage;
        self.last = usage;
    }
}
