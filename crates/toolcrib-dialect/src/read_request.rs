//! Reads the body of a request.
//!
//! A body is parsed only once, because parsing a hundred kilobytes of tools is most of the work before a request is
//! sent. The same pass removes the tools that the caller may not see. All later steps use the positions that were found
//! here.

use std::ops::Range;

use toolcrib_text::json::{self, Fields};

use crate::api::Api;
use crate::dialects;
use crate::limits::MAX_VALUES;
use crate::passthrough::{PassthroughReason, RequestFacts, Unreadable, decide_passthrough};
use crate::request::{ClientDeferral, PreviousResponse, Request, model_in_path};
use crate::scope::{self, BodyChanges, ScopeViolation, ToolFilter};
use crate::splice::{Edits, range_of};
use crate::tool_list;

/// The result of reading a body: a request, or a body that passes through.
pub type ReadResult = Result<Request, PassthroughBody>;

/// A body that passes through without being rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassthroughBody {
    /// Why the body is not rewritten.
    pub reason: PassthroughReason,
    /// The body to send.
    pub body: Vec<u8>,
    /// The requested model, if it could be read.
    pub model: Option<String>,
    /// The range of the model's name in the body.
    pub(crate) model_range: Option<Range<usize>>,
}

impl PassthroughBody {
    /// Replaces the model's name, if the body contains one.
    pub fn set_model(&mut self, model: &str) {
        let Some(range) = self.model_range.take() else { return };
        let new = json::quote(model).into_bytes();
        self.model_range = Some(range.start..range.start + new.len());
        self.body.splice(range, new);
    }
}

impl Request {
    /// Reads a body. `target` is the path and query of the request. In some APIs, the path names the model and the kind
    /// of response.
    pub fn read(api: Api, target: &str, body: Vec<u8>) -> ReadResult {
        let text = match String::from_utf8(body) {
            Ok(text) => text,
            Err(error) => return Err(not_json(api, target, error.into_bytes())),
        };
        if has_too_many_values(&text) {
            let why = PassthroughReason::from(Unreadable::TooManyValues);
            return Err(unread(api, target, text.into_bytes(), why));
        }
        let Some(body) = parse(&text) else {
            return Err(not_json(api, target, text.into_bytes()));
        };
        let read = read(api, target, &text, &body, &[]);
        read.with(text, Vec::new())
    }

    /// Reads a body and removes the tools that are outside the caller's scope, according to `visible`. Returns an error
    /// if the body may contain tools in places where they are not removed, or if the response could not be checked.
    pub fn read_in_scope(
        api: Api,
        target: &str,
        body: Vec<u8>,
        visible: ToolFilter<'_>,
    ) -> Result<ReadResult, ScopeViolation> {
        let text = String::from_utf8(body).map_err(|_| ScopeViolation::NotAnObject)?;
        if has_too_many_values(&text) {
            return Err(ScopeViolation::TooManyValues);
        }
        let body = parse(&text).ok_or(ScopeViolation::NotAnObject)?;
        let BodyChanges { tools, others } = scope::narrow(api, &text, &body, visible)?;
        scope::check_form(api, &body)?;
        if !others.is_empty() {
            // In rare cases, fields other than the tools change as well. The new body is then parsed again.
            let tools = tools.into_iter().map(|(key, new)| (key, Some(new)));
            let all: Vec<(&str, Option<String>)> = others.into_iter().chain(tools).collect();
            let reading = Self::read(api, target, body.with(&all).into_bytes());
            return require_checkable(api, reading);
        }
        let hidden: Vec<(Range<usize>, String)> = tools
            .into_iter()
            .filter_map(|(key, new)| Some((range_of(&text, body.get(key)?), new)))
            .collect();
        let read = read(api, target, &text, &body, &hidden);
        require_checkable(api, read.with(text, hidden))
    }
}

/// Returns an error for a request whose response could not be checked. This is used for callers with a limited scope.
fn require_checkable(api: Api, reading: ReadResult) -> Result<ReadResult, ScopeViolation> {
    match reading.as_ref().map_err(|unread| unread.reason) {
        Err(PassthroughReason::JsonArrayStream) => Err(ScopeViolation::JsonArrayStream),
        Err(PassthroughReason::StreamedArguments) => Err(ScopeViolation::StreamedArguments),
        Err(PassthroughReason::TooManyTools) => Err(ScopeViolation::TooManyTools),
        Err(PassthroughReason::Malformed) => {
            Err(ScopeViolation::NoHistory(scope::history_key(api)))
        }
        _ => Ok(reading),
    }
}

/// The parts that were read from a body's text. All ranges refer to that text.
struct ParsedBody {
    request: Result<Request, PassthroughReason>,
    model: Option<String>,
    model_range: Option<Range<usize>>,
}

impl ParsedBody {
    /// Applies changes to the text, and adjusts the ranges to the changed text.
    fn with(self, text: String, changes: Vec<(Range<usize>, String)>) -> ReadResult {
        let edits = Edits::new(changes);
        let Self { request, model, model_range } = self;
        match request {
            Ok(mut request) => {
                (request.text, request.model_range) = (text, model_range);
                request.edit(&edits);
                Ok(request)
            }
            Err(reason) => Err(PassthroughBody {
                reason,
                body: edits.apply(&text).into_bytes(),
                model,
                model_range: model_range.map(|range| edits.range_after(&range)),
            }),
        }
    }
}

fn read(
    api: Api,
    target: &str,
    text: &str,
    body: &Fields<'_>,
    hidden: &[(Range<usize>, String)],
) -> ParsedBody {
    let model_range = body.get("model").map(|raw| range_of(text, raw));
    let model = if api == Api::Gemini { model_in_path(target) } else { body.string("model") };
    ParsedBody { request: request(api, target, text, body, hidden), model, model_range }
}

/// Reads a request. Its `text` is not set yet, and all its ranges refer to the original text.
fn request(
    api: Api,
    target: &str,
    text: &str,
    body: &Fields<'_>,
    hidden: &[(Range<usize>, String)],
) -> Result<Request, PassthroughReason> {
    let dialect = dialects::of(api);
    let outline = dialect.read_outline(body, target);
    let original = body.get("tools").unwrap_or("null");
    let at = body.get("tools").map(|raw| range_of(text, raw));
    // The list without the tools that the caller may not see. `None` if the list has no such tools.
    let narrowed = hidden.iter().find(|(range, _)| Some(range) == at.as_ref());
    let tools = narrowed.map_or(original, |(_, left)| left);
    let count = tool_list::count_if_many(tools);
    match decide_passthrough(RequestFacts::Outline { outline: &outline, tools, count }) {
        // The request is read even if no tool is left, so that the calls in its response are checked: a model may call
        // a tool that it was not sent.
        Some(PassthroughReason::NoTools) if narrowed.is_some() => {}
        Some(why) => return Err(why),
        None => {}
    }
    let conversation = outline.history.and_then(|history| dialect.read_conversation(text, history));
    let model = outline.model.or_else(|| body.string("model"));
    let read = conversation.zip(model).zip(outline.history.zip(at));
    let Some(((conversation, model), (history, at))) = read else {
        return Err(not_this_api());
    };
    let deferral = dialect.client_deferral(tools, history, conversation.loads_tools);
    let deferral = deferral
        .or_else(|| tool_list::has_client_search(tools).then_some(ClientDeferral::OwnSearch));
    let path = target.split('?').next().unwrap_or_default();
    Ok(Request {
        api,
        text: String::new(),
        model,
        stream: outline.stream,
        counts_tokens: api.is_token_count_path(path),
        choice: outline.choice,
        tools: at,
        history: range_of(text, history),
        segments: conversation.segments,
        previous: outline
            .previous
            .map(|(id, raw)| PreviousResponse { id, range: range_of(text, raw) }),
        is_stored: outline.is_stored,
        client_deferral: deferral,
        wants_thinking: outline.wants_thinking,
        context_window: context_window(body),
        model_range: None,
    })
}

/// Reads `num_ctx`, which Ollama and similar servers accept at the top level or in `options`.
fn context_window(body: &Fields<'_>) -> Option<usize> {
    let options = body.get("options").and_then(Fields::read);
    let inner = options.as_ref().and_then(|options| options.get("num_ctx"));
    let window: usize = inner.or_else(|| body.get("num_ctx"))?.parse().ok()?;
    (window > 0).then_some(window)
}

fn not_json(api: Api, target: &str, body: Vec<u8>) -> PassthroughBody {
    unread(api, target, body, not_this_api())
}

fn unread(api: Api, target: &str, body: Vec<u8>, why: PassthroughReason) -> PassthroughBody {
    let model = if api == Api::Gemini { model_in_path(target) } else { None };
    PassthroughBody { reason: why, body, model, model_range: None }
}

/// Whether a body has too many values, so that parsing it would take too much memory.
fn has_too_many_values(text: &str) -> bool {
    // Each value takes at least two bytes of text, so the values of short bodies need not be counted.
    text.len() / 2 > MAX_VALUES && json::count_values(text) > MAX_VALUES
}

fn not_this_api() -> PassthroughReason {
    decide_passthrough(RequestFacts::NotThisApi).unwrap_or(PassthroughReason::Malformed)
}

/// Parses a body. This is the only function that does so, which allows a test to count how often bodies are parsed.
fn parse(text: &str) -> Option<Fields<'_>> {
    #[cfg(test)]
    tests::PARSES.with(|parses| parses.set(parses.get() + 1));
    Fields::read(text)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use toolcrib_core::FourCharsPerToken;

    use super::*;
    use crate::exchange::Exchange;
    use crate::exchange::action::{Action, ExchangeConfig};
    use crate::toolset::Toolset;

    thread_local! {
        /// The number of bodies that this thread has parsed.
        pub(super) static PARSES: Cell<usize> = const { Cell::new(0) };
    }

    fn body(tools: usize) -> String {
        let tools: Vec<String> = (0..tools)
            .map(|at| {
                let text = "Makes the report of one month, as it is sent to the board.";
                format!(
                    r#"{{"type":"function","function":{{"name":"t{at}","description":"{text}"}}}}"#
                )
            })
            .collect();
        let messages = r#"[{"role":"user","content":"hi"}]"#;
        format!(r#"{{"model":"m","messages":{messages},"tools":[{}]}}"#, tools.join(","))
    }

    #[test]
    fn a_body_is_parsed_once() {
        let path = "/v1/chat/completions";
        let visible = |names: &[&str]| names != ["t39"];
        let read = Request::read_in_scope(Api::Chat, path, body(40).into_bytes(), &visible);
        let mut request = read.unwrap().unwrap();
        request.set_model("another");
        let mut setup = ExchangeConfig::new("localhost", Arc::new(FourCharsPerToken));
        let mut settings = toolcrib_core::Settings::default();
        settings.activation.mode = toolcrib_core::policy::ActivationMode::On;
        setup.settings = Arc::new(settings);
        let mut exchange = Exchange::new(Api::Chat, path, Ok(request), setup);
        let calls = [
            r#"{"id":"call_1","type":"function","function":{"name":"tool_search","arguments":"{\"query\":\"report\"}"}}"#,
            r#"{"id":"call_2","type":"function","function":{"name":"tool_call","arguments":"{\"name\":\"t4\"}"}}"#,
        ];
        let mut calls = calls.into_iter();
        let mut sent = Vec::new();
        loop {
            match exchange.next_action().expect("an action") {
                Action::PrepareToolset(plan) => {
                    let toolset = Toolset::new(*plan, exchange.tools());
                    exchange.toolset_prepared(Arc::new(toolset));
                }
                Action::Send(outgoing) => {
                    sent.push(String::from_utf8(outgoing.body.to_vec()).unwrap());
                    let call = calls.next().unwrap();
                    exchange.response_started(200, false);
                    let answer = format!(
                        r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","tool_calls":[{call}]}},"finish_reason":"tool_calls"}}]}}"#
                    );
                    exchange.response_bytes(answer.into());
                    exchange.response_ended();
                }
                Action::Done(_) => break,
                _ => {}
            }
        }
        assert_eq!(sent.len(), 2);
        assert!(sent.iter().all(|sent| sent.starts_with(r#"{"model":"another","messages":["#)));
        assert!(sent[0].contains("tool_search") && !sent[0].contains("t39"));
        assert_eq!(exchange.report().tools, 39);
        assert_eq!(PARSES.get(), 1);
    }

    #[test]
    fn a_body_that_passes_through_is_narrowed_and_its_model_replaced() {
        let body = r#"{"n":2,"tools":[{"name":"a"},{"name":"b"}],"functions":[{"name":"a"}], "model" : "m","messages":[]}"#;
        let visible = |names: &[&str]| names != ["a"];
        let path = "/v1/chat/completions";
        let read = |body: &[u8]| Request::read_in_scope(Api::Chat, path, body.to_vec(), &visible);
        let mut unread = read(body.as_bytes()).unwrap().unwrap_err();
        assert_eq!(
            (unread.reason, unread.model.as_deref()),
            (PassthroughReason::LegacyFunctions, Some("m"))
        );
        unread.set_model("long name");
        let expected =
            r#"{"n":2,"tools":[{"name":"b"}],"functions":[], "model" : "long name","messages":[]}"#;
        assert_eq!(String::from_utf8(unread.body).unwrap(), expected);
        assert_eq!(PARSES.get(), 1);
        // A body that is not UTF-8 is rejected, because the upstream might be able to read it and find tools that were
        // not removed.
        assert_eq!(read(b"{\"tools\":\"\xff\"}").unwrap_err(), ScopeViolation::NotAnObject);
        assert_eq!(read(b"[NaN]").unwrap_err(), ScopeViolation::NotAnObject);
        // If a field other than the tools changes, the body is parsed a second time.
        let body = r#"{"model":"m","web_search_options":{},"tools":[{"name":"a"},{"name":"b"}],"messages":[]}"#;
        let only_b = |names: &[&str]| names == ["b"];
        PARSES.set(0);
        let read = Request::read_in_scope(Api::Chat, path, body.into(), &only_b).unwrap();
        let left = br#"{"model":"m","tools":[{"name":"b"}],"messages":[]}"#;
        assert_eq!(read.unwrap().text.as_bytes(), left);
        assert_eq!(PARSES.get(), 2);
    }
}
