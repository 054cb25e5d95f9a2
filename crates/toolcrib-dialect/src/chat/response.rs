//! Merges the complete responses of several Chat Completions rounds into one.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::message::{ChatCall, ChatMessage};
use crate::call_router::{CallRoute, CallRouter, ResolvedCall};
use crate::dialect::{ResponseMerger, Round, RoundEnd};
use crate::usage;

/// Merges the responses of a turn.
#[derive(Debug, Default)]
pub(super) struct ChatResponseMerger {
    /// The last response, as it was received.
    body: String,
    rounds: usize,
    /// `id` and `created` of the first response.
    first: Option<(String, String)>,
    text: String,
    calls: Vec<String>,
    /// Whether a call was dropped because its round was truncated.
    dropped_call: bool,
    usage: Option<Value>,
}

impl ResponseMerger for ChatResponseMerger {
    fn add_round(&mut self, body: &str, router: &mut CallRouter) -> Option<Round> {
        let fields = Fields::read(body)?;
        let choices = json::items(fields.get("choices")?)?;
        let choice = Fields::read(choices.first()?.get())?;
        let raw = choice.get("message")?;
        let message = ChatMessage::read(raw)?;
        self.rounds += 1;
        body.clone_into(&mut self.body);
        if self.first.is_none() {
            let raw_field = |key| fields.get(key).unwrap_or("null").to_owned();
            self.first = Some((raw_field("id"), raw_field("created")));
        }
        let finish = choice.string("finish_reason").unwrap_or_default();
        let end = round_end(&finish);
        message.texts(&mut |text| {
            router.note_text(text);
            self.add_text(text);
        });
        let calls = message.fields().get("tool_calls").and_then(json::items).unwrap_or_default();
        let answered: Vec<&str> = calls
            .iter()
            .map(|call| call.get())
            .filter(|call| self.add_call(call, end, router))
            .collect();
        let entry = if answered.len() == calls.len() {
            raw.to_owned()
        } else {
            let left = (!answered.is_empty()).then(|| format!("[{}]", answered.join(",")));
            // A message must have content or calls, so if no call remains, `null` content becomes an empty string.
            let text =
                message.fields().get("content").filter(|raw| *raw != "null" || left.is_some());
            let text = text.unwrap_or(r#""""#).to_owned();
            message.fields().with(&[("content", Some(text)), ("tool_calls", left)])
        };
        let mut round_usage = usage::Usage::default();
        if let Some(used) = fields.get("usage").and_then(usage::parse) {
            round_usage = super::usage::read(&used);
            match &mut self.usage {
                Some(sum) => usage::add(sum, &used),
                None => self.usage = Some(used),
            }
        }
        Some(Round { entries: vec![entry], end, usage: round_usage, response: None })
    }

    fn finish(&mut self, router: &CallRouter) -> String {
        let body = std::mem::take(&mut self.body);
        if self.rounds == 1 && !router.is_altered() && !self.dropped_call {
            return body;
        }
        self.merged(&body, router).unwrap_or(body)
    }
}

impl ChatResponseMerger {
    /// Appends to the text for the client, after a separator if there is already some text.
    fn add_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str(TEXT_SEPARATOR);
        }
        self.text.push_str(text);
    }

    /// Adds a call. If the round was truncated, a call that would be held is dropped, because its arguments may be
    /// incomplete; the method then returns `false`.
    fn add_call(&mut self, raw: &str, end: RoundEnd, router: &mut CallRouter) -> bool {
        let Some(call) = ChatCall::read(raw) else {
            self.calls.push(raw.to_owned());
            return true;
        };
        let id = call.id.as_deref();
        // A call to a custom tool has no JSON arguments, and is forwarded if the client declared the tool.
        let custom = call.arguments.is_none() && router.toolset().is_declared(&call.name);
        let arguments = call.arguments.clone().unwrap_or_default();
        if custom || router.route(&call.name) == CallRoute::Forward {
            router.note_forwarded_call(id, &call.name, &arguments);
            self.calls.push(raw.to_owned());
        } else if end == RoundEnd::Truncated {
            self.dropped_call = true;
            return false;
        } else if let ResolvedCall::Forward { name, arguments } =
            router.resolve(id, &call.name, &arguments)
        {
            self.calls.push(call.with_function(&name, &arguments));
        }
        true
    }

    fn merged(&self, body: &str, router: &CallRouter) -> Option<String> {
        let fields = Fields::read(body)?;
        let choices = json::items(fields.get("choices")?)?;
        let choice = Fields::read(choices.first()?.get())?;
        let message = Fields::read(choice.get("message")?)?;
        let calls = (!self.calls.is_empty()).then(|| format!("[{}]", self.calls.join(",")));
        let text = if self.text.is_empty() {
            message.get("content").filter(|raw| *raw == "null").map(str::to_owned)
        } else {
            Some(json::quote(&self.text))
        };
        let content = text.or_else(|| Some("null".to_owned()));
        let message = message.with(&[("content", content), ("tool_calls", calls)]);
        let finish = choice.get("finish_reason").unwrap_or("null");
        let finish = finish_reason(finish, router);
        let choice = choice.with(&[("message", Some(message)), ("finish_reason", Some(finish))]);
        let (id, created) = self.first.clone()?;
        Some(fields.with(&[
            ("id", Some(id)),
            ("created", Some(created)),
            ("choices", Some(format!("[{choice}]"))),
            ("usage", self.usage.as_ref().map(Value::to_string)),
        ]))
    }
}

/// Separates the texts of two rounds.
pub(super) const TEXT_SEPARATOR: &str = "\n\n";

/// Returns how a round ended, according to its `finish_reason`. `stop` does not mean that there are no calls:
/// some servers send it for a message with calls.
pub(super) fn round_end(finish: &str) -> RoundEnd {
    match finish {
        "length" | "content_filter" => RoundEnd::Truncated,
        _ => RoundEnd::Complete,
    }
}

/// Returns the `finish_reason` for the client. If all calls were hidden, this is `stop` instead of `tool_calls`.
pub(super) fn finish_reason(raw: &str, router: &CallRouter) -> String {
    let called = raw == r#""tool_calls""# && router.forwarded_ids().is_empty();
    if called { r#""stop""#.to_owned() } else { raw.to_owned() }
}
