//! The configuration of an [`Exchange`](super::Exchange), and the actions that it asks its driver to perform.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use toolcrib_core::{Settings, TokenCounter};

use crate::api::Api;
use crate::capability::{CapabilityOverrides, LearnedUnsupported, UnsupportedFeature};
use crate::limits::{LimitExceeded, ResponseLimits};
use crate::mode::{Mode, RequestedMode};
use crate::record_keys::RecordKey;
use crate::response_check::WithheldReason;
use crate::toolset::ToolsetPlan;
use crate::translate::Untranslatable;
use crate::turn::{DEFAULT_HIDDEN_ROUNDS, TurnSummary};

/// Everything that an exchange needs in addition to the request. Create it with [`ExchangeConfig::new`] and set the
/// fields that differ from their defaults.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExchangeConfig {
    /// The engine's settings.
    pub settings: Arc<Settings>,
    /// Counts tokens for the model.
    pub counter: Arc<dyn TokenCounter>,
    /// The requested mode. By default `auto`.
    pub requested: RequestedMode,
    /// The upstream that the request is sent to.
    pub upstream: UpstreamDescription,
    /// A hash of the caller's identity. Callers do not find each other's records.
    pub caller: [u8; 32],
    /// Maximum number of hidden rounds in one turn.
    pub max_hidden_rounds: usize,
    /// Limits on how much of a response is held in memory.
    pub limits: ResponseLimits,
    /// Whether the caller's scope is limited. Calls are then checked even if nothing is deferred, because a model may
    /// call a tool that it was not sent, and a response that cannot be checked is not forwarded.
    pub checks_calls: bool,
    /// Features that upstreams were found not to support.
    pub learned: LearnedUnsupported,
    /// The current time in seconds, on the clock that `learned` uses.
    pub now: u64,
}

impl ExchangeConfig {
    /// Creates a config for an upstream's host, with the default for everything else.
    pub fn new(host: impl Into<String>, counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            settings: Arc::default(),
            counter,
            requested: RequestedMode::default(),
            upstream: UpstreamDescription::new(host),
            caller: [0; 32],
            max_hidden_rounds: DEFAULT_HIDDEN_ROUNDS,
            limits: ResponseLimits::default(),
            checks_calls: false,
            learned: LearnedUnsupported::default(),
            now: 0,
        }
    }
}

/// What an exchange must know about the upstream.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct UpstreamDescription {
    /// The host name. Together with the model, it determines the native features.
    pub host: String,
    /// The upstream's API, if it differs from the client's. Requests and responses are then translated.
    pub other_api: Option<Api>,
    /// Configured capabilities, which take precedence over the built-in rules.
    pub overrides: Option<CapabilityOverrides>,
    /// The model's context window in tokens, if it is known.
    pub context_window: Option<usize>,
}

impl UpstreamDescription {
    /// Describes an upstream by its host alone.
    pub fn new(host: impl Into<String>) -> Self {
        Self { host: host.into(), ..Self::default() }
    }
}

/// The next thing that the driver must do.
///
/// Exhaustive on purpose: a driver that skips an action breaks the exchange, so a new action must not go unnoticed.
#[derive(Debug)]
pub enum Action {
    /// Look up these keys and call [`Exchange::records_loaded`](super::Exchange::records_loaded).
    LoadRecords(Vec<RecordKey>),
    /// Make a toolset by this plan from [`Exchange::tools`](super::Exchange::tools), or reuse one with the same
    /// [`cache_key`](ToolsetPlan::cache_key), and call [`Exchange::toolset_prepared`](super::Exchange::toolset_prepared).
    PrepareToolset(Box<ToolsetPlan>),
    /// Send this request. Call [`Exchange::response_started`](super::Exchange::response_started) when the head of the
    /// response arrives, or [`Exchange::upstream_unreachable`](super::Exchange::upstream_unreachable).
    Send(OutgoingRequest),
    /// Start the client's response with this status and the headers of the upstream's last response.
    StartResponse(ResponseStart),
    /// Send these bytes of the body to the client.
    Forward(Bytes),
    /// Store these records before the client gets the end of its response: its next request may reach
    /// another replica at once.
    StoreRecords(Vec<(RecordKey, Vec<u8>)>),
    /// The request is sent again in another mode. For logs and metrics.
    FellBack(ModeFallback),
    /// Remember these unsupported features for later requests.
    Remember(LearnedUnsupported),
    /// The exchange has ended.
    Done(ExchangeOutcome),
}

/// A request to the upstream.
#[derive(Debug)]
#[non_exhaustive]
pub struct OutgoingRequest {
    /// The body.
    pub body: Bytes,
    /// The path, if it differs from the path of the client's request.
    pub path: Option<&'static str>,
    /// Beta features to request with the provider's beta header.
    pub betas: &'static [&'static str],
    /// Whether the exchange reads the response. If it does, the response must not be compressed.
    pub is_read: bool,
    /// Parts of the client's request that the upstream's API cannot express. For logs.
    pub dropped: Vec<String>,
}

/// The start of the client's response.
#[derive(Debug)]
#[non_exhaustive]
pub struct ResponseStart {
    /// The HTTP status.
    pub status: u16,
    /// The body, or how it is delivered.
    pub body: ResponseBody,
    /// Whether the body is the upstream's, unchanged, so that its `content-length` is still valid.
    pub is_unmodified: bool,
    /// Whether the body is translated, so that headers with a hash of the original must be removed.
    pub is_translated: bool,
    /// Rounds, searches and tokens, if they are already known.
    pub summary: Option<TurnSummary>,
}

/// The body of the client's response.
#[derive(Debug)]
pub enum ResponseBody {
    /// The complete body.
    Complete(Bytes),
    /// The body follows in [`Action::Forward`] actions, until [`Action::Done`].
    Forwarded,
    /// The client gets the body of the upstream's last response, unchanged. The driver need not pass it to the
    /// exchange.
    Passthrough,
}

/// Reports that a request is sent again in another mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeFallback {
    /// The mode that failed.
    pub from: Mode,
    /// The feature that the upstream does not support; `None` if the request misused a feature, or if the upstream
    /// rejected the request's thinking blocks.
    pub unsupported: Option<UnsupportedFeature>,
}

/// The result of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeOutcome {
    /// How the exchange ended.
    pub ending: Ending,
    /// The HTTP status to log.
    pub status: u16,
    /// Rounds, searches and tokens.
    pub summary: TurnSummary,
}

/// How an exchange ended. Exhaustive for the same reason as [`Action`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The client got its response.
    Complete,
    /// A hidden round failed after part of the stream was forwarded. The client got an error event of its API.
    Failed,
    /// The upstream could not be reached, and the client has got nothing yet.
    Unreachable,
    /// The upstream's response was cut off.
    CutOff,
    /// The upstream's response exceeded a limit. If part of a stream was forwarded, the client also got an error event
    /// of its API.
    LimitExceeded(LimitExceeded),
    /// The upstream's response is withheld from a caller with a limited scope. If part of a stream was forwarded,
    /// the client has not been sent an error event yet.
    Withheld(WithheldReason),
    /// The request cannot be translated for the upstream.
    Untranslatable(Untranslatable),
}

/// What was decided about a request, for headers, logs and statistics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecisionReport {
    /// The name of the mode; `pass-through` or `bypass` if nothing is deferred.
    pub mode: &'static str,
    /// The reasons, as text.
    pub reason: String,
    /// The number of tools that the client sent.
    pub tools: usize,
    /// How many of them were deferred.
    pub deferred: usize,
    /// Tokens of the tools as the client sent them.
    pub tokens_before: usize,
    /// Tokens of what is sent to the upstream instead.
    pub tokens_after: usize,
}

impl DecisionReport {
    /// Creates a report about a request that is sent without reading its tools.
    pub fn without_tools(mode: &'static str, reason: impl Into<String>) -> Self {
        Self { mode, reason: reason.into(), ..Self::default() }
    }
}

impl fmt::Display for DecisionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.mode, self.reason)
    }
}
