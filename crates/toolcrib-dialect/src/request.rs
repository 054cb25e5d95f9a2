//! A client's request: the original text of its body, and the positions of the parts that are rewritten.
//!
//! The text is never parsed into a tree and serialised again. Only a few values in it are replaced, such as the tools,
//! the history and the model's name; all other fields reach the upstream unchanged. A body is parsed once, in
//! `read_request`. Later changes edit the text and adjust the positions.

use std::ops::Range;

use toolcrib_text::json;

use crate::api::Api;
pub(crate) use crate::history_segments::{
    HistoryBuilder, HistoryEntry, ParsedHistory, Segment, SegmentBuilder, Speaker,
};
use crate::splice::{Edits, splice};

/// A request that can be rewritten.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent property of the body")]
pub struct Request {
    /// The client's API.
    pub api: Api,
    /// The client's body, possibly with another model name and without the tools that the caller may not see.
    pub text: String,
    /// The requested model.
    pub model: String,
    /// Whether the client requests a stream of events.
    pub stream: bool,
    /// Whether the request only counts tokens, so that the model generates nothing.
    pub counts_tokens: bool,
    /// Which tools the model may call.
    pub choice: ToolChoice,
    /// How the client defers tools itself, if it does.
    pub client_deferral: Option<ClientDeferral>,
    /// The context window that the client requests from a local server, in tokens.
    pub context_window: Option<usize>,
    /// The range of the value of `tools` in `text`.
    pub(crate) tools: Range<usize>,
    /// The range of the value of the history in `text`.
    pub(crate) history: Range<usize>,
    /// The history, divided into segments by speaker.
    pub(crate) segments: Vec<Segment>,
    /// The stored response from which this request continues, if it continues from one.
    pub(crate) previous: Option<PreviousResponse>,
    /// Whether the API will store the response.
    pub(crate) is_stored: bool,
    /// Whether the request enables thinking.
    pub(crate) wants_thinking: bool,
    /// The range of the model's name in `text`, if the body contains it.
    pub(crate) model_range: Option<Range<usize>>,
}

/// How a client defers tools itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientDeferral {
    /// The client uses the provider's hosted search.
    Hosted,
    /// The client has a search of its own, whose results load tools by reference.
    References,
    /// The client has an ordinary tool that searches, and answers the calls of this tool itself.
    OwnSearch,
}

/// The client's setting for which tools the model may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model may call any tool or none. This is also the value if the client sets no choice.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call one of these tools.
    Named(Vec<String>),
}

/// The stored response from which a request continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PreviousResponse {
    pub(crate) id: String,
    /// The range of the id in the body, including its quotes.
    pub(crate) range: Range<usize>,
}

impl Request {
    /// Returns the value of `tools`, as JSON text.
    pub fn tools(&self) -> &str {
        &self.text[self.tools.clone()]
    }

    /// Returns the memory, in bytes, that the history takes in addition to the text until the response has ended. This
    /// includes the records of the conversation, which take about as much memory as its entries.
    pub fn history_bytes(&self) -> usize {
        2 * self.segments.iter().map(Segment::memory_bytes).sum::<usize>()
    }

    /// Returns the value of the history, as JSON text.
    pub(crate) fn history(&self) -> &str {
        &self.text[self.history.clone()]
    }

    pub(crate) fn entry<'a>(&'a self, entry: &'a HistoryEntry) -> &'a str {
        match entry {
            HistoryEntry::InBody(range) => &self.text[range.clone()],
            HistoryEntry::Expanded(text) => text,
        }
    }

    /// Returns the body with its tools, its history and its previous response replaced. `history` consists of entries
    /// separated by commas.
    pub(crate) fn write(&self, tools: &str, history: &str, previous: Option<&str>) -> String {
        let mut changes: Vec<(Range<usize>, String)> = vec![
            (self.tools.clone(), tools.to_owned()),
            (self.history.clone(), format!("[{history}]")),
        ];
        if let (Some(id), Some(previous)) = (previous, &self.previous) {
            changes.push((previous.range.clone(), json::quote(id)));
        }
        splice(&self.text, changes)
    }

    /// Returns the body with its tools replaced.
    pub fn with_tools(&self, tools: &str) -> String {
        splice(&self.text, vec![(self.tools.clone(), tools.to_owned())])
    }

    /// Replaces the model's name, if the body contains one.
    pub fn set_model(&mut self, model: &str) {
        let Some(range) = self.model_range.clone() else { return };
        if self.api != Api::Gemini {
            model.clone_into(&mut self.model);
        }
        self.edit(&Edits::new(vec![(range, json::quote(model))]));
    }

    /// Replaces the tools with an empty list to save memory, because the toolset has a copy of them. Otherwise each of
    /// many streams would hold the same hundred kilobytes for minutes.
    pub(crate) fn drop_tools(&mut self) {
        self.edit(&Edits::new(vec![(self.tools.clone(), "[]".to_owned())]));
    }

    /// Edits the text and adjusts all ranges to the edited text.
    pub(crate) fn edit(&mut self, edits: &Edits) {
        if edits.is_empty() {
            return;
        }
        self.text = edits.apply(&self.text);
        let shift = |range: &mut Range<usize>| *range = edits.range_after(range);
        shift(&mut self.tools);
        shift(&mut self.history);
        self.model_range.iter_mut().for_each(shift);
        self.previous.iter_mut().for_each(|previous| shift(&mut previous.range));
        for entry in self.segments.iter_mut().flat_map(|segment| &mut segment.entries) {
            if let HistoryEntry::InBody(range) = entry {
                shift(range);
            }
        }
    }
}

/// Returns the model's name in a path, for an API whose paths contain it.
pub(crate) fn model_in_path(target: &str) -> Option<String> {
    let path = target.split('?').next()?;
    let (_, last) = path.rsplit_once("/models/")?;
    last.split(':').next().map(str::to_owned)
}

/// Returns a request target with the model's name replaced, for an API whose paths contain it.
pub fn with_model_in_path(target: &str, model: &str) -> String {
    let named = target
        .rsplit_once("/models/")
        .and_then(|(before, rest)| Some((before, rest.split_once(':')?)));
    named.map_or_else(
        || target.to_owned(),
        |(before, (_, verb))| format!("{before}/models/{model}:{verb}"),
    )
}

/// Facts about a body that are known before its history is read. `passthrough` decides whether one of them prevents the
/// request from being rewritten.
#[derive(Debug, Default)]
pub(crate) struct RequestOutline<'a> {
    /// The value of the history, as JSON text.
    pub(crate) history: Option<&'a str>,
    /// The model's name, for an API whose paths contain it.
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) choice: ToolChoice,
    /// The id of the stored response from which the request continues, and the JSON value that contains this id.
    pub(crate) previous: Option<(String, &'a str)>,
    /// Whether the API will store the response.
    pub(crate) is_stored: bool,
    pub(crate) wants_thinking: bool,
    pub(crate) blockers: RewriteBlockers,
}

/// Features that a request may use, but that cannot be combined with hidden rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent feature")]
pub(crate) struct RewriteBlockers {
    pub(crate) multiple_choices: bool,
    pub(crate) legacy_functions: bool,
    pub(crate) cached_content: bool,
    pub(crate) background: bool,
    pub(crate) stored_conversation: bool,
    pub(crate) json_array_stream: bool,
    pub(crate) streamed_arguments: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_its_tools_is_the_same_once_they_are_put_back() {
        let bodies = [
            // The first body has its tools before the history, the second has them after it. Both continue from a
            // stored response.
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
