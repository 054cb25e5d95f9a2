//! Gemini `generateContent`, on the developer API and on Vertex AI.
//!
//! The API has no deferral of its own, so deferred tools are called through the bridge. Calls arrive complete and often
//! without ids; in that case their order identifies them. The model and streaming are selected by the path, not by the
//! body.

mod announcement;
mod content;
mod history;
mod part_merger;
mod request;
mod response;
mod stream;
mod tools;
mod usage;

use std::borrow::Cow;

use toolcrib_text::json::Fields;

use crate::call_ids::GeneratedId;
use crate::dialect::{Dialect, ForwardedCall, ResponseMerger, StreamMerger};
use crate::hidden_rounds::HiddenAnswer;
use crate::request::{ParsedHistory, Request, RequestOutline};
use crate::tool_list::WriteTools;
use crate::toolset::Toolset;

/// The Gemini dialect.
pub(crate) struct GeminiDialect;

impl Dialect for GeminiDialect {
    fn read_outline<'a>(&self, body: &Fields<'a>, target: &str) -> RequestOutline<'a> {
        request::read_outline(body, target)
    }

    fn read_conversation(&self, text: &str, history: &str) -> Option<ParsedHistory> {
        request::read_conversation(text, history)
    }

    fn tools_writer(&self) -> WriteTools {
        tools::write
    }

    fn wrap_deferred_calls(
        &self,
        entry: &str,
        deferred: &dyn Fn(&str) -> bool,
        call: &str,
    ) -> Option<String> {
        history::wrap_deferred_calls(entry, deferred, call)
    }

    fn insert_hidden_answers<'a>(
        &self,
        turn: &[Cow<'_, str>],
        entries: Vec<&'a str>,
        answers: &[HiddenAnswer],
        calls: &[ForwardedCall<'_>],
        toolset: &Toolset,
    ) -> Vec<Cow<'a, str>> {
        history::insert_hidden_answers(turn, entries, answers, calls, toolset.names().call)
    }

    /// Returns the turn unchanged. Ids are optional in this API, so calls without an id do not need a generated one.
    fn with_generated_ids(&self, turn: Vec<String>, _generated: Vec<GeneratedId>) -> Vec<String> {
        turn
    }

    fn insert_announcement(&self, entry: &str, text: &str) -> Option<String> {
        announcement::insert_announcement(entry, text)
    }

    fn user_message(&self, text: &str) -> String {
        announcement::user_message(text)
    }

    fn adapt_to_echo(
        &self,
        stored: Vec<String>,
        _echoed: &[&str],
        _toolset: &Toolset,
    ) -> Vec<String> {
        stored
    }

    fn reload_tools(&self, _: &Request, _: &Toolset, _: &[(&str, &str)]) -> Option<Vec<String>> {
        None
    }

    fn stream_merger(&self, _request: &Request) -> Box<dyn StreamMerger> {
        Box::new(stream::GeminiStreamMerger::default())
    }

    fn response_merger(&self, _request: &Request) -> Box<dyn ResponseMerger> {
        Box::new(response::GeminiResponseMerger::default())
    }

    /// Returns nothing, because clients of this API parse every line as data and would fail on a comment.
    fn keep_alive(&self) -> &'static [u8] {
        b""
    }
}
