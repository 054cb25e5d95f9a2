//! Writes `tools` for Gemini: groups of function declarations, and the provider's own tools.

use toolcrib_core::DefinitionFormat;
use toolcrib_text::json::Fields;

use crate::tool_list::{self, ToolListEdit};

/// Writes the client's tools, then Toolcrib's own tools, then the tools that a search found. Toolcrib's own tools and
/// the found tools are added to the client's last group of functions, because some models reject functions in several
/// groups.
///
/// Toolcrib's own tools are declared with `parametersJsonSchema`, even if the client uses the older `parameters`. Each
/// declaration may use either field, but `parameters` cannot describe the free-form object that the bridge needs.
pub(super) fn write(input: &str, edit: &ToolListEdit<'_>) -> String {
    let mut entries = tool_list::edited_entries(input, edit, &|fields| fields.with(&[]));
    let more = edit.own.iter().map(|own| own.definition(DefinitionFormat::Gemini));
    let more: Vec<String> =
        more.chain(edit.appended.iter().map(|found| (*found).to_owned())).collect();
    let grown = entries.iter().enumerate().rev().find_map(|(at, entry)| {
        let fields = Fields::read(entry)?;
        let (key, members) = tool_list::members(&fields)?;
        let all: Vec<&str> = members.into_iter().chain(more.iter().map(String::as_str)).collect();
        Some((at, fields.with(&[(key, Some(format!("[{}]", all.join(","))))])))
    });
    match grown {
        Some((at, entry)) => entries[at] = entry,
        None => entries.push(format!(r#"{{"functionDeclarations":[{}]}}"#, more.join(","))),
    }
    format!("[{}]", entries.join(","))
}
