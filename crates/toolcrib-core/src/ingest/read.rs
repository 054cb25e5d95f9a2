//! Reads one entry of a list, which may be a tool or a group of tools. Invalid entries become findings.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::finding::{Finding, Problem};
use super::{IngestedTools, ListSource, schema};
use crate::access::AccessPolicy;
use crate::limits::Limits;
use crate::own_names::OwnNames;
use crate::tool::{DeferPolicy, DefinitionFormat, Tool};
use toolcrib_text::clean::{self, Hidden};
use toolcrib_text::json::{self, Fields};
use toolcrib_text::shorten;

/// Maximum length of a server's name, in characters. Longer names are truncated.
const MAX_SERVER_CHARS: usize = 128;

/// Maximum nesting depth of a definition. It is below the depth that JSON parsers accept, such as 128 in `serde_json`.
const MAX_DEPTH: usize = 120;

/// Reads the entries of a list one by one. A problem with one entry does not affect the others.
pub(super) struct Reader<'a> {
    limits: &'a Limits,
    names: OwnNames,
    label: Option<Arc<str>>,
    /// Whether the label names the server that sent the list. If so, tools cannot claim to belong to another server.
    is_server: bool,
    out: IngestedTools,
}

impl<'a> Reader<'a> {
    pub(super) fn new(names: OwnNames, source: ListSource<'_>, limits: &'a Limits) -> Self {
        let (label, is_server) = match source {
            ListSource::Unknown => (None, false),
            ListSource::Label(label) => (Some(label), false),
            ListSource::Server(label) => (Some(label), true),
        };
        let label = label.map(server_name).filter(|label| !label.is_empty());
        Self { limits, names, label, is_server, out: IngestedTools::default() }
    }

    pub(super) fn finish(self) -> IngestedTools {
        self.out
    }

    /// Reads the fields next to a list: the server, its instructions and the pagination cursor.
    pub(super) fn envelope(&mut self, fields: &Fields<'_>) {
        if let Some(server) = fields
            .string("server")
            .filter(|name| !self.is_server && !clean::one_line(name).is_empty())
        {
            self.label = Some(server_name(&server));
        }
        if let (Some(server), Some(text)) = (&self.label, fields.string("instructions")) {
            let text = clean::clean(&text).0;
            let kept = &text[..text.floor_char_boundary(self.limits.description_bytes)];
            self.out.instructions.push((server.to_string(), kept.to_owned()));
        }
        if fields.string("nextCursor").is_some() {
            self.report("tools", None, Problem::OnePageOfSeveral);
        }
    }

    pub(super) fn list(&mut self, place: &str, items: &[&RawValue]) {
        for (i, item) in items.iter().enumerate() {
            self.item(&format!("{place}[{i}]"), item.get());
        }
    }

    /// Whether an object can be an entry of a list, that is, a tool or a group of tools.
    pub(super) fn is_item(fields: &Fields<'_>) -> bool {
        fields.get("name").is_some() || fields.get("function").is_some() || group(fields).is_some()
    }

    /// Reads an entry of a list: a tool, or a group of tools.
    pub(super) fn item(&mut self, place: &str, text: &str) {
        let Some(fields) = self.fields(place, text) else { return };
        // MCP has no groups.
        let Some((key, members)) = group(&fields).filter(|_| !self.is_server) else {
            return self.single(place, text, &fields);
        };
        let name = fields
            .string("name")
            .filter(|name| key == "tools" && !clean::one_line(name).is_empty());
        let outer = self.label.clone();
        self.label = name.as_deref().map(server_name).or(outer.clone());
        // Groups cannot be nested, so every member of a group is read as a tool.
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
            self.report(place, None, problem);
        }
        fields
    }

    fn single(&mut self, place: &str, text: &str, fields: &Fields<'_>) {
        // A server could otherwise choose a format in which the caller's changes to its definitions have no effect.
        let of_server = || fields.string("name").map(|_| DefinitionFormat::Mcp);
        let format = if self.is_server { of_server() } else { DefinitionFormat::of(fields) };
        if let Some(format) = format {
            let name = format.inner(fields).as_ref().unwrap_or(fields).string("name");
            let name = name.unwrap_or_default();
            if let Err(problem) = self.tool(place, text, format, &name) {
                self.report(place, Some(name), problem);
            }
        } else {
            let first = || fields.iter().next().map(|(key, _)| key.to_owned());
            let kind = fields.string("type").or_else(first).unwrap_or_default();
            let kind = shorten(&clean::one_line(&kind), 80).into_owned();
            self.report(place, fields.string("name"), Problem::LeftToProvider { kind });
        }
    }

    fn tool(
        &mut self,
        place: &str,
        text: &str,
        format: DefinitionFormat,
        name: &str,
    ) -> Result<(), Problem> {
        self.check_name(name)?;
        let limit = self.limits.definition_bytes;
        if text.len() > limit {
            return Err(Problem::DefinitionTooLarge { bytes: text.len(), limit });
        }
        // Cleaning works on the JSON text, not on the parsed values, so that everything else in the text stays
        // unchanged. It happens before anything is read from the text, so that the text that is checked is also the
        // text that is used.
        let (definition, removed) = cleaned(text)?;
        if json::measure(&definition).depth > MAX_DEPTH {
            return Err(Problem::NotJson(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let outer = Fields::read(&definition).ok_or(Problem::NotAnObject)?;
        let inner = format.inner(&outer);
        let fields = inner.as_ref().unwrap_or(&outer);
        let schema = format.schema(fields);
        if let Some(schema) = schema {
            schema::check(schema, self.limits)?;
        }
        if !removed.is_empty() {
            self.report(place, Some(name.to_owned()), Problem::HiddenText(removed));
        }
        let mut description = fields.string("description").unwrap_or_default();
        let (bytes, limit) = (description.len(), self.limits.description_bytes);
        if bytes > limit {
            self.report(place, Some(name.to_owned()), Problem::DescriptionCut { bytes, limit });
            description.truncate(description.floor_char_boundary(limit));
        }
        let meta = fields.get("_meta").and_then(Fields::read);
        let tool = Tool {
            server: self.server(name, fields, format),
            title: title(fields),
            description: description.into_boxed_str(),
            keywords: keywords(fields, meta.as_ref()),
            defer: defer(fields, meta.as_ref()),
            access: AccessPolicy::default(),
            format,
            // The schema is a slice of the definition, so the difference between their addresses is the schema's
            // offset.
            schema: schema.map(|schema| {
                let start = schema.as_ptr() as usize - definition.as_ptr() as usize;
                start as u32..(start + schema.len()) as u32
            }),
            shown_differs: bytes > limit,
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

    /// Returns the server to which a tool belongs. If the list was sent by a known server, it is that server. Otherwise
    /// it is the first of these that exists: the `server` field of the tool, the prefix of its name, and the list's
    /// label.
    fn server(
        &self,
        name: &str,
        fields: &Fields<'_>,
        format: DefinitionFormat,
    ) -> Option<Arc<str>> {
        if self.is_server {
            return self.label.clone();
        }
        if matches!(format, DefinitionFormat::Own | DefinitionFormat::Mcp)
            && let Some(stated) = fields.string("server")
        {
            return (!stated.trim().is_empty()).then(|| self.share(&stated));
        }
        match server_prefix(name) {
            Some(server) => Some(self.share(server)),
            None => self.label.clone(),
        }
    }

    /// Returns the server's name as a shared string. If the previously read tool has the same server, that tool's
    /// string is reused.
    fn share(&self, server: &str) -> Arc<str> {
        let last = self.out.tools.last().and_then(|tool| tool.server.as_ref());
        match last.filter(|last| ***last == *server) {
            Some(same) => Arc::clone(same),
            None => server_name(server),
        }
    }

    fn report(&mut self, place: &str, tool: Option<String>, problem: Problem) {
        let tool = tool.map(|name| shorten(&clean::one_line(&name), 80).into_owned());
        let tool = tool.filter(|name| !name.is_empty());
        self.out.findings.push(Finding { location: place.to_owned(), tool, problem });
    }
}

/// Returns the definition without hidden characters, and the classes of the removed characters. A key with hidden
/// characters is an error, because the server would not recognise the cleaned key.
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

/// The server in the prefix of a tool's name: `github__get_issue`, `mcp__github__get_issue`, or Hermes' older form
/// `mcp_github_get_issue`. In the older form, the server's name is assumed to contain no `_`.
fn server_prefix(name: &str) -> Option<&str> {
    let is_pair = |(server, tool): &(&str, &str)| !server.trim().is_empty() && !tool.is_empty();
    let joined = name.strip_prefix("mcp__").unwrap_or(name).split_once("__");
    let pair = joined.or_else(|| name.strip_prefix("mcp_")?.split_once('_'));
    pair.filter(is_pair).map(|(server, _)| server)
}

fn server_name(text: &str) -> Arc<str> {
    Arc::from(&*shorten(&clean::one_line(text), MAX_SERVER_CHARS))
}

/// If the entry is a group of tools, returns the key under which the group has its members, and the members.
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

/// The keywords that the tool's owner set: `keywords` in our format, `_meta["toolcrib/keywords"]` in MCP.
fn keywords(fields: &Fields<'_>, meta: Option<&Fields<'_>>) -> Vec<Box<str>> {
    let stated = fields.get("keywords").or_else(|| meta?.get("toolcrib/keywords"));
    let words: Vec<String> =
        stated.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    words.iter().map(|word| clean::one_line(word).into_boxed_str()).collect()
}

/// The deferral policy that the tool's owner set: `defer` in our format, `defer_loading` in APIs that support it,
/// `_meta["toolcrib/defer"]` in MCP.
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
