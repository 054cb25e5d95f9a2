//! A disclosure written into the tools array of a request.
//!
//! The array that came in is edited and not made anew: a provider's own tools stay where they were,
//! groups stay groups, and what is not ours to touch keeps its bytes.

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
    /// The tools array to send in place of `input`, the one that came in: the very same text when
    /// nothing is deferred.
    ///
    /// Full tools and stubs keep their places, a provider's own tools too. Ours follow, in `shape`,
    /// and appended ones come last, so that each turn's array begins with the last turn's.
    pub fn tools_json<'a>(
        &self,
        shown: &Disclosure,
        input: &'a str,
        shape: DefinitionFormat,
    ) -> Cow<'a, str> {
        if shown.passes_through() {
            return Cow::Borrowed(input);
        }
        let mut places: FxHashMap<&str, Option<&str>> = FxHashMap::default();
        let mut last: Vec<&str> = Vec::new();
        for tool in &shown.tools {
            let loaded = tool.verdict == Verdict::Full(VerdictReason::Revealed);
            let appended = shown.kind == DisclosureKind::Append && loaded;
            let definition = tool.definition.as_deref();
            last.extend(definition.filter(|_| appended));
            places.insert(self.catalog().tool(tool.id).name(), definition.filter(|_| !appended));
        }
        let mut entries: Vec<String> = Vec::new();
        let items = json::items(input).unwrap_or_default();
        entries.extend(items.iter().filter_map(|item| entry(item, &places)));
        let own: Vec<String> = shown.own_tools.iter().map(|own| own.definition(shape)).collect();
        let added = own.iter().map(String::as_str).chain(last);
        if shape == DefinitionFormat::Gemini {
            let added: Vec<&str> = added.collect();
            entries.push(format!(r#"{{"functionDeclarations":[{}]}}"#, added.join(",")));
        } else {
            entries.extend(added.map(str::to_owned));
        }
        Cow::Owned(format!("[{}]", entries.join(",")))
    }
}

/// What becomes of one entry of the array; `None` for one that is not sent.
fn entry(item: &RawValue, places: &FxHashMap<&str, Option<&str>>) -> Option<String> {
    let text = item.get();
    let Some(fields) = Fields::read(text) else { return Some(text.to_owned()) };
    if let Some((key, members)) = group(&fields) {
        let kept: Vec<String> =
            members.iter().filter_map(|member| single(member.get(), places)).collect();
        let list = format!("[{}]", kept.join(","));
        return (!kept.is_empty()).then(|| fields.with(&[(key, Some(list))]));
    }
    single(text, places)
}

fn single(text: &str, places: &FxHashMap<&str, Option<&str>>) -> Option<String> {
    let Some(fields) = Fields::read(text) else { return Some(text.to_owned()) };
    // A provider's own tool is not ours to defer.
    let Some(shape) = DefinitionFormat::of(&fields) else { return Some(text.to_owned()) };
    let name = shape.inner(&fields).as_ref().unwrap_or(&fields).string("name")?;
    // A tool that was held, or is out of scope, has no place.
    places.get(name.as_str())?.map(str::to_owned)
}
