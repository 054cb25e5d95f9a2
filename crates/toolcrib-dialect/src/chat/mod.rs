//! OpenAI Chat Completions, and the many servers that imitate it.
//!
//! It has no words for deferring, so tools go through the bridge. Its streams are the least strict of
//! the four: indices are left out, names are split, a call comes in one piece or in fifty.

mod announce;
mod history;
mod message;
mod request;
mod response;
mod said;
mod stream;
mod tools;

use std::borrow::Cow;

use toolcrib_text::json::Fields;

use crate::call_ids::MadeId;
use crate::dialect::{Dialect, ForwardedCall, Stream, Whole};
use crate::record::Answer;
use crate::request::{Conversation, Outline, Request};
use crate::tools::WriteTools;
use crate::toolset::Toolset;

/// The dialect.
pub(crate) struct Chat;

impl Dialect for Chat {
    fn outline<'a>(&self, body: &Fields<'a>, _target: &str) -> Outline<'a> {
        request::outline(body)
    }

    fn conversation(&self, text: &str, history: &str) -> Option<Conversation> {
        request::conversation(text, history)
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
        _toolset: &Toolset,
    ) -> Vec<Cow<'a, str>> {
        history::join(entries, answers, calls)
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

    fn fit(&self, kept: Vec<String>, _echo: &[&str], _toolset: &Toolset) -> Vec<String> {
        kept
    }

    fn remind(&self, _: &Request, _: &Toolset, _: &[(&str, &str)]) -> Option<Vec<String>> {
        None
    }

    fn stream(&self, _request: &Request) -> Box<dyn Stream> {
        Box::new(stream::Chunks::default())
    }

    fn whole(&self, _request: &Request) -> Box<dyn Whole> {
        Box::new(response::Completions::default())
    }

    fn keep_alive(&self) -> &'static [u8] {
        b": \n\n"
    }
}
