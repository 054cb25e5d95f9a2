//! Whole responses of Messages, several made into one.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::content::{self, Block};
use crate::call_router::{CallRoute, CallRouter, ResolvedCall};
use crate::dialect::{ResponseMerger, Round, RoundEnd};
use crate::usage::{self, Usage};

/// The responses of a turn.
#[derive(Debug, Default)]
pub(super) struct MessagesResponseMerger {
    /// The last one, as it came.
    body: String,
    rounds: usize,
    /// `id` of the first.
    id: Option<String>,
    /// The blocks that the client gets.
    content: Vec<String>,
    usage: Option<Value>,
    /// Whether something of it is not what the upstream said.
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
            // Only the last block can have been cut.
            let cut = end == RoundEnd::Truncated && at + 1 == content.len();
            if self.add_block(raw, cut, router) {
                blocks.push((*raw).to_owned());
            }
        }
        let used = fields.get("usage").and_then(usage::parse);
        let round_usage = used.as_ref().map(read_usage).unwrap_or_default();
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
    /// Takes a block; whether it is part of what goes back up.
    fn add_block(&mut self, raw: &str, cut: bool, router: &mut CallRouter) -> bool {
        let Some(block) = Block::read(raw) else {
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
                if cut {
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

/// The model's turn as it goes back up; the API refuses one with nothing in it.
pub(super) fn entry(blocks: &[String]) -> Vec<String> {
    if blocks.is_empty() { Vec::new() } else { vec![content::write_message("assistant", blocks)] }
}

/// How a round ended, by its `stop_reason`. Where the search is the provider's the client knows nothing
/// of it, so that going on after a pause is left to us.
pub(super) fn round_end(reason: Option<&str>, router: &CallRouter) -> RoundEnd {
    match reason {
        Some("max_tokens" | "model_context_window_exceeded" | "refusal") => RoundEnd::Truncated,
        Some("pause_turn") if router.is_hosted_search() => RoundEnd::Paused,
        _ => RoundEnd::Complete,
    }
}

/// The reason that the client gets: calls that it never sees are none.
pub(super) fn stop_reason(raw: &str, router: &CallRouter) -> String {
    let called = raw == r#""tool_use""# && router.forwarded_ids().is_empty();
    if called { r#""end_turn""#.to_owned() } else { raw.to_owned() }
}

/// What a usage object says. `input_tokens` has only what came after the cached part.
pub(super) fn read_usage(used: &Value) -> Usage {
    let cached = usage::token_count(used, &["cache_read_input_tokens"]);
    let written = usage::token_count(used, &["cache_creation_input_tokens"]);
    let rest = usage::token_count(used, &["input_tokens"]);
    Usage {
        input: rest.saturating_add(written).saturating_add(cached),
        cached,
        output: usage::token_count(used, &["output_tokens"]),
    }
}
