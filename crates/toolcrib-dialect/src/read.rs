//! Reading a body: once, whatever is to be known of it.
//!
//! A hundred kilobytes of tools are most of what a request costs before it is sent, so a body is parsed by
//! one function, which also leaves out the tools that the caller may not know of. Everything later works
//! on the places that were found here.

use std::ops::Range;

use toolcrib_core::json::{self, Fields};

use crate::api::Api;
use crate::apis;
use crate::pass::{Bypass, Facts, pass_through};
use crate::request::{Defers, Previous, Request, model_in_path};
use crate::splice::{Edits, place};
use crate::tools;

/// A body after it was read.
pub type Reading = Result<Request, Unread>;

/// A body that is not rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Why not.
    pub why: Bypass,
    /// The body.
    pub body: Vec<u8>,
    /// The model it asks for, if that could be read.
    pub model: Option<String>,
    /// Whether it is a JSON object, so that tools in it were seen.
    pub is_object: bool,
    /// The place of the model's name.
    pub(crate) model_at: Option<Range<usize>>,
}

impl Unread {
    /// Asks for another model, if the body names one.
    pub fn rename(&mut self, model: &str) {
        let Some(place) = self.model_at.take() else { return };
        let new = json::quote(model).into_bytes();
        self.model_at = Some(place.start..place.start + new.len());
        self.body.splice(place, new);
    }
}

impl Request {
    /// Reads a body. `target` is the path and query it was sent to: some APIs have the model and the
    /// stream there.
    pub fn read(api: Api, target: &str, body: Vec<u8>) -> Reading {
        read(api, target, body, None)
    }

    /// Reads a body and leaves out the tools that `visible` does not let through: what lies outside a
    /// caller's scope does not exist.
    pub fn read_visible(
        api: Api,
        target: &str,
        body: Vec<u8>,
        visible: &dyn Fn(&str) -> bool,
    ) -> Reading {
        read(api, target, body, Some(visible))
    }
}

fn read(api: Api, target: &str, body: Vec<u8>, visible: Option<&dyn Fn(&str) -> bool>) -> Reading {
    // A body that is not UTF-8 goes up as it came, unless its caller may not know of all tools: another
    // program may be able to read it, so the part that is text is narrowed all the same.
    let (text, raw) = match (String::from_utf8(body), visible) {
        (Ok(text), _) => (text, None),
        (Err(error), Some(_)) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            (text, Some(error.into_bytes()))
        }
        (Err(error), None) => return Err(not_json(api, target, error.into_bytes())),
    };
    let Some(body) = parse(&text) else {
        return Err(not_json(api, target, raw.unwrap_or_else(|| text.into_bytes())));
    };
    let hidden = visible.map(|visible| hidden(&text, &body, visible)).unwrap_or_default();
    let model_at = body.get("model").map(|raw| place(&text, raw));
    let model = if api == Api::Gemini { model_in_path(target) } else { body.string("model") };
    let read = request(api, target, &text, &body, &hidden);
    let edits = Edits::new(hidden);
    if let Some(body) = raw.filter(|_| edits.is_empty()) {
        return Err(Unread { why: not_this_api(), body, model, is_object: true, model_at: None });
    }
    match read {
        Ok(mut request) => {
            (request.text, request.model_at) = (text, model_at);
            request.edit(&edits);
            Ok(request)
        }
        Err(why) => Err(Unread {
            why,
            body: edits.apply(&text).into_bytes(),
            model,
            is_object: true,
            model_at: model_at.map(|place| edits.moved(&place)),
        }),
    }
}

/// The request in a body, still without its text: the places are those of the text as it came.
fn request(
    api: Api,
    target: &str,
    text: &str,
    body: &Fields<'_>,
    hidden: &[(Range<usize>, String)],
) -> Result<Request, Bypass> {
    let dialect = apis::of(api);
    let outline = dialect.outline(body, target);
    let came = body.get("tools").unwrap_or("null");
    let at = body.get("tools").map(|raw| place(text, raw));
    // What the caller sees of them.
    let seen = hidden.iter().find(|(place, _)| Some(place) == at.as_ref());
    let tools = seen.map_or(came, |(_, left)| left);
    if let Some(why) = pass_through(Facts::Outline { outline: &outline, tools }) {
        return Err(why);
    }
    let conversation = outline.history.and_then(|history| dialect.conversation(text, history));
    let model = outline.model.or_else(|| body.string("model"));
    let read = conversation.zip(model).zip(outline.history.zip(at));
    let Some(((conversation, model), (history, at))) = read else {
        return Err(not_this_api());
    };
    let defers = dialect.defers(tools, history, conversation.loads_tools);
    let defers = defers.or_else(|| tools::bring_a_search(tools).then_some(Defers::OwnTools));
    let path = target.split('?').next().unwrap_or_default();
    Ok(Request {
        api,
        text: String::new(),
        model,
        stream: outline.stream,
        counts: api.counts_at(path),
        choice: outline.choice,
        tools: at,
        history: place(text, history),
        stretches: conversation.stretches,
        previous: outline.previous.map(|(id, raw)| Previous { id, place: place(text, raw) }),
        keeps: outline.keeps,
        defers,
        thinks: outline.thinks,
        window: window(body),
        model_at: None,
    })
}

/// `num_ctx`, which Ollama and servers like it take: at the top, or among the `options`.
fn window(body: &Fields<'_>) -> Option<usize> {
    let options = body.get("options").and_then(Fields::read);
    let inner = options.as_ref().and_then(|options| options.get("num_ctx"));
    let window: usize = inner.or_else(|| body.get("num_ctx"))?.parse().ok()?;
    (window > 0).then_some(window)
}

/// The changes that leave out what the caller may not know of, whatever else is odd about the body.
fn hidden(
    text: &str,
    body: &Fields<'_>,
    visible: &dyn Fn(&str) -> bool,
) -> Vec<(Range<usize>, String)> {
    let lists = ["tools", "functions"].into_iter().filter_map(|key| body.get(key));
    lists.filter_map(|list| Some((place(text, list), tools::only(list, visible)?))).collect()
}

fn not_json(api: Api, target: &str, body: Vec<u8>) -> Unread {
    let model = if api == Api::Gemini { model_in_path(target) } else { None };
    Unread { why: not_this_api(), body, model, is_object: false, model_at: None }
}

fn not_this_api() -> Bypass {
    pass_through(Facts::NotThisApi).unwrap_or(Bypass::Malformed)
}

/// The one place where a body is parsed.
fn parse(text: &str) -> Option<Fields<'_>> {
    #[cfg(test)]
    tests::PARSES.with(|parses| parses.set(parses.get() + 1));
    Fields::read(text)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use toolcrib_core::FourChars;

    use super::*;
    use crate::exchange::Exchange;
    use crate::exchange::action::{Action, Setup};
    use crate::toolset::Toolset;

    thread_local! {
        /// How many bodies this thread has parsed.
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

    /// A request with tools left out, another model's name and a hidden round; how often it was parsed.
    #[test]
    fn a_body_is_parsed_once() {
        let path = "/v1/chat/completions";
        let visible = |name: &str| name != "t39";
        let mut request =
            Request::read_visible(Api::Chat, path, body(40).into_bytes(), &visible).unwrap();
        request.rename("another");
        let mut setup = Setup::new("localhost", Arc::new(FourChars));
        let mut settings = toolcrib_core::Settings::default();
        settings.activation.mode = toolcrib_core::policy::Mode::On;
        setup.settings = Arc::new(settings);
        let mut exchange = Exchange::new(Api::Chat, path, Ok(request), setup);
        let calls = [
            r#"{"id":"call_1","type":"function","function":{"name":"tool_search","arguments":"{\"query\":\"report\"}"}}"#,
            r#"{"id":"call_2","type":"function","function":{"name":"tool_call","arguments":"{\"name\":\"t4\"}"}}"#,
        ];
        let mut calls = calls.into_iter();
        let mut sent = Vec::new();
        loop {
            match exchange.next().expect("an action") {
                Action::Prepare(plan) => {
                    let toolset = Toolset::new(*plan, exchange.tools());
                    exchange.prepared(Arc::new(toolset));
                }
                Action::Send(outgoing) => {
                    sent.push(String::from_utf8(outgoing.body.to_vec()).unwrap());
                    let call = calls.next().unwrap();
                    exchange.answered(200, false);
                    let answer = format!(
                        r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","tool_calls":[{call}]}},"finish_reason":"tool_calls"}}]}}"#
                    );
                    exchange.bytes(answer.into());
                    exchange.end();
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
    fn what_is_not_rewritten_is_narrowed_and_renamed_too() {
        let body = r#"{"n":2,"tools":[{"name":"a"},{"name":"b"}],"functions":[{"name":"a"}], "model" : "m","messages":[]}"#;
        let visible = |name: &str| name != "a";
        let path = "/v1/chat/completions";
        let mut unread = Request::read_visible(Api::Chat, path, body.into(), &visible).unwrap_err();
        assert_eq!((unread.why, unread.model.as_deref()), (Bypass::LegacyFunctions, Some("m")));
        unread.rename("long name");
        let expected =
            r#"{"n":2,"tools":[{"name":"b"}],"functions":[], "model" : "long name","messages":[]}"#;
        assert_eq!(String::from_utf8(unread.body).unwrap(), expected);
        assert_eq!(PARSES.get(), 1);
        // A body that is not UTF-8 keeps its bytes, unless there is something to leave out.
        let read = |name: &str| {
            let start = br#"{"messages":[],"x":""#;
            let tools = format!(r#"","tools":[{{"name":"{name}"}}]}}"#);
            let body = [start, &[0xff][..], tools.as_bytes()].concat();
            let unread = Request::read_visible(Api::Chat, path, body.clone(), &visible);
            (body, unread.unwrap_err())
        };
        let (body, unread) = read("b");
        assert_eq!((unread.why, unread.body), (Bypass::Malformed, body));
        let (_, unread) = read("a");
        assert_eq!(
            String::from_utf8_lossy(&unread.body),
            "{\"messages\":[],\"x\":\"\u{fffd}\",\"tools\":[]}"
        );
    }
}
