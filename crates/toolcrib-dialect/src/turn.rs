//! One turn of the model: from a client's request to the answer it sees.
//!
//! ```text
//! let mut turn = Turn::new(request, record_keys, records, toolset, limits);
//! loop {
//!     send(turn.request());
//!     // streaming: turn.bytes(chunk, &mut out) for each chunk, then turn.end(&mut out)
//!     // otherwise: turn.whole(body)
//!     match next { Next::Again => continue, Next::Done(done) => break }
//! }
//! ```
//!
//! A round whose calls were all ours is answered and asked again, and the client sees none of it. A
//! round with a call for the client ends the turn; answers to calls of ours beside it wait for the
//! client's next request, so that no round is spent on a client that never comes back.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::call_ids::CallIdGenerator;
use crate::call_router::CallRouter;
use crate::dialect::{Dialect, ResponseMerger, Round, RoundEnd, StreamMerger};
use crate::dialects;
use crate::hidden_rounds::{HiddenAnswer, RecordKey, RecordKeys, Records, TurnRecord};
use crate::limits::{LimitExceeded, ResponseLimits};
use crate::request::Request;
use crate::sse::{Decoder, Event};
use crate::toolset::Toolset;
use crate::upstream_history::{
    announcement_hash, called_tools, reload_entries, tools_without_record, upstream_history,
};
use crate::usage::Usage;

/// Hidden rounds of one turn, at most, unless it is said otherwise.
pub const DEFAULT_HIDDEN_ROUNDS: usize = 5;

/// What to do next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Send [`Turn::request`] again: it has grown.
    Again,
    /// The client has its answer.
    Done(Done),
}

/// How a turn ended.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The response, where it is not a stream.
    pub(crate) body: Option<String>,
    /// What is to be kept for the next request.
    pub(crate) records: Vec<(RecordKey, Vec<u8>)>,
    /// What it took.
    pub(crate) summary: TurnSummary,
}

/// What a turn took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnSummary {
    /// Requests to the upstream.
    pub rounds: usize,
    /// Searches answered.
    pub searches: usize,
    /// Tokens of all rounds.
    pub usage: Usage,
    /// Tokens of the first: what it would have taken without us, but for the tools.
    pub first: Usage,
    /// Tokens of the last: how full the model's context is.
    pub last: Usage,
}

/// One turn of the model.
pub(crate) struct Turn {
    request: Arc<Request>,
    dialect: &'static dyn Dialect,
    toolset: Arc<Toolset>,
    record_keys: RecordKeys,
    router: CallRouter,
    /// The history as the upstream knows it, up to this turn.
    base: String,
    /// Entries since: what loads lost tools again, and hidden rounds.
    hidden: Vec<String>,
    previous: Option<String>,
    /// Whether something is known of the response that is continued.
    continues: bool,
    /// Tools that were shown before this turn, and those loaded for good.
    revealed: Vec<String>,
    /// Those of them that are shown again at the end of the history.
    reminded: Vec<String>,
    loaded_before: Vec<String>,
    limit: usize,
    limits: ResponseLimits,
    stream: Option<Box<dyn StreamMerger>>,
    whole: Option<Box<dyn ResponseMerger>>,
    decoder: Decoder,
    broken: bool,
    /// Ids of the responses that the API keeps.
    responses: Vec<String>,
    summary: TurnSummary,
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn").field("summary", &self.summary).finish_non_exhaustive()
    }
}

impl Turn {
    /// Begins a turn. `limit` is how many hidden rounds it may have.
    pub(crate) fn new(
        request: Arc<Request>,
        record_keys: RecordKeys,
        records: Records,
        toolset: Arc<Toolset>,
        limit: usize,
        limits: ResponseLimits,
    ) -> Self {
        let dialect = dialects::of(request.api);
        let lost = tools_without_record(&request, &records, &toolset);
        let reminder =
            if lost.is_empty() { None } else { reload_entries(dialect, &request, &toolset, &lost) };
        let mut revealed = records.revealed();
        let mut reminded = Vec::new();
        // What is shown again is known again; where finding a tool changes `tools`, calling it did too.
        let shown = |name: &String| reminder.is_some() && lost.contains(name);
        for name in called_tools(&request).filter(|name| toolset.mode().grows() || shown(name)) {
            if toolset.is_deferred(name) && !revealed.contains(name) {
                revealed.push(name.clone());
                reminded.push(name.clone());
            }
        }
        let loaded_before = records.loaded();
        let continues = records.previous.is_some();
        let previous = records.previous.as_ref().and_then(|record| record.response.clone());
        let stream = request.stream.then(|| dialect.stream_merger(&request));
        let base = upstream_history(dialect, &request, records, &toolset);
        let ids = CallIdGenerator::new(request.api, record_keys.seed());
        Self {
            router: CallRouter::new(Arc::clone(&toolset), &revealed, ids, limits),
            dialect,
            record_keys,
            base,
            reminded,
            hidden: reminder.unwrap_or_default(),
            previous,
            continues,
            revealed,
            loaded_before,
            limit,
            limits,
            stream,
            whole: None,
            decoder: Decoder::default(),
            broken: false,
            responses: Vec::new(),
            summary: TurnSummary::default(),
            request,
            toolset,
        }
    }

    /// Begins anew with other tools, after the upstream has refused in a hidden round what these were
    /// loaded by. What was searched is forgotten, and what the client has seen stays.
    pub(crate) fn restart(&mut self, records: Records, toolset: Arc<Toolset>) {
        let (request, record_keys) = (Arc::clone(&self.request), self.record_keys.clone());
        let mut anew = Self::new(request, record_keys, records, toolset, self.limit, self.limits);
        anew.router.resume(&self.router);
        *self = Self {
            stream: self.stream.take(),
            whole: self.whole.take(),
            responses: std::mem::take(&mut self.responses),
            summary: self.summary,
            ..anew
        };
    }

    /// The body to send.
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

    /// Takes bytes of a streamed response; what the client gets goes to `out`.
    pub(crate) fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.decoder.push(bytes);
        while self.exceeded().is_none() {
            match self.decoder.next_event() {
                Ok(Some(event)) => self.event(&event, out),
                Ok(None) => return,
                Err(_) => {
                    (self.broken, self.decoder) = (true, Decoder::default());
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

    /// The streamed response is over.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> Next {
        let rest = self.decoder.take_rest();
        if !rest.is_empty() && self.exceeded().is_none() {
            // Some servers forget the blank line after the last event.
            self.event(&Event::from_bytes(rest), out);
        }
        let Some(stream) = &mut self.stream else { return Next::Done(Done::default()) };
        let mut round = stream.end_round(&mut self.router, out);
        if self.exceeded().is_some() {
            round.end = RoundEnd::Failed;
        }
        let broken = round.end == RoundEnd::Failed;
        let next = self.next(round);
        let broken = broken || self.exceeded().is_some();
        if let (Next::Done(_), Some(stream), false) = (&next, &mut self.stream, broken) {
            stream.finish(&self.router, out);
        }
        next
    }

    /// Takes a whole response. `None` for what is no response of this API: it goes to the client as it
    /// came.
    pub(crate) fn whole(&mut self, body: &[u8]) -> Option<Next> {
        let text = std::str::from_utf8(body).ok()?;
        // Also for a request that asks for events: some servers answer as a whole all the same.
        let whole = self.whole.get_or_insert_with(|| self.dialect.response_merger(&self.request));
        let round = whole.add_round(text, &mut self.router)?;
        let mut next = self.next(round);
        if let (Next::Done(done), Some(whole)) = (&mut next, &mut self.whole) {
            done.body = Some(whole.finish(&self.router));
        }
        Some(next)
    }

    /// A round after the first failed, and the client has part of a stream: the API's own error event.
    pub(crate) fn fail(&mut self, status: u16, body: &[u8], out: &mut Vec<u8>) {
        if let Some(stream) = &mut self.stream {
            stream.fail(status, body, &self.router, out);
        }
    }

    /// The response exceeded a limit, and the client has part of a stream: the API's own error event.
    pub(crate) fn exceed(&mut self, exceeded: LimitExceeded, out: &mut Vec<u8>) {
        self.fail(502, exceeded.body(self.request.api).as_bytes(), out);
    }

    /// Lets the round that is under way be the last whose searches are answered.
    pub(crate) fn make_round_last(&mut self) {
        self.limit = self.limit.min(self.summary.rounds + 1);
    }

    /// What shows a waiting client that somebody is still there; nothing for one that awaits a whole
    /// response.
    pub(crate) fn keep_alive(&self) -> &'static [u8] {
        if self.stream.is_some() { self.dialect.keep_alive() } else { &[] }
    }

    /// Whether the client awaits events.
    pub(crate) fn streams(&self) -> bool {
        self.request.stream
    }

    /// Whether only tokens are counted: the answer is then the upstream's own.
    pub(crate) fn counts(&self) -> bool {
        self.request.counts_tokens
    }

    /// Whether the events of this round have come to their own end.
    pub(crate) fn has_ended(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.has_ended())
    }

    /// The limit that the response exceeded, if it did: nothing more is taken from it.
    pub(crate) fn exceeded(&self) -> Option<LimitExceeded> {
        self.router.budget.exceeded().or(self.broken.then_some(LimitExceeded::Event))
    }

    /// Bytes of its responses that are held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.router.budget.held_bytes() + self.decoder.held_bytes()
    }

    /// What it took so far.
    pub(crate) fn summary(&self) -> TurnSummary {
        self.summary
    }

    fn next(&mut self, round: Round) -> Next {
        let Round { mut entries, end, usage, response } = round;
        let made = self.router.take_made_ids();
        if !made.is_empty() {
            entries = self.dialect.with_generated_ids(entries, made);
        }
        if self.summary.rounds == 0 {
            self.summary.first = usage;
        }
        self.summary.rounds += 1;
        self.summary.usage += usage;
        self.summary.last = usage;
        self.summary.searches = self.router.searches();
        self.responses.extend(response);
        let mut answers = self.router.take_answers();
        let answerable = end == RoundEnd::Complete
            && !answers.is_empty()
            && self.router.forwarded_ids().is_empty();
        // Who pauses before saying anything would be asked the very same again.
        let paused = end == RoundEnd::Paused && !entries.is_empty();
        let continues = (answerable || paused) && self.summary.rounds <= self.limit;
        if continues && self.router.budget.is_full() {
            // What the model said is not all here, so it cannot be sent back.
            self.router.budget.exceed();
        }
        if continues && self.exceeded().is_none() {
            if self.summary.rounds == self.limit {
                answers.iter_mut().for_each(HiddenAnswer::close);
            }
            let said: Vec<Cow<'_, str>> = entries.iter().map(Cow::from).collect();
            let joined =
                self.dialect.insert_hidden_answers(&said, Vec::new(), &answers, &[], &self.toolset);
            let joined: Vec<String> = joined.into_iter().map(Cow::into_owned).collect();
            self.hidden.extend(entries);
            self.hidden.extend(joined);
            return Next::Again;
        }
        let records = match end {
            RoundEnd::Failed => Vec::new(),
            _ if self.router.budget.is_full() || self.exceeded().is_some() => Vec::new(),
            _ => self.records(entries, answers),
        };
        Next::Done(Done { body: None, records, summary: self.summary })
    }

    /// What is to be kept of this turn.
    fn records(
        &mut self,
        last: Vec<String>,
        answers: Vec<HiddenAnswer>,
    ) -> Vec<(RecordKey, Vec<u8>)> {
        let loaded = self.toolset.loaded().to_vec();
        let hidden = std::mem::take(&mut self.hidden);
        let differs = self.router.is_altered()
            || !hidden.is_empty()
            || !self.reminded.is_empty()
            || loaded != self.loaded_before;
        // A client that names the response it continues sends nothing of those before it: what is
        // known of them goes from one to the next.
        let announced = self.toolset.announcement().map(announcement_hash);
        let announces = announced.is_some() && !self.responses.is_empty();
        if !differs && !self.continues && !announces {
            return Vec::new();
        }
        if !TurnRecord::has_room(hidden.iter().chain(&last)) {
            return Vec::new();
        }
        let mut entries = Vec::with_capacity(hidden.len() + last.len());
        for entry in hidden.into_iter().chain(last) {
            let Ok(raw) = RawValue::from_string(entry) else { return Vec::new() };
            entries.push(raw);
        }
        let mut record = TurnRecord {
            mode: self.toolset.mode(),
            passed: self.toolset.passes_through(),
            second_names: self.toolset.has_second_names(),
            entries,
            calls: self.router.forwarded_ids().to_vec(),
            made_ids: self.router.made_ids().to_vec(),
            answers,
            revealed: [&self.reminded, self.router.revealed_tools()].concat(),
            blind: self.router.unseen_calls().to_vec(),
            loaded,
            announced: None,
            response: None,
        };
        let mut records: Vec<(RecordKey, Vec<u8>)> = Vec::new();
        if differs {
            let bytes = record.write();
            let [strict, loose] = self.record_keys.turn(&self.router.fingerprint());
            if loose != strict {
                records.push((loose, bytes.clone()));
            }
            records.push((strict, bytes));
        }
        if let Some(kept) = self.responses.last() {
            // The API has the entries already; only what the client must not know is missing.
            record.entries.clear();
            record.calls.clear();
            record.made_ids.clear();
            if self.continues {
                record.revealed.splice(..0, self.revealed.iter().cloned());
            }
            record.announced = announced;
            record.response = Some(kept.clone());
            let bytes = record.write();
            let ids = self.responses.iter();
            records.extend(ids.map(|id| (self.record_keys.response(id), bytes.clone())));
        }
        records
    }
}
