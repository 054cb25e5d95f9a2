//! A client's request, read but not taken apart.
//!
//! The text stays as it came. Beside it stands where in it the tools and the history are, and whose
//! turn each stretch of the history is. Whatever is not named here is cargo: it goes up untouched.

use std::fmt;
use std::ops::Range;

use toolcrib_core::json;

use crate::api::Api;
use crate::dialect;
use crate::record::Print;

/// A request that can be rewritten.
#[derive(Debug, Clone)]
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
    /// How the client defers by itself, if it does.
    pub defers: Option<Defers>,
}

/// How a client defers by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defers {
    /// With the provider's own search.
    Hosted,
    /// With a search of its own, whose results load tools by reference.
    References,
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
    pub(crate) print: Print,
    /// The names of the tools they call.
    pub(crate) calls: Vec<String>,
}

/// Why a request goes up as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bypass {
    /// No JSON of this API: its own error is the answer.
    Malformed,
    /// No tools in it.
    NoTools,
    /// It asks for several answers at once, and hidden rounds have one.
    SeveralAnswers,
    /// It uses what was there before tools.
    LegacyFunctions,
    /// Its tools are in a cache of the provider.
    CachedContent,
    /// The answer is fetched later, from the provider, who knows of no rounds.
    Background,
    /// The provider keeps the conversation, and adds each round's input to it again.
    Conversation,
    /// Its answer is streamed as one JSON array, and not as events.
    NoEvents,
    /// Its answer has the arguments of calls in pieces.
    CallsInPieces,
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "not a request of this API",
            Self::NoTools => "no tools",
            Self::SeveralAnswers => "several answers at once",
            Self::LegacyFunctions => "legacy functions",
            Self::CachedContent => "the tools are in the provider's cache",
            Self::Background => "the answer is fetched later",
            Self::Conversation => "the provider keeps the conversation",
            Self::NoEvents => "streamed, and not as events",
            Self::CallsInPieces => "calls in pieces",
        })
    }
}

/// A body after it was read: one that goes up as it came keeps its bytes.
pub type Reading = Result<Request, (Bypass, Vec<u8>)>;

impl Request {
    /// Reads a body. `target` is the path and query it was sent to: some APIs say the model and the
    /// stream there.
    pub fn read(api: Api, target: &str, body: Vec<u8>) -> Reading {
        let text = match String::from_utf8(body) {
            Ok(text) => text,
            Err(error) => return Err((Bypass::Malformed, error.into_bytes())),
        };
        match dialect::of(api).read(&text, target) {
            Ok(read) => Ok(read.whole(api, text)),
            Err(bypass) => Err((bypass, text.into_bytes())),
        }
    }

    /// The tools, as they came.
    pub fn tools(&self) -> &str {
        &self.text[self.tools.clone()]
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
        changed(&self.text, changes)
    }

    /// The body with only the tools changed: for who may not know of all of them.
    pub fn with_tools(&self, tools: &str) -> String {
        changed(&self.text, vec![(self.tools.clone(), tools.to_owned())])
    }

    /// Lets go of the tools, which the toolset has: an empty list stands in their place. Else each of many
    /// streams would hold the same hundred kilobytes for minutes.
    pub fn let_go(&mut self) {
        const NONE: &str = "[]";
        self.text = self.with_tools(NONE);
        let Range { start, end } = self.tools.clone();
        let moved = |at: usize| if at < end { at } else { at - end + start + NONE.len() };
        let shift = |place: &mut Range<usize>| *place = moved(place.start)..moved(place.end);
        self.tools = start..start + NONE.len();
        shift(&mut self.history);
        self.previous.iter_mut().for_each(|previous| shift(&mut previous.place));
        for entry in self.stretches.iter_mut().flat_map(|stretch| &mut stretch.entries) {
            if let Entry::At(place) = entry {
                shift(place);
            }
        }
    }
}

/// The model that a body or its target asks for, whatever else is odd about it.
pub fn model(api: Api, target: &str, body: &str) -> Option<String> {
    if api == Api::Gemini {
        let path = target.split('?').next()?;
        let (_, last) = path.rsplit_once("/models/")?;
        return last.split(':').next().map(str::to_owned);
    }
    json::Fields::read(body)?.string("model")
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

/// The same body, asking for another model.
pub fn with_model(body: &str, model: &str) -> Option<String> {
    let fields = json::Fields::read(body)?;
    let known = place(body, fields.get("model")?);
    Some(changed(body, vec![(known, json::quote(model))]))
}

/// What a dialect reads off a body.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) counts: bool,
    pub(crate) choice: Choice,
    pub(crate) tools: Range<usize>,
    pub(crate) history: Range<usize>,
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) previous: Option<Previous>,
    pub(crate) keeps: bool,
    pub(crate) defers: Option<Defers>,
}

impl Read {
    fn whole(self, api: Api, text: String) -> Request {
        Request {
            api,
            text,
            model: self.model,
            stream: self.stream,
            counts: self.counts,
            choice: self.choice,
            tools: self.tools,
            history: self.history,
            stretches: self.stretches,
            previous: self.previous,
            keeps: self.keeps,
            defers: self.defers,
        }
    }
}

/// Puts entries in a row, by who speaks.
#[derive(Debug, Default)]
pub(crate) struct Rows(Vec<Stretch>);

impl Rows {
    /// The stretch that an entry of this speaker belongs to, with the entry in it.
    pub(crate) fn add(&mut self, who: Who, entry: Entry) -> &mut Stretch {
        if self.0.last().is_none_or(|last| last.who != who) {
            self.0.push(Stretch {
                who,
                entries: Vec::new(),
                print: Print::default(),
                calls: Vec::new(),
            });
        }
        let last = self.0.len() - 1;
        let stretch = &mut self.0[last];
        stretch.entries.push(entry);
        stretch
    }

    pub(crate) fn done(self) -> Vec<Stretch> {
        self.0
    }
}

/// Where a part of a text stands in it. The part must be a slice of the text.
pub(crate) fn place(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// A text with some places changed.
pub(crate) fn changed(text: &str, mut changes: Vec<(Range<usize>, String)>) -> String {
    changes.sort_by_key(|(place, _)| place.start);
    let kept = changes.iter().fold(text.len(), |left, (place, _)| left - place.len());
    let new: usize = changes.iter().map(|(_, new)| new.len()).sum();
    let mut out = String::with_capacity(kept + new);
    let mut at = 0;
    for (place, new) in changes {
        out.push_str(&text[at..place.start]);
        out.push_str(&new);
        at = place.end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_let_go_of_its_tools_says_the_same_with_them() {
        let bodies = [
            // Before the history, after it, and with a response that is continued.
            r#"{"tools": [ {"type":"function","name":"a"} ], "model":"m", "input":[{"role":"user","content":"é"}], "previous_response_id": "resp_1"}"#,
            r#"{"previous_response_id":"resp_1","model":"m","input":"hi","tools":[{"type":"function","name":"a"}],"x":1}"#,
        ];
        for body in bodies {
            let read = Request::read(Api::Responses, "/v1/responses", body.into()).unwrap();
            let mut lean = read.clone();
            lean.let_go();
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
