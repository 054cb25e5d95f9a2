//! The configuration of an [`Exchange`](super::Exchange), and the actions that it requests from its driver.

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
use crate::toolset_plan::ToolsetPlan;
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
    /// A hash of the caller's identity, so that a caller never finds another caller's records.
    pub caller: [u8; 32],
    /// Maximum number of hidden rounds in one turn.
    pub max_hidden_rounds: usize,
    /// Limits on how much of a response is held in memory.
    pub limits: ResponseLimits,
    /// Whether the caller's scope is limited. If it is, calls are checked even if nothing is deferred, because a model
    /// may call a tool that it was not sent. A response that cannot be checked is not forwarded.
    pub checks_calls: bool,
    /// Features that upstreams were found not to support.
    pub learned: LearnedUnsupported,
    /// The current time in seconds, on the clock that `learned` uses.
    pub now: u64,
}

impl ExchangeConfig {
    /// Creates a config for an upstream with this host. All other fields have their defaults.
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

/// The properties of the upstream that an exchange depends on.
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

/// The next action that the driver must perform.
///
/// This enum is exhaustive on purpose. A driver that skips an action breaks the exchange, so the compiler must report
/// every new action.
#[derive(Debug)]
pub enum Action {
    /// Look up these keys, and pass the records to [`Exchange::records_loaded`](super::Exchange::records_loaded).
    LoadRecords(Vec<RecordKey>),
    /// Create a toolset from this plan and [`Exchange::tools`](super::Exchange::tools), or reuse one with the same
    /// [`cache_key`](ToolsetPlan::cache_key). Then call
    /// [`Exchange::toolset_prepared`](super::Exchange::toolset_prepared).
    PrepareToolset(Box<ToolsetPlan>),
    /// Send this request. Call [`Exchange::response_started`](super::Exchange::response_started) when the head of the
    /// response arrives, or [`Exchange::upstream_unreachable`](super::Exchange::upstream_unreachable) if the request
    /// fails.
    Send(OutgoingRequest),
    /// Start the client's response with this status and the headers of the upstream's last response.
    StartResponse(ResponseStart),
    /// Send these bytes of the body to the client.
    Forward(Bytes),
    /// Store these records before the client gets the end of its response, because the client's next request may reach
    /// another replica immediately.
    StoreRecords(Vec<(RecordKey, Vec<u8>)>),
    /// Log and count that the request is sent again in another mode.
    FellBack(ModeFallback),
    /// Remember these unsupported features for later requests.
    Remember(LearnedUnsupported),
    /// The exchange has ended.
    Done(ExchangeOutcome),
}

/// A request that the driver must send to the upstream.
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
    /// The complete body, or how the driver gets it.
    pub body: ResponseBody,
    /// Whether the upstream's body is forwarded without any change other than translation. If it is not translated
    /// either, its `content-length` is still valid.
    pub is_unmodified: bool,
    /// Whether the body is translated. If so, headers with a hash of the original body must be removed.
    pub is_translated: bool,
    /// The counts of rounds, searches and tokens, if they are already known.
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

/// A report that a request failed in one mode and is sent again in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeFallback {
    /// The mode that failed.
    pub from: Mode,
    /// The feature that the upstream does not support. `None` if the request misused a feature, or if the upstream
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
    /// The counts of rounds, searches and tokens.
    pub summary: TurnSummary,
}

/// How an exchange ended. This enum is exhaustive for the same reason as [`Action`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The client got its complete response, which may be an error that the upstream returned.
    Complete,
    /// A hidden round failed after part of the stream was forwarded. The client was sent an error event of its API.
    Failed,
    /// The upstream could not be reached, and nothing has been sent to the client yet.
    Unreachable,
    /// The upstream's response was cut off.
    CutOff,
    /// The upstream's response exceeded a limit. If part of a stream was already forwarded, the client was sent an
    /// error event of its API.
    LimitExceeded(LimitExceeded),
    /// The upstream's response is withheld, because the caller's scope is limited and the response calls a tool outside
    /// the scope or cannot be checked. If part of a stream was already forwarded, the driver must still send an error
    /// event.
    Withheld(WithheldReason),
    /// The request cannot be translated for the upstream.
    Untranslatable(Untranslatable),
}

/// The decision about a request, for headers, logs and statistics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecisionReport {
    /// The name of the mode. If nothing is deferred, `pass-through` or `bypass`.
    pub mode: &'static str,
    /// The reasons for the decision, as text.
    pub reason: String,
    /// The number of tools that the client sent.
    pub tools: usize,
    /// How many of the client's tools were deferred.
    pub deferred: usize,
    /// The number of tokens of the tools as the client sent them.
    pub tokens_before: usize,
    /// The number of tokens of the tools as the upstream gets them.
    pub tokens_after: usize,
}

impl DecisionReport {
    /// Creates a report about a request whose tools are not read.
    pub fn without_tools(mode: &'static str, reason: impl Into<String>) -> Self {
        Self { mode, reason: reason.into(), ..Self::default() }
    }
}

impl fmt::Display for DecisionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.mode, self.reason)
    }
}
