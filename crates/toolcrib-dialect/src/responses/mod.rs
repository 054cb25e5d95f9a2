//! OpenAI Responses.
//!
//! History and answers are lists of items, and a function's call is an item of its own. The API has
//! words for loading a tool in the middle of a conversation, it may keep responses so that a client
//! sends only what is new, and it repeats the request in each response.

mod announce;
mod frame;
mod history;
mod inbound;
mod item;
mod pen;
mod request;
mod response;
mod stream;
mod taken;
mod tools;
mod whole;

use std::borrow::Cow;

use toolcrib_text::json::Fields;

use self::frame::Frame;
pub use self::inbound::Inbound;
use crate::call_ids::MadeId;
use crate::dialect::{Dialect, ForwardedCall, Stream, Whole};
use crate::record::Answer;
use crate::request::{Conversation, Defers, Outline, Request};
use crate::tools::WriteTools;
use crate::toolset::Toolset;

/// The dialect.
pub(crate) struct Responses;

impl Dialect for Responses {
    fn outline<'a>(&self, body: &Fields<'a>, _target: &str) -> Outline<'a> {
        request::outline(body)
    }

    fn conversation(&self, text: &str, history: &str) -> Option<Conversation> {
        request::conversation(text, history)
    }

    fn defers(&self, tools: &str, _history: &str, loads_tools: bool) -> Option<Defers> {
        request::defers(tools).or(loads_tools.then_some(Defers::References))
    }

    fn write_tools(&self) -> WriteTools {
        tools::write
    }

    fn wrap(&self, entry: &str, deferred: &dyn Fn(&str) -> bool, call: &str) -> Option<String> {
        history::wrap(entry, deferred, call)
    }

    fn locate(&self, entry: &str, deferred: &dyn Fn(&str) -> bool) -> Option<String> {
        history::locate(entry, deferred)
    }

    fn join<'a>(
        &self,
        said: &[Cow<'_, str>],
        entries: Vec<&'a str>,
        answers: &[Answer],
        calls: &[ForwardedCall<'_>],
        toolset: &Toolset,
    ) -> Vec<Cow<'a, str>> {
        history::join(said, entries, answers, calls, toolset)
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

    fn fit(&self, kept: Vec<String>, echo: &[&str], _toolset: &Toolset) -> Vec<String> {
        history::fit(kept, echo)
    }

    fn remind(
        &self,
        _request: &Request,
        _toolset: &Toolset,
        tools: &[(&str, &str)],
    ) -> Option<Vec<String>> {
        let definitions: Vec<&str> = tools.iter().map(|(_, definition)| *definition).collect();
        Some(vec![history::additional(&definitions)])
    }

    fn stream(&self, request: &Request) -> Box<dyn Stream> {
        Box::new(stream::Events::new(Frame::of(request)))
    }

    fn whole(&self, request: &Request) -> Box<dyn Whole> {
        Box::new(response::Bodies::new(Frame::of(request)))
    }

    fn keep_alive(&self) -> &'static [u8] {
        b": \n\n"
    }
}
