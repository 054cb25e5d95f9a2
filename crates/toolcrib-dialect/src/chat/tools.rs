//! The `tools` of Chat Completions.

use toolcrib_core::DefinitionFormat;

use crate::tools::{self, Sheet};

/// What goes up: the client's own, then ours, then what was found.
pub(super) fn write(input: &str, sheet: &Sheet<'_>) -> String {
    let as_it_is = |fields: &toolcrib_text::json::Fields<'_>| fields.with(&[]);
    let mut entries = tools::kept(input, sheet, &as_it_is);
    entries.extend(sheet.own.iter().map(|own| own.definition(DefinitionFormat::Chat)));
    entries.extend(sheet.found.iter().map(|found| (*found).to_owned()));
    format!("[{}]", entries.join(","))
}
