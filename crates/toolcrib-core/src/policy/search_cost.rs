//! Whether deferring tools saves tokens even in a turn that needs a search.
//!
//! This matters only if deferred tools are hidden, so that the model must search for them. Both network interfaces check
//! it before they defer: the proxy for each request, and the gateway for its list of tools.

use super::{ActivationReason, Decision, Deferral, Verdict};
use crate::crib::Crib;
use crate::disclosure::Disclosure;

/// The number of tokens that each hit adds to a search answer, not counting the tool's definition. This is a measured
/// value.
const HIT_TOKENS: usize = 45;

impl Crib {
    /// Estimates the number of tokens of one search answer, from the average size of the definitions in scope.
    pub fn search_answer_tokens(&self, shown: &Disclosure) -> usize {
        let search = &self.settings().search;
        let mean = shown.tokens_before / shown.tools.len().max(1);
        let tools = shown.tools.iter();
        let deferred = tools.filter(|tool| matches!(tool.verdict, Verdict::Deferred(_))).count();
        ((mean + HIT_TOKENS) * search.limit.min(deferred)).min(search.reply_tokens)
    }
}

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
