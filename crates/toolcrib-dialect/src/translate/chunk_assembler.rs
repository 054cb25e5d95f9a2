//! Chunks of Chat Completions, told in order.
//!
//! A chunk may add to any call at any time; the streams of our clients' APIs tell one part to its end
//! before the next begins. So the parts stand in a line in the order they began: the first is passed
//! on live, and those behind it wait until it is whole. Servers that repeat or omit an index, split a
//! name, or send a whole call at once are all understood.

use serde::de::IgnoredAny;
use toolcrib_text::json::{self, Fields};

use super::lenient;
use crate::budget::ResponseBudget;
use crate::limits::{LimitExceeded, PART_BYTES, ResponseLimits};

use super::backend_error::BackendError;
use super::chat_response::{self, ChatUsage, FinishReason, ResponseHead};

/// What happens next in a streamed response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamStep {
    /// The first of all, unless there was trouble at once.
    Begin(ResponseHead),
    /// Text, of the part that is open or of a new one.
    Text(String),
    /// A call begins.
    CallStart { id: String, name: String },
    /// More of its arguments.
    Arguments(String),
    /// The part that is open is over; it may have been cut in half.
    PartEnd { truncated: bool },
    /// Nothing comes after this.
    End { finish: FinishReason, usage: ChatUsage },
    /// Nor after this. The head is that of the response, whether it began or not.
    Failed { head: ResponseHead, error: BackendError },
}

/// A response under way.
#[derive(Debug, Default)]
pub(super) struct ChunkAssembler {
    /// The id of a response that has none.
    fallback: String,
    head: Option<ResponseHead>,
    parts: Vec<AssembledPart>,
    /// How many of the parts are closed.
    closed: usize,
    finish: Option<String>,
    usage: ChatUsage,
    over: bool,
    /// What waits to be passed on.
    budget: ResponseBudget,
}

#[derive(Debug)]
enum AssembledPart {
    /// What of it was not yet passed on.
    Text(String),
    Call(AssembledCall),
}

#[derive(Debug, Default)]
struct AssembledCall {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
    /// Bytes of the arguments that were passed on, once the call itself was.
    emitted: Option<usize>,
    /// How long they were when they were last found to be less than whole.
    checked: usize,
}

impl ChunkAssembler {
    pub(super) fn new(fallback: String, limits: ResponseLimits) -> Self {
        Self { fallback, budget: ResponseBudget::new(limits), ..Self::default() }
    }

    /// The limit that the response exceeded, if it did.
    pub(super) fn exceeded(&self) -> Option<LimitExceeded> {
        self.budget.exceeded()
    }

    /// Bytes of the response that are held.
    pub(super) fn held_bytes(&self) -> usize {
        self.budget.held_bytes()
    }

    pub(super) fn fallback(&self) -> &str {
        &self.fallback
    }

    /// Takes the data of one event.
    pub(super) fn add_chunk(&mut self, data: &str) -> Vec<StreamStep> {
        let mut steps = Vec::new();
        if self.over {
            return steps;
        }
        if data.trim() == "[DONE]" {
            self.finish.get_or_insert_default();
            return self.end();
        }
        let Some(chunk) = Fields::read(data) else { return steps };
        if lenient::value(&chunk, "error").is_some()
            && let Some(error) = BackendError::from_object(&chunk, 200)
        {
            return self.fail(error);
        }
        if let Some(usage) = ChatUsage::read(&chunk) {
            self.usage = usage;
        }
        let choices = chunk.get("choices").and_then(json::items).unwrap_or_default();
        let Some(choice) = choices.first().and_then(|raw| Fields::read(raw.get())) else {
            return steps;
        };
        if self.head.is_none() {
            let head = ResponseHead::read(&chunk, &self.fallback);
            self.head = Some(head.clone());
            steps.push(StreamStep::Begin(head));
        }
        if let Some(delta) = lenient::object(&choice, "delta") {
            self.add_text(chat_response::message_text(&delta));
            for piece in delta.get("tool_calls").and_then(json::items).unwrap_or_default() {
                if self.budget.exceeded().is_some() {
                    return steps;
                }
                if let Some(piece) = Fields::read(piece.get()) {
                    self.add_call_piece(&piece);
                }
            }
        }
        if let Some(reason) = lenient::text(&choice, "finish_reason") {
            self.finish = Some(reason);
        }
        self.emit(&mut steps);
        steps
    }

    /// No more comes.
    pub(super) fn end(&mut self) -> Vec<StreamStep> {
        if self.over {
            return Vec::new();
        }
        if self.finish.is_none() || self.head.is_none() {
            return self.fail(BackendError::detected("the backend's stream broke off"));
        }
        let mut steps = Vec::new();
        self.emit(&mut steps);
        self.over = true;
        steps.push(StreamStep::End { finish: self.finish_reason(), usage: self.usage });
        steps
    }

    /// It is over, and badly.
    pub(super) fn fail(&mut self, error: BackendError) -> Vec<StreamStep> {
        if std::mem::replace(&mut self.over, true) {
            return Vec::new();
        }
        let fallback = || ResponseHead { id: self.fallback.clone(), ..ResponseHead::default() };
        vec![StreamStep::Failed { head: self.head.clone().unwrap_or_else(fallback), error }]
    }

    fn finish_reason(&self) -> FinishReason {
        let calls = self.parts.iter().any(|part| matches!(part, AssembledPart::Call(_)));
        FinishReason::new(self.finish.as_deref().unwrap_or_default(), calls)
    }

    fn add_text(&mut self, piece: String) {
        if piece.is_empty() {
            return;
        }
        let open = self.closed < self.parts.len();
        self.budget.hold(piece.len());
        match self.parts.last_mut() {
            Some(AssembledPart::Text(text)) if open => text.push_str(&piece),
            _ => {
                self.budget.hold(PART_BYTES);
                self.parts.push(AssembledPart::Text(piece));
            }
        }
    }

    fn add_call_piece(&mut self, piece: &Fields<'_>) {
        let index = piece.get("index").and_then(|raw| raw.parse().ok());
        let id = lenient::text(piece, "id").filter(|id| !id.is_empty());
        let at = self.find_call(index, id.as_deref()).unwrap_or_else(|| {
            self.budget.hold(PART_BYTES);
            self.budget.call();
            self.parts
                .push(AssembledPart::Call(AssembledCall { index, ..AssembledCall::default() }));
            self.parts.len() - 1
        });
        let AssembledPart::Call(call) = &mut self.parts[at] else { return };
        if at < self.closed {
            // It was passed on as a whole.
            return;
        }
        call.id = call.id.take().or(id);
        let Some(function) = lenient::object(piece, "function") else { return };
        let name = lenient::text(&function, "name").unwrap_or_default();
        // A name may come in pieces, and some servers repeat it with every piece of the arguments.
        if name != call.name {
            self.budget.hold(name.len());
            call.name.push_str(&name);
        }
        let arguments = chat_response::arguments(&function);
        self.budget.hold_arguments(call.arguments.len() + arguments.len(), arguments.len());
        call.arguments.push_str(&arguments);
    }

    /// The call that a piece belongs to.
    fn find_call(&self, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        let mut calls = self.parts.iter().enumerate().rev().filter_map(|(at, part)| match part {
            AssembledPart::Call(call) => Some((at, call)),
            AssembledPart::Text(_) => None,
        });
        let found = match (index, id) {
            (Some(_), None) => calls.find(|(_, call)| call.index == index),
            // Servers that repeat an index tell their calls apart by id.
            (Some(_), Some(_)) => calls.find(|(_, call)| {
                call.index == index && (call.id.is_none() || call.id.as_deref() == id)
            }),
            (None, Some(_)) => calls.find(|(_, call)| call.id.as_deref() == id),
            (None, None) => calls.next(),
        };
        found.map(|(at, _)| at)
    }

    /// Passes on what can be, in order.
    fn emit(&mut self, steps: &mut Vec<StreamStep>) {
        let finished = self.finish.is_some();
        let truncated = finished && self.finish_reason().is_truncated();
        while self.closed < self.parts.len() {
            let (at, last) = (self.closed, self.closed + 1 == self.parts.len());
            let calls = self.parts[..at]
                .iter()
                .filter(|part| matches!(part, AssembledPart::Call(_)))
                .count();
            let over = match &mut self.parts[at] {
                AssembledPart::Text(text) => {
                    if !text.is_empty() {
                        self.budget.release(text.len());
                        steps.push(StreamStep::Text(std::mem::take(text)));
                    }
                    finished || !last
                }
                AssembledPart::Call(call) => {
                    let over = finished || (!last && call.is_complete());
                    let fallback = || self.head.as_ref().map(|head| head.call_id(calls));
                    call.emit(over, fallback, steps);
                    over
                }
            };
            if !over {
                return;
            }
            if let AssembledPart::Call(call) = &mut self.parts[at] {
                self.budget.release(call.arguments.len());
                call.arguments = String::new();
            }
            steps.push(StreamStep::PartEnd { truncated: truncated && last });
            self.closed += 1;
        }
    }
}

impl AssembledCall {
    /// Whether the arguments are a whole object, so that nothing can be missing. Those of a call
    /// without arguments may be no text at all, which only the end of the stream can tell.
    fn is_complete(&mut self) -> bool {
        let grown = self.checked < self.arguments.len();
        let whole = grown
            && self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok();
        self.checked = self.arguments.len();
        whole
    }

    /// Passes on what is new. The call itself waits for its first argument: then its name is whole.
    fn emit(&mut self, over: bool, id: impl Fn() -> Option<String>, steps: &mut Vec<StreamStep>) {
        if self.emitted.is_none() && (over || !self.arguments.is_empty()) {
            let id = self.id.clone().or_else(id).unwrap_or_default();
            steps.push(StreamStep::CallStart { id, name: self.name.clone() });
            self.emitted = Some(0);
        }
        if let Some(emitted) = self.emitted
            && emitted < self.arguments.len()
        {
            steps.push(StreamStep::Arguments(self.arguments[emitted..].to_owned()));
            self.emitted = Some(self.arguments.len());
        }
    }
}
