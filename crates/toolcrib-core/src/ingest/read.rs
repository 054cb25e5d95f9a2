//! One entry of a list becomes a tool, several tools, or a finding.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::finding::{Finding, Problem};
use super::{Ingest, schema};
use crate::clean::{self, Hidden};
use crate::json::{self, Fields};
use crate::limits::Limits;
use crate::text::shorten;
use crate::tool::{Defer, Shape, Tool};
use crate::wire_name;

/// Reads entries one by one; what is wrong with one never reaches the next.
pub(super) struct Reader<'a> {
    limits: &'a Limits,
    label: Option<Arc<str>>,
    out: Ingest,
}

impl<'a> Reader<'a> {
    pub(super) fn new(label: Option<&str>, limits: &'a Limits) -> Self {
        Self { limits, label: label.map(Arc::from), out: Ingest::default() }
    }

    pub(super) fn finish(self) -> Ingest {
        self.out
    }

    /// What an object around a list says about the list: its server, its instructions, its pages.
    pub(super) fn about(&mut self, fields: &Fields<'_>) {
        if let Some(server) = fields.string("server").filter(|name| !name.is_empty()) {
            self.label = Some(Arc::from(clean::one_line(&server)));
        }
        if let (Some(server), Some(text)) = (&self.label, fields.string("instructions")) {
            let text = clean::clean(&text).0.into_owned();
            self.out.instructions.push((server.to_string(), text));
        }
        if fields.string("nextCursor").is_some() {
            self.note("tools", None, Problem::OnePageOfSeveral);
        }
    }

    pub(super) fn list(&mut self, place: &str, items: &[&RawValue]) {
        for (i, item) in items.iter().enumerate() {
            self.item(&format!("{place}[{i}]"), item.get());
        }
    }

    /// Whether an object can be an entry of its own.
    pub(super) fn is_item(fields: &Fields<'_>) -> bool {
        ["name", "function", "functionDeclarations", "function_declarations"]
            .iter()
            .any(|key| fields.get(key).is_some())
    }

    pub(super) fn item(&mut self, place: &str, text: &str) {
        let Some(fields) = Fields::read(text) else {
            let problem = match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => Problem::NotAnObject,
                Err(error) => Problem::NotJson(error.to_string()),
            };
            return self.note(place, None, problem);
        };
        for key in ["functionDeclarations", "function_declarations"] {
            if let Some(list) = fields.get(key).and_then(json::items) {
                return self.list(&format!("{place}.{key}"), &list);
            }
        }
        let kind = fields.string("type");
        if let (Some("namespace"), Some(list)) =
            (kind.as_deref(), fields.get("tools").and_then(json::items))
        {
            let name = fields.string("name").map(|name| Arc::from(clean::one_line(&name)));
            let outer = std::mem::replace(&mut self.label, name);
            self.list(&format!("{place}.tools"), &list);
            self.label = outer;
            return;
        }
        if let Some(shape) = shape_of(&fields, kind.as_deref()) {
            self.tool(place, text, &fields, shape);
        } else {
            let kind = kind.unwrap_or_default();
            self.note(place, fields.string("name"), Problem::LeftToProvider { kind });
        }
    }

    fn tool(&mut self, place: &str, text: &str, outer: &Fields<'_>, shape: Shape) {
        let inner = shape.inner(outer);
        let fields = inner.as_ref().unwrap_or(outer);
        let name = fields.string("name").unwrap_or_default();
        let schema = shape.schema_keys().iter().find_map(|key| fields.get(key));
        let schema = schema.filter(|schema| *schema != "null");
        if let Err(problem) = self.check_name(&name).and_then(|()| match schema {
            Some(schema) => schema::check(schema, self.limits),
            None => Ok(()),
        }) {
            let shown = clean::one_line(&name);
            return self.note(place, (!shown.is_empty()).then_some(shown), problem);
        }

        // The definition is cleaned as text, so that nothing else in it moves.
        let mut removed: Vec<Hidden> = Vec::new();
        let cleaned = json::map_strings(text, |value| {
            let (cleaned, classes) = clean::clean(value);
            (cleaned != value).then(|| {
                removed.extend(classes);
                cleaned.into_owned()
            })
        });
        let definition = match cleaned {
            Ok(definition) => definition,
            Err(error) => return self.note(place, Some(name), Problem::NotJson(error.to_string())),
        };
        removed.sort_unstable();
        removed.dedup();
        if !removed.is_empty() {
            self.note(place, Some(name.clone()), Problem::HiddenText(removed));
        }
        let description = fields.string("description").unwrap_or_default();
        let mut description = clean::clean(&description).0.into_owned();
        let limit = self.limits.description_bytes;
        if description.len() > limit {
            let bytes = description.len();
            self.note(place, Some(name.clone()), Problem::DescriptionCut { bytes, limit });
            description.truncate(description.floor_char_boundary(limit));
        }
        let meta = fields.get("_meta").and_then(Fields::read);
        let tool = Tool {
            server: self.server(&name, fields, shape),
            title: title(fields),
            description: description.into_boxed_str(),
            keywords: keywords(fields, meta.as_ref()),
            defer: defer(fields, meta.as_ref()),
            shape,
            schema: schema_range(&definition, shape),
            definition: Box::from(&*definition),
            name: name.into_boxed_str(),
        };
        self.out.tools.push(tool);
    }

    fn check_name(&self, name: &str) -> Result<(), Problem> {
        let limit = self.limits.name_bytes;
        if name.trim().is_empty() {
            Err(Problem::NoName)
        } else if name.len() > limit {
            Err(Problem::NameTooLong { bytes: name.len(), limit })
        } else if !clean::is_clean(name) || name.contains(['\n', '\t']) {
            Err(Problem::NameHidden)
        } else if wire_name::is_reserved(name) {
            Err(Problem::NameReserved)
        } else {
            Ok(())
        }
    }

    /// The server a tool says it belongs to, else the prefix of its name, else the list's label.
    fn server(&self, name: &str, fields: &Fields<'_>, shape: Shape) -> Option<Arc<str>> {
        if shape == Shape::Own
            && let Some(stated) = fields.string("server")
        {
            let stated = clean::one_line(&stated);
            return (!stated.is_empty()).then(|| self.share(&stated));
        }
        let prefix = name.strip_prefix("mcp__").unwrap_or(name).split_once("__");
        match prefix {
            Some((server, tool)) if !server.is_empty() && !tool.is_empty() => {
                Some(self.share(server))
            }
            _ => self.label.clone(),
        }
    }

    /// Neighbours mostly share a server: one allocation serves them all.
    fn share(&self, server: &str) -> Arc<str> {
        let last = self.out.tools.last().and_then(|tool| tool.server.as_ref());
        match last.filter(|last| ***last == *server) {
            Some(same) => Arc::clone(same),
            None => Arc::from(server),
        }
    }

    fn note(&mut self, place: &str, tool: Option<String>, problem: Problem) {
        let tool = tool.map(|name| shorten(&name, 80).into_owned());
        self.out.findings.push(Finding { place: place.to_owned(), tool, problem });
    }
}

/// The shape of an entry; `None` for a provider's own tool.
fn shape_of(fields: &Fields<'_>, kind: Option<&str>) -> Option<Shape> {
    let has = |key| fields.get(key).is_some();
    match kind {
        Some("function") if has("function") => Some(Shape::Chat),
        Some("function") => Some(Shape::Responses),
        None | Some("custom") if has("input_schema") => {
            let own = ["server", "keywords", "defer"].iter().any(|key| has(key));
            Some(if own { Shape::Own } else { Shape::Anthropic })
        }
        None if has("inputSchema") => Some(Shape::Mcp),
        None if has("parameters") || has("parametersJsonSchema") => Some(Shape::Gemini),
        None => Some(Shape::Own),
        Some(_) => None,
    }
}

fn schema_range(definition: &str, shape: Shape) -> Option<std::ops::Range<u32>> {
    let outer = Fields::read(definition)?;
    let inner = shape.inner(&outer);
    let fields = inner.as_ref().unwrap_or(&outer);
    let schema = shape.schema_keys().iter().find_map(|key| fields.get(key))?;
    // Both are slices of one text, so the distance of their beginnings is the offset.
    let start = schema.as_ptr() as usize - definition.as_ptr() as usize;
    (schema != "null").then(|| start as u32..(start + schema.len()) as u32)
}

fn title(fields: &Fields<'_>) -> Option<Box<str>> {
    let annotations = fields.get("annotations").and_then(Fields::read);
    let title = fields.string("title").or_else(|| annotations?.string("title"))?;
    Some(clean::one_line(&title).into_boxed_str()).filter(|title| !title.is_empty())
}

/// Its owner's keywords: `keywords` in our form, `_meta["toolcrib/keywords"]` in MCP.
fn keywords(fields: &Fields<'_>, meta: Option<&Fields<'_>>) -> Vec<Box<str>> {
    let stated = fields.get("keywords").or_else(|| meta?.get("toolcrib/keywords"));
    let words: Vec<String> =
        stated.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    words.iter().map(|word| clean::one_line(word).into_boxed_str()).collect()
}

/// Its owner's policy: `defer` in our form, `defer_loading` in the APIs that know it, `_meta` in MCP.
fn defer(fields: &Fields<'_>, meta: Option<&Fields<'_>>) -> Defer {
    let stated = fields.get("defer").or_else(|| meta?.get("toolcrib/defer"));
    if let Some(defer) = stated.and_then(|raw| serde_json::from_str(raw).ok()) {
        return defer;
    }
    let yes = |raw: Option<&str>| raw == Some("true");
    if yes(meta.and_then(|meta| meta.get("anthropic/alwaysLoad"))) {
        Defer::Never
    } else if yes(fields.get("defer_loading")) {
        Defer::Always
    } else {
        Defer::Automatic
    }
}
