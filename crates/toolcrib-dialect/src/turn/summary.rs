//! How many rounds, searches and tokens a turn took.

use crate::usage::Usage;

/// Rounds, searches and tokens of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnSummary {
    /// The number of requests to the upstream.
    pub rounds: usize,
    /// The number of searches that were answered.
    pub searches: usize,
    /// Tokens of all rounds.
    pub usage: Usage,
    /// Tokens of the first round. Apart from the tools, this is what the turn would have taken without Toolcrib.
    pub first: Usage,
    /// Tokens of the last round: how full the model's context is.
    pub last: Usage,
}

impl TurnSummary {
    /// Adds the tokens of a round.
    pub(super) fn add_round(&mut self, usage: Usage) {
        if self.rounds == 0 {
            self.first = usage;
        }
        self.rounds += 1;
        self.usage += usage;
        self.last = usage;
    }
}
