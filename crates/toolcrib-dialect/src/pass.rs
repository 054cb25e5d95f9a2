//! Whether a request goes to the upstream as it came, and why.
//!
//! `pass_through` is the one function that decides, and every answer it gives is a reason that logs, headers
//! and tests print. It is called several times in the life of a request, each time with more facts. Cheap
//! checks come first: a compressed body is known from its headers, while other reasons need the tools to be
//! counted. If the caller may not know of every tool and nothing is deferred, the request is sent with the
//! remaining tools, and the calls in its response are still checked
//! ([`Setup::checks_calls`](crate::exchange::action::Setup::checks_calls)).

use std::fmt;

use toolcrib_core::policy::{ActivationReason, Decision, Deferral};
use toolcrib_text::json;

use crate::api::Api;
use crate::budget::TOOLS;
use crate::mode::RequestedMode;
use crate::request::{Defers, Outline};

/// What is known of a request when it is asked whether it passes through.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Facts<'a> {
    /// The body cannot be read.
    Unreadable(Unreadable),
    /// The body is not JSON in UTF-8, or not a request of this API.
    NotThisApi,
    /// The top level of the body was read. `tools` are those that the caller may see, `null` if there are none; `count`
    /// is their number.
    Outline { outline: &'a Outline<'a>, tools: &'a str, count: usize },
    /// The configuration and what the upstream can do are known.
    Upstream {
        /// The client's API.
        api: Api,
        /// What is wanted.
        requested: RequestedMode,
        /// How the client defers tools itself, and whether the upstream supports that.
        client: Option<(Defers, bool)>,
    },
    /// The tools were counted.
    Counted(Numbers),
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
pub(crate) struct Numbers {
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
pub enum Why {
    /// The engine's decision.
    Engine(ActivationReason),
    /// Deferring saves, but less than one answer of the search costs.
    LostToSearch {
        /// Tokens as they are.
        before: usize,
        /// Tokens deferred, with one answer of the search.
        after: usize,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(reason) => reason.fmt(f),
            Self::LostToSearch { before, after } => {
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
pub enum Bypass {
    /// The body was not read.
    Unreadable(Unreadable),
    /// No JSON of this API: its own error is the answer.
    Malformed,
    /// No tools in it.
    NoTools,
    /// It has more tools than the limit for rewriting.
    TooManyTools,
    /// It asks for several answers at once, and hidden rounds have one.
    SeveralAnswers,
    /// It uses what was there before tools.
    LegacyFunctions,
    /// Its tools are in a cache of the provider.
    CachedContent,
    /// The answer is fetched later, from the provider, who knows of no rounds.
    Background,
    /// The provider keeps the conversation, and adds each round's input to it again.
    Conversation,
    /// Its answer is streamed as one JSON array, and not as events.
    NoEvents,
    /// Its answer has the arguments of calls in pieces.
    CallsInPieces,
    /// Tool search is switched off.
    Off,
    /// The client defers tools itself, in a way that the upstream supports.
    ClientDefers,
    /// The client defers tools itself, in a way that the upstream does not support: the request is translated.
    ClientDefersPlainly,
    /// The client has a search tool of its own. Ours would hide it, and the model would have to search for
    /// a search.
    ClientSearches,
    /// The tools are not deferred.
    Counted(Why),
}

impl Bypass {
    /// Its name in headers, logs and metrics: requests whose tools were counted are told apart.
    pub fn mode(self) -> &'static str {
        if let Self::Counted(_) = self { "pass-through" } else { "bypass" }
    }
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable(Unreadable::Compressed) => "the body is compressed",
            Self::Unreadable(Unreadable::TooLarge) => "the body is too large to be read",
            Self::Unreadable(Unreadable::TooManyValues) => "the body has too many values to be read",
            Self::Malformed => "not a request of this API",
            Self::NoTools => "no tools",
            Self::TooManyTools => "too many tools",
            Self::SeveralAnswers => "several answers at once",
            Self::LegacyFunctions => "legacy functions",
            Self::CachedContent => "the tools are in the provider's cache",
            Self::Background => "the answer is fetched later",
            Self::Conversation => "the provider keeps the conversation",
            Self::NoEvents => "streamed, and not as events",
            Self::CallsInPieces => "calls in pieces",
            Self::Off => "tool search is off",
            Self::ClientDefers => "the client defers tools itself",
            Self::ClientDefersPlainly => {
                "the client defers tools itself; translated for this upstream, which does not support that"
            }
            Self::ClientSearches => "the client has a tool search of its own",
            Self::Counted(why) => return why.fmt(f),
        })
    }
}

/// The one function that decides whether a request goes to the upstream as it came.
pub(crate) fn pass_through(facts: Facts<'_>) -> Option<Bypass> {
    match facts {
        Facts::Unreadable(why) => Some(Bypass::Unreadable(why)),
        Facts::NotThisApi => Some(Bypass::Malformed),
        Facts::Outline { outline, tools, count } => {
            let features = outline.features;
            let list = (tools != "null").then(|| json::is_empty_list(tools));
            [
                (features.streamed_without_events, Bypass::NoEvents),
                (features.cached_content, Bypass::CachedContent),
                (outline.history.is_none(), Bypass::Malformed),
                (features.legacy_functions, Bypass::LegacyFunctions),
                (list == Some(None), Bypass::Malformed),
                (list != Some(Some(false)), Bypass::NoTools),
                (count > TOOLS, Bypass::TooManyTools),
                (features.several_answers, Bypass::SeveralAnswers),
                (features.calls_in_pieces, Bypass::CallsInPieces),
                (features.background, Bypass::Background),
                (features.conversation, Bypass::Conversation),
            ]
            .into_iter()
            .find_map(|(is_so, why)| is_so.then_some(why))
        }
        Facts::Upstream { requested: RequestedMode::Off, .. } => Some(Bypass::Off),
        Facts::Upstream { api, client, .. } => match client? {
            (Defers::OwnTools, _) => Some(Bypass::ClientSearches),
            (_, true) => Some(Bypass::ClientDefers),
            // The client's search is the provider's, and the upstream has none: ours takes its place.
            (Defers::Hosted, false) if api == Api::Messages => None,
            (Defers::Hosted | Defers::References, false) => Some(Bypass::ClientDefersPlainly),
        },
        Facts::Counted(Numbers { decision, deferred, before, after, answer, margin }) => {
            if decision.deferral == Deferral::Nothing || deferred == 0 {
                return Some(Bypass::Counted(Why::Engine(decision.reason)));
            }
            let by_numbers = matches!(
                decision.reason,
                ActivationReason::Count { .. } | ActivationReason::Tokens { .. }
            );
            // A turn that searches is two requests, and carries one answer.
            let after = 2 * after + answer;
            let decided = by_numbers && decision.deferral == Deferral::Everything;
            let loses = margin && decided && after >= before;
            loses.then_some(Bypass::Counted(Why::LostToSearch { before, after }))
        }
    }
}

/// The reason for a body that cannot be read. It is known before there is anything to read.
pub fn unreadable(why: Unreadable) -> Bypass {
    pass_through(Facts::Unreadable(why)).unwrap_or(Bypass::Unreadable(why))
}
