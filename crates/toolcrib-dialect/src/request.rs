//! A client's request, read but not taken apart.
//!
//! The text stays as it came. Beside it stands where in it the tools and the history are, and whose
//! turn each stretch of the history is. All other fields go up untouched.
//!
//! A body is parsed once, in `read.rs`. A later change (another model's name, fewer tools) edits the text and
//! moves the places along.

use std::ops::Range;

use toolcrib_text::json;

use crate::api::Api;
use crate::fingerprint::{Fingerprint, FingerprintBuilder};
use crate::splice::{Edits, splice};

/// A request that can be rewritten.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own in the body")]
pub struct Request {
    /// Which API.
    pub api: Api,
    /// The body, as it came.
    pub text: String,
    /// The model that is asked for.
    pub model: String,
    /// Whether the answer is to come as events.
    pub stream: bool,
    /// Whether only tokens are to be counted: then there is no model's turn.
    pub counts: bool,
    /// What is said about which tools may be called.
    pub choice: Choice,
    /// Where the value of `tools` stands.
    pub(crate) tools: Range<usize>,
    /// Where the value of the history stands.
    pub(crate) history: Range<usize>,
    /// The history, by who speaks.
    pub(crate) stretches: Vec<Stretch>,
    /// The response that this one continues, where the API keeps responses.
    pub(crate) previous: Option<Previous>,
    /// Whether the API keeps the response to it.
    pub(crate) keeps: bool,
    /// How the client defers tools itself, if it does.
    pub defers: Option<Defers>,
    /// Whether the model is asked to think.
    pub(crate) thinks: bool,
    /// The context window that the client asks a local server for, in tokens.
    pub window: Option<usize>,
    /// The place of the model's name, if the body has it.
    pub(crate) model_at: Option<Range<usize>>,
}

/// How a client defers tools itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defers {
    /// With the provider's own search.
    Hosted,
    /// With a search of its own, whose results load tools by reference.
    References,
    /// With a search tool of its own that it answers itself.
    OwnTools,
}

/// What the client says about which tools may be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// As the model likes, or nothing said.
    #[default]
    Auto,
    /// None at all.
    None,
    /// One at least.
    Required,
    /// One of these; the model sees no other.
    Named(Vec<String>),
}

/// A response the API keeps, which a request continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Previous {
    /// Its id.
    pub(crate) id: String,
    /// Where the id stands, quotes included.
    pub(crate) place: Range<usize>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The client: the user, its tools, its system.
    Client,
    /// The model.
    Model,
}

/// One entry of the history: a message, or an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It stands in the body.
    At(Range<usize>),
    /// The body has it in a shorter form.
    Made(String),
}

/// Entries in a row by one speaker.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    pub(crate) who: Who,
    pub(crate) entries: Vec<Entry>,
    /// What they say, however they are written.
    pub(crate) print: Fingerprint,
    /// The names of the tools they call, and the ids of these calls.
    pub(crate) calls: Vec<String>,
    pub(crate) call_ids: Vec<Option<String>>,
}

/// A stretch to which entries are being added.
#[derive(Debug)]
pub(crate) struct OpenStretch {
    who: Who,
    entries: Vec<Entry>,
    pub(crate) print: FingerprintBuilder,
    calls: Vec<String>,
    call_ids: Vec<Option<String>>,
}

impl OpenStretch {
    fn new(who: Who) -> Self {
        let print = FingerprintBuilder::default();
        Self { who, entries: Vec::new(), print, calls: Vec::new(), call_ids: Vec::new() }
    }

    /// Notes a call.
    pub(crate) fn call(&mut self, id: Option<String>, name: String, arguments: &str) {
        let id = id.filter(|id| !id.is_empty());
        self.print.call(id.as_deref(), &name, arguments);
        self.calls.push(name);
        self.call_ids.push(id);
    }

    fn close(self) -> Stretch {
        let Self { who, mut entries, print, calls, call_ids } = self;
        // Most have one entry, and a conversation may have many of them.
        entries.shrink_to_fit();
        Stretch { who, entries, print: print.finish(), calls, call_ids }
    }
}

impl Request {
    /// The tools, as they came.
    pub fn tools(&self) -> &str {
        &self.text[self.tools.clone()]
    }

    /// Memory that the entries of the history take in addition to the text until the response has ended, in bytes. The
    /// records of the conversation take about as much again, which is included.
    pub fn history_bytes(&self) -> usize {
        let of = |stretch: &Stretch| {
            let names = stretch.calls.iter().map(|name| size_of::<String>() + name.len());
            let ids = stretch.call_ids.iter().flatten().map(|id| size_of::<String>() + id.len());
            let entries = stretch.entries.len() * size_of::<Entry>();
            size_of::<Stretch>() + entries + names.chain(ids).sum::<usize>()
        };
        2 * self.stretches.iter().map(of).sum::<usize>()
    }

    /// The history, as it came.
    pub(crate) fn history(&self) -> &str {
        &self.text[self.history.clone()]
    }

    pub(crate) fn entry<'a>(&'a self, entry: &'a Entry) -> &'a str {
        match entry {
            Entry::At(place) => &self.text[place.clone()],
            Entry::Made(text) => text,
        }
    }

    /// The body with other tools and another history: its entries, with a comma between each.
    pub(crate) fn write(&self, tools: &str, history: &str, previous: Option<&str>) -> String {
        let mut changes: Vec<(Range<usize>, String)> = vec![
            (self.tools.clone(), tools.to_owned()),
            (self.history.clone(), format!("[{history}]")),
        ];
        if let (Some(id), Some(previous)) = (previous, &self.previous) {
            changes.push((previous.place.clone(), json::quote(id)));
        }
        splice(&self.text, changes)
    }

    /// The body with only the tools changed: for who may not know of all of them.
    pub fn with_tools(&self, tools: &str) -> String {
        splice(&self.text, vec![(self.tools.clone(), tools.to_owned())])
    }

    /// Asks for another model, if the body names one.
    pub fn rename(&mut self, model: &str) {
        let Some(place) = self.model_at.clone() else { return };
        if self.api != Api::Gemini {
            model.clone_into(&mut self.model);
        }
        self.edit(&Edits::new(vec![(place, json::quote(model))]));
    }

    /// Drops the text of the tools, which the toolset has: an empty list takes its place. Otherwise each of
    /// many streams would hold the same hundred kilobytes for minutes.
    pub(crate) fn drop_tools(&mut self) {
        self.edit(&Edits::new(vec![(self.tools.clone(), "[]".to_owned())]));
    }

    /// Changes the text, and moves every place with it.
    pub(crate) fn edit(&mut self, edits: &Edits) {
        if edits.is_empty() {
            return;
        }
        self.text = edits.apply(&self.text);
        let shift = |place: &mut Range<usize>| *place = edits.range_after(place);
        shift(&mut self.tools);
        shift(&mut self.history);
        self.model_at.iter_mut().for_each(shift);
        self.previous.iter_mut().for_each(|previous| shift(&mut previous.place));
        for entry in self.stretches.iter_mut().flat_map(|stretch| &mut stretch.entries) {
            if let Entry::At(place) = entry {
                shift(place);
            }
        }
    }
}

/// The model that a path asks for, in an API that has it there.
pub(crate) fn model_in_path(target: &str) -> Option<String> {
    let path = target.split('?').next()?;
    let (_, last) = path.rsplit_once("/models/")?;
    last.split(':').next().map(str::to_owned)
}

/// The same target, asking for another model: where the API has it in the path.
pub fn with_model_in_path(target: &str, model: &str) -> String {
    let named = target
        .rsplit_once("/models/")
        .and_then(|(before, rest)| Some((before, rest.split_once(':')?)));
    named.map_or_else(
        || target.to_owned(),
        |(before, (_, verb))| format!("{before}/models/{model}:{verb}"),
    )
}

/// What is seen at the top of a body, before the conversation in it is read. These are facts: whether one
/// of them keeps the request from being rewritten is decided in [`pass`](crate::pass).
#[derive(Debug, Default)]
pub(crate) struct Outline<'a> {
    /// The value of the history.
    pub(crate) history: Option<&'a str>,
    /// The model, in an API that has it in the path.
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) choice: Choice,
    /// The response that is continued: its id, and the value that names it.
    pub(crate) previous: Option<(String, &'a str)>,
    pub(crate) keeps: bool,
    pub(crate) thinks: bool,
    pub(crate) features: Features,
}

/// Features of an API that a request with hidden rounds cannot serve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a feature of its own")]
pub(crate) struct Features {
    pub(crate) several_answers: bool,
    pub(crate) legacy_functions: bool,
    pub(crate) cached_content: bool,
    pub(crate) background: bool,
    pub(crate) conversation: bool,
    pub(crate) streamed_without_events: bool,
    pub(crate) calls_in_pieces: bool,
}

/// The conversation of a request.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) stretches: Vec<Stretch>,
    /// Whether it has entries that load tools.
    pub(crate) loads_tools: bool,
}

/// Puts entries in a row, by who speaks.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    closed: Vec<Stretch>,
    open: Option<Box<OpenStretch>>,
}

impl Rows {
    /// The stretch that an entry of this speaker belongs to, with the entry in it.
    pub(crate) fn add(&mut self, who: Who, entry: Entry) -> &mut OpenStretch {
        if self.open.as_ref().is_some_and(|open| open.who != who) {
            self.closed.extend(self.open.take().map(|open| open.close()));
        }
        let stretch = self.open.get_or_insert_with(|| Box::new(OpenStretch::new(who)));
        stretch.entries.push(entry);
        stretch
    }

    pub(crate) fn done(mut self) -> Conversation {
        self.closed.extend(self.open.take().map(|open| open.close()));
        Conversation { stretches: self.closed, loads_tools: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_its_tools_is_the_same_once_they_are_put_back() {
        let bodies = [
            // Before the history, after it, and with a response that is continued.
            r#"{"tools": [ {"type":"function","name":"a"} ], "model":"m", "input":[{"role":"user","content":"é"}], "previous_response_id": "resp_1"}"#,
            r#"{"previous_response_id":"resp_1","model":"m","input":"hi","tools":[{"type":"function","name":"a"}],"x":1}"#,
        ];
        for body in bodies {
            let read = Request::read(Api::Responses, "/v1/responses", body.into()).unwrap();
            let mut lean = read.clone();
            lean.drop_tools();
            assert_eq!(lean.tools(), "[]");
            assert_eq!(lean.with_tools(read.tools()), body);
            let written = read.write("[7]", r#"{"role":"user"}"#, Some("resp_2"));
            assert_eq!(lean.write("[7]", r#"{"role":"user"}"#, Some("resp_2")), written);
            let entries = |request: &Request| -> Vec<String> {
                let all = request.stretches.iter().flat_map(|stretch| &stretch.entries);
                all.map(|entry| request.entry(entry).to_owned()).collect()
            };
            assert_eq!(entries(&lean), entries(&read));
        }
    }
}
