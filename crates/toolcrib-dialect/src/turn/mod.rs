//! One turn of the model: from the client's request to the response that the client sees.
//!
//! ```text
//! let mut turn = Turn::new(request, record_keys, records, toolset, max_hidden_rounds, limits);
//! loop {
//!     send(turn.request());
//!     // streamed:  turn.bytes(chunk, &mut out) for each chunk, then turn.end(&mut out)
//!     // otherwise: turn.complete_response(body)
//!     match step { TurnStep::SendAgain => continue, TurnStep::Done(result) => break }
//! }
//! ```
//!
//! If all calls of a round are for Toolcrib's own tools, they are answered and another request is sent to the upstream.
//! The client sees nothing of such a hidden round.
//!
//! A round with a call for the client ends the turn. If this round also has calls of Toolcrib's own tools, their
//! answers are sent with the client's next request. A hidden round only for these answers would be wasted if the client
//! never sends another request.

mod recording;
mod summary;

use std::borrow::Cow;
use std::sync::Arc;

pub use self::summary::TurnSummary;
use crate::call_ids::CallIdGenerator;
use crate::call_router::CallRouter;
use crate::dialect::{Dialect, ResponseMerger, Round, RoundEnd, StreamMerger};
use crate::dialects;
use crate::hidden_rounds::{HiddenAnswer, Records};
use crate::limits::{LimitExceeded, ResponseLimits};
use crate::record_keys::{RecordKey, RecordKeys};
use crate::request::Request;
use crate::sse::{Decoder, Event};
use crate::toolset::Toolset;
use crate::upstream_history::{
    called_tools, reload_entries, tools_without_record, upstream_history,
};

/// Maximum number of hidden rounds in one turn, by default.
pub const DEFAULT_HIDDEN_ROUNDS: usize = 5;

/// What to do after a round.
#[derive(Debug)]
pub(crate) enum TurnStep {
    /// Send [`Turn::request`] again. The request now includes the hidden round.
    SendAgain,
    /// The turn has ended.
    Done(TurnResult),
}

/// The result of a turn.
#[derive(Debug, Default)]
pub(crate) struct TurnResult {
    /// The body of the client's response. `None` if the response was streamed.
    pub(crate) body: Option<String>,
    /// The records to store for the next request.
    pub(crate) records: Vec<(RecordKey, Vec<u8>)>,
    pub(crate) summary: TurnSummary,
}

/// One turn of the model.
pub(crate) struct Turn {
    request: Arc<Request>,
    dialect: &'static dyn Dialect,
    toolset: Arc<Toolset>,
    record_keys: RecordKeys,
    router: CallRouter,
    /// The history in the upstream's version, up to this turn.
    base: String,
    /// The entries after `base`: entries that load tools again, and the hidden rounds of this turn.
    hidden: Vec<String>,
    /// The id of the stored response from which the upstream must continue, according to the record. It may differ from
    /// the id that the client sent.
    previous: Option<String>,
    /// Whether there is a record of the stored response from which the client continues.
    has_previous_record: bool,
    /// Tools whose schemas the model was shown before this turn.
    revealed: Vec<String>,
    /// Those tools in `revealed` that no record shows as revealed. They count as revealed because they were called in
    /// the history.
    reloaded: Vec<String>,
    /// Tools that were already sent in full before this turn.
    loaded_before: Vec<String>,
    max_hidden_rounds: usize,
    limits: ResponseLimits,
    stream: Option<Box<dyn StreamMerger>>,
    complete: Option<Box<dyn ResponseMerger>>,
    decoder: Decoder,
    /// Whether the stream contained an event that was too large.
    has_oversized_event: bool,
    /// The ids of this turn's responses, if the API stores responses.
    responses: Vec<String>,
    summary: TurnSummary,
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn").field("summary", &self.summary).finish_non_exhaustive()
    }
}

impl Turn {
    pub(crate) fn new(
        request: Arc<Request>,
        record_keys: RecordKeys,
        records: Records,
        toolset: Arc<Toolset>,
        max_hidden_rounds: usize,
        limits: ResponseLimits,
    ) -> Self {
        let dialect = dialects::of(request.api);
        let lost = tools_without_record(&request, &records, &toolset);
        let reload =
            if lost.is_empty() { None } else { reload_entries(dialect, &request, &toolset, &lost) };
        let mut revealed = records.revealed();
        let mut reloaded = Vec::new();
        // A tool that is loaded again counts as revealed. In modes that add found tools to `tools`, every tool that was
        // called counts as revealed too.
        let is_reloaded = |name: &String| reload.is_some() && lost.contains(name);
        for name in
            called_tools(&request).filter(|name| toolset.mode().grows() || is_reloaded(name))
        {
            if toolset.is_deferred(name) && !revealed.contains(name) {
                revealed.push(name.clone());
                reloaded.push(name.clone());
            }
        }
        let loaded_before = records.loaded();
        let has_previous_record = records.previous.is_some();
        let previous = records.previous.as_ref().and_then(|record| record.response.clone());
        let stream = request.stream.then(|| dialect.stream_merger(&request));
        let base = upstream_history(dialect, &request, records, &toolset);
        let ids = CallIdGenerator::new(request.api, record_keys.call_id_seed());
        Self {
            router: CallRouter::new(Arc::clone(&toolset), &revealed, ids, limits),
            dialect,
            record_keys,
            base,
            reloaded,
            hidden: reload.unwrap_or_default(),
            previous,
            has_previous_record,
            revealed,
            loaded_before,
            max_hidden_rounds,
            limits,
            stream,
            complete: None,
            decoder: Decoder::default(),
            has_oversized_event: false,
            responses: Vec::new(),
            summary: TurnSummary::default(),
            request,
            toolset,
        }
    }

    /// Restarts the turn with another toolset, after the upstream has rejected a native feature in a hidden round. The
    /// searches so far are discarded, but the state that describes what the client has seen is kept.
    pub(crate) fn restart(&mut self, records: Records, toolset: Arc<Toolset>) {
        let (request, keys) = (Arc::clone(&self.request), self.record_keys.clone());
        let mut restarted =
            Self::new(request, keys, records, toolset, self.max_hidden_rounds, self.limits);
        restarted.router.resume_from(&self.router);
        *self = Self {
            stream: self.stream.take(),
            complete: self.complete.take(),
            responses: std::mem::take(&mut self.responses),
            summary: self.summary,
            ..restarted
        };
    }

    /// Returns the body of the next request to the upstream.
    pub(crate) fn request(&self) -> String {
        let mut revealed = self.revealed.clone();
        revealed.extend(self.router.revealed_tools().iter().cloned());
        let tools = self.toolset.tools(&revealed);
        let mut history = self.base.clone();
        for entry in &self.hidden {
            if !history.is_empty() {
                history.push(',');
            }
            history.push_str(entry);
        }
        self.request.write(&tools, &history, self.previous.as_deref())
    }

    /// Processes bytes of a streamed response, and appends the bytes for the client to `out`.
    pub(crate) fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.decoder.push(bytes);
        while self.exceeded().is_none() {
            match self.decoder.next_event() {
                Ok(Some(event)) => self.event(&event, out),
                Ok(None) => return,
                Err(_) => {
                    (self.has_oversized_event, self.decoder) = (true, Decoder::default());
                    return;
                }
            }
        }
    }

    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        if let Some(stream) = &mut self.stream {
            stream.event(event, &mut self.router, out);
        }
    }

    /// Ends a streamed response, and returns what to do next.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> TurnStep {
        let rest = self.decoder.take_rest();
        if !rest.is_empty() && self.exceeded().is_none() {
            // Some servers omit the blank line after the last event, so the rest may be an event.
            self.event(&Event::from_bytes(rest), out);
        }
        let Some(stream) = &mut self.stream else { return TurnStep::Done(TurnResult::default()) };
        let mut round = stream.end_round(&mut self.router, out);
        if self.exceeded().is_some() {
            round.end = RoundEnd::Failed;
        }
        let has_failed = round.end == RoundEnd::Failed;
        let step = self.after_round(round);
        let has_failed = has_failed || self.exceeded().is_some();
        if let (TurnStep::Done(_), Some(stream), false) = (&step, &mut self.stream, has_failed) {
            stream.finish(&self.router, out);
        }
        step
    }

    /// Processes a complete response. Returns `None` if the body is not a response of this API. The client then gets
    /// the body unchanged.
    pub(crate) fn complete_response(&mut self, body: &[u8]) -> Option<TurnStep> {
        let text = std::str::from_utf8(body).ok()?;
        // Some servers send a complete response although the request asks for events.
        let merger =
            self.complete.get_or_insert_with(|| self.dialect.response_merger(&self.request));
        let round = merger.add_round(text, &mut self.router)?;
        let mut step = self.after_round(round);
        if let (TurnStep::Done(result), Some(merger)) = (&mut step, &mut self.complete) {
            result.body = Some(merger.finish(&self.router));
        }
        Some(step)
    }

    /// Writes an error event of the client's API, if the response is streamed. Used if a hidden round fails after part
    /// of the stream was forwarded.
    pub(crate) fn fail(&mut self, status: u16, body: &[u8], out: &mut Vec<u8>) {
        if let Some(stream) = &mut self.stream {
            stream.fail(status, body, &self.router, out);
        }
    }

    /// Writes an error event of the client's API about a limit that the response exceeded.
    pub(crate) fn exceed(&mut self, exceeded: LimitExceeded, out: &mut Vec<u8>) {
        self.fail(502, exceeded.body(self.request.api).as_bytes(), out);
    }

    /// Makes the current round the last one whose searches are answered.
    pub(crate) fn make_round_last(&mut self) {
        self.max_hidden_rounds = self.max_hidden_rounds.min(self.summary.rounds + 1);
    }

    /// Returns bytes that keep the client's connection alive. Empty if the client waits for a complete response.
    pub(crate) fn keep_alive(&self) -> &'static [u8] {
        if self.stream.is_some() { self.dialect.keep_alive() } else { &[] }
    }

    /// Whether the client requested a stream of events.
    pub(crate) fn wants_stream(&self) -> bool {
        self.request.stream
    }

    /// Whether the request only counts tokens. If so, the upstream's response is forwarded unchanged.
    pub(crate) fn counts_tokens(&self) -> bool {
        self.request.counts_tokens
    }

    /// Whether the final event of this round's stream was received.
    pub(crate) fn has_ended(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.has_ended())
    }

    /// Returns the limit that the response exceeded, if any. After that, nothing more is read from the response.
    pub(crate) fn exceeded(&self) -> Option<LimitExceeded> {
        let oversized = self.has_oversized_event.then_some(LimitExceeded::Event);
        self.router.budget.exceeded().or(oversized)
    }

    /// Returns how many bytes of the responses are held in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.router.budget.held_bytes() + self.decoder.held_bytes()
    }

    pub(crate) fn summary(&self) -> TurnSummary {
        self.summary
    }

    /// Decides what follows a round: a hidden round, or the end of the turn.
    fn after_round(&mut self, round: Round) -> TurnStep {
        let Round { mut entries, end, usage, response } = round;
        let generated = self.router.take_generated_ids();
        if !generated.is_empty() {
            entries = self.dialect.with_generated_ids(entries, generated);
        }
        self.summary.add_round(usage);
        self.summary.searches = self.router.searches();
        self.responses.extend(response);
        let mut answers = self.router.take_answers();
        let is_hidden = end == RoundEnd::Complete
            && !answers.is_empty()
            && self.router.forwarded_ids().is_empty();
        // If the provider paused before the model produced anything, continuing would only repeat the same request.
        let is_paused = end == RoundEnd::Paused && !entries.is_empty();
        let continues = (is_hidden || is_paused) && self.summary.rounds <= self.max_hidden_rounds;
        if continues && self.router.budget.is_full() {
            // The copy of the model's output is incomplete, so it cannot be sent back to the upstream.
            self.router.budget.exceed();
        }
        if continues && self.exceeded().is_none() {
            if self.summary.rounds == self.max_hidden_rounds {
                answers.iter_mut().for_each(HiddenAnswer::mark_as_last);
            }
            let output: Vec<Cow<'_, str>> = entries.iter().map(Cow::from).collect();
            let results = self.dialect.insert_hidden_answers(
                &output,
                Vec::new(),
                &answers,
                &[],
                &self.toolset,
            );
            let results: Vec<String> = results.into_iter().map(Cow::into_owned).collect();
            self.hidden.extend(entries);
            self.hidden.extend(results);
            return TurnStep::SendAgain;
        }
        let records = match end {
            RoundEnd::Failed => Vec::new(),
            _ if self.router.budget.is_full() || self.exceeded().is_some() => Vec::new(),
            _ => self.records_to_store(entries, answers),
        };
        TurnStep::Done(TurnResult { body: None, records, summary: self.summary })
    }
}
