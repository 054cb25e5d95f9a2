//! Handles the client's request, until it is sent to the upstream: loads the records, requests the toolset, and writes
//! the body of each round.

use std::sync::Arc;

use bytes::Bytes;

use super::action::{Action, DecisionReport, Ending, OutgoingRequest};
use super::fallback::{Attempt, decision_report, supports_client_deferral};
use super::translation::ResponseTranslation;
use super::{Exchange, ExchangeState};
use crate::api::Api;
use crate::capability::HostedSupport;
use crate::dialects;
use crate::hidden_rounds::Records;
use crate::messages;
use crate::mode::RequestedMode;
use crate::passthrough::{PassthroughReason, RequestFacts, decide_passthrough};
use crate::record_keys::RecordKeys;
use crate::request::Request;
use crate::toolset::Toolset;
use crate::toolset_plan::ToolsetPlan;
use crate::turn::Turn;
use crate::upstream_history;

impl Exchange {
    /// Decides what to do with the request, as far as this is possible before the tools are counted.
    pub(super) fn begin(&mut self, target: &str, mut request: Request) {
        let capability = self.fallback.capability(&request.model);
        let (api, requested) = (request.api, self.fallback.requested());
        if api == Api::Responses && requested != RequestedMode::Off {
            // An upstream without native features does not support namespaces either. But tools that the client put
            // into namespaces must stay callable, so the namespaces are emulated.
            let has_native = capability.client_search
                || capability.additional_tools
                || capability.hosted == HostedSupport::OpenAi;
            let words = ["\"namespace\"", "additional_tools", "tool_search"];
            self.translator.emulates_deferral =
                !has_native && words.iter().any(|word| request.text.contains(word));
        }
        let is_same_api = !self.translator.has_other_api();
        let client = request.client_deferral.map(|deferral| {
            (deferral, is_same_api && supports_client_deferral(api, deferral, &capability))
        });
        match decide_passthrough(RequestFacts::Upstream { api, requested, client }) {
            Some(reason @ PassthroughReason::ClientDefersTranslated) => {
                let body = self.without_client_deferral(request);
                return self.pass_through(reason, body);
            }
            // If the caller's scope is limited, calls are checked even though nothing is deferred, because a model may
            // call a tool that it was not sent.
            Some(reason @ (PassthroughReason::Off | PassthroughReason::ClientHasSearch))
                if self.check.is_some() =>
            {
                self.record_keys = Some(RecordKeys::new(&request, self.caller));
                (self.request, self.passthrough_reason) = (Some(Arc::new(request)), Some(reason));
                return self.next_attempt();
            }
            Some(reason) => return self.pass_through(reason, request.text.into_bytes()),
            None => {}
        }
        if client.is_some() {
            match Request::read(api, target, self.without_client_deferral(request)) {
                Ok(rewritten) => request = rewritten,
                // After the rewriting, there is a reason to pass the request through, for example because the client's
                // search was its only tool.
                Err(unread) => {
                    return self
                        .pass_through(PassthroughReason::ClientDefersTranslated, unread.body);
                }
            }
        }
        let record_keys = RecordKeys::new(&request, self.caller);
        let to_load = record_keys.to_load();
        (self.request, self.record_keys) = (Some(Arc::new(request)), Some(record_keys));
        if to_load.is_empty() {
            return self.next_attempt();
        }
        self.state = ExchangeState::LoadingRecords;
        self.actions.push_back(Action::LoadRecords(to_load));
    }

    /// Returns the body without the deferral that the client set up itself, for an upstream that does not support it.
    fn without_client_deferral(&mut self, request: Request) -> Vec<u8> {
        if request.api == Api::Responses {
            // The response must be translated back as well. So the translator removes the deferral later, when the
            // request is sent.
            self.translator.emulates_deferral = true;
            return request.text.into_bytes();
        }
        let rewritten = messages::deferral_emulation::without_deferral_in(&request);
        rewritten.unwrap_or(request.text).into_bytes()
    }

    /// Reports the records that were requested with [`Action::LoadRecords`], in the order of their keys. Pass an empty
    /// list if the store is unavailable.
    pub fn records_loaded(&mut self, found: Vec<Option<Vec<u8>>>) {
        if let (ExchangeState::LoadingRecords, Some(record_keys), Some(request)) =
            (&self.state, &self.record_keys, &self.request)
        {
            self.records = Records::from_store(record_keys, request, found);
            self.fallback.set_conversation_mode(self.records.mode());
            self.next_attempt();
        }
    }

    /// Requests the toolset of the next attempt.
    pub(super) fn next_attempt(&mut self) {
        let Some(request) = &self.request else { return };
        let attempt = match self.passthrough_reason {
            Some(_) => Some(Attempt::PASSTHROUGH),
            None => self.fallback.next_attempt(&request.model),
        };
        let Some(attempt) = attempt else {
            // There is no attempt only if tool search is off, and `begin` has already handled that case.
            let body = self.original_body();
            return self.pass_through(PassthroughReason::Off, body);
        };
        self.request_toolset(attempt, self.records.loaded(), false);
    }

    fn request_toolset(&mut self, attempt: Attempt, send_in_full: Vec<String>, is_second: bool) {
        let Some(request) = &self.request else { return };
        let plan = ToolsetPlan {
            api: request.api,
            mode: attempt.mode,
            settings: Arc::clone(&self.settings),
            counter: Arc::clone(&self.counter),
            model: request.model.clone(),
            context_window: self.context_window,
            has_deferred_before: self.records.mode().is_some(),
            uses_second_names: self.records.second_names(),
            counts_tokens: request.counts_tokens,
            only_checks_calls: self.passthrough_reason.is_some(),
            send_in_full,
        };
        self.state = ExchangeState::PreparingToolset { attempt, is_second };
        self.actions.push_back(Action::PrepareToolset(Box::new(plan)));
    }

    /// Reports the toolset that was requested with [`Action::PrepareToolset`].
    pub fn toolset_prepared(&mut self, toolset: Arc<Toolset>) {
        let (
            ExchangeState::PreparingToolset { attempt, is_second },
            Some(request),
            Some(record_keys),
        ) = (&self.state, &mut self.request, &self.record_keys)
        else {
            return;
        };
        let (attempt, dialect) = (*attempt, dialects::of(request.api));
        if !is_second {
            let more =
                upstream_history::tools_to_send_in_full(dialect, request, &self.records, &toolset);
            if !more.is_empty() {
                let send_in_full = [self.records.loaded(), more].concat();
                return self.request_toolset(attempt, send_in_full, true);
            }
        }
        // The tools can be dropped only before a turn has been created, because a turn shares the request.
        if let Some(request) = Arc::get_mut(request) {
            request.drop_tools();
        }
        self.toolset = Some(Arc::clone(&toolset));
        self.betas = attempt.betas;
        self.translator.strips_thinking = attempt.strips_thinking;
        self.report = decision_report(&toolset, &attempt);
        if let Some(reason) = self.passthrough_reason {
            (self.report.mode, self.report.reason) = (reason.mode_name(), reason.to_string());
        }
        let (request, record_keys) = (Arc::clone(request), record_keys.clone());
        let is_first = self.summary().rounds == 0;
        if toolset.passes_through() && is_first && self.check.is_none() {
            let body = self.original_body();
            return self.send_unchanged(body);
        }
        let records = self.records.clone();
        if let Some(turn) = &mut self.turn {
            turn.restart(records, toolset);
        } else {
            let (rounds, limits) = (self.max_hidden_rounds, self.limits);
            self.turn = Some(Turn::new(request, record_keys, records, toolset, rounds, limits));
        }
        self.send_round();
    }

    /// Returns the client's body, including the tools that were removed from the request.
    fn original_body(&self) -> Vec<u8> {
        let text = self.request.as_ref().map(|request| request.with_tools(self.tools()));
        text.unwrap_or_default().into_bytes()
    }

    /// Sends `body` with nothing deferred, and reports `reason`.
    pub(super) fn pass_through(&mut self, reason: PassthroughReason, body: Vec<u8>) {
        self.report = DecisionReport::without_tools(reason.mode_name(), reason.to_string());
        self.send_unchanged(body);
    }

    /// Sends `body` unchanged, apart from translation if the upstream requires it. No hidden rounds can follow.
    fn send_unchanged(&mut self, body: Vec<u8>) {
        (self.request, self.turn, self.betas) = (None, None, &[]);
        let is_read = self.translator.is_needed() || self.check.is_some();
        match String::from_utf8(body) {
            Ok(text) => self.send_text(text, is_read),
            Err(error) => {
                self.translation = None;
                self.send(OutgoingRequest {
                    body: error.into_bytes().into(),
                    path: None,
                    betas: &[],
                    is_read,
                    dropped: Vec::new(),
                });
            }
        }
    }

    /// Sends the next round of the turn.
    pub(super) fn send_round(&mut self) {
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
        if !self.translator.is_needed() {
            return self.send(OutgoingRequest { body: body.into(), ..outgoing });
        }
        match self.translator.translate_request(body) {
            Ok((translated, response)) => {
                self.translation = Some(response).filter(ResponseTranslation::is_needed);
                outgoing.body = translated.body.into();
                (outgoing.path, outgoing.dropped) = (translated.path, translated.dropped);
                self.send(outgoing);
            }
            Err(why) => {
                self.status = if self.has_started { 502 } else { 400 };
                self.fail_stream(&[]);
                self.end(Ending::Untranslatable(why), self.status);
            }
        }
    }

    fn send(&mut self, request: OutgoingRequest) {
        // If the response of an earlier round was withheld, the exchange is over and nothing more is sent.
        if self.is_over() {
            return;
        }
        self.state = ExchangeState::AwaitingResponse;
        self.actions.push_back(Action::Send(request));
    }
}
