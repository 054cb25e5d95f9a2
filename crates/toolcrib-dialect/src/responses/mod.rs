//! OpenAI Responses.
//!
//! The history and the output are lists of items, and every call is an item. The API can load a tool in the middle of a
//! conversation. It can store responses, so that clients send only new items. It repeats the request in every response.

mod announcement;
mod deferral_emulation;
mod echo_restorer;
mod event_writer;
mod history;
mod item;
mod item_decision;
mod lifecycle_events;
mod request;
mod response;
mod stream;
mod streamed_round;
mod tools;
mod usage;

use std::borrow::Cow;

use toolcrib_text::json::Fields;

pub use self::deferral_emulation::DeferralEmulation;
use self::echo_restorer::EchoRestorer;
use crate::call_ids::GeneratedId;
use crate::dialect::{Dialect, ForwardedCall, ResponseMerger, StreamMerger};
use crate::hidden_rounds::HiddenAnswer;
use crate::request::{ClientDeferral, ParsedHistory, Request, RequestOutline};
use crate::tool_list::WriteTools;
use crate::toolset::Toolset;

/// The Responses dialect.
pub(crate) struct ResponsesDialect;

impl Dialect for ResponsesDialect {
    fn read_outline<'a>(&self, body: &Fields<'a>, _target: &str) -> RequestOutline<'a> {
        request::read_outline(body)
    }

    fn read_conversation(&self, text: &str, history: &str) -> Option<ParsedHistory> {
        request::read_conversation(text, history)
    }

    fn client_deferral(
        &self,
        tools: &str,
        _history: &str,
        loads_tools: bool,
    ) -> Option<ClientDeferral> {
        request::client_deferral(tools).or(loads_tools.then_some(ClientDeferral::References))
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

    fn qualify_deferred_calls(
        &self,
        entry: &str,
        deferred: &dyn Fn(&str) -> bool,
    ) -> Option<String> {
        history::qualify_deferred_calls(entry, deferred)
    }

    fn insert_hidden_answers<'a>(
        &self,
        turn: &[Cow<'_, str>],
        entries: Vec<&'a str>,
        answers: &[HiddenAnswer],
        calls: &[ForwardedCall<'_>],
        toolset: &Toolset,
    ) -> Vec<Cow<'a, str>> {
        history::insert_hidden_answers(turn, entries, answers, calls, toolset)
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
        _toolset: &Toolset,
    ) -> Vec<String> {
        history::adapt_to_echo(stored, echoed)
    }

    fn reload_tools(
        &self,
        _request: &Request,
        _toolset: &Toolset,
        tools: &[(&str, &str)],
    ) -> Option<Vec<String>> {
        let definitions: Vec<&str> = tools.iter().map(|(_, definition)| *definition).collect();
        Some(vec![history::additional_tools_item(&definitions)])
    }

    fn stream_merger(&self, request: &Request) -> Box<dyn StreamMerger> {
        Box::new(stream::ResponsesStreamMerger::new(EchoRestorer::of(request)))
    }

    fn response_merger(&self, request: &Request) -> Box<dyn ResponseMerger> {
        Box::new(response::ResponsesResponseMerger::new(EchoRestorer::of(request)))
    }

    fn keep_alive(&self) -> &'static [u8] {
        b": \n\n"
    }
}
