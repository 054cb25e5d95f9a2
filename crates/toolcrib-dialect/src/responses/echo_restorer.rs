//! What a client knows of its own request, to be found again in a response.
//!
//! The API repeats much of a request in each response. What went up is not what the client sent, so
//! that these parts are put back: its tools, the response it continues, and the namespace that it
//! declared a tool in. What its tools tell is read off them when it is first asked for: most turns end
//! without.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use toolcrib_text::json::{self, Fields};

use crate::request::Request;
use crate::splice::range_of;
use crate::tool_list;
use crate::toolset::Toolset;

/// The client's side of a request.
#[derive(Debug)]
pub(super) struct EchoRestorer {
    /// The id of the response it continues, with its quotes.
    previous: Option<String>,
    /// Whether the API keeps the response.
    pub(super) keeps: bool,
    declared: OnceLock<Declared>,
}

/// What a client's tools tell of themselves.
#[derive(Debug, Default)]
struct Declared {
    /// The namespace of each; a name that stands in two places is not here.
    namespaces: HashMap<String, Option<String>>,
}

impl EchoRestorer {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            previous: request.previous.as_ref().map(|kept| json::quote(&kept.id)),
            keeps: request.is_stored,
            declared: OnceLock::new(),
        }
    }

    fn declared(&self, toolset: &Toolset) -> &Declared {
        self.declared.get_or_init(|| Declared::of(toolset.input()))
    }

    /// What to change in a response that stands in `text`, so that it answers what the client sent.
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
        if let (Some(raw), Some(own)) = (response.get("previous_response_id"), &self.previous)
            && raw != own
        {
            changes.push((range_of(text, raw), own.clone()));
        }
        changes
    }

    /// What to change in a call of this tool, so that it has the client's own namespace or none.
    pub(super) fn restore_namespace(
        &self,
        call: &Fields<'_>,
        tool: &str,
        toolset: &Toolset,
    ) -> Vec<Edit> {
        match self.declared(toolset).namespaces.get(tool) {
            Some(own) if call.string("namespace") != *own => {
                vec![("namespace", own.as_deref().map(json::quote))]
            }
            _ => Vec::new(),
        }
    }
}

/// A key of an item, and its new value; `None` to leave it out.
pub(super) type Edit = (&'static str, Option<String>);

impl Declared {
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
