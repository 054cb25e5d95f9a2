//! The way back: what an exchange does with the answers of the upstream.
//!
//! An answer is read as a whole if it has to be: a response that is not streamed, an error that may be a
//! refusal, a body whose status depends on its translation. Everything else goes on to the client as it
//! comes. For a caller whose tools are limited, everything that goes to the client is checked here, in `start` and
//! `forward`.

use bytes::Bytes;

use super::action::{Action, Ending, ExchangeOutcome, ResponseBody, ResponseStart};
use super::{Exchange, State};
use crate::hidden_rounds::RecordKey;
use crate::limits::LimitExceeded;
use crate::parsed_size::parsed_size;
use crate::response_check::{ResponseCheck, WithheldReason};
use crate::turn::{Next, Turn, TurnSummary};

impl Exchange {
    /// The upstream was not reached, or broke off before the head of its response.
    pub fn upstream_unreachable(&mut self) {
        match self.state {
            State::Sent if self.has_started => self.lost(),
            State::Sent => self.over(Ending::Unreachable, 502),
            _ => {}
        }
    }

    /// A hidden round has no response, and the client has part of a stream.
    fn lost(&mut self) {
        self.status = 502;
        self.failed(&[]);
    }

    /// The head of a response: its status, and whether its body is a stream of events.
    pub fn response_started(&mut self, status: u16, is_events: bool) {
        if !matches!(self.state, State::Sent) {
            return;
        }
        (self.status, self.is_events) = (status, is_events);
        if self.translation.is_some() && !is_events {
            // Its status may be another in the client's API.
            self.state = State::Collecting(Vec::new());
        } else {
            self.head(None);
        }
    }

    /// Takes the head of a response whose body is compressed and therefore cannot be read here.
    pub fn compressed_response_started(&mut self, status: u16, is_events: bool) {
        let is_success = (200..300).contains(&status);
        if self.check.is_some() && is_success && matches!(self.state, State::Sent) {
            self.refuse(WithheldReason::Compressed);
        } else {
            self.response_started(status, is_events);
        }
    }

    /// Takes the head of a response in the client's API, and its body if that had to be read for it.
    fn head(&mut self, body: Option<Vec<u8>>) {
        let is_success = self.is_success();
        let learned = if is_success { self.fallback.worked() } else { None };
        self.actions.extend(learned.map(Action::Remember));
        let Some(turn) = &self.turn else { return self.hand_on(body, 1) };
        // If the first round was not streamed, later rounds are read as a whole, too.
        let streams = self.has_started || turn.streams() && turn.summary().rounds == 0;
        if is_success && self.is_events && streams && !turn.counts() {
            if !self.has_started {
                self.start(ResponseBody::Forwarded, false, None);
            }
            self.state = State::Streaming;
            return;
        }
        let may_follow = self.fallback.may_follow(self.status);
        let is_final = !may_follow && (turn.counts() || !is_success);
        if is_final && !self.has_started {
            return self.hand_on(body, turn.summary().rounds);
        }
        match body {
            Some(body) => self.whole(body),
            None => self.state = State::Collecting(Vec::new()),
        }
    }

    /// Gives the client a response that is changed by nothing but its translation.
    fn hand_on(&mut self, body: Option<Vec<u8>>, rounds: usize) {
        let summary = TurnSummary { rounds, ..self.summary() };
        (self.turn, self.handed_on) = (None, Some(summary));
        let body = match body {
            Some(body) => ResponseBody::Complete(body.into()),
            None if self.translation.is_some() => {
                self.start(ResponseBody::Forwarded, true, None);
                self.state = State::Streaming;
                return;
            }
            None if self.check.is_some() && self.is_success() => {
                if self.is_events {
                    // It may end early, so its length is not known.
                    self.start(ResponseBody::Forwarded, false, None);
                    self.state = State::Streaming;
                } else {
                    self.state = State::Collecting(Vec::new());
                }
                return;
            }
            None => ResponseBody::Passthrough,
        };
        self.start(body, true, None);
        self.done(Ending::Complete, self.status, summary);
    }

    /// The next bytes of a response.
    pub fn response_bytes(&mut self, bytes: Bytes) {
        let mut exceeded = None;
        let bytes = match &mut self.translation {
            // Anything but events is translated as a whole.
            Some(translation) if self.is_events => {
                let mut out = Vec::new();
                translation.bytes(&bytes, &mut out);
                exceeded = translation.exceeded();
                Bytes::from(out)
            }
            _ => bytes,
        };
        match &mut self.state {
            State::Collecting(body) => {
                self.collected = self.collected.saturating_add(bytes.len());
                if self.collected > self.limits.response {
                    return self.limit_exceeded(LimitExceeded::Response(self.limits.response));
                }
                self.weight = if body.is_empty() { 0 } else { self.weight } + parsed_size(&bytes);
                body.extend_from_slice(&bytes);
            }
            State::Streaming => {
                self.stream(bytes);
                if let (Some(exceeded), State::Streaming) = (exceeded, &self.state) {
                    // The translation has told the client.
                    self.over(Ending::LimitExceeded(exceeded), 502);
                }
            }
            _ => {}
        }
    }

    /// Ends an exchange whose response exceeded a limit: its own, or the one for all exchanges together.
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
            // A response that is only translated cannot report why it ends.
            None if self.has_started => return self.over(Ending::CutOff, 502),
            None => {}
        }
        self.over(Ending::LimitExceeded(exceeded), 502);
    }

    /// Takes bytes of a stream in the client's API.
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

    /// The response is over.
    pub fn response_ended(&mut self) {
        let mut rest = Vec::new();
        match (&mut self.translation, &mut self.state) {
            (Some(translation), _) if self.is_events => translation.end(&mut rest),
            (Some(translation), State::Collecting(body)) => {
                let (status, body) = translation.whole(self.status, std::mem::take(body));
                // If the translated status is not a valid one, the upstream's is kept.
                self.status = if (100..1000).contains(&status) { status } else { self.status };
                return self.head(Some(body));
            }
            _ => {}
        }
        match &mut self.state {
            State::Collecting(body) => {
                let mut body = std::mem::take(body);
                body.extend(rest);
                self.whole(body);
            }
            State::Streaming => {
                self.stream(rest.into());
                if matches!(self.state, State::Streaming) {
                    self.end_stream();
                }
            }
            _ => {}
        }
    }

    /// The response was cut off.
    pub fn response_cut_off(&mut self) {
        match &self.state {
            // The stream had already ended.
            State::Streaming if self.turn.as_ref().is_some_and(Turn::has_ended) => {
                self.end_stream();
            }
            State::Collecting(_) if self.has_started => self.lost(),
            State::Collecting(_) | State::Streaming => self.over(Ending::CutOff, 502),
            _ => {}
        }
    }

    fn end_stream(&mut self) {
        let Some(turn) = &mut self.turn else {
            self.forward_rest();
            return self.over(Ending::Complete, self.status);
        };
        let mut out = Vec::new();
        let next = turn.end(&mut out);
        if let Some(exceeded) = turn.exceeded() {
            self.forward(out.into());
            return self.limit_exceeded(exceeded);
        }
        match next {
            Next::Again => {
                self.forward(out.into());
                self.send();
            }
            Next::Done(done) => {
                self.store(done.records);
                self.forward(out.into());
                self.forward_rest();
                self.done(Ending::Complete, 200, done.summary);
            }
        }
    }

    /// Takes a response that was read as a whole: an answer, an error, or something else.
    fn whole(&mut self, body: Vec<u8>) {
        let is_answer = self.is_success() && !self.has_started;
        let Some(turn) = &mut self.turn else { return self.hand_on(Some(body), 1) };
        let next = if is_answer { turn.whole(&body) } else { None };
        if let Some(exceeded) = turn.exceeded() {
            return self.limit_exceeded(exceeded);
        }
        match next {
            Some(Next::Again) => self.send(),
            Some(Next::Done(done)) => {
                self.store(done.records);
                let body = ResponseBody::Complete(done.body.unwrap_or_default().into());
                self.start(body, false, Some(done.summary));
                self.done(Ending::Complete, self.status, done.summary);
            }
            None => self.failed(&body),
        }
    }

    /// Takes an error, or something that is no response of this API: there may be another mode to try, and
    /// if there is none the client gets it.
    fn failed(&mut self, body: &[u8]) {
        if let (Some(toolset), Some(request), None) = (&self.toolset, &self.request, self.passes)
            && let Some(fell_back) =
                self.fallback.refused(toolset.mode(), &request.model, self.status, body)
        {
            self.actions.push_back(Action::FellBack(fell_back));
            return self.attempt();
        }
        if !self.has_started {
            return self.hand_on(Some(body.to_vec()), self.summary().rounds);
        }
        self.fail_stream(body);
        self.over(Ending::Failed, self.status);
    }

    /// Ends a stream that the client has part of with its API's own error event.
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
            return self.refuse(why);
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
        let Some(check) = &mut self.check else { return self.put_bytes(bytes) };
        // Nothing is forwarded after a refusal.
        if matches!(self.state, State::Over) {
            return;
        }
        let mut checked = Vec::with_capacity(bytes.len());
        let result = check.events(&bytes, &mut checked);
        self.put_bytes(checked.into());
        if let Err(why) = result {
            self.refuse(why);
        }
    }

    /// Forwards what the check still holds when a stream has ended.
    fn forward_rest(&mut self) {
        let check = self.check.as_mut().filter(|_| !matches!(self.state, State::Over));
        match check.map(ResponseCheck::rest) {
            None => {}
            Some(Ok(rest)) => self.put_bytes(rest),
            Some(Err(why)) => self.refuse(why),
        }
    }

    /// Ends an exchange whose response a limited caller must not get.
    fn refuse(&mut self, why: WithheldReason) {
        self.over(Ending::Withheld(why), 502);
    }

    fn put_bytes(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.actions.push_back(Action::Forward(bytes));
        }
    }

    fn store(&mut self, records: Vec<(RecordKey, Vec<u8>)>) {
        if !records.is_empty() {
            self.actions.push_back(Action::StoreRecords(records));
        }
    }

    pub(super) fn over(&mut self, ending: Ending, status: u16) {
        self.done(ending, status, self.summary());
    }

    fn done(&mut self, ending: Ending, status: u16, summary: TurnSummary) {
        // A response that was refused stays refused.
        if self.is_over() {
            return;
        }
        self.state = State::Over;
        self.actions.push_back(Action::Done(ExchangeOutcome { ending, status, summary }));
    }
}
