//! Processes the events that contain the response object: those that begin and those that end a response.
//!
//! The client gets one response for all rounds. It begins with the first round. Its end is held back until the last
//! round has ended, and then contains all items that the client got and the token usage of all rounds.

use std::ops::Range;

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::event_writer::UpstreamEvent;
use super::item_decision::item_routing;
use super::response::round_end;
use super::stream::ResponsesStreamMerger;
use crate::call_router::{CallRoute, CallRouter};
use crate::dialect::RoundEnd;
use crate::splice::range_of;

/// Maximum number of lifecycle events in a turn. Each round normally has three.
const MAX_LIFECYCLE_EVENTS: usize = 64;

impl ResponsesStreamMerger {
    /// Processes an event that begins a response. Only the first round's events are forwarded.
    pub(super) fn on_response_start(
        &mut self,
        upstream: UpstreamEvent<'_>,
        router: &mut CallRouter,
        out: &mut Vec<u8>,
    ) {
        self.end_events.clear();
        if self.rounds > 0 || self.has_too_many_lifecycle_events(router) {
            return;
        }
        let changes = self.restore_echo(upstream, router);
        if let Some(raw) = upstream.fields.get("response")
            && let Some(response) = Fields::read(raw)
            && self.first.is_none()
        {
            router.budget.hold(raw.len());
            let raw_field = |key| response.get(key).unwrap_or("null").to_owned();
            self.first = Some((raw_field("id"), raw_field("created_at")));
            raw.clone_into(&mut self.started_response);
        }
        self.writer.write_edited(upstream, None, changes, out);
    }

    /// Counts a lifecycle event and returns whether there were too many. Their number is limited because each of these
    /// events repeats the client's tools, so even a small event of the upstream becomes a large one.
    fn has_too_many_lifecycle_events(&mut self, router: &mut CallRouter) -> bool {
        self.lifecycle_events += 1;
        if self.lifecycle_events > MAX_LIFECYCLE_EVENTS {
            router.budget.exceed();
        }
        self.lifecycle_events > MAX_LIFECYCLE_EVENTS
    }

    pub(super) fn restore_echo(
        &self,
        upstream: UpstreamEvent<'_>,
        router: &CallRouter,
    ) -> Vec<(Range<usize>, String)> {
        let response = upstream.response().filter(|_| !router.toolset().passes_through());
        let restore = |response| self.echo.restore(upstream.data, &response, router.toolset());
        response.map(restore).unwrap_or_default()
    }

    /// Processes the end of a round. The event is held back until the turn ends, unless the round failed: no round
    /// follows a failed one, so its event is written at once.
    pub(super) fn on_response_end(
        &mut self,
        kind: &str,
        upstream: UpstreamEvent<'_>,
        router: &mut CallRouter,
        out: &mut Vec<u8>,
    ) {
        if self.has_too_many_lifecycle_events(router) {
            return;
        }
        let response = upstream.response();
        let output = response.as_ref().and_then(|response| response.get("output"));
        let output = output.and_then(json::items).unwrap_or_default();
        if output.iter().any(|item| item_routing(item.get(), router) == CallRoute::Hold) {
            // The client's output differs from the upstream's, so it must be assembled from the items that the client
            // got.
            self.writer.renumber();
        }
        // Some servers list items in the response that had no events of their own. If as many items had events as the
        // response lists, none is missing, whatever their indices are.
        let done = self.round.items.iter().filter(|item| item.done).count();
        let output = if done < output.len() { output } else { Vec::new() };
        for (index, item) in (0..).zip(output) {
            if router.budget.exceeded().is_some() {
                return;
            }
            self.on_item_done(index, item.get(), None, router, out);
            if self.round.held.is_none() {
                self.process_waiting(router, out);
            }
        }
        // A held item that is still incomplete is dropped, so the events that wait for it can be processed.
        self.round.held = None;
        while !self.round.waiting.is_empty() {
            self.process_waiting(router, out);
            self.round.held = None;
        }
        if let Some(response) = &response {
            self.round.usage = super::usage::add(response, &mut self.usage);
            self.round.response = response.string("id").filter(|_| self.echo.is_stored);
        }
        if self.writer.is_renumbering() && router.budget.is_full() {
            // The last event must repeat all items that the client got, but some of them were not recorded because they
            // were too large.
            router.budget.exceed();
        }
        let end = round_end(kind.strip_prefix("response.").unwrap_or_default());
        self.round.end = Some(end);
        self.end_events.clear();
        if end == RoundEnd::Failed {
            self.write_terminal_event(upstream, router, out);
        } else {
            self.end_events.push(upstream.event.clone());
        }
    }

    /// Writes the event that ends the client's response, with all items that the client got.
    pub(super) fn write_terminal_event(
        &mut self,
        upstream: UpstreamEvent<'_>,
        router: &CallRouter,
        out: &mut Vec<u8>,
    ) {
        let mut changes = self.restore_echo(upstream, router);
        if self.writer.is_renumbering()
            && let Some(response) = upstream.response()
        {
            let (id, created) = self.first.clone().unzip();
            let usage = self.usage.as_ref().map(Value::to_string);
            let client_fields = [
                ("id", id),
                ("created_at", created),
                ("output", Some(self.output_list())),
                ("usage", usage),
            ];
            for (key, new) in client_fields {
                if let (Some(raw), Some(new)) = (response.get(key), new)
                    && raw != new
                {
                    changes.push((range_of(upstream.data, raw), new));
                }
            }
        }
        self.writer.write_edited(upstream, None, changes, out);
    }

    /// Returns the items that the client got, as a JSON list.
    pub(super) fn output_list(&mut self) -> String {
        self.output.sort_by_key(|(index, _)| *index);
        let items: Vec<&str> = self.output.iter().map(|(_, item)| item.as_str()).collect();
        format!("[{}]", items.join(","))
    }
}
