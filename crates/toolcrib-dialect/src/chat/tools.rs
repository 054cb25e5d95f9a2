//! Writes `tools` for Chat Completions.

use toolcrib_core::DefinitionFormat;

use crate::tool_list::{self, ToolListEdit};

/// Writes the client's tools, then Toolcrib's own tools, then the tools that a search found.
pub(super) fn write(input: &str, edit: &ToolListEdit<'_>) -> String {
    let as_it_is = |fields: &toolcrib_text::json::Fields<'_>| fields.with(&[]);
    let mut entries = tool_list::edited_entries(input, edit, &as_it_is);
    entries.extend(edit.own.iter().map(|own| own.definition(DefinitionFormat::Chat)));
    entries.extend(edit.appended.iter().map(|found| (*found).to_owned()));
    format!("[{}]", entries.join(","))
}
