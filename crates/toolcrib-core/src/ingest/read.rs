//! One entry of a list becomes a tool, several tools, or a finding.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::finding::{Finding, Problem};
use super::{IngestedTools, Origin, schema};
use crate::limits::Limits;
use crate::own_names::OwnNames;
use crate::tool::{DeferPolicy, DefinitionFormat, Tool};
use toolcrib_text::clean::{self, Hidden};
use toolcrib_text::json::{self, Fields};
use toolcrib_text::shorten;

/// Characters of a server's name that are kept.
const SERVER_CHARS: usize = 128;

/// Nesting of a whole definition: what every JSON parser still reads.
const DEPTH: usize = 120;

/// Reads entries one by one; what is wrong with one never reaches the next.
pub(super) struct Reader<'a> {
    limits: &'a Limits,
    names: OwnNames,
    label: Option<Arc<str>>,
    /// Whether the label is who sent the list, whatever its tools say.
    sure: bool,
    out: IngestedTools,
}

impl<'a> Reader<'a> {
    pub(super) fn new(names: OwnNames, origin: Origin<'_>, limits: &'a Limits) -> Self {
        let (label, sure) = match origin {
            Origin::Unknown => (None, false),
            Origin::Label(label) => (Some(label), false),
            Origin::Server(label) => (Some(label), true),
        };
        let label = label.map(server_name).filter(|label| !label.is_empty());
        Self { limits, names, label, sure, out: IngestedTools::default() }
    }

    pub(super) fn finish(self) -> IngestedTools {
        self.out
    }

    /// What an object around a list says about the list: its server, its instructions, its pages.
    pub(super) fn about(&mut self, fields: &Fields<'_>) {
        if let Some(server) =
            fields.string("server").filter(|name| !self.sure && !clean::one_line(name).is_empty())
        {
            self.label = Some(server_name(&server));
        }
        if let (Some(server), Some(text)) = (&self.label, fields.string("instructions")) {
            let text = clean::clean(&text).0;
            let kept = &text[..text.floor_char_boundary(self.limits.description_bytes)];
            self.out.instructions.push((server.to_string(), kept.to_owned()));
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
        fields.get("name").is_some() || fields.get("function").is_some() || group(fields).is_some()
    }

    /// Reads an entry of a list: a tool, or a group of tools.
    pub(super) fn item(&mut self, place: &str, text: &str) {
        let Some(fields) = self.fields(place, text) else { return };
        let Some((key, members)) = group(&fields) else {
            return self.single(place, text, &fields);
        };
        let name = fields
            .string("name")
            .filter(|name| key == "tools" && !self.sure && !clean::one_line(name).is_empty());
        let outer = self.label.clone();
        self.label = name.as_deref().map(server_name).or(outer.clone());
        // A group holds tools and no further groups, so nesting costs a stranger nothing but a tool.
        for (i, member) in members.iter().enumerate() {
            let place = format!("{place}.{key}[{i}]");
            if let Some(fields) = self.fields(&place, member.get()) {
                self.single(&place, member.get(), &fields);
            }
        }
        self.label = outer;
    }

    fn fields<'t>(&mut self, place: &str, text: &'t str) -> Option<Fields<'t>> {
        let fields = Fields::read(text);
        if fields.is_none() {
            let problem = match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => Problem::NotAnObject,
                Err(error) => Problem::NotJson(error.to_string()),
            };
            self.note(place, None, problem);
        }
        fields
    }

    fn single(&mut self, place: &str, text: &str, fields: &Fields<'_>) {
        if let Some(shape) = DefinitionFormat::of(fields) {
            let name = shape.inner(fields).as_ref().unwrap_or(fields).string("name");
            let name = name.unwrap_or_default();
            if let Err(problem) = self.tool(place, text, shape, &name) {
                self.note(place, Some(name), problem);
            }
        } else {
            let first = || fields.iter().next().map(|(key, _)| key.to_owned());
            let kind = fields.string("type").or_else(first).unwrap_or_default();
            let kind = shorten(&clean::one_line(&kind), 80).into_owned();
            self.note(place, fields.string("name"), Problem::LeftToProvider { kind });
        }
    }

    fn tool(
        &mut self,
        place: &str,
        text: &str,
        shape: DefinitionFormat,
        name: &str,
    ) -> Result<(), Problem> {
        self.check_name(name)?;
        let limit = self.limits.definition_bytes;
        if text.len() > limit {
            return Err(Problem::DefinitionTooLarge { bytes: text.len(), limit });
        }
        // Cleaned as text, so that nothing else in it moves, and before anything is read from it:
        // what is checked must be what is used.
        let (definition, removed) = cleaned(text)?;
        if json::measure(&definition).depth > DEPTH {
            return Err(Problem::NotJson(format!("nested deeper than {DEPTH} levels")));
        }
        let outer = Fields::read(&definition).ok_or(Problem::NotAnObject)?;
        let inner = shape.inner(&outer);
        let fields = inner.as_ref().unwrap_or(&outer);
        let schema = shape.schema(fields);
        if let Some(schema) = schema {
            schema::check(schema, self.limits)?;
        }
        if !removed.is_empty() {
            self.note(place, Some(name.to_owned()), Problem::HiddenText(removed));
        }
        let mut description = fields.string("description").unwrap_or_default();
        let (bytes, limit) = (description.len(), self.limits.description_bytes);
        if bytes > limit {
            self.note(place, Some(name.to_owned()), Problem::DescriptionCut { bytes, limit });
            description.truncate(description.floor_char_boundary(limit));
        }
        let meta = fields.get("_meta").and_then(Fields::read);
        let tool = Tool {
            server: self.server(name, fields, shape),
            title: title(fields),
            description: description.into_boxed_str(),
            keywords: keywords(fields, meta.as_ref()),
            defer: defer(fields, meta.as_ref()),
            shape,
            // Both are slices of one text, so the distance of their beginnings is the offset.
            schema: schema.map(|schema| {
                let start = schema.as_ptr() as usize - definition.as_ptr() as usize;
                start as u32..(start + schema.len()) as u32
            }),
            differs: bytes > limit,
            name: Box::from(name),
            definition: Box::from(&*definition),
        };
        self.out.tools.push(tool);
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), Problem> {
        let limit = self.limits.name_bytes;
        if name.trim().is_empty() {
            Err(Problem::NoName)
        } else if name.len() > limit {
            Err(Problem::NameTooLong { bytes: name.len(), limit })
        } else if clean::has_hidden(name) || name.contains(['\n', '\t']) {
            Err(Problem::NameHidden)
        } else if self.names.is_reserved(name) {
            Err(Problem::NameReserved)
        } else {
            Ok(())
        }
    }

    /// The server that sent the list, where that is known; else the one a tool says it belongs to,
    /// else the prefix of its name, else the list's label.
    fn server(&self, name: &str, fields: &Fields<'_>, shape: DefinitionFormat) -> Option<Arc<str>> {
        if self.sure {
            return self.label.clone();
        }
        if matches!(shape, DefinitionFormat::Own | DefinitionFormat::Mcp)
            && let Some(stated) = fields.string("server")
        {
            return (!stated.trim().is_empty()).then(|| self.share(&stated));
        }
        match prefix(name) {
            Some(server) => Some(self.share(server)),
            None => self.label.clone(),
        }
    }

    /// Neighbours mostly share a server: one allocation serves them all.
    fn share(&self, server: &str) -> Arc<str> {
        let last = self.out.tools.last().and_then(|tool| tool.server.as_ref());
        match last.filter(|last| ***last == *server) {
            Some(same) => Arc::clone(same),
            None => server_name(server),
        }
    }

    fn note(&mut self, place: &str, tool: Option<String>, problem: Problem) {
        let tool = tool.map(|name| shorten(&clean::one_line(&name), 80).into_owned());
        let tool = tool.filter(|name| !name.is_empty());
        self.out.findings.push(Finding { place: place.to_owned(), tool, problem });
    }
}

/// A definition without hidden characters, and the classes that were removed. A key that has some
/// is no text to be cleaned: its owner would not know it again.
fn cleaned(text: &str) -> Result<(std::borrow::Cow<'_, str>, Vec<Hidden>), Problem> {
    let mut removed: Vec<Hidden> = Vec::new();
    let mut hidden_key = false;
    let definition = json::map_strings(text, |value, is_key| {
        hidden_key |= is_key && clean::has_hidden(value);
        let (cleaned, classes) = clean::clean(value);
        (cleaned != value).then(|| {
            removed.extend(classes);
            cleaned.into_owned()
        })
    });
    let definition = definition.map_err(|error| Problem::NotJson(error.to_string()))?;
    if hidden_key {
        return Err(Problem::ParameterHidden);
    }
    removed.sort_unstable();
    removed.dedup();
    Ok((definition, removed))
}

/// The server that a name has in front: `github__get_issue`, `mcp__github__get_issue`, and Hermes'
/// older `mcp_github_get_issue`, whose servers are taken to have no `_` in their names.
fn prefix(name: &str) -> Option<&str> {
    let is_pair = |(server, tool): &(&str, &str)| !server.trim().is_empty() && !tool.is_empty();
    let joined = name.strip_prefix("mcp__").unwrap_or(name).split_once("__");
    let pair = joined.or_else(|| name.strip_prefix("mcp_")?.split_once('_'));
    pair.filter(is_pair).map(|(server, _)| server)
}

fn server_name(text: &str) -> Arc<str> {
    Arc::from(&*shorten(&clean::one_line(text), SERVER_CHARS))
}

/// The members of an entry that holds several tools, and the key they stand under.
pub(crate) fn group<'t>(fields: &Fields<'t>) -> Option<(&'static str, Vec<&'t RawValue>)> {
    let members = |key: &'static str| Some((key, json::items(fields.get(key)?)?));
    members("functionDeclarations").or_else(|| members("function_declarations")).or_else(|| {
        let namespace = fields.string("type").as_deref() == Some("namespace");
        namespace.then(|| members("tools")).flatten()
    })
}

fn title(fields: &Fields<'_>) -> Option<Box<str>> {
    let annotations = fields.get("annotations").and_then(Fields::read);
    let title = fields.string("title").or_else(|| annotations?.string("title"))?;
    let title = clean::one_line(&title);
    (!title.is_empty()).then(|| Box::from(&*shorten(&title, 256)))
}

/// Its owner's keywords: `keywords` in our form, `_meta["toolcrib/keywords"]` in MCP.
fn keywords(fields: &Fields<'_>, meta: Option<&Fields<'_>>) -> Vec<Box<str>> {
    let stated = fields.get("keywords").or_else(|| meta?.get("toolcrib/keywords"));
    let words: Vec<String> =
        stated.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    words.iter().map(|word| clean::one_line(word).into_boxed_str()).collect()
}

/// Its owner's policy: `defer` in our form, `defer_loading` in the APIs that know it, `_meta` in MCP.
fn defer(fields: &Fields<'_>, meta: Option<&Fields<'_>>) -> DeferPolicy {
    let stated = fields.get("defer").or_else(|| meta?.get("toolcrib/defer"));
    if let Some(defer) = stated.and_then(|raw| serde_json::from_str(raw).ok()) {
        return defer;
    }
    let yes = |raw: Option<&str>| raw == Some("true");
    if yes(meta.and_then(|meta| meta.get("anthropic/alwaysLoad"))) {
        DeferPolicy::Never
    } else if yes(fields.get("defer_loading")) {
        DeferPolicy::Always
    } else {
        DeferPolicy::Automatic
    }
}
