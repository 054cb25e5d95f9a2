//! What an exchange asks of the program that drives it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use toolcrib_core::{Settings, TokenCounter};

use crate::api::Api;
use crate::budget::{Exceeded, Limits};
use crate::capability::{Learned, NotNative, Overrides};
use crate::mode::{Mode, RequestedMode};
use crate::record::Key;
use crate::response_check::Unchecked;
use crate::toolset::Plan;
use crate::translate::Untranslatable;
use crate::turn::{ROUNDS, Summary};

/// The input of an exchange, in addition to the request.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The engine's settings.
    pub settings: Arc<Settings>,
    /// How tokens are counted.
    pub counter: Arc<dyn TokenCounter>,
    /// How tools are to be deferred.
    pub requested: RequestedMode,
    /// Where the request goes.
    pub upstream: Upstream,
    /// A hash of who calls: records of one caller are not found by another.
    pub caller: [u8; 32],
    /// Hidden rounds of one response, at most.
    pub rounds: usize,
    /// What is held of a response, at most.
    pub limits: Limits,
    /// Whether the caller may not know of every tool. Calls are then checked even if nothing is deferred, because a
    /// model may call a tool that it was not sent, and a response that cannot be checked is not forwarded.
    pub checks_calls: bool,
    /// What upstreams have refused so far.
    pub learned: Learned,
    /// Seconds, on the clock that `learned` is kept by.
    pub now: u64,
}

impl Setup {
    /// A setup for a host, with everything else as it is by default.
    pub fn new(host: impl Into<String>, counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            settings: Arc::default(),
            counter,
            requested: RequestedMode::default(),
            upstream: Upstream { host: host.into(), ..Upstream::default() },
            caller: [0; 32],
            rounds: ROUNDS,
            limits: Limits::default(),
            checks_calls: false,
            learned: Learned::default(),
            now: 0,
        }
    }
}

/// Where a request goes, as far as it matters here.
#[derive(Debug, Clone, Default)]
pub struct Upstream {
    /// Its host.
    pub host: String,
    /// The API it speaks, if that is not the client's.
    pub speaks: Option<Api>,
    /// What it can do natively, as configured.
    pub native: Option<Overrides>,
    /// The model's context window in tokens, if it is known.
    pub context: Option<usize>,
}

/// What to do next.
#[derive(Debug)]
pub enum Action {
    /// Look these keys up, and call [`Exchange::loaded`](super::Exchange::loaded).
    Load(Vec<Key>),
    /// Make this toolset from [`Exchange::tools`](super::Exchange::tools), or take one that was made
    /// before, and call [`Exchange::prepared`](super::Exchange::prepared).
    Prepare(Box<Plan>),
    /// Send this, and call [`Exchange::answered`](super::Exchange::answered) when the head of the response
    /// is there, or [`Exchange::unreachable`](super::Exchange::unreachable).
    Send(Outgoing),
    /// Begin the client's response with the status in this value and the headers of the last answer.
    Respond(Start),
    /// Give these bytes of the body to the client.
    Forward(Bytes),
    /// Store these records. Before the client has the end of its response: its next request may reach
    /// another replica at once.
    Store(Vec<(Key, Vec<u8>)>),
    /// For logs and counters: the request is sent again in another mode.
    FellBack(FellBack),
    /// Remember these refusals for the next requests.
    Learn(Learned),
    /// The exchange is over.
    Done(Done),
}

/// A request for the upstream.
#[derive(Debug)]
pub struct Outgoing {
    /// The body.
    pub body: Bytes,
    /// The path it goes to, if that is not the client's.
    pub path: Option<&'static str>,
    /// Beta features to be asked for.
    pub betas: &'static [&'static str],
    /// Whether the response is read here, and so must not be compressed.
    pub is_read: bool,
    /// What the upstream's API has no words for: for logs.
    pub dropped: Vec<String>,
}

/// The beginning of a client's response.
#[derive(Debug)]
pub struct Start {
    /// The status.
    pub status: u16,
    /// The body, or where it comes from.
    pub body: Body,
    /// Whether the body is the upstream's, so that `content-length` stays valid.
    pub is_intact: bool,
    /// Whether the body is translated, so that headers with a hash of the original must go.
    pub is_translated: bool,
    /// Rounds, searches and tokens, if they are known by now.
    pub summary: Option<Summary>,
}

/// The body of a client's response.
#[derive(Debug)]
pub enum Body {
    /// This, and no more.
    Complete(Bytes),
    /// What follows in [`Action::Forward`], up to [`Action::Done`].
    Forwarded,
    /// The body of the last answer as it comes, which need not be fed to the exchange.
    AsItComes,
}

/// A request that is sent again in another mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FellBack {
    /// The mode it was sent in.
    pub from: Mode,
    /// The feature that the upstream refused; `None` if it was misused, or if thinking was refused.
    pub missing: Option<NotNative>,
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// How.
    pub ending: Ending,
    /// The status for logs.
    pub status: u16,
    /// Rounds, searches and tokens.
    pub summary: Summary,
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The client has its response.
    Complete,
    /// A hidden round failed, and the client has its API's own error event.
    Failed,
    /// The upstream was not reached, and the client has nothing yet.
    Unreachable,
    /// The upstream's response was cut off.
    CutOff,
    /// The upstream's response exceeded a limit. If the client has part of a stream, it has its API's own error
    /// event, too.
    Exceeded(Exceeded),
    /// The upstream's response is withheld from a caller whose tools are limited. If part of a stream was forwarded,
    /// the client has not been sent an error event yet.
    Unchecked(Unchecked),
    /// The request cannot be translated for the upstream.
    Untranslatable(Untranslatable),
}

/// What was decided about a request: for headers, logs and statistics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The mode, or the way it passes through.
    pub mode: &'static str,
    /// Why.
    pub why: String,
    /// How many tools the client sent.
    pub tools: usize,
    /// How many of them were deferred.
    pub deferred: usize,
    /// Tokens of the tools as they came, and of what went up instead.
    pub tokens: (usize, usize),
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.mode, self.why)
    }
}
