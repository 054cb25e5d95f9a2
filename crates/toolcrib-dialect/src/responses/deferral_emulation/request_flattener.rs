//! Translates a request with deferral into a request with plain functions.

use toolcrib_text::json::{self, Fields};

use super::flat_names::FlatNames;
use crate::responses::item::Item;
use crate::responses::request::is_tool_search;
use crate::tool_list;

/// The name of the search function, and its description and parameters if the client does not specify them.
const SEARCH_NAME: &str = "tool_search";
const SEARCH_DESCRIPTION: &str = "Finds tools and loads them.";
const SEARCH_PARAMETERS: &str =
    r#"{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}"#;

/// Translates the tools and the history of a request, and collects the resulting tools.
#[derive(Debug, Default)]
pub(super) struct RequestFlattener {
    pub(super) names: FlatNames,
    /// The name of the function that replaces the client's search.
    pub(super) search: Option<String>,
    /// Whether the client uses the provider's hosted search. If so, all tools are declared, because it is unknown which
    /// tools this search would have found.
    hosted: bool,
    tools: Vec<String>,
    declared: Vec<String>,
    /// Whether anything in the request was changed.
    pub(super) changed: bool,
}

impl RequestFlattener {
    /// Translates and declares the client's `tools`.
    pub(super) fn add_tools(&mut self, input: &str) {
        let all: Vec<&str> =
            json::items(input).unwrap_or_default().iter().map(|item| item.get()).collect();
        let read: Vec<Option<Fields<'_>>> = all.iter().map(|text| Fields::read(text)).collect();
        // Tools without a namespace keep their names, so their names are reserved first.
        for fields in read.iter().flatten().filter(|fields| tool_list::members(fields).is_none()) {
            if let Some(name) = tool_list::name(fields) {
                self.names.reserve(name);
            }
            self.hosted |=
                is_tool_search(fields) && fields.string("execution").as_deref() != Some("client");
        }
        for (text, fields) in all.iter().zip(&read) {
            match fields {
                Some(fields) if is_tool_search(fields) => self.add_search(fields),
                Some(fields) => self.declare(text, fields, self.hosted),
                None => self.tools.push((*text).to_owned()),
            }
        }
    }

    fn add_search(&mut self, fields: &Fields<'_>) {
        self.changed = true;
        if self.hosted || self.search.is_some() {
            return;
        }
        let name = self.names.unique(SEARCH_NAME);
        let raw_field = |key: &str| fields.get(key).filter(|raw| *raw != "null").map(str::to_owned);
        let description =
            raw_field("description").unwrap_or_else(|| json::quote(SEARCH_DESCRIPTION));
        let parameters = raw_field("parameters").unwrap_or_else(|| SEARCH_PARAMETERS.to_owned());
        self.tools.push(format!(
            r#"{{"type":"function","name":{},"description":{description},"parameters":{parameters},"strict":false}}"#,
            json::quote(&name)
        ));
        self.search = Some(name);
    }

    /// Declares a tool, or every tool of a namespace, under its flat name. No tool is declared twice. A deferred tool
    /// is declared only if `loaded` is set.
    fn declare(&mut self, text: &str, fields: &Fields<'_>, loaded: bool) {
        let Some((_, members)) = tool_list::members(fields) else {
            let name = tool_list::name(fields);
            return self.declare_one(text, fields, name, loaded);
        };
        self.changed = true;
        let namespace = fields.string("name").unwrap_or_default();
        for member in members {
            let Some(fields) = Fields::read(member) else { continue };
            let name = tool_list::name(&fields).map(|name| self.names.flatten(&namespace, &name));
            let renamed = fields.with(&[("name", name.as_deref().map(json::quote))]);
            if let Some(fields) = Fields::read(&renamed) {
                self.declare_one(&renamed, &fields, name, loaded);
            }
        }
    }

    fn declare_one(&mut self, text: &str, fields: &Fields<'_>, name: Option<String>, loaded: bool) {
        let has_defer_field = fields.get("defer_loading").is_some();
        self.changed |= has_defer_field;
        if !loaded && fields.get("defer_loading") == Some("true") {
            return;
        }
        if let Some(name) = name {
            if self.declared.contains(&name) {
                return;
            }
            self.declared.push(name);
        }
        let text =
            if has_defer_field { fields.with(&[("defer_loading", None)]) } else { text.to_owned() };
        self.tools.push(text);
    }

    /// Declares the tools in a list, and returns the names of those that were not declared before.
    fn load(&mut self, list: &str) -> Vec<String> {
        let before = self.declared.len();
        for item in json::items(list).unwrap_or_default() {
            if let Some(fields) = Fields::read(item.get()) {
                self.declare(item.get(), &fields, true);
            }
        }
        self.declared[before..].to_vec()
    }

    /// Translates an item of the history. Returns `None` if the backend must not get the item.
    pub(super) fn flatten_item(&mut self, text: &str) -> Option<String> {
        let Some(item) = Item::read(text) else { return Some(text.to_owned()) };
        let listed = item.fields.get("tools");
        match (item.kind.as_str(), item.call_id()) {
            // Items that only load tools are removed, and so are items of the provider's hosted search. The tools in
            // them are declared first.
            ("additional_tools", _) | ("tool_search_call" | "tool_search_output", None) => {
                self.changed = true;
                self.load(listed.unwrap_or_default());
                None
            }
            ("tool_search_call", Some(id)) => {
                self.changed = true;
                let search = json::quote(self.search.as_deref().unwrap_or(SEARCH_NAME));
                let arguments = item.client_call().map(|call| call.arguments).unwrap_or_default();
                let (id, arguments) = (json::quote(&id), json::quote(&arguments));
                Some(format!(
                    r#"{{"type":"function_call","call_id":{id},"name":{search},"arguments":{arguments}}}"#
                ))
            }
            ("tool_search_output", Some(id)) => {
                self.changed = true;
                let output = match self.load(listed.unwrap_or_default()).join(", ") {
                    none if none.is_empty() => "Nothing new was loaded.".to_owned(),
                    names => format!("Loaded, and callable from now on: {names}"),
                };
                let (id, output) = (json::quote(&id), json::quote(&output));
                Some(format!(
                    r#"{{"type":"function_call_output","call_id":{id},"output":{output}}}"#
                ))
            }
            _ => Some(self.flatten_namespace(&item.fields).unwrap_or_else(|| text.to_owned())),
        }
    }

    /// Removes the namespace of a call, an output or a choice, and replaces the name with the flat name. Returns `None`
    /// if there is no namespace.
    pub(super) fn flatten_namespace(&mut self, fields: &Fields<'_>) -> Option<String> {
        let namespace = fields.string("namespace")?;
        self.changed = true;
        let name = fields.string("name").map(|name| self.names.flatten(&namespace, &name));
        let mut edits = vec![("namespace", None)];
        edits.extend(name.map(|name| ("name", Some(json::quote(&name)))));
        Some(fields.with(&edits))
    }

    /// Returns `tools` for the backend: first the client's tools, then those that the history loads, in order.
    pub(super) fn tools_json(&self) -> String {
        format!("[{}]", self.tools.join(","))
    }
}
