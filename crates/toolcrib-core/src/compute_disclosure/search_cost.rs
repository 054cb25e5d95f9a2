//! Whether deferring tools saves tokens even in a turn that needs a search.
//!
//! This matters only if deferred tools are hidden, so that the model must search for them. The proxy checks
//! it for each request, and the gateway for its list of tools.

use crate::crib::Crib;
use crate::disclosure::{Disclosure, DisclosureKind};
use crate::policy::{ActivationReason, Decision, Deferral, Verdict, search_loss};

/// The number of tokens that each hit adds to a search answer, not counting the tool's definition. The
/// number was measured.
const HIT_TOKENS: usize = 45;

impl Crib {
    /// Decides whether to keep a disclosure, for callers that know the complete list of tools. If the model would have to
    /// search for deferred tools, and a turn with one search would not save tokens, nothing is deferred.
    pub fn decide_with_search(&self, shown: &Disclosure) -> Decision {
        let hides_tools = matches!(shown.kind, DisclosureKind::Bridge | DisclosureKind::Append);
        let must_save = hides_tools && self.settings().activation.only_if_saving;
        let (before, after) = (shown.tokens_before, shown.tokens_after);
        let answer = self.search_answer_tokens(shown);
        match search_loss(shown.decision, (before, after), answer).filter(|_| must_save) {
            Some(after) => Decision {
                deferral: Deferral::Nothing,
                reason: ActivationReason::SearchCostsMore { before, after },
            },
            None => shown.decision,
        }
    }

    /// Estimates the number of tokens of one search answer, from the average size of the definitions in scope.
    pub fn search_answer_tokens(&self, shown: &Disclosure) -> usize {
        let search = &self.settings().search;
        let mean = shown.tokens_before / shown.tools.len().max(1);
        let tools = shown.tools.iter();
        let deferred = tools.filter(|tool| matches!(tool.verdict, Verdict::Deferred(_))).count();
        ((mean + HIT_TOKENS) * search.limit.min(deferred)).min(search.reply_tokens)
    }
}
