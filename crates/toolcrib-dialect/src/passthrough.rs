//! Whether a request goes to the upstream as it came, and why.
//!
//! `decide_passthrough` is the one function that decides, and every answer it gives is a reason that logs, headers
//! and tests print. It is called several times in the life of a request, each time with more facts. Cheap
//! checks come first: a compressed body is known from its headers, while other reasons need the tools to be
//! counted. If the caller may not know of every tool and nothing is deferred, the request is sent with the
//! remaining tools, and the calls in its response are still checked
//! ([`ExchangeConfig::checks_calls`](crate::exchange::action::ExchangeConfig::checks_calls)).

use std::fmt;

use toolcrib_core::policy::{ActivationReason, Decision, Deferral};
use toolcrib_text::json;

use crate::api::Api;
use crate::limits::MAX_TOOLS;
use crate::mode::RequestedMode;
use crate::request::{ClientDeferral, RequestOutline};

/// What is known of a request when it is asked whether it passes through.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequestFacts<'a> {
    /// The body is not JSON in UTF-8, or not a request of this API.
    NotThisApi,
    /// The top level of the body was read. `tools` are those that the caller may see, `null` if there are none; `count`
    /// is their number.
    Outline { outline: &'a RequestOutline<'a>, tools: &'a str, count: usize },
    /// The configuration and what the upstream can do are known.
    Upstream {
        /// The client's API.
        api: Api,
        /// What is wanted.
        requested: RequestedMode,
        /// How the client defers tools itself, and whether the upstream supports that.
        client: Option<(ClientDeferral, bool)>,
    },
    /// The tools were counted.
    TokensCounted(TokenCounts),
}

/// Why a body is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// It is compressed.
    Compressed,
    /// It is larger than the limit.
    TooLarge,
    /// It has more values than the limit: parsed, it would take many times its size in memory.
    TooManyValues,
}

/// The tokens of a request's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenCounts {
    /// What the engine decided.
    pub(crate) decision: Decision,
    /// How many tools are deferred.
    pub(crate) deferred: usize,
    /// Tokens of the tools as they came.
    pub(crate) before: usize,
    /// Tokens of what is sent instead.
    pub(crate) after: usize,
    /// Tokens of one answer of the search.
    pub(crate) answer: usize,
    /// Whether a turn that searches must save tokens, too.
    pub(crate) margin: bool,
}

/// Why tools are deferred or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeferralReason {
    /// The engine's decision.
    Engine(ActivationReason),
    /// Deferring saves, but less than one answer of the search costs.
    SearchCostsMore {
        /// Tokens as they are.
        before: usize,
        /// Tokens deferred, with one answer of the search.
        after: usize,
    },
}

impl fmt::Display for DeferralReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(reason) => reason.fmt(f),
            Self::SearchCostsMore { before, after } => {
                write!(
                    f,
                    "no saving: {before} tokens as they are, {after} deferred and searched once"
                )
            }
        }
    }
}

/// Why a request is not rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PassthroughReason {
    /// The body was not read.
    Unreadable(Unreadable),
    /// No JSON of this API: its own error is the answer.
    Malformed,
    /// No tools in it.
    NoTools,
    /// It has more tools than the limit for rewriting.
    TooManyTools,
    /// It asks for several answers at once, and hidden rounds have one.
    MultipleChoices,
    /// It uses what was there before tools.
    LegacyFunctions,
    /// Its tools are in a cache of the provider.
    CachedContent,
    /// The answer is fetched later, from the provider, who knows of no rounds.
    Background,
    /// The provider keeps the conversation, and adds each round's input to it again.
    StoredConversation,
    /// Its answer is streamed as one JSON array, and not as events.
    JsonArrayStream,
    /// Its answer has the arguments of calls in pieces.
    StreamedArguments,
    /// Tool search is switched off.
    Off,
    /// The client defers tools itself, in a way that the upstream supports.
    ClientDefers,
    /// The client defers tools itself, in a way that the upstream does not support: the request is translated.
    ClientDefersTranslated,
    /// The client has a search tool of its own. Ours would hide it, and the model would have to search for
    /// a search.
    ClientHasSearch,
    /// The tools are not deferred.
    NotDeferred(DeferralReason),
}

impl PassthroughReason {
    /// Its name in headers, logs and metrics: requests whose tools were counted are told apart.
    pub fn mode_name(self) -> &'static str {
        if let Self::NotDeferred(_) = self { "pass-through" } else { "bypass" }
    }
}

impl fmt::Display for PassthroughReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable(Unreadable::Compressed) => "the body is compressed",
            Self::Unreadable(Unreadable::TooLarge) => "the body is too large to be read",
            Self::Unreadable(Unreadable::TooManyValues) => "the body has too many values to be read",
            Self::Malformed => "not a request of this API",
            Self::NoTools => "no tools",
            Self::TooManyTools => "too many tools",
            Self::MultipleChoices => "several answers at once",
            Self::LegacyFunctions => "legacy functions",
            Self::CachedContent => "the tools are in the provider's cache",
            Self::Background => "the answer is fetched later",
            Self::StoredConversation => "the provider keeps the conversation",
            Self::JsonArrayStream => "streamed, and not as events",
            Self::StreamedArguments => "calls in pieces",
            Self::Off => "tool search is off",
            Self::ClientDefers => "the client defers tools itself",
            Self::ClientDefersTranslated => {
                "the client defers tools itself; translated for this upstream, which does not support that"
            }
            Self::ClientHasSearch => "the client has a tool search of its own",
            Self::NotDeferred(why) => return why.fmt(f),
        })
    }
}

/// The one function that decides whether a request goes to the upstream as it came.
pub(crate) fn decide_passthrough(facts: RequestFacts<'_>) -> Option<PassthroughReason> {
    match facts {
        RequestFacts::NotThisApi => Some(PassthroughReason::Malformed),
        RequestFacts::Outline { outline, tools, count } => {
            let blockers = outline.blockers;
            let list = (tools != "null").then(|| json::is_empty_list(tools));
            [
                (blockers.json_array_stream, PassthroughReason::JsonArrayStream),
                (blockers.cached_content, PassthroughReason::CachedContent),
                (outline.history.is_none(), PassthroughReason::Malformed),
                (blockers.legacy_functions, PassthroughReason::LegacyFunctions),
                (list == Some(None), PassthroughReason::Malformed),
                (list != Some(Some(false)), PassthroughReason::NoTools),
                (count > MAX_TOOLS, PassthroughReason::TooManyTools),
                (blockers.multiple_choices, PassthroughReason::MultipleChoices),
                (blockers.streamed_arguments, PassthroughReason::StreamedArguments),
                (blockers.background, PassthroughReason::Background),
                (blockers.conversation, PassthroughReason::StoredConversation),
            ]
            .into_iter()
            .find_map(|(is_so, why)| is_so.then_some(why))
        }
        RequestFacts::Upstream { requested: RequestedMode::Off, .. } => {
            Some(PassthroughReason::Off)
        }
        RequestFacts::Upstream { api, client, .. } => match client? {
            (ClientDeferral::OwnSearch, _) => Some(PassthroughReason::ClientHasSearch),
            (_, true) => Some(PassthroughReason::ClientDefers),
            // The client's search is the provider's, and the upstream has none: ours takes its place.
            (ClientDeferral::Hosted, false) if api == Api::Messages => None,
            (ClientDeferral::Hosted | ClientDeferral::References, false) => {
                Some(PassthroughReason::ClientDefersTranslated)
            }
        },
        RequestFacts::TokensCounted(TokenCounts {
            decision,
            deferred,
            before,
            after,
            answer,
            margin,
        }) => {
            if decision.deferral == Deferral::Nothing || deferred == 0 {
                return Some(PassthroughReason::NotDeferred(DeferralReason::Engine(
                    decision.reason,
                )));
            }
            let by_numbers = matches!(
                decision.reason,
                ActivationReason::Count { .. } | ActivationReason::Tokens { .. }
            );
            // A turn that searches is two requests, and carries one answer.
            let after = 2 * after + answer;
            let decided = by_numbers && decision.deferral == Deferral::Everything;
            let loses = margin && decided && after >= before;
            loses.then_some(PassthroughReason::NotDeferred(DeferralReason::SearchCostsMore {
                before,
                after,
            }))
        }
    }
}

impl From<Unreadable> for PassthroughReason {
    fn from(why: Unreadable) -> Self {
        Self::Unreadable(why)
    }
}
