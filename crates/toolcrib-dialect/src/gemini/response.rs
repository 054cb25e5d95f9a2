//! Reads Gemini responses, and merges those of several rounds into one.

use toolcrib_text::json::{self, Fields};

use super::content::GeminiContent;
use super::part_merger::PartMerger;
use crate::call_router::CallRouter;
use crate::dialect::{ResponseMerger, Round, RoundEnd};

/// A complete response, or an event of a stream, which has the same structure.
pub(super) struct GeminiResponse<'a> {
    pub(super) fields: Fields<'a>,
    candidate: Option<Fields<'a>>,
    pub(super) content: Option<GeminiContent<'a>>,
}

impl<'a> GeminiResponse<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = Fields::read(text)?;
        let known = ["candidates", "promptFeedback", "usageMetadata"];
        known.iter().find_map(|key| fields.get(key))?;
        let candidates = fields.get("candidates").and_then(json::items).unwrap_or_default();
        let candidate = candidates.first().and_then(|raw| Fields::read(raw.get()));
        let content =
            candidate.as_ref().and_then(|it| it.get("content")).and_then(GeminiContent::read);
        Some(Self { fields, candidate, content })
    }

    pub(super) fn parts(&self) -> &[&'a str] {
        self.content.as_ref().map_or(&[], |content| &content.parts)
    }

    /// Returns how the round ended, if this response ends it. `STOP` does not mean that the model made no calls.
    pub(super) fn end(&self) -> Option<RoundEnd> {
        let reason = self.candidate.as_ref().and_then(|it| it.string("finishReason"));
        match reason.as_deref() {
            Some("STOP" | "FINISH_REASON_UNSPECIFIED") => Some(RoundEnd::Complete),
            Some(_) => Some(RoundEnd::Truncated),
            None => self.is_blocked().then_some(RoundEnd::Truncated),
        }
    }

    /// Whether the response has no candidate because the prompt was blocked.
    pub(super) fn is_blocked(&self) -> bool {
        self.candidate.is_none() && self.fields.get("promptFeedback").is_some()
    }

    /// Whether the response has fields for the client in addition to its parts, finish reason and usage.
    pub(super) fn has_other_fields(&self) -> bool {
        let usual = ["content", "finishReason", "finishMessage", "index"];
        let more = |it: &Fields<'_>| it.iter().any(|(key, _)| !usual.contains(&key));
        let around = ["candidates", "usageMetadata", "modelVersion", "responseId", "createTime"];
        self.candidate.as_ref().is_some_and(more)
            || self.fields.iter().any(|(key, _)| !around.contains(&key))
    }

    /// Returns the response with these parts. If all parts were removed, an empty text takes their place, because
    /// clients discard a turn whose content has no parts. The API itself also ends streams with an empty text.
    pub(super) fn with(&self, parts: &[String], edits: &[(&str, Option<String>)]) -> String {
        let Some(candidate) = &self.candidate else { return self.fields.with(edits) };
        let content =
            self.content_with(parts).or_else(|| candidate.get("content").map(str::to_owned));
        self.with_candidate(&candidate.with(&[("content", content)]), edits)
    }

    /// Returns a response that contains these parts but does not end the turn.
    pub(super) fn with_parts_only(
        &self,
        parts: &[String],
        edits: &[(&str, Option<String>)],
    ) -> String {
        let index = self.candidate.as_ref().and_then(|it| it.get("index"));
        let index = index.map(|index| format!(r#","index":{index}"#)).unwrap_or_default();
        let content = self.content_with(parts).unwrap_or_default();
        self.with_candidate(&format!(r#"{{"content":{content}{index}}}"#), edits)
    }

    fn content_with(&self, parts: &[String]) -> Option<String> {
        if parts.is_empty() && self.parts().is_empty() {
            return None;
        }
        let list = if parts.is_empty() { r#"{"text":""}"#.to_owned() } else { parts.join(",") };
        let list = format!("[{list}]");
        Some(match &self.content {
            Some(content) => content.fields.with(&[("parts", Some(list))]),
            None => format!(r#"{{"parts":{list},"role":"model"}}"#),
        })
    }

    fn with_candidate(&self, candidate: &str, edits: &[(&str, Option<String>)]) -> String {
        let mut all = vec![("candidates", Some(format!("[{candidate}]")))];
        all.extend_from_slice(edits);
        self.fields.with(&all)
    }
}

/// Merges the responses of a turn.
#[derive(Debug, Default)]
pub(super) struct GeminiResponseMerger {
    /// The response of the last round, as it was received.
    body: String,
    rounds: usize,
    merger: PartMerger,
    /// The parts for the client, from all rounds.
    parts: Vec<String>,
}

impl ResponseMerger for GeminiResponseMerger {
    fn add_round(&mut self, body: &str, router: &mut CallRouter) -> Option<Round> {
        let response = GeminiResponse::read(body)?;
        body.clone_into(&mut self.body);
        self.rounds += 1;
        self.merger.record_head(&response.fields);
        for part in response.parts() {
            self.parts.extend(self.merger.add_part(part, router));
        }
        let entry = response.content.as_ref().filter(|content| !content.parts.is_empty());
        let entry =
            entry.map(|content| content.fields.with(&[("role", Some(r#""model""#.into()))]));
        let end = response.end().unwrap_or(RoundEnd::Complete);
        let (_, usage) = self.merger.end_round();
        Some(Round { entries: entry.into_iter().collect(), end, usage, response: None })
    }

    fn finish(&mut self, router: &CallRouter) -> String {
        let body = std::mem::take(&mut self.body);
        if self.rounds == 1 && !router.is_altered() {
            return body;
        }
        let Some(response) = GeminiResponse::read(&body) else { return body };
        response.with(&self.parts, &self.merger.turn_fields(&response.fields, true))
    }
}
