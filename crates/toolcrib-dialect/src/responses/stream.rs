//! Streams of the Responses API: events of several rounds made into those of one response.
//!
//! An event passes as it came unless something in it must change: a number after something was hidden,
//! the tools that a response repeats, the namespace of a call. So as long as nothing is hidden there is
//! nothing to do. A call that is held keeps back every event of a later item, so that their order stays.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::frame::Frame;
use super::item::Item;
use super::pen::{Heard, Pen};
use super::taken::{self, Shown, Taken, sort, take};
use crate::budget::PART;
use crate::desk::{Desk, Sort};
use crate::dialect::{End, Round, Stream};
use crate::splice::{changed, place};
use crate::sse::Event;
use crate::usage::Usage;

/// The events of a turn.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) frame: Frame,
    pub(super) pen: Pen,
    /// Rounds that are over.
    pub(super) rounds: usize,
    /// `id` and `created_at` of the first response, and the response as it began.
    pub(super) first: Option<(String, String)>,
    pub(super) begun: String,
    /// The items that the client got, by the index it knows them under.
    pub(super) output: Vec<(u64, String)>,
    pub(super) round: Said,
    /// What ends the response, and what came after it.
    pub(super) last: Vec<Event>,
    pub(super) usage: Option<Value>,
    /// Events so far that repeat the client's tools.
    pub(super) repeats: usize,
}

/// What was said in a round.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) slots: Vec<Slot>,
    /// Items as they go back up, by the upstream's index.
    entries: Vec<(u64, String)>,
    /// The item that is held and not yet decided about. There is one at most, since all others wait.
    pub(super) held: Option<u64>,
    /// Events of items that wait for it, with the upstream's index.
    pub(super) waiting: Vec<(u64, Event)>,
    pub(super) end: Option<End>,
    pub(super) usage: Usage,
    pub(super) response: Option<String>,
}

/// An item under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// The upstream's index, and the client's if it is forwarded as it comes.
    index: u64,
    shown: Option<u64>,
    pub(super) done: bool,
}

impl Stream for Events {
    fn event(&mut self, event: &Event, desk: &mut Desk, out: &mut Vec<u8>) {
        self.hear(event, desk, out);
        if self.round.held.is_none() {
            self.hear_waiting(desk, out);
        }
    }

    fn has_ended(&self) -> bool {
        !self.last.is_empty()
    }

    fn round(&mut self, _desk: &mut Desk, _out: &mut Vec<u8>) -> Round {
        let mut said = std::mem::take(&mut self.round);
        self.rounds += 1;
        said.entries.sort_by_key(|(index, _)| *index);
        let entries = said.entries.into_iter().map(|(_, entry)| entry).collect();
        let end = said.end.unwrap_or(End::Broken);
        Round { entries, end, usage: said.usage, response: said.response }
    }

    fn finish(&mut self, desk: &Desk, out: &mut Vec<u8>) {
        let mut last = std::mem::take(&mut self.last).into_iter();
        if let Some(event) = last.next()
            && let Some(data) = event.data()
            && let Some(fields) = Fields::read(&data)
        {
            self.terminal(Heard { event: &event, data: &data, fields: &fields }, desk, out);
        }
        last.for_each(|event| out.extend_from_slice(event.raw()));
    }

    fn fail(&mut self, status: u16, body: &[u8], desk: &Desk, out: &mut Vec<u8>) {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let error =
            Fields::read(text).and_then(|fields| fields.get("error").and_then(Fields::read));
        let told = |key: &str| error.as_ref().and_then(|error| error.string(key));
        let message = told("message").unwrap_or_else(|| format!("the upstream answered {status}"));
        let code = told("code").or_else(|| told("type"));
        let code = json::quote(code.as_deref().unwrap_or("server_error"));
        let error = format!(r#"{{"code":{code},"message":{}}}"#, json::quote(&message));
        let begun = std::mem::take(&mut self.begun);
        let begun = match Fields::read(&begun) {
            Some(response) => changed(&begun, self.frame.mend(&begun, &response, desk.toolset())),
            None => begun,
        };
        let Some(response) = Fields::read(&begun) else {
            let more =
                format!(r#","code":{code},"message":{},"param":null"#, json::quote(&message));
            return self.pen.write("error", &more, out);
        };
        let response = response.with(&[
            ("status", Some(r#""failed""#.to_owned())),
            ("error", Some(error)),
            ("output", Some(self.shown())),
        ]);
        self.pen.write("response.failed", &format!(r#","response":{response}"#), out);
    }
}

impl Events {
    pub(super) fn new(frame: Frame) -> Self {
        Self {
            frame,
            pen: Pen::default(),
            rounds: 0,
            first: None,
            begun: String::new(),
            output: Vec::new(),
            round: Said::default(),
            last: Vec::new(),
            usage: None,
            repeats: 0,
        }
    }

    fn hear(&mut self, event: &Event, desk: &mut Desk, out: &mut Vec<u8>) {
        if self.round.end.is_some_and(|end| end != End::Broken) {
            // Such as `[DONE]`, which some servers add.
            desk.budget.hold(PART + event.raw().len());
            self.last.push(event.clone());
            return;
        }
        if self.rounds > 0 {
            self.pen.own();
        }
        let data = event.data();
        let Some((data, fields)) =
            data.as_deref().and_then(|data| Some((data, Fields::read(data)?)))
        else {
            out.extend_from_slice(event.raw());
            return;
        };
        let heard = Heard { event, data, fields: &fields };
        let kind = fields.string("type");
        let kind = kind.as_deref().or(event.name()).unwrap_or_default();
        let index = fields.get("output_index").and_then(|raw| raw.parse::<u64>().ok());
        match (kind, index) {
            ("response.created" | "response.in_progress" | "response.queued", _) => {
                self.opening(heard, desk, out);
            }
            (
                "response.completed"
                | "response.incomplete"
                | "response.failed"
                | "response.cancelled",
                _,
            ) => self.ending(kind, heard, desk, out),
            ("error", _) | ("", None) if kind == "error" || fields.get("error").is_some() => {
                self.round.end = Some(End::Broken);
                out.extend_from_slice(event.raw());
            }
            (_, Some(index)) => {
                if self.holds(index) {
                    desk.budget.hold(PART + event.raw().len());
                    self.round.waiting.push((index, event.clone()));
                } else {
                    self.item(kind, index, heard, desk, out);
                }
            }
            (_, None) => self.pen.over(heard, None, Vec::new(), out),
        }
    }

    /// Hears what waits, in order, as far as nothing holds it. A loop, and not something that an item
    /// calls when it is whole: a server may end a thousand items in reverse.
    pub(super) fn hear_waiting(&mut self, desk: &mut Desk, out: &mut Vec<u8>) {
        let mut at = 0;
        while let Some((index, _)) = self.round.waiting.get(at) {
            if self.holds(*index) {
                at += 1;
                continue;
            }
            let held = self.round.held;
            let (_, event) = self.round.waiting.remove(at);
            desk.budget.release(PART + event.raw().len());
            self.hear(&event, desk, out);
            if held.is_some() && self.round.held.is_none() {
                at = 0;
            }
        }
    }

    /// Whether an item other than this one is held and not yet decided about.
    fn holds(&self, index: u64) -> bool {
        self.round.held.is_some_and(|held| held != index)
    }

    fn item(
        &mut self,
        kind: &str,
        index: u64,
        heard: Heard<'_>,
        desk: &mut Desk,
        out: &mut Vec<u8>,
    ) {
        let slot = self.round.slots.iter().rfind(|slot| slot.index == index).copied();
        match (kind, heard.fields.get("item")) {
            // Always a new one: some servers give every item the same index.
            ("response.output_item.added", Some(raw)) => {
                let live = sort(raw, desk) == Sort::Live;
                let shown = self.slot(index, live, desk);
                if shown.is_some() {
                    let changes = self.renamed(heard.data, raw, desk);
                    self.pen.over(heard, shown, changes, out);
                }
            }
            ("response.output_item.done", Some(raw)) => {
                self.done(index, raw, Some(heard), desk, out);
            }
            _ => {
                // A server that leaves out how an item begins: its arguments may be ours.
                let live = !kind.starts_with("response.function_call_arguments");
                let shown = match slot {
                    Some(slot) => slot.shown,
                    None => self.slot(index, live, desk),
                };
                if shown.is_some() {
                    self.pen.over(heard, shown, Vec::new(), out);
                } else {
                    // The complete item repeats this text, so it is not kept; counting it bounds the stream.
                    let more = heard.fields.get("delta").unwrap_or_default().len();
                    desk.budget.hold(more);
                }
            }
        }
    }

    /// A new item, and the index that the client knows it under.
    fn slot(&mut self, index: u64, live: bool, desk: &mut Desk) -> Option<u64> {
        desk.budget.hold(PART);
        if !live {
            self.pen.own();
            self.round.held = Some(index);
        }
        let shown = live.then(|| self.pen.index(index));
        self.round.slots.push(Slot { index, shown, done: false });
        shown
    }

    /// What changes in an item that begins, so that the client knows its tool.
    fn renamed(&self, data: &str, raw: &str, desk: &Desk) -> Vec<(Range<usize>, String)> {
        let call = Item::read(raw).filter(|item| item.kind == "function_call");
        let call = call.filter(|_| !desk.toolset().passes_through());
        let new =
            call.and_then(|item| taken::shown(&item, &item.name()?, &self.frame, desk.toolset()));
        new.map(|new| vec![(place(data, raw), new)]).unwrap_or_default()
    }

    /// An item is whole.
    pub(super) fn done(
        &mut self,
        index: u64,
        raw: &str,
        heard: Option<Heard<'_>>,
        desk: &mut Desk,
        out: &mut Vec<u8>,
    ) {
        let known = self.round.slots.iter().rfind(|slot| slot.index == index).copied();
        let live = sort(raw, desk) == Sort::Live;
        // What the client was told of is never held: this is another of the same index.
        let known = known.filter(|slot| slot.shown.is_none() || live);
        if known.is_some_and(|slot| slot.done) {
            return;
        }
        let shown = match known {
            Some(slot) => slot.shown,
            None => self.slot(index, live, desk),
        };
        let Taken { entry, shown: seen } = take(raw, shown.is_some(), &self.frame, desk);
        // What the client has already is only for the record, unless the end has to be rewritten.
        let size = raw.len() + entry.as_ref().map_or(0, String::len);
        let is_kept = if shown.is_some() && !self.pen.is_own() {
            desk.budget.copy(size)
        } else {
            desk.budget.hold(size);
            true
        };
        self.round.entries.extend(entry.filter(|_| is_kept).map(|entry| (index, entry)));
        let text = match seen {
            Shown::AsItCame => Some(Cow::Borrowed(raw)),
            Shown::As(text) => Some(Cow::Owned(text)),
            Shown::Nothing => None,
        };
        if let Some(text) = text {
            let at = shown.unwrap_or_else(|| self.pen.index(index));
            match (shown, heard) {
                (Some(_), Some(heard)) => {
                    let changes = match &text {
                        Cow::Owned(new) => vec![(place(heard.data, raw), new.clone())],
                        Cow::Borrowed(_) => Vec::new(),
                    };
                    self.pen.over(heard, shown, changes, out);
                }
                (None, _) => self.pen.item(at, &text, out),
                // It stands in the response that ends all, and had no events.
                (Some(_), None) => {}
            }
            if is_kept {
                self.output.push((at, text.into_owned()));
            }
        }
        for slot in self.round.slots.iter_mut().filter(|slot| slot.index == index) {
            slot.done = true;
        }
        self.round.held = self.round.held.filter(|held| *held != index);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolcrib_core::FourChars;

    use super::*;
    use crate::api::Api;
    use crate::budget::Limits;
    use crate::mode::Mode;
    use crate::request::Request;
    use crate::toolset::{Plan, Toolset};

    #[test]
    fn a_failure_before_anything_is_known_of_the_response_is_only_an_error() {
        let body = r#"{"model":"m","input":"hi","tools":[{"type":"function","name":"a"}]}"#;
        let request = Request::read(Api::Responses, "/v1/responses", body.into()).unwrap();
        let plan = Plan {
            api: Api::Responses,
            mode: Mode::Bridge,
            settings: Arc::default(),
            counter: Arc::new(FourChars),
            model: "m".into(),
            context: None,
            sticky: false,
            second_names: false,
            counts: false,
            passes: false,
            loaded: Vec::new(),
        };
        let desk =
            Desk::new(Arc::new(Toolset::new(plan, request.tools())), &[], None, Limits::default());
        let mut out = Vec::new();
        Events::new(Frame::of(&request)).fail(502, b"<html>", &desk, &mut out);
        let data = r#"{"type":"error","code":"server_error","message":"the upstream answered 502","param":null}"#;
        assert_eq!(String::from_utf8(out).unwrap(), format!("data: {data}\n\n"));
    }
}
