//! Assembles the chunks of Chat Completions into parts, one after the other.
//!
//! A chunk may add to any call at any time, but the streams of the clients' APIs finish one part before the next
//! begins. So parts are queued in the order in which they began. The first part is forwarded as it arrives, and the
//! others wait until it is complete. Servers that repeat or omit an index, split a name, or send a call in one piece
//! are supported.

use serde::de::IgnoredAny;
use toolcrib_text::json::{self, Fields};

use super::lenient;
use crate::budget::ResponseBudget;
use crate::limits::{LimitExceeded, PART_BYTES, ResponseLimits};

use super::backend_error::BackendError;
use super::chat_response::{self, ChatUsage, FinishReason, ResponseHead};

/// A step of a streamed response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamStep {
    /// The response begins. This is the first step, unless the response fails immediately.
    Begin(ResponseHead),
    /// Text of the current part. If no part is open, the text begins a new one.
    Text(String),
    /// A call begins.
    CallStart { id: String, name: String },
    /// More arguments of the current call.
    Arguments(String),
    /// The current part has ended. `truncated` says whether it may be incomplete.
    PartEnd { truncated: bool },
    /// The response has ended. This is the last step.
    End { finish: FinishReason, usage: ChatUsage },
    /// The response has failed. This is the last step. `head` is set even if the response never began.
    Failed { head: ResponseHead, error: BackendError },
}

/// Assembles a streamed response from its chunks.
#[derive(Debug, Default)]
pub(super) struct ChunkAssembler {
    /// The id that is used if the response has none.
    fallback: String,
    head: Option<ResponseHead>,
    parts: Vec<AssembledPart>,
    /// The number of parts that have ended.
    closed: usize,
    finish: Option<String>,
    usage: ChatUsage,
    ended: bool,
    /// Limits the size of the parts that wait for an earlier part.
    budget: ResponseBudget,
}

#[derive(Debug)]
enum AssembledPart {
    /// The text that was not emitted yet.
    Text(String),
    Call(AssembledCall),
}

#[derive(Debug, Default)]
struct AssembledCall {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
    /// The number of argument bytes that were emitted. `None` if not even the start of the call was emitted.
    emitted: Option<usize>,
    /// The length of the arguments when they were last checked for completeness.
    checked: usize,
}

impl ChunkAssembler {
    pub(super) fn new(fallback: String, limits: ResponseLimits) -> Self {
        Self { fallback, budget: ResponseBudget::new(limits), ..Self::default() }
    }

    /// Returns the limit that the response exceeded, if any.
    pub(super) fn exceeded(&self) -> Option<LimitExceeded> {
        self.budget.exceeded()
    }

    /// Returns the number of response bytes that are held in memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.budget.held_bytes()
    }

    pub(super) fn fallback(&self) -> &str {
        &self.fallback
    }

    /// Processes the data of one event, and returns the resulting steps.
    pub(super) fn add_chunk(&mut self, data: &str) -> Vec<StreamStep> {
        let mut steps = Vec::new();
        if self.ended {
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

    /// Ends the response, and returns the remaining steps. If the stream was cut off, the last step is an error.
    pub(super) fn end(&mut self) -> Vec<StreamStep> {
        if self.ended {
            return Vec::new();
        }
        if self.finish.is_none() || self.head.is_none() {
            return self.fail(BackendError::detected("the backend's stream was cut off"));
        }
        let mut steps = Vec::new();
        self.emit(&mut steps);
        self.ended = true;
        steps.push(StreamStep::End { finish: self.finish_reason(), usage: self.usage });
        steps
    }

    /// Ends the response with an error.
    pub(super) fn fail(&mut self, error: BackendError) -> Vec<StreamStep> {
        if std::mem::replace(&mut self.ended, true) {
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
            // The complete call was already emitted, so this piece is ignored.
            return;
        }
        call.id = call.id.take().or(id);
        let Some(function) = lenient::object(piece, "function") else { return };
        let name = lenient::text(&function, "name").unwrap_or_default();
        // A name may arrive in pieces, which are joined. But some servers repeat the complete name with every piece of
        // the arguments, so a repeated name is ignored.
        if name != call.name {
            self.budget.hold(name.len());
            call.name.push_str(&name);
        }
        let arguments = chat_response::arguments(&function);
        self.budget.hold_arguments(call.arguments.len() + arguments.len(), arguments.len());
        call.arguments.push_str(&arguments);
    }

    /// Returns the position of the call that a piece belongs to, or `None` if the piece starts a new call.
    fn find_call(&self, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        let mut calls = self.parts.iter().enumerate().rev().filter_map(|(at, part)| match part {
            AssembledPart::Call(call) => Some((at, call)),
            AssembledPart::Text(_) => None,
        });
        let found = match (index, id) {
            (Some(_), None) => calls.find(|(_, call)| call.index == index),
            // Some servers use the same index for several calls, and distinguish the calls by id.
            (Some(_), Some(_)) => calls.find(|(_, call)| {
                call.index == index && (call.id.is_none() || call.id.as_deref() == id)
            }),
            (None, Some(_)) => calls.find(|(_, call)| call.id.as_deref() == id),
            (None, None) => calls.next(),
        };
        found.map(|(at, _)| at)
    }

    /// Emits as many steps as possible without changing the order of the parts.
    fn emit(&mut self, steps: &mut Vec<StreamStep>) {
        let finished = self.finish.is_some();
        let truncated = finished && self.finish_reason().is_truncated();
        while self.closed < self.parts.len() {
            let (at, last) = (self.closed, self.closed + 1 == self.parts.len());
            let calls = self.parts[..at]
                .iter()
                .filter(|part| matches!(part, AssembledPart::Call(_)))
                .count();
            let ended = match &mut self.parts[at] {
                AssembledPart::Text(text) => {
                    if !text.is_empty() {
                        self.budget.release(text.len());
                        steps.push(StreamStep::Text(std::mem::take(text)));
                    }
                    finished || !last
                }
                AssembledPart::Call(call) => {
                    let ended = finished || (!last && call.is_complete());
                    let fallback = || self.head.as_ref().map(|head| head.call_id(calls));
                    call.emit(ended, fallback, steps);
                    ended
                }
            };
            if !ended {
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
    /// Whether the arguments are a complete JSON object. Empty arguments may be complete as well, but only the end of
    /// the stream shows this.
    fn is_complete(&mut self) -> bool {
        let has_grown = self.checked < self.arguments.len();
        let is_complete = has_grown
            && self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok();
        self.checked = self.arguments.len();
        is_complete
    }

    /// Emits the new pieces of the call. The start of the call is emitted together with its first argument bytes,
    /// because the name may be incomplete before that.
    fn emit(&mut self, ended: bool, id: impl Fn() -> Option<String>, steps: &mut Vec<StreamStep>) {
        if self.emitted.is_none() && (ended || !self.arguments.is_empty()) {
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
