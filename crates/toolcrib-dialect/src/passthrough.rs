//! Decides whether a request passes through to the upstream unchanged.
//!
//! `decide_passthrough` makes this decision for every body that can be read. It returns a reason, which appears in
//! logs, headers and tests. It is called several times for each request, with more facts each time, so that cheap
//! checks come first. Some reasons follow from the top level of the body, while others require the tokens of the tools
//! to be counted.
//!
//! Bodies that cannot be read are recognised elsewhere. The proxy (`start_exchange.rs`) recognises bodies that are
//! compressed or too large, and `read_request` recognises bodies with too many JSON values. Both use
//! [`PassthroughReason::Unreadable`] as the reason.
//!
//! If the caller's scope is limited and nothing is deferred, the request is sent with the tools that the caller may
//! see, and the calls in its response are still checked
//! ([`ExchangeConfig::checks_calls`](crate::exchange::action::ExchangeConfig::checks_calls)).

use std::fmt;

use toolcrib_core::policy::{ActivationReason, Decision, Deferral, search_loss};
use toolcrib_text::json;

use crate::api::Api;
use crate::limits::MAX_TOOLS;
use crate::mode::RequestedMode;
use crate::request::{ClientDeferral, RequestOutline};

/// The facts about a request that are known at the time of the decision.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequestFacts<'a> {
    /// The body is not JSON in UTF-8, or not a request of this API.
    NotThisApi,
    /// The top level of the body was read. `tools` are the tools that the caller may see, or `null` if there are none.
    /// `count` is the number of tools.
    Outline { outline: &'a RequestOutline<'a>, tools: &'a str, count: usize },
    /// The configuration and the upstream's capability are known.
    Upstream {
        api: Api,
        requested: RequestedMode,
        /// How the client defers tools itself, if it does, and whether the upstream supports this.
        client: Option<(ClientDeferral, bool)>,
    },
    /// The tokens of the tools were counted.
    TokensCounted(TokenCounts),
}

/// Why a body cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// The body is compressed.
    Compressed,
    /// The body exceeds the size limit.
    TooLarge,
    /// The body has too many JSON values. Once parsed, it would take many times its size in memory.
    TooManyValues,
}

/// The engine's decision about a request's tools, and the token counts that are used to check it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenCounts {
    /// The engine's decision whether to defer tools.
    pub(crate) decision: Decision,
    /// The number of deferred tools.
    pub(crate) deferred: usize,
    /// The number of tokens of the tools as the client sent them.
    pub(crate) before: usize,
    /// The number of tokens of the tools as the upstream would get them.
    pub(crate) after: usize,
    /// The estimated number of tokens of one search answer.
    pub(crate) answer: usize,
    /// Whether deferral must save tokens even in a turn that needs a search.
    pub(crate) must_save_with_search: bool,
}

/// Why a request is not rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PassthroughReason {
    /// The body cannot be read, for this reason.
    Unreadable(Unreadable),
    /// The body is not a request of this API. The upstream will report the error to the client.
    Malformed,
    /// The request has no tools.
    NoTools,
    /// The request has more tools than can be rewritten.
    TooManyTools,
    /// The request asks for several choices or candidates, but hidden rounds support only one.
    MultipleChoices,
    /// The request uses `functions`, the predecessor of `tools`.
    LegacyFunctions,
    /// The request refers to cached content of the provider, which contains the tools.
    CachedContent,
    /// The client fetches the response from the provider later, and the provider does not know about hidden rounds.
    Background,
    /// The provider stores the conversation, and would add the input of each hidden round to the stored conversation.
    StoredConversation,
    /// The response is streamed as a JSON array instead of events.
    JsonArrayStream,
    /// The request asks for the arguments of calls to be streamed in pieces.
    StreamedArguments,
    /// Tool search is switched off.
    Off,
    /// The client defers tools itself, in a way that the upstream supports.
    ClientDefers,
    /// The client defers tools itself, in a way that the upstream does not support. The request is sent without this
    /// deferral.
    ClientDefersTranslated,
    /// The client has a search tool of its own. If this tool were deferred, the model would have to search for it
    /// first.
    ClientHasSearch,
    /// The tokens of the tools were counted, and for this reason no tool is deferred.
    NotDeferred(ActivationReason),
}

impl PassthroughReason {
    /// Returns the name that headers, logs and metrics show as the mode: `pass-through` if the tokens of the tools were
    /// counted, `bypass` for every other reason.
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
            Self::MultipleChoices => "several choices requested",
            Self::LegacyFunctions => "legacy functions",
            Self::CachedContent => "the tools are in the provider's cache",
            Self::Background => "the response is fetched later",
            Self::StoredConversation => "the provider stores the conversation",
            Self::JsonArrayStream => "streamed as a JSON array",
            Self::StreamedArguments => "arguments streamed in pieces",
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

/// Decides whether a request passes through unchanged, and returns the reason if it does.
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
                (blockers.stored_conversation, PassthroughReason::StoredConversation),
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
            // The client uses the provider's search, but the upstream does not have it. Toolcrib's search replaces it.
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
            must_save_with_search,
        }) => {
            if decision.deferral == Deferral::Nothing || deferred == 0 {
                return Some(PassthroughReason::NotDeferred(decision.reason));
            }
            let loss = search_loss(decision, (before, after), answer);
            let after = loss.filter(|_| must_save_with_search)?;
            let reason = ActivationReason::SearchCostsMore { before, after };
            Some(PassthroughReason::NotDeferred(reason))
        }
    }
}

impl From<Unreadable> for PassthroughReason {
    fn from(why: Unreadable) -> Self {
        Self::Unreadable(why)
    }
}
