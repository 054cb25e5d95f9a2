//! Merges the Gemini streams of several rounds into the stream of one response.
//!
//! Every event is a complete response that contains only the new parts. Events are forwarded unchanged until the first
//! call that must be hidden or rewritten. From then on, they are rewritten so that the client gets a single response
//! with one id, cumulative token usage and one end.

use toolcrib_text::json::{self, Fields};

use super::part_merger::PartMerger;
use super::response::GeminiResponse;
use crate::call_router::CallRouter;
use crate::dialect::{Round, RoundEnd, StreamMerger};
use crate::sse::{self, Event};

/// Merges the streams of a turn.
#[derive(Debug, Default)]
pub(super) struct GeminiStreamMerger {
    merger: PartMerger,
    /// Whether the round has ended, so that the next event belongs to the next round.
    is_round_over: bool,
    /// How the round ended, once it has.
    end: Option<RoundEnd>,
    /// The event that ends the response. It is held back until the turn ends.
    end_event: Option<String>,
    failed: bool,
}

impl StreamMerger for GeminiStreamMerger {
    fn event(&mut self, event: &Event, router: &mut CallRouter, out: &mut Vec<u8>) {
        let data = event.data();
        let data = data.as_deref().unwrap_or_default();
        let Some(response) = GeminiResponse::read(data) else {
            self.failed |= Fields::read(data).is_some_and(|fields| fields.get("error").is_some());
            out.extend_from_slice(event.raw());
            return;
        };
        if std::mem::take(&mut self.is_round_over) {
            self.end_event = None;
        }
        self.failed |= response.fields.get("error").is_some();
        self.merger.record_head(&response.fields);
        let parts: Vec<String> =
            response.parts().iter().filter_map(|part| self.merger.add_part(part, router)).collect();
        let end = response.end();
        self.end = end.or(self.end);
        if !self.merger.altered {
            out.extend_from_slice(event.raw());
            return;
        }
        let turn_fields = self.merger.turn_fields(&response.fields, false);
        if end.is_some() && !response.is_blocked() {
            self.end_event = Some(data.to_owned());
            if !parts.is_empty() {
                write(&response.with_parts_only(&parts, &turn_fields), out);
            }
        } else if !parts.is_empty() || response.has_other_fields() {
            write(&response.with(&parts, &turn_fields), out);
        }
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn end_round(&mut self, _router: &mut CallRouter, _out: &mut Vec<u8>) -> Round {
        let end = self.end.take().filter(|_| !self.failed).unwrap_or(RoundEnd::Failed);
        self.is_round_over = true;
        let (parts, usage) = self.merger.end_round();
        let entry = format!(r#"{{"parts":[{}],"role":"model"}}"#, parts.join(","));
        let entries = if parts.is_empty() { Vec::new() } else { vec![entry] };
        Round { entries, end, usage, response: None }
    }

    fn finish(&mut self, _router: &CallRouter, out: &mut Vec<u8>) {
        let end_event = self.end_event.take();
        if let Some(response) = end_event.as_deref().and_then(GeminiResponse::read) {
            write(&response.with(&[], &self.merger.turn_fields(&response.fields, true)), out);
        }
    }

    fn fail(&mut self, status: u16, body: &[u8], _router: &CallRouter, out: &mut Vec<u8>) {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let error = Fields::read(text).and_then(|fields| fields.get("error").map(str::to_owned));
        let error = error.unwrap_or_else(|| {
            format!(r#"{{"code":{status},"message":"the upstream answered {status}","status":"UNAVAILABLE"}}"#)
        });
        write(&format!(r#"{{"error":{error}}}"#), out);
    }
}

/// Writes an event with its data on one line, because clients of this API do not join the data of several lines.
fn write(data: &str, out: &mut Vec<u8>) {
    sse::write_event(None, &json::compact(data), out);
}
