//! OpenAI Chat Completions, and the many servers that are compatible with it.
//!
//! The API has no deferral of its own, so deferred tools are called through the bridge. Its streams vary more between
//! servers than those of the other APIs: some servers omit indices, some split names, and some send a call in one
//! piece, others in fifty.

mod announcement;
mod history;
mod message;
mod request;
mod response;
mod stream;
mod streamed_round;
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

/// The Chat Completions dialect.
pub(crate) struct ChatDialect;

impl Dialect for ChatDialect {
    fn read_outline<'a>(&self, body: &Fields<'a>, _target: &str) -> RequestOutline<'a> {
        request::read_outline(body)
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
        _turn: &[Cow<'_, str>],
        entries: Vec<&'a str>,
        answers: &[HiddenAnswer],
        calls: &[ForwardedCall<'_>],
        _toolset: &Toolset,
    ) -> Vec<Cow<'a, str>> {
        history::insert_hidden_answers(entries, answers, calls)
    }

    fn with_generated_ids(
        &self,
        turn: Vec<String>,
        mut generated: Vec<GeneratedId>,
    ) -> Vec<String> {
        let with_generated_ids =
            |entry: String| history::with_generated_ids(&entry, &mut generated).unwrap_or(entry);
        turn.into_iter().map(with_generated_ids).collect()
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
        Box::new(stream::ChatStreamMerger::default())
    }

    fn response_merger(&self, _request: &Request) -> Box<dyn ResponseMerger> {
        Box::new(response::ChatResponseMerger::default())
    }

    fn keep_alive(&self) -> &'static [u8] {
        b": \n\n"
    }
}
