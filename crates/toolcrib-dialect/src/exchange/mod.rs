//! One request of a client, until its response is over.
//!
//! An [`Exchange`] decides everything about a request: whether it passes through, which tools go up and in
//! which mode, what to try if the upstream refuses that, how it is translated, when our own search is
//! answered in a hidden round, and what is stored for the next request. It does no I/O: it says what to do
//! next and is told what came of it. One loop drives it, in the proxy as in the example of this crate:
//!
//! | [`next_action`](Exchange::next_action) returns | the loop does it and calls |
//! |---|---|
//! | `Load(keys)` | [`loaded`](Exchange::records_loaded) with what a store has under the keys |
//! | `Prepare(plan)` | [`prepared`](Exchange::prepared) with the toolset of [`tools`](Exchange::tools) |
//! | `Send(request)` | [`answered`](Exchange::answered), or [`unreachable`](Exchange::unreachable) |
//! | `None` | [`bytes`](Exchange::bytes) and [`end`](Exchange::end) with the response, or [`cut_off`](Exchange::cut_off) |
//! | `Respond(start)`, `Forward(bytes)` | nothing: this is for the client |
//! | `Store(records)`, `Learn(refusals)`, `FellBack(…)` | nothing: this is for the next requests, and for logs |
//! | `Done(done)` | nothing: the loop ends |
//!
//! Reading order: [`action`] (what it asks for), this file (the way to the upstream), `fallback` (in which
//! mode), `translation` (in which words), `answer` (the way back); then `turn` for the rounds.

pub mod action;
mod fallback;
mod response;
mod translation;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use toolcrib_core::{Settings, TokenCounter};

use self::action::{Action, DecisionReport, Ending, ExchangeConfig, OutgoingRequest};
use self::fallback::{Attempt, Fallback, report, understands};
use self::translation::{Translation, Translator};
use crate::api::Api;
use crate::capability::HostedSupport;
use crate::dialects;
use crate::hidden_rounds::{RecordKeys, Records};
use crate::limits::ResponseLimits;
use crate::messages;
use crate::mode::RequestedMode;
use crate::passthrough::{PassthroughReason, RequestFacts, decide_passthrough};
use crate::read_request::ReadResult;
use crate::request::Request;
use crate::response_check::ResponseCheck;
use crate::toolset::{Toolset, ToolsetPlan};
use crate::turn::{Turn, TurnSummary};
use crate::upstream_history;

/// What an exchange waits for.
#[derive(Debug)]
enum State {
    /// Records of the conversation.
    Loading,
    /// A toolset. It is the second one if the first left out a tool that must be sent in full.
    Preparing { attempt: Attempt, is_second: bool },
    /// The head of a response.
    Sent,
    /// The rest of a response that is read as a whole.
    Collecting(Vec<u8>),
    /// More of a response that goes on to the client as it comes.
    Streaming,
    /// Nothing.
    Over,
}

/// One request of a client, until its response is over.
#[derive(Debug)]
pub struct Exchange {
    settings: Arc<Settings>,
    counter: Arc<dyn TokenCounter>,
    context: Option<usize>,
    caller: [u8; 32],
    rounds: usize,
    limits: ResponseLimits,
    /// Bytes of responses that were read as a whole.
    collected: usize,
    /// Memory taken by the response that is being read as a whole, in bytes.
    weight: usize,
    /// Checks the response of a caller whose tools are limited.
    check: Option<ResponseCheck>,
    /// Why nothing is deferred, if only the calls are checked.
    passes: Option<PassthroughReason>,
    fallback: Fallback,
    translator: Translator,
    /// `None` if the body is not rewritten.
    request: Option<Arc<Request>>,
    /// Where records of the conversation are, and what was found there.
    record_keys: Option<RecordKeys>,
    records: Records,
    /// The toolset of the last attempt: it has the tools, whose text the request drops.
    toolset: Option<Arc<Toolset>>,
    /// The rounds; `None` as long as nothing was sent, and if the response is handed on as it comes.
    turn: Option<Turn>,
    /// The summary of an exchange whose response is handed on as it comes.
    handed_on: Option<TurnSummary>,
    betas: &'static [&'static str],
    /// The way back of the round that is under way, if it is translated.
    translation: Option<Translation>,
    status: u16,
    is_events: bool,
    /// Whether the client's response has begun.
    has_started: bool,
    report: DecisionReport,
    state: State,
    actions: VecDeque<Action>,
}

impl Exchange {
    /// Begins an exchange with a request that was read.
    pub fn new(api: Api, target: &str, reading: ReadResult, setup: ExchangeConfig) -> Self {
        let ExchangeConfig { settings, upstream, limits, .. } = setup;
        let (speaks, context) = (upstream.other_api, upstream.context_window);
        let requested = (setup.requested, Arc::clone(&settings));
        let mut exchange = Self {
            settings,
            counter: setup.counter,
            context,
            caller: setup.caller,
            rounds: setup.max_hidden_rounds,
            limits,
            collected: 0,
            weight: 0,
            check: setup.checks_calls.then(|| ResponseCheck::new(body_of(&reading))),
            passes: None,
            translator: Translator { api, speaks, plain: false, without_thinking: false, limits },
            fallback: Fallback::new(api, upstream, requested, setup.learned, setup.now),
            request: None,
            record_keys: None,
            records: Records::default(),
            toolset: None,
            turn: None,
            handed_on: None,
            betas: &[],
            translation: None,
            status: 0,
            is_events: false,
            has_started: false,
            report: DecisionReport::default(),
            state: State::Loading,
            actions: VecDeque::new(),
        };
        match reading {
            Ok(request) => exchange.begin(target, request),
            Err(unread) => exchange.bypass(unread.reason, unread.body),
        }
        exchange
    }

    /// What to do next; `None` if the exchange waits for what it asked for last, or for more of a response.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The tools that a toolset is to be made from.
    pub fn tools(&self) -> &str {
        match (&self.toolset, &self.request) {
            (Some(toolset), _) => toolset.input(),
            (None, Some(request)) => request.tools(),
            (None, None) => "[]",
        }
    }

    /// What was decided about the request so far.
    pub fn report(&self) -> &DecisionReport {
        &self.report
    }

    /// Whether everything is decided: only queued actions are left.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Rounds, searches and tokens so far.
    pub fn summary(&self) -> TurnSummary {
        let turn = || self.turn.as_ref().map(Turn::summary);
        self.handed_on.or_else(turn).unwrap_or_default()
    }

    /// Bytes of the upstream's responses that are currently held.
    pub fn held_bytes(&self) -> usize {
        let collected = if let State::Collecting(_) = self.state { self.weight } else { 0 };
        let turn = self.turn.as_ref().map_or(0, Turn::held_bytes);
        let translation = self.translation.as_ref().map_or(0, Translation::held_bytes);
        collected + turn + translation + self.check.as_ref().map_or(0, ResponseCheck::held_bytes)
    }

    /// Lets the round that is under way be the last whose searches are answered.
    pub fn make_round_last(&mut self) {
        self.turn.iter_mut().for_each(Turn::make_round_last);
    }

    /// Bytes that show a waiting client that the response goes on; empty if its API has none, or if it
    /// waits for a complete response.
    pub fn keep_alive(&self) -> &'static [u8] {
        match &self.turn {
            Some(turn) if self.has_started => turn.keep_alive(),
            _ => &[],
        }
    }

    /// Decides what can be decided before the tools are counted.
    fn begin(&mut self, target: &str, mut request: Request) {
        let capability = self.fallback.capability(&request.model);
        let (api, requested) = (request.api, self.fallback.requested());
        if api == Api::Responses && requested != RequestedMode::Off {
            // An upstream that knows nothing native does not know namespaces either, and what a client put
            // into them must stay callable.
            let native = capability.client_search
                || capability.additional_tools
                || capability.hosted == HostedSupport::OpenAi;
            let words = ["\"namespace\"", "additional_tools", "tool_search"];
            self.translator.plain = !native && words.iter().any(|word| request.text.contains(word));
        }
        let is_own = self.translator.speaks.is_none();
        let client = request
            .client_deferral
            .map(|defers| (defers, is_own && understands(api, defers, &capability)));
        match decide_passthrough(RequestFacts::Upstream { api, requested, client }) {
            Some(PassthroughReason::ClientDefersTranslated) => {
                let body = self.in_plain_words(request);
                return self.bypass(PassthroughReason::ClientDefersTranslated, body);
            }
            // The caller may not know of every tool, and a model may call one that it was not sent.
            Some(why @ (PassthroughReason::Off | PassthroughReason::ClientHasSearch))
                if self.check.is_some() =>
            {
                self.record_keys = Some(RecordKeys::of(&request, self.caller));
                (self.request, self.passes) = (Some(Arc::new(request)), Some(why));
                return self.attempt();
            }
            Some(why) => return self.bypass(why, request.text.into_bytes()),
            None => {}
        }
        if client.is_some() {
            match Request::read(api, target, self.in_plain_words(request)) {
                Ok(plain) => request = plain,
                // Nothing is left to search in: what the client sends is put into plain words all the same.
                Err(unread) => {
                    return self.bypass(PassthroughReason::ClientDefersTranslated, unread.body);
                }
            }
        }
        let record_keys = RecordKeys::of(&request, self.caller);
        let keys = record_keys.keys();
        (self.request, self.record_keys) = (Some(Arc::new(request)), Some(record_keys));
        if keys.is_empty() {
            return self.attempt();
        }
        self.state = State::Loading;
        self.actions.push_back(Action::LoadRecords(keys));
    }

    /// The body of a client that defers tools itself, for an upstream that does not support its way.
    fn in_plain_words(&mut self, request: Request) -> Vec<u8> {
        if request.api == Api::Responses {
            // Its answer has to be translated back, so this is done where it is sent.
            self.translator.plain = true;
            return request.text.into_bytes();
        }
        let plain = messages::deferral_emulation::without_deferral_in(&request);
        plain.unwrap_or(request.text).into_bytes()
    }

    /// The records that were asked for, in the same order; none at all if the store does not answer.
    pub fn records_loaded(&mut self, found: Vec<Option<Vec<u8>>>) {
        if let (State::Loading, Some(record_keys), Some(request)) =
            (&self.state, &self.record_keys, &self.request)
        {
            self.records = Records::found(record_keys, request, found);
            self.fallback.continues(self.records.mode());
            self.attempt();
        }
    }

    /// Asks for the toolset of the next attempt.
    fn attempt(&mut self) {
        let Some(request) = &self.request else { return };
        let attempt = match self.passes {
            Some(_) => Some(Attempt::PLAIN),
            None => self.fallback.attempt(&request.model),
        };
        let Some(attempt) = attempt else {
            // Only if tool search is off, which was seen before.
            let body = self.as_it_came();
            return self.bypass(PassthroughReason::Off, body);
        };
        self.prepare(attempt, self.records.loaded(), false);
    }

    fn prepare(&mut self, attempt: Attempt, loaded: Vec<String>, is_second: bool) {
        let Some(request) = &self.request else { return };
        let plan = ToolsetPlan {
            api: request.api,
            mode: attempt.mode,
            settings: Arc::clone(&self.settings),
            counter: Arc::clone(&self.counter),
            model: request.model.clone(),
            context: self.context,
            sticky: self.records.mode().is_some(),
            second_names: self.records.second_names(),
            counts: request.counts_tokens,
            passes: self.passes.is_some(),
            loaded,
        };
        self.state = State::Preparing { attempt, is_second };
        self.actions.push_back(Action::PrepareToolset(Box::new(plan)));
    }

    /// The toolset that was asked for.
    pub fn toolset_prepared(&mut self, toolset: Arc<Toolset>) {
        let (State::Preparing { attempt, is_second }, Some(request), Some(record_keys)) =
            (&self.state, &mut self.request, &self.record_keys)
        else {
            return;
        };
        let (attempt, dialect) = (*attempt, dialects::of(request.api));
        if !is_second {
            let more =
                upstream_history::tools_to_send_in_full(dialect, request, &self.records, &toolset);
            if !more.is_empty() {
                return self.prepare(attempt, [self.records.loaded(), more].concat(), true);
            }
        }
        // Before there is a turn that shares it.
        if let Some(request) = Arc::get_mut(request) {
            request.drop_tools();
        }
        self.toolset = Some(Arc::clone(&toolset));
        self.betas = attempt.betas;
        self.translator.without_thinking = attempt.without_thinking;
        self.report = report(&toolset, &attempt);
        if let Some(why) = self.passes {
            (self.report.mode, self.report.reason) = (why.mode_name(), why.to_string());
        }
        let (request, record_keys) = (Arc::clone(request), record_keys.clone());
        let is_first = self.summary().rounds == 0;
        if toolset.passes_through() && is_first && self.check.is_none() {
            let body = self.as_it_came();
            return self.pass(body);
        }
        let records = self.records.clone();
        if let Some(turn) = &mut self.turn {
            turn.restart(records, toolset);
        } else {
            self.turn =
                Some(Turn::new(request, record_keys, records, toolset, self.rounds, self.limits));
        }
        self.send();
    }

    /// The client's request as it came.
    fn as_it_came(&self) -> Vec<u8> {
        let text = self.request.as_ref().map(|request| request.with_tools(self.tools()));
        text.unwrap_or_default().into_bytes()
    }

    fn bypass(&mut self, why: PassthroughReason, body: Vec<u8>) {
        self.report = DecisionReport::without_tools(why.mode_name(), why.to_string());
        self.pass(body);
    }

    /// Sends a body as it is; the response goes to the client as it comes.
    fn pass(&mut self, body: Vec<u8>) {
        (self.request, self.turn, self.betas) = (None, None, &[]);
        let is_read = self.translator.translates() || self.check.is_some();
        match String::from_utf8(body) {
            Ok(text) => self.send_text(text, is_read),
            Err(error) => {
                self.translation = None;
                self.put(OutgoingRequest {
                    body: error.into_bytes().into(),
                    path: None,
                    betas: &[],
                    is_read,
                    dropped: Vec::new(),
                });
            }
        }
    }

    /// Sends the next round.
    fn send(&mut self) {
        if let Some(turn) = &self.turn {
            let body = turn.request();
            self.send_text(body, true);
        }
    }

    fn send_text(&mut self, body: String, is_read: bool) {
        self.translation = None;
        let mut outgoing = OutgoingRequest {
            body: Bytes::new(),
            path: None,
            betas: self.betas,
            is_read,
            dropped: Vec::new(),
        };
        if !self.translator.translates() {
            return self.put(OutgoingRequest { body: body.into(), ..outgoing });
        }
        match self.translator.request(body) {
            Ok((translated, back)) => {
                self.translation = Some(back).filter(Translation::changes);
                outgoing.body = translated.body.into();
                (outgoing.path, outgoing.dropped) = (translated.path, translated.dropped);
                self.put(outgoing);
            }
            Err(why) => {
                self.status = if self.has_started { 502 } else { 400 };
                self.fail_stream(&[]);
                self.over(Ending::Untranslatable(why), self.status);
            }
        }
    }

    fn put(&mut self, request: OutgoingRequest) {
        // The response of an earlier round was refused.
        if self.is_over() {
            return;
        }
        self.state = State::Sent;
        self.actions.push_back(Action::Send(request));
    }
}

/// The body of a request, whether it could be read or not.
fn body_of(reading: &ReadResult) -> &[u8] {
    match reading {
        Ok(request) => request.text.as_bytes(),
        Err(unread) => &unread.body,
    }
}
