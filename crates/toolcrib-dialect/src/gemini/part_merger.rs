//! Merges the parts of all rounds of a turn.
//!
//! The upstream's version of each part is recorded unchanged. The client's version is rewritten if necessary.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::content::{GeminiPart, PartKind};
use super::usage;
use crate::call_router::{CallRoute, CallRouter, ResolvedCall};
use crate::limits::PART_BYTES;
use crate::usage::Usage;

/// Separates the texts of two rounds, because clients concatenate all text of a turn.
const TEXT_SEPARATOR: &str = "\n\n";

/// Maximum size of a response id, in bytes.
const MAX_ID_BYTES: usize = 1 << 10;

/// Merges the parts of a turn, over all rounds.
#[derive(Debug, Default)]
pub(super) struct PartMerger {
    /// `responseId` of the first response, as JSON.
    id: Option<String>,
    /// The parts of this round, as the upstream sent them.
    parts: Vec<String>,
    /// The text part that is still being received: whether it is a thought, and its text so far.
    open_text: Option<(bool, String)>,
    /// Whether the client got text in an earlier round (`had_text_before`) and in this round (`has_text`).
    had_text_before: bool,
    has_text: bool,
    /// Whether any part was hidden from the client or rewritten.
    pub(super) altered: bool,
    /// `earlier_usage` is the token usage of all earlier rounds together, and `round_usage` is that of this round so
    /// far.
    earlier_usage: Option<Value>,
    round_usage: Option<Value>,
}

impl PartMerger {
    /// Adds a part and returns the client's version of it, or `None` if the part is hidden. Each call is routed
    /// immediately, because calls always arrive complete, even if the round is truncated later.
    pub(super) fn add_part(&mut self, raw: &str, router: &mut CallRouter) -> Option<String> {
        let part = GeminiPart::read(raw);
        if router.budget.copy(raw.len()) {
            self.record_part(raw, part.as_ref());
        }
        let unchanged = Some(raw.to_owned());
        let Some(part) = part else { return unchanged };
        match &part.kind {
            PartKind::Text(text) if !text.is_empty() => {
                router.note_text(text);
                let first = !std::mem::replace(&mut self.has_text, true);
                if first && self.had_text_before {
                    let text = json::quote(&format!("{TEXT_SEPARATOR}{text}"));
                    return Some(part.fields.with(&[("text", Some(text))]));
                }
                unchanged
            }
            PartKind::Call(call) => {
                let id = call.id.as_deref();
                router.budget.hold(PART_BYTES);
                if router.route(&call.name) == CallRoute::Forward {
                    router.note_forwarded_call(id, &call.name, call.args);
                    return unchanged;
                }
                self.altered = true;
                match router.resolve(id, &call.name, call.args) {
                    ResolvedCall::Forward { name, arguments } => {
                        part.with_call(&name, Some(&arguments))
                    }
                    ResolvedCall::Hidden => None,
                }
            }
            _ => unchanged,
        }
    }

    /// Records a part as the upstream sent it. Consecutive pieces of text are joined. All other parts are kept
    /// unchanged, because a signature belongs to its part.
    fn record_part(&mut self, raw: &str, part: Option<&GeminiPart<'_>>) {
        let has_only_text = |part: &&GeminiPart<'_>| {
            part.fields.iter().all(|(key, _)| matches!(key, "text" | "thought"))
        };
        let piece = part.filter(has_only_text).and_then(|part| match &part.kind {
            PartKind::Text(text) => Some((false, text)),
            PartKind::Thought(text) => Some((true, text)),
            _ => None,
        });
        match (piece, &mut self.open_text) {
            (Some((thought, piece)), Some((is_thought, text))) if *is_thought == thought => {
                text.push_str(piece);
            }
            (Some((thought, piece)), _) => {
                self.close_text();
                self.open_text = Some((thought, piece.clone()));
            }
            (None, _) => {
                self.close_text();
                self.parts.push(raw.to_owned());
            }
        }
    }

    fn close_text(&mut self) {
        let Some((thought, text)) = self.open_text.take().filter(|(_, text)| !text.is_empty())
        else {
            return;
        };
        let thought_flag = if thought { r#","thought":true"# } else { "" };
        self.parts.push(format!(r#"{{"text":{}{thought_flag}}}"#, json::quote(&text)));
    }

    /// Records the id and the token usage of a response.
    pub(super) fn record_head(&mut self, response: &Fields<'_>) {
        if self.id.is_none() {
            // An id that is too long is ignored, because every rewritten event repeats the id.
            let id = response.get("responseId").filter(|raw| raw.len() <= MAX_ID_BYTES);
            self.id = id.map(str::to_owned);
        }
        let round_usage = response.get("usageMetadata").and_then(crate::usage::parse);
        self.round_usage = round_usage.or(self.round_usage.take());
    }

    /// Returns the fields of the client's response that describe the entire turn: the first response's id, and the
    /// token usage of all rounds so far. A value is `None` if `response` does not have the field, but the usage is
    /// always included if `last` is set.
    pub(super) fn turn_fields(
        &self,
        response: &Fields<'_>,
        last: bool,
    ) -> [(&'static str, Option<String>); 2] {
        let has = |key| response.get(key).is_some();
        let id = self.id.clone().filter(|_| has("responseId"));
        let total =
            self.round_usage.as_ref().map(|used| usage::sum(self.earlier_usage.as_ref(), used));
        let total =
            total.or_else(|| self.earlier_usage.clone()).filter(|_| last || has("usageMetadata"));
        [("responseId", id), ("usageMetadata", total.map(|total| total.to_string()))]
    }

    /// Ends the round and returns its parts and its token usage.
    pub(super) fn end_round(&mut self) -> (Vec<String>, Usage) {
        self.close_text();
        self.had_text_before |= std::mem::take(&mut self.has_text);
        let round_usage = self.round_usage.take();
        let tokens = round_usage.as_ref().map(usage::read).unwrap_or_default();
        if let Some(round_usage) = round_usage {
            self.earlier_usage = Some(usage::sum(self.earlier_usage.as_ref(), &round_usage));
        }
        (std::mem::take(&mut self.parts), tokens)
    }
}
