//! Chunks of Chat Completions, told in order.
//!
//! A chunk may add to any call at any time; the streams of our clients' APIs tell one part to its end
//! before the next begins. So the parts stand in a line in the order they began: the first is passed
//! on live, and those behind it wait until it is whole. Servers that repeat or omit an index, split a
//! name, or send a whole call at once are all understood.

use serde::de::IgnoredAny;
use toolcrib_text::json::{self, Fields};

use super::foreign;
use crate::budget::{Budget, Exceeded, Limits, PART};

use super::reply::{self, Finish, Head, Usage};
use super::trouble::Trouble;

/// What happens next in a streamed response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The first of all, unless there was trouble at once.
    Begin(Head),
    /// Text, of the part that is open or of a new one.
    Text(String),
    /// A call begins.
    Call { id: String, name: String },
    /// More of its arguments.
    Arguments(String),
    /// The part that is open is over; it may have been cut in half.
    Close { cut: bool },
    /// Nothing comes after this.
    End { finish: Finish, usage: Usage },
    /// Nor after this. The head is that of the response, whether it began or not.
    Trouble { head: Head, trouble: Trouble },
}

/// A response under way.
#[derive(Debug, Default)]
pub(super) struct Tale {
    /// The id of a response that has none.
    fallback: String,
    head: Option<Head>,
    parts: Vec<Part>,
    /// How many of the parts are closed.
    closed: usize,
    finish: Option<String>,
    usage: Usage,
    over: bool,
    /// What waits to be passed on.
    budget: Budget,
}

#[derive(Debug)]
enum Part {
    /// What of it was not yet passed on.
    Text(String),
    Call(Call),
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
    /// Bytes of the arguments that were passed on, once the call itself was.
    told: Option<usize>,
    /// How long they were when they were last found to be less than whole.
    checked: usize,
}

impl Tale {
    pub(super) fn new(fallback: String, limits: Limits) -> Self {
        Self { fallback, budget: Budget::new(limits), ..Self::default() }
    }

    /// The limit that the response exceeded, if it did.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
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
    pub(super) fn hear(&mut self, data: &str) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.over {
            return steps;
        }
        if data.trim() == "[DONE]" {
            self.finish.get_or_insert_default();
            return self.end();
        }
        let Some(chunk) = Fields::read(data) else { return steps };
        if foreign::value(&chunk, "error").is_some()
            && let Some(trouble) = Trouble::of_object(&chunk, 200)
        {
            return self.fail(trouble);
        }
        if let Some(usage) = Usage::read(&chunk) {
            self.usage = usage;
        }
        let choices = chunk.get("choices").and_then(json::items).unwrap_or_default();
        let Some(choice) = choices.first().and_then(|raw| Fields::read(raw.get())) else {
            return steps;
        };
        if self.head.is_none() {
            let head = Head::read(&chunk, &self.fallback);
            self.head = Some(head.clone());
            steps.push(Step::Begin(head));
        }
        if let Some(delta) = foreign::object(&choice, "delta") {
            self.say(reply::spoken(&delta));
            for piece in delta.get("tool_calls").and_then(json::items).unwrap_or_default() {
                if self.budget.exceeded().is_some() {
                    return steps;
                }
                if let Some(piece) = Fields::read(piece.get()) {
                    self.call(&piece);
                }
            }
        }
        if let Some(reason) = foreign::text(&choice, "finish_reason") {
            self.finish = Some(reason);
        }
        self.tell(&mut steps);
        steps
    }

    /// No more comes.
    pub(super) fn end(&mut self) -> Vec<Step> {
        if self.over {
            return Vec::new();
        }
        if self.finish.is_none() || self.head.is_none() {
            return self.fail(Trouble::own("the backend's stream broke off"));
        }
        let mut steps = Vec::new();
        self.tell(&mut steps);
        self.over = true;
        steps.push(Step::End { finish: self.finish(), usage: self.usage });
        steps
    }

    /// It is over, and badly.
    pub(super) fn fail(&mut self, trouble: Trouble) -> Vec<Step> {
        if std::mem::replace(&mut self.over, true) {
            return Vec::new();
        }
        let fallback = || Head { id: self.fallback.clone(), ..Head::default() };
        vec![Step::Trouble { head: self.head.clone().unwrap_or_else(fallback), trouble }]
    }

    fn finish(&self) -> Finish {
        let calls = self.parts.iter().any(|part| matches!(part, Part::Call(_)));
        Finish::of(self.finish.as_deref().unwrap_or_default(), calls)
    }

    fn say(&mut self, piece: String) {
        if piece.is_empty() {
            return;
        }
        let open = self.closed < self.parts.len();
        self.budget.hold(piece.len());
        match self.parts.last_mut() {
            Some(Part::Text(text)) if open => text.push_str(&piece),
            _ => {
                self.budget.hold(PART);
                self.parts.push(Part::Text(piece));
            }
        }
    }

    fn call(&mut self, piece: &Fields<'_>) {
        let index = piece.get("index").and_then(|raw| raw.parse().ok());
        let id = foreign::text(piece, "id").filter(|id| !id.is_empty());
        let at = self.place(index, id.as_deref()).unwrap_or_else(|| {
            self.budget.hold(PART);
            self.budget.call();
            self.parts.push(Part::Call(Call { index, ..Call::default() }));
            self.parts.len() - 1
        });
        let Part::Call(call) = &mut self.parts[at] else { return };
        if at < self.closed {
            // It was passed on as a whole.
            return;
        }
        call.id = call.id.take().or(id);
        let Some(function) = foreign::object(piece, "function") else { return };
        let name = foreign::text(&function, "name").unwrap_or_default();
        // A name may come in pieces, and some servers repeat it with every piece of the arguments.
        if name != call.name {
            self.budget.hold(name.len());
            call.name.push_str(&name);
        }
        let arguments = reply::arguments(&function);
        self.budget.hold_arguments(call.arguments.len() + arguments.len(), arguments.len());
        call.arguments.push_str(&arguments);
    }

    /// The call that a piece belongs to.
    fn place(&self, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        let mut calls = self.parts.iter().enumerate().rev().filter_map(|(at, part)| match part {
            Part::Call(call) => Some((at, call)),
            Part::Text(_) => None,
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
    fn tell(&mut self, steps: &mut Vec<Step>) {
        let finished = self.finish.is_some();
        let cut = finished && self.finish().is_cut();
        while self.closed < self.parts.len() {
            let (at, last) = (self.closed, self.closed + 1 == self.parts.len());
            let calls =
                self.parts[..at].iter().filter(|part| matches!(part, Part::Call(_))).count();
            let over = match &mut self.parts[at] {
                Part::Text(text) => {
                    if !text.is_empty() {
                        self.budget.release(text.len());
                        steps.push(Step::Text(std::mem::take(text)));
                    }
                    finished || !last
                }
                Part::Call(call) => {
                    let over = finished || (!last && call.is_whole());
                    let fallback = || self.head.as_ref().map(|head| head.call_id(calls));
                    call.tell(over, fallback, steps);
                    over
                }
            };
            if !over {
                return;
            }
            if let Part::Call(call) = &mut self.parts[at] {
                self.budget.release(call.arguments.len());
                call.arguments = String::new();
            }
            steps.push(Step::Close { cut: cut && last });
            self.closed += 1;
        }
    }
}

impl Call {
    /// Whether the arguments are a whole object, so that nothing can be missing. Those of a call
    /// without arguments may be no text at all, which only the end of the stream can tell.
    fn is_whole(&mut self) -> bool {
        let grown = self.checked < self.arguments.len();
        let whole = grown
            && self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok();
        self.checked = self.arguments.len();
        whole
    }

    /// Passes on what is new. The call itself waits for its first argument: then its name is whole.
    fn tell(&mut self, over: bool, id: impl Fn() -> Option<String>, steps: &mut Vec<Step>) {
        if self.told.is_none() && (over || !self.arguments.is_empty()) {
            let id = self.id.clone().or_else(id).unwrap_or_default();
            steps.push(Step::Call { id, name: self.name.clone() });
            self.told = Some(0);
        }
        if let Some(told) = self.told
            && told < self.arguments.len()
        {
            steps.push(Step::Arguments(self.arguments[told..].to_owned()));
            self.told = Some(self.arguments.len());
        }
    }
}
