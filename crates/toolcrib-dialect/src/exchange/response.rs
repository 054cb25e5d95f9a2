//! Handles the upstream's response, and decides what the client gets.
//!
//! A response is read completely before any of it is forwarded if it is not streamed, if it is an error that may lead
//! to another mode, or if its status depends on its translation. Everything else is forwarded as it arrives. If the
//! caller's scope is limited, everything that the client gets is checked here, in `start` and `forward`.

use bytes::Bytes;

use super::action::{Action, Ending, ExchangeOutcome, ResponseBody, ResponseStart};
use super::{Exchange, ExchangeState};
use crate::limits::LimitExceeded;
use crate::parsed_size::parsed_size;
use crate::record_keys::RecordKey;
use crate::response_check::{ResponseCheck, WithheldReason};
use crate::turn::{Turn, TurnStep, TurnSummary};

impl Exchange {
    /// Reports that the upstream could not be reached, or closed the connection before the head of its response.
    pub fn upstream_unreachable(&mut self) {
        match self.state {
            ExchangeState::AwaitingResponse if self.has_started => self.fail_hidden_round(),
            ExchangeState::AwaitingResponse => self.end(Ending::Unreachable, 502),
            _ => {}
        }
    }

    /// Fails a hidden round that got no complete response, after part of the stream was forwarded to the client.
    fn fail_hidden_round(&mut self) {
        self.status = 502;
        self.round_failed(&[]);
    }

    /// Reports the head of a response: its status, and whether its body is a stream of events.
    pub fn response_started(&mut self, status: u16, is_events: bool) {
        if !matches!(self.state, ExchangeState::AwaitingResponse) {
            return;
        }
        (self.status, self.is_events) = (status, is_events);
        if self.translation.is_some() && !is_events {
            // The body is read first, because translating it may change the status.
            self.state = ExchangeState::Collecting(Vec::new());
        } else {
            self.handle_head(None);
        }
    }

    /// Reports the head of a response whose body is compressed and therefore cannot be read here.
    pub fn compressed_response_started(&mut self, status: u16, is_events: bool) {
        let is_success = (200..300).contains(&status);
        if self.check.is_some()
            && is_success
            && matches!(self.state, ExchangeState::AwaitingResponse)
        {
            self.withhold(WithheldReason::Compressed);
        } else {
            self.response_started(status, is_events);
        }
    }

    /// Handles the head of a response. `body` is its translated body, if the response was already read completely.
    fn handle_head(&mut self, body: Option<Vec<u8>>) {
        let is_success = self.is_success();
        let learned = if is_success { self.fallback.confirm_unsupported() } else { None };
        self.actions.extend(learned.map(Action::Remember));
        let Some(turn) = &self.turn else { return self.forward_response(body, 1) };
        // The client gets a stream only if the first round was streamed.
        let streams = self.has_started || turn.wants_stream() && turn.summary().rounds == 0;
        if is_success && self.is_events && streams && !turn.counts_tokens() {
            if !self.has_started {
                self.start(ResponseBody::Forwarded, false, None);
            }
            self.state = ExchangeState::Streaming;
            return;
        }
        let can_fall_back = self.fallback.can_fall_back(self.status);
        let is_final = !can_fall_back && (turn.counts_tokens() || !is_success);
        if is_final && !self.has_started {
            return self.forward_response(body, turn.summary().rounds);
        }
        match body {
            Some(body) => self.complete_response(body),
            None => self.state = ExchangeState::Collecting(Vec::new()),
        }
    }

    /// Forwards a response to the client. The only change to it is its translation, if it needs one.
    fn forward_response(&mut self, body: Option<Vec<u8>>, rounds: usize) {
        let summary = TurnSummary { rounds, ..self.summary() };
        (self.turn, self.unchanged_summary) = (None, Some(summary));
        let body = match body {
            Some(body) => ResponseBody::Complete(body.into()),
            None if self.translation.is_some() => {
                self.start(ResponseBody::Forwarded, true, None);
                self.state = ExchangeState::Streaming;
                return;
            }
            None if self.check.is_some() && self.is_success() => {
                if self.is_events {
                    // The check may end the stream early, so the upstream's `content-length` must not be forwarded.
                    self.start(ResponseBody::Forwarded, false, None);
                    self.state = ExchangeState::Streaming;
                } else {
                    self.state = ExchangeState::Collecting(Vec::new());
                }
                return;
            }
            None => ResponseBody::Passthrough,
        };
        self.start(body, true, None);
        self.end_with(Ending::Complete, self.status, summary);
    }

    /// Reports the next bytes of a response.
    pub fn response_bytes(&mut self, bytes: Bytes) {
        let mut exceeded = None;
        let bytes = match &mut self.translation {
            // Only events are translated as they arrive. Any other body is translated when it is complete.
            Some(translation) if self.is_events => {
                let mut out = Vec::new();
                translation.bytes(&bytes, &mut out);
                exceeded = translation.exceeded();
                Bytes::from(out)
            }
            _ => bytes,
        };
        match &mut self.state {
            ExchangeState::Collecting(body) => {
                self.collected = self.collected.saturating_add(bytes.len());
                if self.collected > self.limits.response {
                    return self.limit_exceeded(LimitExceeded::Response(self.limits.response));
                }
                let before = if body.is_empty() { 0 } else { self.collected_memory };
                self.collected_memory = before + parsed_size(&bytes);
                body.extend_from_slice(&bytes);
            }
            ExchangeState::Streaming => {
                self.stream(bytes);
                if let (Some(exceeded), ExchangeState::Streaming) = (exceeded, &self.state) {
                    // The translation has already written the error event for the client.
                    self.end(Ending::LimitExceeded(exceeded), 502);
                }
            }
            _ => {}
        }
    }

    /// Ends an exchange whose response exceeded a limit: either a limit of this exchange, or the total for all
    /// exchanges.
    pub fn limit_exceeded(&mut self, exceeded: LimitExceeded) {
        if self.is_over() {
            return;
        }
        match self.turn.as_mut().filter(|_| self.has_started) {
            Some(turn) => {
                let mut out = Vec::new();
                turn.exceed(exceeded, &mut out);
                self.forward(out.into());
            }
            // Without a turn, no error event can be written, so the client's stream ends without one.
            None if self.has_started => return self.end(Ending::CutOff, 502),
            None => {}
        }
        self.end(Ending::LimitExceeded(exceeded), 502);
    }

    /// Handles the next bytes of a stream, which are already translated to the client's API.
    fn stream(&mut self, bytes: Bytes) {
        let Some(turn) = &mut self.turn else { return self.forward(bytes) };
        let mut out = Vec::new();
        turn.bytes(&bytes, &mut out);
        let exceeded = turn.exceeded();
        self.forward(out.into());
        if let Some(exceeded) = exceeded {
            self.limit_exceeded(exceeded);
        }
    }

    /// Reports the end of a response.
    pub fn response_ended(&mut self) {
        let mut rest = Vec::new();
        match (&mut self.translation, &mut self.state) {
            (Some(translation), _) if self.is_events => translation.end(&mut rest),
            (Some(translation), ExchangeState::Collecting(body)) => {
                let (status, body) =
                    translation.complete_response(self.status, std::mem::take(body));
                // If the translated status is invalid, the upstream's status is kept.
                self.status = if (100..1000).contains(&status) { status } else { self.status };
                return self.handle_head(Some(body));
            }
            _ => {}
        }
        match &mut self.state {
            ExchangeState::Collecting(body) => {
                let mut body = std::mem::take(body);
                body.extend(rest);
                self.complete_response(body);
            }
            ExchangeState::Streaming => {
                self.stream(rest.into());
                if matches!(self.state, ExchangeState::Streaming) {
                    self.end_stream();
                }
            }
            _ => {}
        }
    }

    /// Reports that the connection was lost before a response was complete.
    pub fn response_cut_off(&mut self) {
        match &self.state {
            // The round's final event has already arrived, so nothing is missing.
            ExchangeState::Streaming if self.turn.as_ref().is_some_and(Turn::has_ended) => {
                self.end_stream();
            }
            ExchangeState::Collecting(_) if self.has_started => self.fail_hidden_round(),
            ExchangeState::Collecting(_) | ExchangeState::Streaming => {
                self.end(Ending::CutOff, 502);
            }
            _ => {}
        }
    }

    fn end_stream(&mut self) {
        let Some(turn) = &mut self.turn else {
            self.forward_rest();
            return self.end(Ending::Complete, self.status);
        };
        let mut out = Vec::new();
        let step = turn.end(&mut out);
        if let Some(exceeded) = turn.exceeded() {
            self.forward(out.into());
            return self.limit_exceeded(exceeded);
        }
        match step {
            TurnStep::SendAgain => {
                self.forward(out.into());
                self.send_round();
            }
            TurnStep::Done(result) => {
                self.store_records(result.records);
                self.forward(out.into());
                self.forward_rest();
                self.end_with(Ending::Complete, 200, result.summary);
            }
        }
    }

    /// Handles a response that was read completely, whether it is successful, an error, or not a response of this API.
    fn complete_response(&mut self, body: Vec<u8>) {
        let may_be_round = self.is_success() && !self.has_started;
        let Some(turn) = &mut self.turn else { return self.forward_response(Some(body), 1) };
        let step = if may_be_round { turn.complete_response(&body) } else { None };
        if let Some(exceeded) = turn.exceeded() {
            return self.limit_exceeded(exceeded);
        }
        match step {
            Some(TurnStep::SendAgain) => self.send_round(),
            Some(TurnStep::Done(result)) => {
                self.store_records(result.records);
                let body = ResponseBody::Complete(result.body.unwrap_or_default().into());
                self.start(body, false, Some(result.summary));
                self.end_with(Ending::Complete, self.status, result.summary);
            }
            None => self.round_failed(&body),
        }
    }

    /// Handles an error, or a body that is not a response of this API. If no other mode can be tried, the client gets
    /// this body, or an error event if part of a stream was already forwarded.
    fn round_failed(&mut self, body: &[u8]) {
        if let (Some(toolset), Some(request), None) =
            (&self.toolset, &self.request, self.passthrough_reason)
            && let Some(fell_back) =
                self.fallback.try_fallback(toolset.mode(), &request.model, self.status, body)
        {
            self.actions.push_back(Action::FellBack(fell_back));
            return self.next_attempt();
        }
        if !self.has_started {
            return self.forward_response(Some(body.to_vec()), self.summary().rounds);
        }
        self.fail_stream(body);
        self.end(Ending::Failed, self.status);
    }

    /// Writes an error event of the client's API, if part of a stream was forwarded.
    pub(super) fn fail_stream(&mut self, body: &[u8]) {
        if let Some(turn) = self.turn.as_mut().filter(|_| self.has_started) {
            let mut out = Vec::new();
            turn.fail(self.status, body, &mut out);
            self.forward(out.into());
        }
    }

    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn start(&mut self, body: ResponseBody, is_unmodified: bool, summary: Option<TurnSummary>) {
        if let (ResponseBody::Complete(body), Some(check), 200..300) =
            (&body, &mut self.check, self.status)
            && let Err(why) = check.complete(body, self.is_events)
        {
            return self.withhold(why);
        }
        self.has_started = true;
        self.actions.push_back(Action::StartResponse(ResponseStart {
            status: self.status,
            body,
            is_unmodified,
            is_translated: self.translation.is_some(),
            summary,
        }));
    }

    fn forward(&mut self, bytes: Bytes) {
        let Some(check) = &mut self.check else { return self.queue_bytes(bytes) };
        // The response may have been withheld already. Nothing is forwarded after that.
        if matches!(self.state, ExchangeState::Over) {
            return;
        }
        let mut checked = Vec::with_capacity(bytes.len());
        let result = check.events(&bytes, &mut checked);
        self.queue_bytes(checked.into());
        if let Err(why) = result {
            self.withhold(why);
        }
    }

    /// At the end of a stream, forwards the bytes after its last complete event, which the check still holds.
    fn forward_rest(&mut self) {
        let check = self.check.as_mut().filter(|_| !matches!(self.state, ExchangeState::Over));
        match check.map(ResponseCheck::rest) {
            None => {}
            Some(Ok(rest)) => self.queue_bytes(rest),
            Some(Err(why)) => self.withhold(why),
        }
    }

    /// Ends an exchange whose response must not be forwarded, because the caller's scope is limited.
    fn withhold(&mut self, why: WithheldReason) {
        self.end(Ending::Withheld(why), 502);
    }

    fn queue_bytes(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.actions.push_back(Action::Forward(bytes));
        }
    }

    fn store_records(&mut self, records: Vec<(RecordKey, Vec<u8>)>) {
        if !records.is_empty() {
            self.actions.push_back(Action::StoreRecords(records));
        }
    }

    pub(super) fn end(&mut self, ending: Ending, status: u16) {
        self.end_with(ending, status, self.summary());
    }

    fn end_with(&mut self, ending: Ending, status: u16, summary: TurnSummary) {
        // If the response was withheld, the exchange has already ended with that result.
        if self.is_over() {
            return;
        }
        self.state = ExchangeState::Over;
        self.actions.push_back(Action::Done(ExchangeOutcome { ending, status, summary }));
    }
}
