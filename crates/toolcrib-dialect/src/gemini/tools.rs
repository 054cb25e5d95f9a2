//! The `tools` of Gemini: groups of declarations, beside what the provider has of its own.

use toolcrib_core::DefinitionFormat;
use toolcrib_text::json::Fields;

use crate::tool_list::{self, ToolListEdit};

/// What goes up: the client's own, then ours, then what was found. They join the last group that is
/// left, since some models refuse functions in several.
///
/// Ours are declared with `parametersJsonSchema` whatever the client's are: the choice is each
/// declaration's, and the older form has no object with free fields, which the bridge needs.
pub(super) fn write(input: &str, edit: &ToolListEdit<'_>) -> String {
    let mut entries = tool_list::kept(input, edit, &|fields| fields.with(&[]));
    let more = edit.own.iter().map(|own| own.definition(DefinitionFormat::Gemini));
    let more: Vec<String> =
        more.chain(edit.found.iter().map(|found| (*found).to_owned())).collect();
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
