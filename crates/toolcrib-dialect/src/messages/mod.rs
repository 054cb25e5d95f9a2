//! Anthropic Messages.
//!
//! This is the strictest of the four APIs. Results must be in the message after their calls. Thinking blocks are
//! signed, and a signature may cover everything before the block. The API also supports deferral: `defer_loading`,
//! `tool_reference`, and a hosted tool search.

mod announcement;
mod content;
pub mod deferral_emulation;
mod history;
mod reload;
mod request;
mod response;
mod stream;
mod streamed_round;
pub mod thinking;
mod tools;
mod usage;

use std::borrow::Cow;

use toolcrib_text::json::Fields;

use crate::call_ids::GeneratedId;
use crate::dialect::{Dialect, ForwardedCall, ResponseMerger, StreamMerger};
use crate::hidden_rounds::HiddenAnswer;
use crate::request::{ClientDeferral, ParsedHistory, Request, RequestOutline};
use crate::tool_list::WriteTools;
use crate::toolset::Toolset;

/// The Messages dialect.
pub(crate) struct MessagesDialect;

impl Dialect for MessagesDialect {
    fn read_outline<'a>(&self, body: &Fields<'a>, _target: &str) -> RequestOutline<'a> {
        request::read_outline(body)
    }

    fn read_conversation(&self, text: &str, history: &str) -> Option<ParsedHistory> {
        request::read_conversation(text, history)
    }

    fn client_deferral(
        &self,
        tools: &str,
        history: &str,
        _loads_tools: bool,
    ) -> Option<ClientDeferral> {
        request::client_deferral(tools, history)
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
        toolset: &Toolset,
    ) -> Vec<Cow<'a, str>> {
        history::insert_hidden_answers(entries, answers, calls, toolset)
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
        echoed: &[&str],
        toolset: &Toolset,
    ) -> Vec<String> {
        history::adapt_to_echo(stored, echoed, toolset)
    }

    fn reload_tools(
        &self,
        request: &Request,
        toolset: &Toolset,
        tools: &[(&str, &str)],
    ) -> Option<Vec<String>> {
        reload::reload_tools(request, toolset, tools)
    }

    fn stream_merger(&self, _request: &Request) -> Box<dyn StreamMerger> {
        Box::new(stream::MessagesStreamMerger::default())
    }

    fn response_merger(&self, _request: &Request) -> Box<dyn ResponseMerger> {
        Box::new(response::MessagesResponseMerger::default())
    }

    fn keep_alive(&self) -> &'static [u8] {
        b"event: ping\ndata: {\"type\": \"ping\"}\n\n"
    }
}
