//! Emulates deferral for a client that defers tools itself, if the backend does not support deferral.
//!
//! Codex, for example, sends its tools in namespaces, has a `tool_search` of its own, and loads found tools with items
//! in the history. Most servers that are compatible with the API silently drop all of this. Here, the request is
//! translated to functions and function calls, which every server supports. The response is translated back.

mod flat_names;
mod request_flattener;

use toolcrib_text::json::{self, Fields};

use self::request_flattener::RequestFlattener;
use super::event_writer::{EventWriter, UpstreamEvent};
use super::item::Item;
use super::request::is_tool_search;
use crate::splice::{range_of, splice};
use crate::sse::Event;

/// Maximum number of search calls in one response that are tracked, so that their argument events can be hidden.
const MAX_SEARCHES: usize = 1024;

/// A translated request, and the state that is needed to translate its response back.
#[derive(Debug)]
pub struct DeferralEmulation {
    request: String,
    flattener: RequestFlattener,
    /// Request fields that responses repeat, each with the value that the client sent.
    echoed: Vec<(&'static str, String)>,
    writer: EventWriter,
    /// The output indices of search calls.
    searches: Vec<u64>,
}

impl DeferralEmulation {
    /// Translates a request. Returns `None` if the request does not use deferral.
    pub fn read(text: &str) -> Option<Self> {
        let body = Fields::read(text)?;
        let mut flattener = RequestFlattener::default();
        let tools = body.get("tools").filter(|raw| *raw != "null");
        flattener.add_tools(tools.unwrap_or("[]"));
        let items = body.get("input").and_then(json::items);
        let input = items.map(|items| {
            let items: Vec<String> =
                items.iter().filter_map(|item| flattener.flatten_item(item.get())).collect();
            format!("[{}]", items.join(","))
        });
        let choice = body.get("tool_choice").and_then(|raw| flatten_choice(raw, &mut flattener));
        if !flattener.changed {
            return None;
        }
        let mut echoed = vec![("tools", json::compact(tools.unwrap_or("[]")).into_owned())];
        if choice.is_some() {
            let client_value = body.get("tool_choice").map(|raw| json::compact(raw).into_owned());
            echoed.extend(client_value.map(|client_value| ("tool_choice", client_value)));
        }
        let mut edits = vec![("tools", Some(flattener.tools_json()))];
        edits.extend(input.map(|input| ("input", Some(input))));
        edits.extend(choice.map(|choice| ("tool_choice", Some(choice))));
        let request = body.with(&edits);
        Some(Self {
            request,
            flattener,
            echoed,
            writer: EventWriter::default(),
            searches: Vec::new(),
        })
    }

    /// Returns the request for the backend.
    pub fn request(&self) -> &str {
        &self.request
    }

    /// Translates a complete response back. A body that is not a JSON object is returned unchanged.
    pub fn restore_response(&self, body: &str) -> String {
        match Fields::read(body) {
            Some(response) => splice(body, self.response_edits(body, &response)),
            None => body.to_owned(),
        }
    }

    /// Translates an event of a streamed response back, and writes the result to `out`.
    pub fn restore_event(&mut self, event: &Event, out: &mut Vec<u8>) {
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
            changes.extend(self.response_edits(data, &response));
        }
        match (fields.get("item"), index) {
            (Some(raw), _) => {
                if let Some(new) = self.restore_item(raw) {
                    let is_new = |index: &u64| {
                        !self.searches.contains(index) && self.searches.len() < MAX_SEARCHES
                    };
                    let new_search = index.filter(is_new).filter(|_| self.is_search(raw));
                    self.searches.extend(new_search);
                    changes.push((range_of(data, raw), new));
                }
            }
            // The client's `tool_search_call` has no argument events, so those of the function call are hidden.
            (None, Some(index)) if self.searches.contains(&index) => {
                self.writer.renumber();
                return;
            }
            // The event that ends a call's arguments repeats the tool's name, which must be restored as well.
            (None, _) => {
                let named =
                    fields.string("name").and_then(|name| self.flattener.names.original(&name));
                if let (Some(tool), Some(raw)) = (named, fields.get("name")) {
                    changes.push((range_of(data, raw), json::quote(&tool.name)));
                }
            }
        }
        self.writer.write_edited(
            UpstreamEvent { event, data, fields: &fields },
            None,
            changes,
            out,
        );
    }

    /// Returns the edits that translate a response back. `response` is part of `text`.
    fn response_edits(
        &self,
        text: &str,
        response: &Fields<'_>,
    ) -> Vec<(std::ops::Range<usize>, String)> {
        let mut changes = Vec::new();
        for (key, client_value) in &self.echoed {
            if let Some(raw) = response.get(key) {
                changes.push((range_of(text, raw), client_value.clone()));
            }
        }
        for item in response.get("output").and_then(json::items).unwrap_or_default() {
            changes
                .extend(self.restore_item(item.get()).map(|new| (range_of(text, item.get()), new)));
        }
        changes
    }

    fn is_search(&self, raw: &str) -> bool {
        let item = Item::read(raw).filter(|item| item.kind == "function_call");
        item.is_some_and(|item| item.name().is_some() && item.name() == self.flattener.search)
    }

    /// Translates an item back: a call gets the name and namespace that the client declared, or becomes a search call.
    /// Returns `None` if nothing changes.
    fn restore_item(&self, raw: &str) -> Option<String> {
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
        let tool = self.flattener.names.original(&name)?;
        Some(item.fields.with(&[
            ("name", Some(json::quote(&tool.name))),
            ("namespace", Some(json::quote(&tool.namespace))),
        ]))
    }
}

/// Translates `tool_choice`, if it names a search or tools in namespaces, which the backend does not know. Returns
/// `None` if nothing changes.
fn flatten_choice(raw: &str, flattener: &mut RequestFlattener) -> Option<String> {
    let fields = Fields::read(raw)?;
    let Some(allowed) = fields.get("tools").and_then(json::items) else {
        return flatten_chosen_tool(&fields, flattener);
    };
    let mut some = false;
    let tools: Vec<String> = allowed
        .iter()
        .map(|tool| {
            let new =
                Fields::read(tool.get()).and_then(|tool| flatten_chosen_tool(&tool, flattener));
            some |= new.is_some();
            new.unwrap_or_else(|| tool.get().to_owned())
        })
        .collect();
    some.then(|| fields.with(&[("tools", Some(format!("[{}]", tools.join(","))))]))
}

fn flatten_chosen_tool(tool: &Fields<'_>, flattener: &mut RequestFlattener) -> Option<String> {
    if is_tool_search(tool) {
        let name = json::quote(flattener.search.as_deref()?);
        return Some(format!(r#"{{"type":"function","name":{name}}}"#));
    }
    flattener.flatten_namespace(tool)
}
