//! The events that speak of the response as a whole: how it begins, and how it ends.
//!
//! There is one response for the client, whatever the rounds: it begins with the first, and what ends it
//! is held back until the last, with all items that the client got and what all rounds took.

use std::ops::Range;

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::pen::Heard;
use super::response::{count, end};
use super::stream::Events;
use super::taken::sort;
use crate::desk::{Desk, Sort};
use crate::dialect::End;
use crate::splice::place;

/// Maximum number of events in a turn that speak of the response as a whole. There are three in each round.
const REPEATS: usize = 64;

impl Events {
    /// The first events of a response. There is one response, and it has begun.
    pub(super) fn opening(&mut self, heard: Heard<'_>, desk: &mut Desk, out: &mut Vec<u8>) {
        self.last.clear();
        if self.rounds > 0 || self.repeats_too_often(desk) {
            return;
        }
        let changes = self.mend(heard, desk);
        if let Some(raw) = heard.fields.get("response")
            && let Some(response) = Fields::read(raw)
            && self.first.is_none()
        {
            desk.budget.hold(raw.len());
            let own = |key| response.get(key).unwrap_or("null").to_owned();
            self.first = Some((own("id"), own("created_at")));
            raw.clone_into(&mut self.begun);
        }
        self.pen.over(heard, None, changes, out);
    }

    /// Whether there were too many events that repeat the client's tools: each small one becomes a large one.
    fn repeats_too_often(&mut self, desk: &mut Desk) -> bool {
        self.repeats += 1;
        if self.repeats > REPEATS {
            desk.budget.exceed();
        }
        self.repeats > REPEATS
    }

    pub(super) fn mend(&self, heard: Heard<'_>, desk: &Desk) -> Vec<(Range<usize>, String)> {
        let response = heard.response().filter(|_| !desk.toolset().passes_through());
        let mend = |response| self.frame.mend(heard.data, &response, desk.toolset());
        response.map(mend).unwrap_or_default()
    }

    /// The end of a round. It is held back, unless it is a failure: then there is nothing to come.
    pub(super) fn ending(
        &mut self,
        kind: &str,
        heard: Heard<'_>,
        desk: &mut Desk,
        out: &mut Vec<u8>,
    ) {
        if self.repeats_too_often(desk) {
            return;
        }
        let response = heard.response();
        let output = response.as_ref().and_then(|response| response.get("output"));
        let output = output.and_then(json::items).unwrap_or_default();
        if output.iter().any(|item| sort(item.get(), desk) == Sort::Held) {
            // Then it is put together from what the client was told, whatever that was.
            self.pen.own();
        }
        // Nothing is missing where as many were told, whatever indices they had.
        let told = self.round.slots.iter().filter(|slot| slot.done).count();
        let output = if told < output.len() { output } else { Vec::new() };
        for (index, item) in (0..).zip(output) {
            if desk.budget.exceeded().is_some() {
                return;
            }
            self.done(index, item.get(), None, desk, out);
            if self.round.held.is_none() {
                self.hear_waiting(desk, out);
            }
        }
        // What is held without an end is lost, and nothing waits for it any longer.
        self.round.held = None;
        while !self.round.waiting.is_empty() {
            self.hear_waiting(desk, out);
            self.round.held = None;
        }
        if let Some(response) = &response {
            self.round.usage = count(response, &mut self.usage);
            self.round.response = response.string("id").filter(|_| self.frame.keeps);
        }
        if self.pen.is_own() && desk.budget.is_full() {
            // The end repeats what the client got, and not all of it is here.
            desk.budget.exceed();
        }
        let end = end(kind.strip_prefix("response.").unwrap_or_default());
        self.round.end = Some(end);
        self.last.clear();
        if end == End::Broken {
            self.terminal(heard, desk, out);
        } else {
            self.last.push(heard.event.clone());
        }
    }

    /// The event that ends the response, with all that the client got.
    pub(super) fn terminal(&mut self, heard: Heard<'_>, desk: &Desk, out: &mut Vec<u8>) {
        let mut changes = self.mend(heard, desk);
        if self.pen.is_own()
            && let Some(response) = heard.response()
        {
            let (id, created) = self.first.clone().unzip();
            let usage = self.usage.as_ref().map(Value::to_string);
            let own = [
                ("id", id),
                ("created_at", created),
                ("output", Some(self.shown())),
                ("usage", usage),
            ];
            for (key, new) in own {
                if let (Some(raw), Some(new)) = (response.get(key), new)
                    && raw != new
                {
                    changes.push((place(heard.data, raw), new));
                }
            }
        }
        self.pen.over(heard, None, changes, out);
    }

    /// The items that the client got, as one list.
    pub(super) fn shown(&mut self) -> String {
        self.output.sort_by_key(|(index, _)| *index);
        let items: Vec<&str> = self.output.iter().map(|(_, item)| item.as_str()).collect();
        format!("[{}]", items.join(","))
    }
}
