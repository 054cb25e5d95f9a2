//! Merges the complete responses of several Messages rounds into one.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::content::{self, ContentBlock};
use crate::call_router::{CallRoute, CallRouter, ResolvedCall};
use crate::dialect::{ResponseMerger, Round, RoundEnd};
use crate::usage;

/// Merges the responses of a turn.
#[derive(Debug, Default)]
pub(super) struct MessagesResponseMerger {
    /// The response of the last round, as it was received.
    body: String,
    rounds: usize,
    /// `id` of the first response.
    id: Option<String>,
    /// The blocks for the client, from all rounds.
    content: Vec<String>,
    usage: Option<Value>,
    /// Whether any block was hidden from the client or rewritten.
    altered: bool,
}

impl ResponseMerger for MessagesResponseMerger {
    fn add_round(&mut self, body: &str, router: &mut CallRouter) -> Option<Round> {
        let fields = Fields::read(body)?;
        let content = content::items(fields.get("content")?)?;
        self.rounds += 1;
        body.clone_into(&mut self.body);
        if self.id.is_none() {
            self.id = Some(fields.get("id").unwrap_or("null").to_owned());
        }
        let end = round_end(fields.string("stop_reason").as_deref(), router);
        let mut blocks = Vec::with_capacity(content.len());
        for (at, raw) in content.iter().enumerate() {
            // A limit cuts off only the last block. All other blocks are complete.
            let truncated = end == RoundEnd::Truncated && at + 1 == content.len();
            if self.add_block(raw, truncated, router) {
                blocks.push((*raw).to_owned());
            }
        }
        let used = fields.get("usage").and_then(usage::parse);
        let round_usage = used.as_ref().map(super::usage::read).unwrap_or_default();
        if let Some(used) = used {
            match &mut self.usage {
                Some(sum) => usage::add(sum, &used),
                None => self.usage = Some(used),
            }
        }
        Some(Round { entries: entry(&blocks), end, usage: round_usage, response: None })
    }

    fn finish(&mut self, router: &CallRouter) -> String {
        let body = std::mem::take(&mut self.body);
        if self.rounds == 1 && !self.altered {
            return body;
        }
        self.merged(&body, router).unwrap_or(body)
    }
}

impl MessagesResponseMerger {
    /// Adds a block. Returns whether the block is recorded for the upstream's history.
    fn add_block(&mut self, raw: &str, truncated: bool, router: &mut CallRouter) -> bool {
        let Some(block) = ContentBlock::read(raw) else {
            self.content.push(raw.to_owned());
            return true;
        };
        if block.is_search() && router.is_hosted_search() {
            self.altered = true;
            router.note_hidden_output();
            router.note_found_tools(block.found_tools());
            return true;
        }
        if let Some((id, name, input)) = block.call() {
            if router.route(&name) == CallRoute::Forward {
                router.note_forwarded_call(id.as_deref(), &name, input);
            } else {
                self.altered = true;
                if truncated {
                    return false;
                }
                if let ResolvedCall::Forward { name, arguments } =
                    router.resolve(id.as_deref(), &name, input)
                {
                    let edits = [("name", Some(json::quote(&name))), ("input", Some(arguments))];
                    self.content.push(block.fields.with(&edits));
                }
                return true;
            }
        } else if block.kind == "text" {
            router.note_text(&block.fields.string("text").unwrap_or_default());
        }
        self.content.push(raw.to_owned());
        !block.is_blank()
    }

    fn merged(&self, body: &str, router: &CallRouter) -> Option<String> {
        let fields = Fields::read(body)?;
        let reason = fields.get("stop_reason").unwrap_or("null");
        Some(fields.with(&[
            ("id", self.id.clone()),
            ("content", Some(content::json_list(&self.content))),
            ("stop_reason", Some(stop_reason(reason, router))),
            ("usage", self.usage.as_ref().map(Value::to_string)),
        ]))
    }
}

/// Returns the model's output as a history entry. Without blocks there is no entry, because the API rejects a message
/// without blocks.
pub(super) fn entry(blocks: &[String]) -> Vec<String> {
    if blocks.is_empty() { Vec::new() } else { vec![content::write_message("assistant", blocks)] }
}

/// Returns how a round ended, according to its `stop_reason`. If the provider runs Toolcrib's searches, a paused round
/// is continued here, because the client does not know about these searches. Otherwise the client continues it.
pub(super) fn round_end(reason: Option<&str>, router: &CallRouter) -> RoundEnd {
    match reason {
        Some("max_tokens" | "model_context_window_exceeded" | "refusal") => RoundEnd::Truncated,
        Some("pause_turn") if router.is_hosted_search() => RoundEnd::Paused,
        _ => RoundEnd::Complete,
    }
}

/// Returns the `stop_reason` for the client. If all calls were hidden, this is `end_turn` instead of `tool_use`.
pub(super) fn stop_reason(raw: &str, router: &CallRouter) -> String {
    let called = raw == r#""tool_use""# && router.forwarded_ids().is_empty();
    if called { r#""end_turn""#.to_owned() } else { raw.to_owned() }
}
