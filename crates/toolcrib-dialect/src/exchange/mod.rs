//! The life of one client request, from its body to the end of its response.
//!
//! An [`Exchange`] makes every decision about a request: whether it passes through, which tools are sent and in which
//! mode, which other mode to try if the upstream rejects it, how the request is translated, when a search is answered
//! in a hidden round, and what is stored for the next request. It does no I/O. It returns actions, and its driver
//! reports the results. One loop drives it, in the proxy as in this crate's example:
//!
//! | [`next_action`](Exchange::next_action) returns | the driver does it and calls |
//! |---|---|
//! | `LoadRecords(keys)` | [`records_loaded`](Exchange::records_loaded) with what the store has under the keys |
//! | `PrepareToolset(plan)` | [`toolset_prepared`](Exchange::toolset_prepared) with a toolset made from [`tools`](Exchange::tools) |
//! | `Send(request)` | [`response_started`](Exchange::response_started), or [`upstream_unreachable`](Exchange::upstream_unreachable) |
//! | `None` | [`response_bytes`](Exchange::response_bytes) and [`response_ended`](Exchange::response_ended), or [`response_cut_off`](Exchange::response_cut_off) |
//! | `StartResponse(start)`, `Forward(bytes)` | nothing: these are for the client |
//! | `StoreRecords(records)`, `Remember(features)`, `FellBack(…)` | nothing: these are for later requests and for logs |
//! | `Done(outcome)` | nothing: the loop ends |
//!
//! Reading order: [`action`] (the config and the actions), this file (the state), `sending` (from the request to the
//! upstream), `fallback` (which mode is tried), `translation` (between two APIs), `response` (from the upstream to the
//! client); then `turn` for the rounds.

pub mod action;
mod fallback;
mod response;
mod sending;
mod translation;

use std::collections::VecDeque;
use std::sync::Arc;

use toolcrib_core::{Settings, TokenCounter};

use self::action::{Action, DecisionReport, ExchangeConfig};
use self::fallback::{Attempt, Fallback};
use self::translation::{ResponseTranslation, Translator};
use crate::api::Api;
use crate::hidden_rounds::Records;
use crate::limits::ResponseLimits;
use crate::passthrough::PassthroughReason;
use crate::read_request::ReadResult;
use crate::record_keys::RecordKeys;
use crate::request::Request;
use crate::response_check::ResponseCheck;
use crate::toolset::Toolset;
use crate::turn::{Turn, TurnSummary};

/// What an exchange is waiting for.
#[derive(Debug)]
enum ExchangeState {
    /// The driver loads the records of the conversation.
    LoadingRecords,
    /// The driver prepares a toolset. `is_second` is set if the first toolset deferred a tool that must be sent in
    /// full.
    PreparingToolset { attempt: Attempt, is_second: bool },
    /// The request was sent, and the head of the response has not arrived yet.
    AwaitingResponse,
    /// The response is read completely before any of it is forwarded. These are its bytes so far.
    Collecting(Vec<u8>),
    /// The response is forwarded as it arrives.
    Streaming,
    /// The exchange has ended.
    Over,
}

/// One client request and its response, as a state machine.
#[derive(Debug)]
pub struct Exchange {
    settings: Arc<Settings>,
    counter: Arc<dyn TokenCounter>,
    context_window: Option<usize>,
    caller: [u8; 32],
    max_hidden_rounds: usize,
    limits: ResponseLimits,
    /// The total size of all responses that were read completely, in bytes.
    collected: usize,
    /// The memory that the response in [`ExchangeState::Collecting`] takes once it is parsed, in bytes.
    collected_memory: usize,
    /// Checks the response. `None` if the caller's scope is not limited.
    check: Option<ResponseCheck>,
    /// Why nothing is deferred. Set only if a toolset is needed nevertheless, to check calls.
    passthrough_reason: Option<PassthroughReason>,
    fallback: Fallback,
    translator: Translator,
    /// The client's request. `None` if the body is sent without being rewritten.
    request: Option<Arc<Request>>,
    record_keys: Option<RecordKeys>,
    records: Records,
    /// The toolset of the last attempt. It contains the text of the client's tools, which is removed from `request`.
    toolset: Option<Arc<Toolset>>,
    /// The turn of the model. `None` before the first round is sent, or if the response is forwarded unchanged.
    turn: Option<Turn>,
    /// The summary of a response that is forwarded unchanged.
    unchanged_summary: Option<TurnSummary>,
    betas: &'static [&'static str],
    /// Translates the response of the current round. `None` if no translation is needed.
    translation: Option<ResponseTranslation>,
    status: u16,
    is_events: bool,
    /// Whether the client's response has started.
    has_started: bool,
    report: DecisionReport,
    state: ExchangeState,
    actions: VecDeque<Action>,
}

impl Exchange {
    /// Starts an exchange. `target` is the path and query of the request.
    pub fn new(api: Api, target: &str, request: ReadResult, config: ExchangeConfig) -> Self {
        let ExchangeConfig { settings, upstream, limits, .. } = config;
        let (other_api, context_window) = (upstream.other_api, upstream.context_window);
        let requested = (config.requested, Arc::clone(&settings));
        let mut exchange = Self {
            settings,
            counter: config.counter,
            context_window,
            caller: config.caller,
            max_hidden_rounds: config.max_hidden_rounds,
            limits,
            collected: 0,
            collected_memory: 0,
            check: config.checks_calls.then(|| ResponseCheck::new(body_of(&request))),
            passthrough_reason: None,
            translator: Translator::new(api, other_api, limits),
            fallback: Fallback::new(api, upstream, requested, config.learned, config.now),
            request: None,
            record_keys: None,
            records: Records::default(),
            toolset: None,
            turn: None,
            unchanged_summary: None,
            betas: &[],
            translation: None,
            status: 0,
            is_events: false,
            has_started: false,
            report: DecisionReport::default(),
            state: ExchangeState::LoadingRecords,
            actions: VecDeque::new(),
        };
        match request {
            Ok(request) => exchange.begin(target, request),
            Err(unread) => exchange.pass_through(unread.reason, unread.body),
        }
        exchange
    }

    /// Returns the next action. `None` means that the exchange waits for the result of the last action, or for more of
    /// a response.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns the client's tools as JSON text. A toolset is created from them.
    pub fn tools(&self) -> &str {
        match (&self.toolset, &self.request) {
            (Some(toolset), _) => toolset.input(),
            (None, Some(request)) => request.tools(),
            (None, None) => "[]",
        }
    }

    /// Returns the decision about the request, as far as it has been made.
    pub fn report(&self) -> &DecisionReport {
        &self.report
    }

    /// Whether the exchange has ended. Actions may still be queued.
    pub fn is_over(&self) -> bool {
        matches!(self.state, ExchangeState::Over)
    }

    /// Returns the counts of rounds, searches and tokens so far.
    pub fn summary(&self) -> TurnSummary {
        let turn = || self.turn.as_ref().map(Turn::summary);
        self.unchanged_summary.or_else(turn).unwrap_or_default()
    }

    /// Returns how many bytes of the upstream's responses are held in memory.
    pub fn held_bytes(&self) -> usize {
        let collected =
            if let ExchangeState::Collecting(_) = self.state { self.collected_memory } else { 0 };
        let turn = self.turn.as_ref().map_or(0, Turn::held_bytes);
        let translation = self.translation.as_ref().map_or(0, ResponseTranslation::held_bytes);
        collected + turn + translation + self.check.as_ref().map_or(0, ResponseCheck::held_bytes)
    }

    /// Makes the current round the last one whose searches are answered in a hidden round.
    pub fn make_round_last(&mut self) {
        self.turn.iter_mut().for_each(Turn::make_round_last);
    }

    /// Returns bytes that keep the client's connection alive. Empty if the client's API has no such bytes, or if the
    /// client waits for a complete response.
    pub fn keep_alive(&self) -> &'static [u8] {
        match &self.turn {
            Some(turn) if self.has_started => turn.keep_alive(),
            _ => &[],
        }
    }
}

/// Returns the body of a request, whether or not the request could be read.
fn body_of(request: &ReadResult) -> &[u8] {
    match request {
        Ok(request) => request.text.as_bytes(),
        Err(unread) => &unread.body,
    }
}
