//! A client's request, read but not taken apart.
//!
//! The text stays as it came. Beside it stands where in it the tools and the history are, and whose
//! turn each segment of the history is. All other fields go up untouched.
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
    pub counts_tokens: bool,
    /// What is said about which tools may be called.
    pub choice: ToolChoice,
    /// Where the value of `tools` stands.
    pub(crate) tools: Range<usize>,
    /// Where the value of the history stands.
    pub(crate) history: Range<usize>,
    /// The history, by who speaks.
    pub(crate) segments: Vec<Segment>,
    /// The response that this one continues, where the API keeps responses.
    pub(crate) previous: Option<PreviousResponse>,
    /// Whether the API keeps the response to it.
    pub(crate) is_stored: bool,
    /// How the client defers tools itself, if it does.
    pub client_deferral: Option<ClientDeferral>,
    /// Whether the model is asked to think.
    pub(crate) wants_thinking: bool,
    /// The context window that the client asks a local server for, in tokens.
    pub context_window: Option<usize>,
    /// The place of the model's name, if the body has it.
    pub(crate) model_range: Option<Range<usize>>,
}

/// How a client defers tools itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientDeferral {
    /// With the provider's own search.
    Hosted,
    /// With a search of its own, whose results load tools by reference.
    References,
    /// With a search tool of its own that it answers itself.
    OwnSearch,
}

/// What the client says about which tools may be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
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
pub(crate) struct PreviousResponse {
    /// Its id.
    pub(crate) id: String,
    /// Where the id stands, quotes included.
    pub(crate) place: Range<usize>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The client: the user, its tools, its system.
    Client,
    /// The model.
    Model,
}

/// One entry of the history: a message, or an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HistoryEntry {
    /// It stands in the body.
    InBody(Range<usize>),
    /// The body has it in a shorter form.
    Expanded(String),
}

/// Entries in a row by one speaker.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) speaker: Speaker,
    pub(crate) entries: Vec<HistoryEntry>,
    /// What they say, however they are written.
    pub(crate) fingerprint: Fingerprint,
    /// The names of the tools they call, and the ids of these calls.
    pub(crate) calls: Vec<String>,
    pub(crate) call_ids: Vec<Option<String>>,
}

/// A segment to which entries are being added.
#[derive(Debug)]
pub(crate) struct SegmentBuilder {
    speaker: Speaker,
    entries: Vec<HistoryEntry>,
    pub(crate) fingerprint: FingerprintBuilder,
    calls: Vec<String>,
    call_ids: Vec<Option<String>>,
}

impl SegmentBuilder {
    fn new(speaker: Speaker) -> Self {
        let fingerprint = FingerprintBuilder::default();
        Self { speaker, entries: Vec::new(), fingerprint, calls: Vec::new(), call_ids: Vec::new() }
    }

    /// Notes a call.
    pub(crate) fn call(&mut self, id: Option<String>, name: String, arguments: &str) {
        let id = id.filter(|id| !id.is_empty());
        self.fingerprint.call(id.as_deref(), &name, arguments);
        self.calls.push(name);
        self.call_ids.push(id);
    }

    fn close(self) -> Segment {
        let Self { speaker, mut entries, fingerprint, calls, call_ids } = self;
        // Most have one entry, and a conversation may have many of them.
        entries.shrink_to_fit();
        Segment { speaker, entries, fingerprint: fingerprint.finish(), calls, call_ids }
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
        let of = |segment: &Segment| {
            let names = segment.calls.iter().map(|name| size_of::<String>() + name.len());
            let ids = segment.call_ids.iter().flatten().map(|id| size_of::<String>() + id.len());
            let entries = segment.entries.len() * size_of::<HistoryEntry>();
            size_of::<Segment>() + entries + names.chain(ids).sum::<usize>()
        };
        2 * self.segments.iter().map(of).sum::<usize>()
    }

    /// The history, as it came.
    pub(crate) fn history(&self) -> &str {
        &self.text[self.history.clone()]
    }

    pub(crate) fn entry<'a>(&'a self, entry: &'a HistoryEntry) -> &'a str {
        match entry {
            HistoryEntry::InBody(place) => &self.text[place.clone()],
            HistoryEntry::Expanded(text) => text,
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
    pub fn set_model(&mut self, model: &str) {
        let Some(place) = self.model_range.clone() else { return };
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
        self.model_range.iter_mut().for_each(shift);
        self.previous.iter_mut().for_each(|previous| shift(&mut previous.place));
        for entry in self.segments.iter_mut().flat_map(|segment| &mut segment.entries) {
            if let HistoryEntry::InBody(place) = entry {
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
/// of them keeps the request from being rewritten is decided in [`pass`](crate::passthrough).
#[derive(Debug, Default)]
pub(crate) struct RequestOutline<'a> {
    /// The value of the history.
    pub(crate) history: Option<&'a str>,
    /// The model, in an API that has it in the path.
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) choice: ToolChoice,
    /// The response that is continued: its id, and the value that names it.
    pub(crate) previous: Option<(String, &'a str)>,
    pub(crate) is_stored: bool,
    pub(crate) wants_thinking: bool,
    pub(crate) blockers: RewriteBlockers,
}

/// Features of an API that a request with hidden rounds cannot serve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a feature of its own")]
pub(crate) struct RewriteBlockers {
    pub(crate) multiple_choices: bool,
    pub(crate) legacy_functions: bool,
    pub(crate) cached_content: bool,
    pub(crate) background: bool,
    pub(crate) conversation: bool,
    pub(crate) json_array_stream: bool,
    pub(crate) streamed_arguments: bool,
}

/// The conversation of a request.
#[derive(Debug, Default)]
pub(crate) struct ParsedHistory {
    pub(crate) segments: Vec<Segment>,
    /// Whether it has entries that load tools.
    pub(crate) loads_tools: bool,
}

/// Puts entries in a row, by who speaks.
#[derive(Debug, Default)]
pub(crate) struct HistoryBuilder {
    closed: Vec<Segment>,
    open: Option<Box<SegmentBuilder>>,
}

impl HistoryBuilder {
    /// The segment that an entry of this speaker belongs to, with the entry in it.
    pub(crate) fn add(&mut self, speaker: Speaker, entry: HistoryEntry) -> &mut SegmentBuilder {
        if self.open.as_ref().is_some_and(|open| open.speaker != speaker) {
            self.closed.extend(self.open.take().map(|open| open.close()));
        }
        let segment = self.open.get_or_insert_with(|| Box::new(SegmentBuilder::new(speaker)));
        segment.entries.push(entry);
        segment
    }

    pub(crate) fn done(mut self) -> ParsedHistory {
        self.closed.extend(self.open.take().map(|open| open.close()));
        ParsedHistory { segments: self.closed, loads_tools: false }
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
                let all = request.segments.iter().flat_map(|segment| &segment.entries);
                all.map(|entry| request.entry(entry).to_owned()).collect()
            };
            assert_eq!(entries(&lean), entries(&read));
        }
    }
}
