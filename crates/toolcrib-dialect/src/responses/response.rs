//! Whole responses of the Responses API, several made into one.
//!
//! The client gets the last one's id: the API knows the whole turn by it, so that a client which goes on
//! from there needs nothing of ours.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::frame::Frame;
use super::taken::{Shown, take};
use crate::desk::Desk;
use crate::dialect::{End, Round, Whole};
use crate::splice::{changed, place};
use crate::usage::{self, Usage};

/// The responses of a turn.
#[derive(Debug)]
pub(super) struct Bodies {
    frame: Frame,
    /// The last one, as it came.
    body: String,
    rounds: usize,
    /// What the client gets of all of them.
    output: Vec<String>,
    /// Whether that is something else than what came.
    altered: bool,
    usage: Option<Value>,
}

impl Bodies {
    pub(super) fn new(frame: Frame) -> Self {
        Self {
            frame,
            body: String::new(),
            rounds: 0,
            output: Vec::new(),
            altered: false,
            usage: None,
        }
    }
}

impl Whole for Bodies {
    fn round(&mut self, body: &str, desk: &mut Desk) -> Option<Round> {
        let fields = Fields::read(body)?;
        let output = json::items(fields.get("output")?)?;
        self.rounds += 1;
        body.clone_into(&mut self.body);
        let mut entries = Vec::with_capacity(output.len());
        for item in output {
            let taken = take(item.get(), false, &self.frame, desk);
            entries.extend(taken.entry);
            self.altered |= taken.shown != Shown::AsItCame;
            match taken.shown {
                Shown::AsItCame => self.output.push(item.get().to_owned()),
                Shown::As(text) => self.output.push(text),
                Shown::Nothing => {}
            }
        }
        let usage = count(&fields, &mut self.usage);
        let end = end(&fields.string("status").unwrap_or_default());
        let response = fields.string("id").filter(|_| self.frame.keeps);
        Some(Round { entries, end, usage, response })
    }

    fn finish(&mut self, desk: &Desk) -> String {
        let body = std::mem::take(&mut self.body);
        let Some(fields) = Fields::read(&body) else { return body };
        let altered = self.rounds > 1 || self.altered;
        if desk.toolset().passes_through() && !altered {
            return body;
        }
        let mut changes = self.frame.mend(&body, &fields, desk.toolset());
        if altered {
            let output = fields.get("output").map(|raw| place(&body, raw));
            changes.extend(output.map(|at| (at, format!("[{}]", self.output.join(",")))));
            let usage = fields.get("usage").map(|raw| place(&body, raw));
            changes.extend(usage.zip(self.usage.as_ref().map(Value::to_string)));
        }
        changed(&body, changes)
    }
}

/// How a response ended, by its `status`.
pub(super) fn end(status: &str) -> End {
    match status {
        "incomplete" => End::Cut,
        "failed" | "cancelled" => End::Broken,
        _ => End::Whole,
    }
}

/// Adds what a response took to what those before it took.
pub(super) fn count(response: &Fields<'_>, sum: &mut Option<Value>) -> Usage {
    let Some(used) = response.get("usage").and_then(usage::parse) else {
        return Usage::default();
    };
    let usage = Usage {
        input: usage::count(&used, &["input_tokens"]),
        cached: usage::count(&used, &["input_tokens_details", "cached_tokens"]),
        output: usage::count(&used, &["output_tokens"]),
    };
    match sum {
        Some(sum) => usage::add(sum, &used),
        None => *sum = Some(used),
    }
    usage
}
