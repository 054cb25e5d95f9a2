//! Whether a turn with a search takes at least as many tokens as a turn without deferral.

use super::{ActivationReason, Decision, Deferral};

/// Returns the number of tokens of a turn with one search, if such a turn takes at least as many tokens as one without
/// deferral. `before` and `after` are the tokens of the tools without and with deferral, and `answer` those of a search
/// answer. Returns `None` if the tools were deferred for another reason than their number or size.
pub fn search_loss(
    decision: Decision,
    (before, after): (usize, usize),
    answer: usize,
) -> Option<usize> {
    let by_numbers =
        matches!(decision.reason, ActivationReason::Count { .. } | ActivationReason::Tokens { .. });
    // A turn with a search consists of two requests, each with the tools, and one search answer.
    let with_search = 2 * after + answer;
    (by_numbers && decision.deferral == Deferral::Everything && with_search >= before)
        .then_some(with_search)
}
