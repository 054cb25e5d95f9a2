//! Writes `tools` for the Responses API.
//!
//! Only functions are ever deferred. Custom tools, MCP servers and the provider's own tools stay unchanged.

use std::collections::HashSet;

use toolcrib_core::{DefinitionFormat, wire_name};
use toolcrib_text::json::{self, Fields};

use crate::mode::{HostedSearch, Mode, ReferenceKind};
use crate::tool_list::{self, ToolEdit, ToolListEdit};

/// Maximum length of a namespace's description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 400;

/// Writes the client's tools, then Toolcrib's own tools or the API's search tool, then the tools that a search found.
pub(super) fn write(input: &str, edit: &ToolListEdit<'_>) -> String {
    let mut entries = match edit.mode {
        Mode::Hosted(HostedSearch::Namespaces) => group_by_server(input, edit),
        _ => tool_list::edited_entries(input, edit, &mark_deferred),
    };
    match edit.mode {
        Mode::Hosted(_) => entries.push(r#"{"type":"tool_search"}"#.to_owned()),
        Mode::Reference(ReferenceKind::SearchOutput) => {
            // The API's search tool replaces Toolcrib's search function. If both were declared, the model would call
            // the function.
            entries.extend(edit.own.first().map(|own| {
                let (description, schema) = (json::quote(&own.description), own.schema);
                format!(
                    r#"{{"type":"tool_search","execution":"client","description":{description},"parameters":{schema}}}"#
                )
            }));
        }
        _ => entries.extend(edit.own.iter().map(|own| own.definition(DefinitionFormat::Responses))),
    }
    entries.extend(edit.appended.iter().map(|found| (*found).to_owned()));
    format!("[{}]", entries.join(","))
}

/// Returns the definition of a tool, marked as deferred.
pub(super) fn mark_deferred(fields: &Fields<'_>) -> String {
    fields.with(&[("defer_loading", Some("true".to_owned()))])
}

/// Returns the client's tools. The deferred tools of each server are grouped into one namespace, which takes the
/// position of the first of them. A deferred tool without a server keeps its position and is marked as deferred.
fn group_by_server(input: &str, edit: &ToolListEdit<'_>) -> Vec<String> {
    let mut groups: Vec<ServerGroup> = Vec::new();
    // Each entry is either `Ok` with the text of a tool, or `Err` with the position of a group.
    let mut entries: Vec<Result<String, usize>> = Vec::new();
    for item in json::items(input).unwrap_or_default() {
        let text = item.get();
        let group = Fields::read(text).and_then(|fields| {
            let name =
                tool_list::name(&fields).filter(|_| tool_list::members(&fields).is_none())?;
            let is_deferred = (edit.tool_edit)(&name) == ToolEdit::MarkDeferred;
            let server = (edit.group)(&name).filter(|_| is_deferred)?;
            Some((server.to_owned(), name, mark_deferred(&fields)))
        });
        let Some((server, name, definition)) = group else {
            // `edited_entries` handles namespaces and tools without a server. It takes a list, so the tool is passed as
            // a list of one.
            entries.extend(
                tool_list::edited_entries(&format!("[{text}]"), edit, &mark_deferred)
                    .into_iter()
                    .map(Ok),
            );
            continue;
        };
        let at = groups.iter().position(|group| group.server == server).unwrap_or_else(|| {
            entries.push(Err(groups.len()));
            groups.push(ServerGroup { server, ..ServerGroup::default() });
            groups.len() - 1
        });
        groups[at].names.push(name);
        groups[at].tools.push(definition);
    }
    let mut used_names: HashSet<String> = tool_list::names(input).into_iter().collect();
    used_names.extend(json::items(input).unwrap_or_default().iter().filter_map(|item| {
        let fields = Fields::read(item.get())?;
        fields.string("name")
    }));
    let written: Vec<String> = groups.iter().map(|group| group.write(&mut used_names)).collect();
    entries.into_iter().map(|entry| entry.unwrap_or_else(|at| written[at].clone())).collect()
}

/// The deferred tools of one server.
#[derive(Debug, Default)]
struct ServerGroup {
    server: String,
    names: Vec<String>,
    tools: Vec<String>,
}

impl ServerGroup {
    fn write(&self, used_names: &mut HashSet<String>) -> String {
        let mut name = wire_name::for_full_name(&self.server).into_owned();
        if used_names.contains(&name) {
            // A namespace must not have the same name as a function.
            name = wire_name::with_hash("namespace", &self.server);
        }
        used_names.insert(name.clone());
        let mut description = format!("Tools of {}:", self.server);
        for (at, tool) in self.names.iter().enumerate() {
            if description.len() + tool.len() > MAX_DESCRIPTION_BYTES {
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
