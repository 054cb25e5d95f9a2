//! The `tools` of the Responses API.
//!
//! Only functions are ever deferred: custom tools, MCP servers and what the provider runs itself stay as
//! they came.

use std::collections::HashSet;

use toolcrib_core::{DefinitionFormat, wire_name};
use toolcrib_text::json::{self, Fields};

use crate::mode::{HostedSearch, Mode, ReferenceKind};
use crate::tool_list::{self, ToolEdit, ToolListEdit};

/// Characters of the names that a namespace is described by.
const DESCRIPTION: usize = 400;

/// What goes up: the client's own, then the search, then what was found.
pub(super) fn write(input: &str, edit: &ToolListEdit<'_>) -> String {
    let mut entries = match edit.mode {
        Mode::Hosted(HostedSearch::Namespaces) => grouped(input, edit),
        _ => tool_list::kept(input, edit, &deferred),
    };
    match edit.mode {
        Mode::Hosted(_) => entries.push(r#"{"type":"tool_search"}"#.to_owned()),
        Mode::Reference(ReferenceKind::SearchOutput) => {
            // A function beside it would be called in its place.
            entries.extend(edit.own.first().map(|own| {
                let (description, schema) = (json::quote(&own.description), own.schema);
                format!(
                    r#"{{"type":"tool_search","execution":"client","description":{description},"parameters":{schema}}}"#
                )
            }));
        }
        _ => entries.extend(edit.own.iter().map(|own| own.definition(DefinitionFormat::Responses))),
    }
    entries.extend(edit.found.iter().map(|found| (*found).to_owned()));
    format!("[{}]", entries.join(","))
}

/// A tool that the provider's own search finds.
pub(super) fn deferred(fields: &Fields<'_>) -> String {
    fields.with(&[("defer_loading", Some("true".to_owned()))])
}

/// The client's tools, with those that are deferred in a namespace for each of their servers. It
/// stands where the first of them stood. A tool of no server is deferred where it is.
fn grouped(input: &str, edit: &ToolListEdit<'_>) -> Vec<String> {
    let mut groups: Vec<Group> = Vec::new();
    // Either text of its own, or a group by its place.
    let mut row: Vec<Result<String, usize>> = Vec::new();
    for item in json::items(input).unwrap_or_default() {
        let text = item.get();
        let group = Fields::read(text).and_then(|fields| {
            let name =
                tool_list::name(&fields).filter(|_| tool_list::members(&fields).is_none())?;
            let marked = (edit.keep)(&name) == ToolEdit::MarkDeferred;
            let server = (edit.group)(&name).filter(|_| marked)?;
            Some((server.to_owned(), name, deferred(&fields)))
        });
        let Some((server, name, definition)) = group else {
            // A list of one, for what is done inside of namespaces and to tools of no server.
            row.extend(tool_list::kept(&format!("[{text}]"), edit, &deferred).into_iter().map(Ok));
            continue;
        };
        let at = groups.iter().position(|group| group.server == server).unwrap_or_else(|| {
            row.push(Err(groups.len()));
            groups.push(Group { server, ..Group::default() });
            groups.len() - 1
        });
        groups[at].names.push(name);
        groups[at].tools.push(definition);
    }
    let mut taken: HashSet<String> = tool_list::names(input).into_iter().collect();
    taken.extend(json::items(input).unwrap_or_default().iter().filter_map(|item| {
        let fields = Fields::read(item.get())?;
        fields.string("name")
    }));
    let written: Vec<String> = groups.iter().map(|group| group.write(&mut taken)).collect();
    row.into_iter().map(|entry| entry.unwrap_or_else(|at| written[at].clone())).collect()
}

/// The deferred tools of one server.
#[derive(Debug, Default)]
struct Group {
    server: String,
    names: Vec<String>,
    tools: Vec<String>,
}

impl Group {
    fn write(&self, taken: &mut HashSet<String>) -> String {
        let mut name = wire_name::of_full(&self.server).into_owned();
        if taken.contains(&name) {
            // A namespace and a function may not share a name.
            name = wire_name::distinct("namespace", &self.server);
        }
        taken.insert(name.clone());
        let mut description = format!("Tools of {}:", self.server);
        for (at, tool) in self.names.iter().enumerate() {
            if description.len() + tool.len() > DESCRIPTION {
                let more = (self.names.len() - at).to_string();
                description.extend([" and ", &more, " more"]);
                break;
            }
            description.push_str(if at == 0 { " " } else { ", " });
            description.push_str(tool);
        }
        let (name, description) = (json::quote(&name), json::quote(&description));
        let tools = self.tools.join(",");
        format!(
            r#"{{"type":"namespace","name":{name},"description":{description},"tools":[{tools}]}}"#
        )
    }
}
