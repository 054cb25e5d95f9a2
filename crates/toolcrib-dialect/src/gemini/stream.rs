//! Streams of Gemini: events of several rounds made into those of one response.
//!
//! Every event is a whole response, with the parts that are new. As long as nothing is hidden each
//! passes as it came; from the first call that is not the client's own on, the rest is written anew: one id,
//! counts that only grow, one end.

use toolcrib_text::json::{self, Fields};

use super::response::Response;
use super::spoken::Spoken;
use crate::desk::Desk;
use crate::dialect::{End, Round, Stream};
use crate::sse::{self, Event};

/// The events of a turn.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    spoken: Spoken,
    /// Whether the round is over, and what comes is of another.
    over: bool,
    /// How the round ended, once it did.
    end: Option<End>,
    /// The event that ends the response, held back.
    last: Option<String>,
    failed: bool,
}

impl Stream for Pieces {
    fn event(&mut self, event: &Event, desk: &mut Desk, out: &mut Vec<u8>) {
        let data = event.data();
        let data = data.as_deref().unwrap_or_default();
        let Some(response) = Response::read(data) else {
            self.failed |= Fields::read(data).is_some_and(|fields| fields.get("error").is_some());
            out.extend_from_slice(event.raw());
            return;
        };
        if std::mem::take(&mut self.over) {
            self.last = None;
        }
        self.failed |= response.fields.get("error").is_some();
        self.spoken.note(&response.fields);
        let parts: Vec<String> =
            response.parts().iter().filter_map(|part| self.spoken.hear(part, desk)).collect();
        let end = response.end();
        self.end = end.or(self.end);
        if !self.spoken.altered {
            out.extend_from_slice(event.raw());
            return;
        }
        let own = self.spoken.own(&response.fields, false);
        if end.is_some() && !response.is_refused() {
            self.last = Some(data.to_owned());
            if !parts.is_empty() {
                write(&response.only(&parts, &own), out);
            }
        } else if !parts.is_empty() || response.tells_more() {
            write(&response.with(&parts, &own), out);
        }
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn round(&mut self, _desk: &mut Desk, _out: &mut Vec<u8>) -> Round {
        let end = self.end.take().filter(|_| !self.failed).unwrap_or(End::Broken);
        self.over = true;
        let (parts, usage) = self.spoken.round();
        let entry = format!(r#"{{"parts":[{}],"role":"model"}}"#, parts.join(","));
        let entries = if parts.is_empty() { Vec::new() } else { vec![entry] };
        Round { entries, end, usage, response: None }
    }

    fn finish(&mut self, _desk: &Desk, out: &mut Vec<u8>) {
        let last = self.last.take();
        if let Some(response) = last.as_deref().and_then(Response::read) {
            write(&response.with(&[], &self.spoken.own(&response.fields, true)), out);
        }
    }

    fn fail(&mut self, status: u16, body: &[u8], _desk: &Desk, out: &mut Vec<u8>) {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let error = Fields::read(text).and_then(|fields| fields.get("error").map(str::to_owned));
        let error = error.unwrap_or_else(|| {
            format!(r#"{{"code":{status},"message":"the upstream answered {status}","status":"UNAVAILABLE"}}"#)
        });
        write(&format!(r#"{{"error":{error}}}"#), out);
    }
}

/// An event of ours, in one line: clients of this API do not put several together.
fn write(data: &str, out: &mut Vec<u8>) {
    sse::write(None, &json::compact(data), out);
}
