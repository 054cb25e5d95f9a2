//! Anthropic Messages.
//!
//! The strictest of the four: results stand in the one message after their calls, thinking is signed,
//! and a signature may be bound to every byte before it. It is also the one with words for deferring:
//! `defer_loading`, `tool_reference`, and a search of the provider's own.

mod announce;
mod block;
mod content;
mod history;
pub mod inbound;
mod remind;
mod request;
mod response;
mod stream;
mod tools;
pub mod unbind;

use std::borrow::Cow;

use toolcrib_text::json::Fields;

use crate::call_ids::MadeId;
use crate::dialect::{Dialect, ForwardedCall, Stream, Whole};
use crate::record::Answer;
use crate::request::{Conversation, Defers, Outline, Request};
use crate::tools::WriteTools;
use crate::toolset::Toolset;

/// The dialect.
pub(crate) struct Messages;

impl Dialect for Messages {
    fn outline<'a>(&self, body: &Fields<'a>, _target: &str) -> Outline<'a> {
        request::outline(body)
    }

    fn conversation(&self, text: &str, history: &str) -> Option<Conversation> {
        request::conversation(text, history)
    }

    fn defers(&self, tools: &str, history: &str, _loads_tools: bool) -> Option<Defers> {
        request::defers(tools, history)
    }

    fn write_tools(&self) -> WriteTools {
        tools::write
    }

    fn wrap(&self, entry: &str, deferred: &dyn Fn(&str) -> bool, call: &str) -> Option<String> {
        history::wrap(entry, deferred, call)
    }

    fn join<'a>(
        &self,
        _said: &[Cow<'_, str>],
        entries: Vec<&'a str>,
        answers: &[Answer],
        calls: &[ForwardedCall<'_>],
        toolset: &Toolset,
    ) -> Vec<Cow<'a, str>> {
        history::join(entries, answers, calls, toolset)
    }

    fn with_ids(&self, said: Vec<String>, mut made: Vec<MadeId>) -> Vec<String> {
        let with_ids = |entry: String| history::with_ids(&entry, &mut made).unwrap_or(entry);
        said.into_iter().map(with_ids).collect()
    }

    fn announce(&self, entry: &str, text: &str) -> Option<String> {
        announce::announce(entry, text)
    }

    fn user_message(&self, text: &str) -> String {
        announce::user_message(text)
    }

    fn fit(&self, kept: Vec<String>, echo: &[&str], toolset: &Toolset) -> Vec<String> {
        history::fit(kept, echo, toolset)
    }

    fn remind(
        &self,
        request: &Request,
        toolset: &Toolset,
        tools: &[(&str, &str)],
    ) -> Option<Vec<String>> {
        remind::remind(request, toolset, tools)
    }

    fn stream(&self, _request: &Request) -> Box<dyn Stream> {
        Box::new(stream::Events::default())
    }

    fn whole(&self, _request: &Request) -> Box<dyn Whole> {
        Box::new(response::Responses::default())
    }

    fn keep_alive(&self) -> &'static [u8] {
        b"event: ping\ndata: {\"type\": \"ping\"}\n\n"
    }
}
