//! Gemini `generateContent`, on the developer API and on Vertex.
//!
//! It has no words for deferring, so tools go through the bridge. Calls arrive whole and often without
//! an id; what stands in for one is their order. Model and stream are said in the path, not in the body.

mod announce;
mod content;
mod history;
mod request;
mod response;
mod spoken;
mod stream;
mod tools;
mod usage;

use std::borrow::Cow;

use toolcrib_text::json::Fields;

use crate::call_ids::MadeId;
use crate::dialect::{Dialect, ForwardedCall, Stream, Whole};
use crate::record::Answer;
use crate::request::{Conversation, Outline, Request};
use crate::tools::WriteTools;
use crate::toolset::Toolset;

/// The dialect.
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn outline<'a>(&self, body: &Fields<'a>, target: &str) -> Outline<'a> {
        request::outline(body, target)
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
        said: &[Cow<'_, str>],
        entries: Vec<&'a str>,
        answers: &[Answer],
        calls: &[ForwardedCall<'_>],
        toolset: &Toolset,
    ) -> Vec<Cow<'a, str>> {
        history::join(said, entries, answers, calls, toolset.names().call)
    }

    /// Ids are optional in this API: a call without one stays without.
    fn with_ids(&self, said: Vec<String>, _made: Vec<MadeId>) -> Vec<String> {
        said
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
        Box::new(stream::Pieces::default())
    }

    fn whole(&self, _request: &Request) -> Box<dyn Whole> {
        Box::new(response::Responses::default())
    }

    /// Nothing: clients of this API take every line for data, and stumble over a comment.
    fn keep_alive(&self) -> &'static [u8] {
        b""
    }
}
