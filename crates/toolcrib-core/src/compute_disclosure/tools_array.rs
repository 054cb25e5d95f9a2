//! Writes a disclosure into a request's array of tools.
//!
//! The existing array is edited, not rebuilt: a provider's own tools keep their positions, groups stay groups, and
//! entries that are not changed keep their bytes.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

use crate::crib::Crib;
use crate::disclosure::{Disclosure, DisclosureKind};
use crate::ingest::group;
use crate::policy::{Verdict, VerdictReason};
use crate::tool::DefinitionFormat;
use toolcrib_text::json::{self, Fields};

impl Crib {
    /// Returns the array of tools to send in place of `input`, which is the array that the caller would have sent. If
    /// nothing is deferred, the result is `input` unchanged.
    ///
    /// Full tools, stubs and a provider's own tools keep their positions. Our own tools follow, in `format`. Appended
    /// tools come last, so that each turn's array begins with the array of the turn before.
    pub fn tools_json<'a>(
        &self,
        shown: &Disclosure,
        input: &'a str,
        format: DefinitionFormat,
    ) -> Cow<'a, str> {
        if shown.passes_through() {
            return Cow::Borrowed(input);
        }
        let mut definitions: FxHashMap<&str, Option<&str>> = FxHashMap::default();
        let mut last: Vec<&str> = Vec::new();
        for tool in &shown.tools {
            let loaded = tool.verdict == Verdict::Full(VerdictReason::Revealed);
            let appended = shown.kind == DisclosureKind::Append && loaded;
            let definition = tool.definition.as_deref();
            last.extend(definition.filter(|_| appended));
            definitions
                .insert(self.catalog().tool(tool.id).name(), definition.filter(|_| !appended));
        }
        let mut entries: Vec<String> = Vec::new();
        let items = json::items(input).unwrap_or_default();
        entries.extend(items.iter().filter_map(|item| edited_entry(item, &definitions)));
        let own: Vec<String> = shown.own_tools.iter().map(|own| own.definition(format)).collect();
        let added = own.iter().map(String::as_str).chain(last);
        if format == DefinitionFormat::Gemini {
            let added: Vec<&str> = added.collect();
            entries.push(format!(r#"{{"functionDeclarations":[{}]}}"#, added.join(",")));
        } else {
            entries.extend(added.map(str::to_owned));
        }
        Cow::Owned(format!("[{}]", entries.join(",")))
    }
}

/// An entry of the array as it will be sent, or `None` if the entry is removed.
fn edited_entry(item: &RawValue, definitions: &FxHashMap<&str, Option<&str>>) -> Option<String> {
    let text = item.get();
    let Some(fields) = Fields::read(text) else { return Some(text.to_owned()) };
    if let Some((key, members)) = group(&fields) {
        let kept: Vec<String> =
            members.iter().filter_map(|member| edited_tool(member.get(), definitions)).collect();
        let list = format!("[{}]", kept.join(","));
        return (!kept.is_empty()).then(|| fields.with(&[(key, Some(list))]));
    }
    edited_tool(text, definitions)
}

fn edited_tool(text: &str, definitions: &FxHashMap<&str, Option<&str>>) -> Option<String> {
    let Some(fields) = Fields::read(text) else { return Some(text.to_owned()) };
    // An entry in no known format is one of the provider's own tools, which are never deferred.
    let Some(format) = DefinitionFormat::of(&fields) else { return Some(text.to_owned()) };
    let name = format.inner(&fields).as_ref().unwrap_or(&fields).string("name")?;
    // A tool that was withheld or is out of scope has no entry in `definitions` and is not sent.
    definitions.get(name.as_str())?.map(str::to_owned)
}
