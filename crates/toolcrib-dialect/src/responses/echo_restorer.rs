//! Restores the parts of the client's request that a response repeats.
//!
//! The API repeats much of the request in every response. The upstream got a different request from the one that the
//! client sent. So the client's values are restored: the tools, the id of the previous response, and the namespace of a
//! called tool. The client's tools are parsed only when they are first needed, and most turns never need them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use toolcrib_text::json::{self, Fields};

use crate::request::Request;
use crate::splice::range_of;
use crate::tool_list;
use crate::toolset::Toolset;

/// The parts of the client's request that are restored in responses.
#[derive(Debug)]
pub(super) struct EchoRestorer {
    /// The id of the previous response that the client sent, as JSON.
    previous: Option<String>,
    /// Whether the API will store the response.
    pub(super) is_stored: bool,
    declared: OnceLock<DeclaredNamespaces>,
}

/// The namespaces that the client's tools declare.
#[derive(Debug, Default)]
struct DeclaredNamespaces {
    /// The namespace of each tool, by the tool's name. Names that are declared twice are left out.
    namespaces: HashMap<String, Option<String>>,
}

impl EchoRestorer {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            previous: request.previous.as_ref().map(|kept| json::quote(&kept.id)),
            is_stored: request.is_stored,
            declared: OnceLock::new(),
        }
    }

    fn declared(&self, toolset: &Toolset) -> &DeclaredNamespaces {
        self.declared.get_or_init(|| DeclaredNamespaces::of(toolset.input()))
    }

    /// Returns the edits that restore the client's values in a response. `response` is part of `text`.
    pub(super) fn restore(
        &self,
        text: &str,
        response: &Fields<'_>,
        toolset: &Toolset,
    ) -> Vec<(Range<usize>, String)> {
        let mut changes = Vec::new();
        if let Some(raw) = response.get("tools").filter(|raw| *raw != toolset.compact()) {
            changes.push((range_of(text, raw), toolset.compact().to_owned()));
        }
        if let (Some(raw), Some(client_value)) =
            (response.get("previous_response_id"), &self.previous)
            && raw != client_value
        {
            changes.push((range_of(text, raw), client_value.clone()));
        }
        changes
    }

    /// Returns the edits that restore the namespace in a call of `tool`: the client's namespace is set, or the
    /// namespace is removed if the client declared none.
    pub(super) fn restore_namespace(
        &self,
        call: &Fields<'_>,
        tool: &str,
        toolset: &Toolset,
    ) -> Vec<FieldEdit> {
        match self.declared(toolset).namespaces.get(tool) {
            Some(client_value) if call.string("namespace") != *client_value => {
                vec![("namespace", client_value.as_deref().map(json::quote))]
            }
            _ => Vec::new(),
        }
    }
}

/// The key of a field and its new value. `None` removes the field.
pub(super) type FieldEdit = (&'static str, Option<String>);

impl DeclaredNamespaces {
    fn of(input: &str) -> Self {
        let mut all: HashMap<String, Option<String>> = HashMap::new();
        let mut twice: Vec<String> = Vec::new();
        let mut add = |name: String, namespace: Option<&String>| {
            if all.insert(name.clone(), namespace.cloned()).is_some() {
                twice.push(name);
            }
        };
        for item in json::items(input).unwrap_or_default() {
            let Some(fields) = Fields::read(item.get()) else { continue };
            match tool_list::members(&fields) {
                Some((_, members)) => {
                    let namespace = fields.string("name");
                    let names =
                        members.iter().filter_map(|member| tool_list::name(&Fields::read(member)?));
                    names.for_each(|name| add(name, namespace.as_ref()));
                }
                None => tool_list::name(&fields).into_iter().for_each(|name| add(name, None)),
            }
        }
        for name in &twice {
            all.remove(name);
        }
        Self { namespaces: all }
    }
}
