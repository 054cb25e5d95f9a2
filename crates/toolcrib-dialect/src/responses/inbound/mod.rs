//! A client that defers tools itself, with a backend that does not support that.
//!
//! Codex sends its tools in namespaces, runs a `tool_search` of its own, and loads what that found by
//! items in the history. Most servers that imitate the API drop all of it without a word. Here it
//! becomes what every server knows, functions and calls of them, and in the answer it becomes again
//! what the client said: the client searches, and never learns that nobody else could.

mod fold;
mod names;

use toolcrib_text::json::{self, Fields};

use self::fold::Fold;
use super::item::Item;
use super::pen::{Heard, Pen};
use super::request::is_search;
use crate::splice::{changed, place};
use crate::sse::Event;

/// Maximum number of searches in one response whose arguments are held back.
const SEARCHES: usize = 1024;

/// A request and its answer, translated both ways.
#[derive(Debug)]
pub struct Inbound {
    request: String,
    fold: Fold,
    /// What the client sent, and what went up in its place, of what a response repeats.
    repeated: Vec<(&'static str, String)>,
    pen: Pen,
    /// Indices of items that are searches.
    searches: Vec<u64>,
}

impl Inbound {
    /// Translates a request; `None` where nothing in it needs it.
    pub fn read(text: &str) -> Option<Self> {
        let body = Fields::read(text)?;
        let mut fold = Fold::default();
        let tools = body.get("tools").filter(|raw| *raw != "null");
        fold.tools(tools.unwrap_or("[]"));
        let items = body.get("input").and_then(json::items);
        let input = items.map(|items| {
            let items: Vec<String> =
                items.iter().filter_map(|item| fold.item(item.get())).collect();
            format!("[{}]", items.join(","))
        });
        let choice = body.get("tool_choice").and_then(|raw| chosen(raw, &mut fold));
        if !fold.folded {
            return None;
        }
        let mut repeated = vec![("tools", json::compact(tools.unwrap_or("[]")).into_owned())];
        if choice.is_some() {
            let own = body.get("tool_choice").map(|raw| json::compact(raw).into_owned());
            repeated.extend(own.map(|own| ("tool_choice", own)));
        }
        let mut edits = vec![("tools", Some(fold.written()))];
        edits.extend(input.map(|input| ("input", Some(input))));
        edits.extend(choice.map(|choice| ("tool_choice", Some(choice))));
        let request = body.with(&edits);
        Some(Self { request, fold, repeated, pen: Pen::default(), searches: Vec::new() })
    }

    /// The request for the backend.
    pub fn request(&self) -> &str {
        &self.request
    }

    /// A whole response, as the client expects it. What is none stays as it came.
    pub fn whole(&self, body: &str) -> String {
        match Fields::read(body) {
            Some(response) => changed(body, self.response(body, &response)),
            None => body.to_owned(),
        }
    }

    /// An event of a streamed response; what the client gets for it goes to `out`.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        let data = event.data();
        let Some((data, fields)) =
            data.as_deref().and_then(|data| Some((data, Fields::read(data)?)))
        else {
            out.extend_from_slice(event.raw());
            return;
        };
        let index = fields.get("output_index").and_then(|raw| raw.parse::<u64>().ok());
        let mut changes = Vec::new();
        if let Some(response) = fields.get("response").and_then(Fields::read) {
            changes.extend(self.response(data, &response));
        }
        match (fields.get("item"), index) {
            (Some(raw), _) => {
                if let Some(new) = self.item(raw) {
                    let is_new = |index: &u64| {
                        !self.searches.contains(index) && self.searches.len() < SEARCHES
                    };
                    let new_search = index.filter(is_new).filter(|_| self.is_search(raw));
                    self.searches.extend(new_search);
                    changes.push((place(data, raw), new));
                }
            }
            // The arguments of a search are not told in pieces.
            (None, Some(index)) if self.searches.contains(&index) => {
                self.pen.own();
                return;
            }
            // The last of a call's pieces says its name once more.
            (None, _) => {
                let named = fields.string("name").and_then(|name| self.fold.names.place(&name));
                if let (Some(place_of), Some(raw)) = (named, fields.get("name")) {
                    changes.push((place(data, raw), json::quote(&place_of.name)));
                }
            }
        }
        self.pen.over(Heard { event, data, fields: &fields }, None, changes, out);
    }

    /// What changes in a response that stands in `text`.
    fn response(&self, text: &str, response: &Fields<'_>) -> Vec<(std::ops::Range<usize>, String)> {
        let mut changes = Vec::new();
        for (key, own) in &self.repeated {
            if let Some(raw) = response.get(key) {
                changes.push((place(text, raw), own.clone()));
            }
        }
        for item in response.get("output").and_then(json::items).unwrap_or_default() {
            changes.extend(self.item(item.get()).map(|new| (place(text, item.get()), new)));
        }
        changes
    }

    fn is_search(&self, raw: &str) -> bool {
        let item = Item::read(raw).filter(|item| item.kind == "function_call");
        item.is_some_and(|item| item.name().is_some() && item.name() == self.fold.search)
    }

    /// An item as the client knows it; `None` for one that is as it came.
    fn item(&self, raw: &str) -> Option<String> {
        let item = Item::read(raw).filter(|item| item.kind == "function_call")?;
        let name = item.name()?;
        if self.is_search(raw) {
            let text = item.fields.string("arguments").unwrap_or_default();
            let arguments = match Fields::read(&text) {
                Some(_) => text,
                None if text.trim().is_empty() => "{}".to_owned(),
                None => format!(r#"{{"query":{}}}"#, json::quote(&text)),
            };
            return Some(item.fields.with(&[
                ("type", Some(r#""tool_search_call""#.to_owned())),
                ("name", None),
                ("arguments", Some(arguments)),
                ("execution", Some(r#""client""#.to_owned())),
            ]));
        }
        let place = self.fold.names.place(&name)?;
        Some(item.fields.with(&[
            ("name", Some(json::quote(&place.name))),
            ("namespace", Some(json::quote(&place.namespace))),
        ]))
    }
}

/// What `tool_choice` becomes, where it names what the backend does not know: one tool, or a list.
fn chosen(raw: &str, fold: &mut Fold) -> Option<String> {
    let fields = Fields::read(raw)?;
    let Some(allowed) = fields.get("tools").and_then(json::items) else {
        return named(&fields, fold);
    };
    let mut some = false;
    let tools: Vec<String> = allowed
        .iter()
        .map(|tool| {
            let new = Fields::read(tool.get()).and_then(|tool| named(&tool, fold));
            some |= new.is_some();
            new.unwrap_or_else(|| tool.get().to_owned())
        })
        .collect();
    some.then(|| fields.with(&[("tools", Some(format!("[{}]", tools.join(","))))]))
}

fn named(tool: &Fields<'_>, fold: &mut Fold) -> Option<String> {
    if is_search(tool) {
        let name = json::quote(fold.search.as_deref()?);
        return Some(format!(r#"{{"type":"function","name":{name}}}"#));
    }
    fold.called(tool)
}
