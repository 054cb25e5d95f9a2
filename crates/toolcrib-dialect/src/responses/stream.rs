//! Merges the streams of several Responses rounds into the stream of one response.
//!
//! Events are forwarded unchanged, with these exceptions:
//!
//! - Once an event has been hidden, all later events get new sequence numbers and indices.
//! - The tools that the response repeats are replaced with the client's tools.
//! - The namespace of a call is replaced with the one that the client declared.
//!
//! While a call is held, events of later items wait, so that the order is kept.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::echo_restorer::EchoRestorer;
use super::event_writer::{EventWriter, UpstreamEvent};
use super::item::Item;
use super::item_decision::{self, ClientItem, ItemDecision, decide_item, item_routing};
use super::streamed_round::{StreamedItem, StreamedRound};
use crate::call_router::{CallRoute, CallRouter};
use crate::dialect::{Round, RoundEnd, StreamMerger};
use crate::limits::PART_BYTES;
use crate::splice::{range_of, splice};
use crate::sse::Event;

/// Merges the streams of a turn.
#[derive(Debug)]
pub(super) struct ResponsesStreamMerger {
    pub(super) echo: EchoRestorer,
    pub(super) writer: EventWriter,
    /// The number of rounds that have ended.
    pub(super) rounds: usize,
    /// `first` has the `id` and `created_at` of the first round's response, and `started_response` is the response
    /// object as it was at the start of that round.
    pub(super) first: Option<(String, String)>,
    pub(super) started_response: String,
    /// The items that the client got, each with its index in the client's response.
    pub(super) output: Vec<(u64, String)>,
    pub(super) round: StreamedRound,
    /// The event that ends the response, and all events after it. They are held back until the turn ends.
    pub(super) end_events: Vec<Event>,
    pub(super) usage: Option<Value>,
    /// Number of events so far that contain the response object.
    pub(super) lifecycle_events: usize,
}

impl StreamMerger for ResponsesStreamMerger {
    fn event(&mut self, event: &Event, router: &mut CallRouter, out: &mut Vec<u8>) {
        self.on_event(event, router, out);
        if self.round.held.is_none() {
            self.process_waiting(router, out);
        }
    }

    fn has_ended(&self) -> bool {
        !self.end_events.is_empty()
    }

    fn end_round(&mut self, _router: &mut CallRouter, _out: &mut Vec<u8>) -> Round {
        let mut round = std::mem::take(&mut self.round);
        self.rounds += 1;
        round.entries.sort_by_key(|(index, _)| *index);
        let entries = round.entries.into_iter().map(|(_, entry)| entry).collect();
        let end = round.end.unwrap_or(RoundEnd::Failed);
        Round { entries, end, usage: round.usage, response: round.response }
    }

    fn finish(&mut self, router: &CallRouter, out: &mut Vec<u8>) {
        let mut last = std::mem::take(&mut self.end_events).into_iter();
        if let Some(event) = last.next()
            && let Some(data) = event.data()
            && let Some(fields) = Fields::read(&data)
        {
            self.write_terminal_event(
                UpstreamEvent { event: &event, data: &data, fields: &fields },
                router,
                out,
            );
        }
        last.for_each(|event| out.extend_from_slice(event.raw()));
    }

    fn fail(&mut self, status: u16, body: &[u8], router: &CallRouter, out: &mut Vec<u8>) {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let error =
            Fields::read(text).and_then(|fields| fields.get("error").and_then(Fields::read));
        let error_field = |key: &str| error.as_ref().and_then(|error| error.string(key));
        let message =
            error_field("message").unwrap_or_else(|| format!("the upstream answered {status}"));
        let code = error_field("code").or_else(|| error_field("type"));
        let code = json::quote(code.as_deref().unwrap_or("server_error"));
        let error = format!(r#"{{"code":{code},"message":{}}}"#, json::quote(&message));
        let started_response = std::mem::take(&mut self.started_response);
        let started_response = match Fields::read(&started_response) {
            Some(response) => splice(
                &started_response,
                self.echo.restore(&started_response, &response, router.toolset()),
            ),
            None => started_response,
        };
        let Some(response) = Fields::read(&started_response) else {
            let more =
                format!(r#","code":{code},"message":{},"param":null"#, json::quote(&message));
            return self.writer.write_new("error", &more, out);
        };
        let response = response.with(&[
            ("status", Some(r#""failed""#.to_owned())),
            ("error", Some(error)),
            ("output", Some(self.output_list())),
        ]);
        self.writer.write_new("response.failed", &format!(r#","response":{response}"#), out);
    }
}

impl ResponsesStreamMerger {
    pub(super) fn new(echo: EchoRestorer) -> Self {
        Self {
            echo,
            writer: EventWriter::default(),
            rounds: 0,
            first: None,
            started_response: String::new(),
            output: Vec::new(),
            round: StreamedRound::default(),
            end_events: Vec::new(),
            usage: None,
            lifecycle_events: 0,
        }
    }

    fn on_event(&mut self, event: &Event, router: &mut CallRouter, out: &mut Vec<u8>) {
        if self.round.end.is_some_and(|end| end != RoundEnd::Failed) {
            // Some servers send events after the end of the response, for example `[DONE]`. They are held back too.
            router.budget.hold(PART_BYTES + event.raw().len());
            self.end_events.push(event.clone());
            return;
        }
        if self.rounds > 0 {
            self.writer.renumber();
        }
        let data = event.data();
        let Some((data, fields)) =
            data.as_deref().and_then(|data| Some((data, Fields::read(data)?)))
        else {
            out.extend_from_slice(event.raw());
            return;
        };
        let upstream = UpstreamEvent { event, data, fields: &fields };
        let kind = fields.string("type");
        let kind = kind.as_deref().or(event.name()).unwrap_or_default();
        let index = fields.get("output_index").and_then(|raw| raw.parse::<u64>().ok());
        match (kind, index) {
            ("response.created" | "response.in_progress" | "response.queued", _) => {
                self.on_response_start(upstream, router, out);
            }
            (
                "response.completed"
                | "response.incomplete"
                | "response.failed"
                | "response.cancelled",
                _,
            ) => self.on_response_end(kind, upstream, router, out),
            ("error", _) | ("", None) if kind == "error" || fields.get("error").is_some() => {
                self.round.end = Some(RoundEnd::Failed);
                out.extend_from_slice(event.raw());
            }
            (_, Some(index)) => {
                if self.must_wait(index) {
                    router.budget.hold(PART_BYTES + event.raw().len());
                    self.round.waiting.push((index, event.clone()));
                } else {
                    self.on_item_event(kind, index, upstream, router, out);
                }
            }
            (_, None) => self.writer.write_edited(upstream, None, Vec::new(), out),
        }
    }

    /// Processes waiting events in order, until a held item blocks them. This is a loop instead of a recursive call,
    /// because a server may end a thousand items in reverse order, and recursion would then be a thousand levels deep.
    pub(super) fn process_waiting(&mut self, router: &mut CallRouter, out: &mut Vec<u8>) {
        let mut at = 0;
        while let Some((index, _)) = self.round.waiting.get(at) {
            if self.must_wait(*index) {
                at += 1;
                continue;
            }
            let held = self.round.held;
            let (_, event) = self.round.waiting.remove(at);
            router.budget.release(PART_BYTES + event.raw().len());
            self.on_event(&event, router, out);
            if held.is_some() && self.round.held.is_none() {
                at = 0;
            }
        }
    }

    /// Whether an event of this item must wait, because another item is held.
    fn must_wait(&self, index: u64) -> bool {
        self.round.held.is_some_and(|held| held != index)
    }

    fn on_item_event(
        &mut self,
        kind: &str,
        index: u64,
        upstream: UpstreamEvent<'_>,
        router: &mut CallRouter,
        out: &mut Vec<u8>,
    ) {
        let item = self.round.items.iter().rfind(|item| item.index == index).copied();
        match (kind, upstream.fields.get("item")) {
            // This event always starts a new item, even if its index is already known, because some servers give every
            // item the same index.
            ("response.output_item.added", Some(raw)) => {
                let is_forwarded = item_routing(raw, router) == CallRoute::Forward;
                let client_index = self.add_item(index, is_forwarded, router);
                if client_index.is_some() {
                    let changes = self.restored_call(upstream.data, raw, router);
                    self.writer.write_edited(upstream, client_index, changes, out);
                }
            }
            ("response.output_item.done", Some(raw)) => {
                self.on_item_done(index, raw, Some(upstream), router, out);
            }
            _ => {
                // If the server omitted the start of the item, the item is added here. It is held if this event
                // contains arguments, because they may belong to a call that must be held.
                let is_forwarded = !kind.starts_with("response.function_call_arguments");
                let client_index = match item {
                    Some(item) => item.client_index,
                    None => self.add_item(index, is_forwarded, router),
                };
                if client_index.is_some() {
                    self.writer.write_edited(upstream, client_index, Vec::new(), out);
                } else {
                    // The text of a held item is not stored here, because the complete item will repeat it. It is
                    // counted nevertheless, so that the size of the stream is limited.
                    let more = upstream.fields.get("delta").unwrap_or_default().len();
                    router.budget.hold(more);
                }
            }
        }
    }

    /// Adds an item. If the item is forwarded, returns its index in the client's response.
    fn add_item(&mut self, index: u64, is_forwarded: bool, router: &mut CallRouter) -> Option<u64> {
        router.budget.hold(PART_BYTES);
        if !is_forwarded {
            self.writer.renumber();
            self.round.held = Some(index);
        }
        let client_index = is_forwarded.then(|| self.writer.next_index(index));
        self.round.items.push(StreamedItem { index, client_index, done: false });
        client_index
    }

    /// Returns the edits that restore the client's namespace in the first event of a call.
    fn restored_call(
        &self,
        data: &str,
        raw: &str,
        router: &CallRouter,
    ) -> Vec<(Range<usize>, String)> {
        let call = Item::read(raw).filter(|item| item.kind == "function_call");
        let call = call.filter(|_| !router.toolset().passes_through());
        let new = call.and_then(|item| {
            item_decision::call_for_client(&item, &item.name()?, &self.echo, router.toolset())
        });
        new.map(|new| vec![(range_of(data, raw), new)]).unwrap_or_default()
    }

    /// Processes a complete item.
    pub(super) fn on_item_done(
        &mut self,
        index: u64,
        raw: &str,
        upstream: Option<UpstreamEvent<'_>>,
        router: &mut CallRouter,
        out: &mut Vec<u8>,
    ) {
        let known = self.round.items.iter().rfind(|item| item.index == index).copied();
        let is_forwarded = item_routing(raw, router) == CallRoute::Forward;
        // An item of which the client already has a part is never held. So if this item must be held, it is a different
        // item with the same index.
        let known = known.filter(|item| item.client_index.is_none() || is_forwarded);
        if known.is_some_and(|item| item.done) {
            return;
        }
        let client_index = match known {
            Some(item) => item.client_index,
            None => self.add_item(index, is_forwarded, router),
        };
        let ItemDecision { entry, client } =
            decide_item(raw, client_index.is_some(), &self.echo, router);
        // If the client gets the item as it arrives, this copy is only for the record, and is skipped if it is too
        // large. But if events are renumbered, the last event must repeat the item, so the copy is required.
        let size = raw.len() + entry.as_ref().map_or(0, String::len);
        let is_recorded = if client_index.is_some() && !self.writer.is_renumbering() {
            router.budget.copy(size)
        } else {
            router.budget.hold(size);
            true
        };
        self.round.entries.extend(entry.filter(|_| is_recorded).map(|entry| (index, entry)));
        let text = match client {
            ClientItem::AsReceived => Some(Cow::Borrowed(raw)),
            ClientItem::Rewritten(text) => Some(Cow::Owned(text)),
            ClientItem::Hidden => None,
        };
        if let Some(text) = text {
            let at = client_index.unwrap_or_else(|| self.writer.next_index(index));
            match (client_index, upstream) {
                (Some(_), Some(upstream)) => {
                    let changes = match &text {
                        Cow::Owned(new) => vec![(range_of(upstream.data, raw), new.clone())],
                        Cow::Borrowed(_) => Vec::new(),
                    };
                    self.writer.write_edited(upstream, client_index, changes, out);
                }
                (None, _) => self.writer.write_item(at, &text, out),
                // This item had no events of its own. The client gets it in the last event of the response.
                (Some(_), None) => {}
            }
            if is_recorded {
                self.output.push((at, text.into_owned()));
            }
        }
        for item in self.round.items.iter_mut().filter(|item| item.index == index) {
            item.done = true;
        }
        self.round.held = self.round.held.filter(|held| *held != index);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolcrib_core::FourCharsPerToken;

    use super::*;
    use crate::api::Api;
    use crate::limits::ResponseLimits;
    use crate::mode::Mode;
    use crate::request::Request;
    use crate::toolset::Toolset;
    use crate::toolset_plan::ToolsetPlan;

    #[test]
    fn a_failure_before_the_response_starts_is_an_error_event() {
        let body = r#"{"model":"m","input":"hi","tools":[{"type":"function","name":"a"}]}"#;
        let request = Request::read(Api::Responses, "/v1/responses", body.into()).unwrap();
        let plan = ToolsetPlan {
            api: Api::Responses,
            mode: Mode::Bridge,
            settings: Arc::default(),
            counter: Arc::new(FourCharsPerToken),
            model: "m".into(),
            context_window: None,
            has_deferred_before: false,
            uses_second_names: false,
            counts_tokens: false,
            only_checks_calls: false,
            send_in_full: Vec::new(),
        };
        let router = CallRouter::new(
            Arc::new(Toolset::new(plan, request.tools())),
            &[],
            None,
            ResponseLimits::default(),
        );
        let mut out = Vec::new();
        ResponsesStreamMerger::new(EchoRestorer::of(&request))
            .fail(502, b"<html>", &router, &mut out);
        let data = r#"{"type":"error","code":"server_error","message":"the upstream answered 502","param":null}"#;
        assert_eq!(String::from_utf8(out).unwrap(), format!("data: {data}\n\n"));
    }
}
