//! A tool as its owner declared it.
//!
//! The definition is kept as text in its original format, so that the model sees the owner's JSON and not our
//! interpretation of it. Fields that are used often are stored separately.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use crate::access::ToolAnnotations;
use crate::access::{AccessPolicy, ToolAccess};
use toolcrib_text::json::{self, Fields};

/// The input schema of a tool without parameters.
const EMPTY_SCHEMA: &str = r#"{"type":"object","properties":{}}"#;

/// When a tool is deferred. The tool's owner or a rule decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DeferPolicy {
    /// The tool is never deferred, so its full schema is always shown.
    Never,
    /// The tool is deferred when deferral is active.
    #[default]
    Automatic,
    /// The tool is always deferred, even if the activation thresholds are not reached.
    Always,
}

/// The format of a tool definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DefinitionFormat {
    /// MCP: `{name, title, description, inputSchema}`.
    Mcp,
    /// Anthropic Messages: `{name, description, input_schema}`.
    Anthropic,
    /// OpenAI Chat Completions: `{type: function, function: {name, description, parameters}}`.
    Chat,
    /// OpenAI Responses: `{type: function, name, description, parameters}`.
    Responses,
    /// Gemini: `{name, description, parameters}` or `parametersJsonSchema`; keys may be in snake case.
    Gemini,
    /// Toolcrib's own: `{name, description, input_schema, server}`, optionally with `title`, `keywords`, `defer`.
    Own,
}

impl DefinitionFormat {
    /// The keys that may contain the input schema. The first key is used for writing.
    pub(crate) fn schema_keys(self) -> &'static [&'static str] {
        match self {
            Self::Mcp => &["inputSchema"],
            Self::Anthropic | Self::Own => &["input_schema"],
            Self::Chat | Self::Responses => &["parameters"],
            Self::Gemini => &["parametersJsonSchema", "parameters_json_schema", "parameters"],
        }
    }

    /// The input schema of a definition. A key whose value is `null` counts as absent.
    pub(crate) fn schema<'a>(self, fields: &Fields<'a>) -> Option<&'a str> {
        let value = |key: &&str| fields.get(key).filter(|schema| *schema != "null");
        self.schema_keys().iter().find_map(value)
    }

    /// The key under which an edited definition has its schema. Gemini accepts JSON Schema under either of two
    /// spellings of one key, but not under both, so the existing spelling is kept. Gemini's `parameters` is not used,
    /// because it has a different schema language.
    fn edited_schema_key(self, fields: &Fields<'_>) -> &'static str {
        let keys = self.schema_keys();
        let stated = |key: &&&str| {
            self == Self::Gemini && **key != "parameters" && fields.get(key).is_some()
        };
        keys.iter().find(stated).copied().unwrap_or(keys[0])
    }

    /// The format of a definition. Returns `None` for a provider's own tool.
    pub(crate) fn of(fields: &Fields<'_>) -> Option<Self> {
        let has = |key| fields.get(key).is_some();
        match fields.string("type").as_deref() {
            Some("function") if has("function") => Some(Self::Chat),
            Some("function") => Some(Self::Responses),
            None | Some("custom") if has("input_schema") => {
                let own = ["server", "keywords", "defer"].iter().any(|key| has(key));
                Some(if own { Self::Own } else { Self::Anthropic })
            }
            None if has("inputSchema") => Some(Self::Mcp),
            None if Self::Gemini.schema_keys().iter().any(|key| has(key)) => Some(Self::Gemini),
            None if has("name") || has("description") => Some(Self::Own),
            // A provider's own tool, such as `{"googleSearch": {}}` or `{"type": "web_search"}`.
            _ => None,
        }
    }

    /// The object with name, description and schema, if it is nested in the definition as in Chat Completions.
    pub(crate) fn inner<'a>(self, outer: &Fields<'a>) -> Option<Fields<'a>> {
        match self {
            Self::Chat => Fields::read(outer.get("function")?),
            _ => None,
        }
    }

    /// Writes the definition of one of our own tools.
    pub(crate) fn write(self, name: &str, description: &str, schema: &str) -> String {
        let (name, description) = (json::quote(name), json::quote(description));
        match self {
            Self::Mcp => {
                format!(r#"{{"name":{name},"description":{description},"inputSchema":{schema}}}"#)
            }
            Self::Anthropic | Self::Own => {
                format!(r#"{{"name":{name},"description":{description},"input_schema":{schema}}}"#)
            }
            Self::Chat => format!(
                r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{schema}}}}}"#
            ),
            // If `strict` is missing, this API tries strict mode, which does not allow the object with arbitrary keys
            // in `tool_call`.
            Self::Responses => format!(
                r#"{{"type":"function","name":{name},"description":{description},"parameters":{schema},"strict":false}}"#
            ),
            Self::Gemini => format!(
                r#"{{"name":{name},"description":{description},"parametersJsonSchema":{schema}}}"#
            ),
        }
    }
}

/// One tool of a [`Catalog`](crate::Catalog).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    pub(crate) name: Box<str>,
    pub(crate) server: Option<Arc<str>>,
    pub(crate) title: Option<Box<str>>,
    pub(crate) description: Box<str>,
    pub(crate) keywords: Vec<Box<str>>,
    pub(crate) defer: DeferPolicy,
    pub(crate) access: AccessPolicy,
    pub(crate) format: DefinitionFormat,
    /// The owner's JSON, from which hidden characters were removed.
    pub(crate) definition: Box<str>,
    /// The position of the input schema in `definition`; `None` if the tool has no schema.
    pub(crate) schema: Option<Range<u32>>,
    /// Whether the name or description that is shown differs from the one in `definition`.
    pub(crate) shown_differs: bool,
}

impl Tool {
    /// The full name, which is unique within a catalog.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name that the tool's owner declared, by which its server knows it. It differs from [`name`](Self::name) if a
    /// prefix was added or if the tool was renamed because two servers declare the same name.
    pub fn declared_name(&self) -> Cow<'_, str> {
        if !self.shown_differs {
            return Cow::Borrowed(&self.name);
        }
        let outer = Fields::read(&self.definition);
        let inner = outer.as_ref().and_then(|outer| self.format.inner(outer));
        let declared = inner.or(outer).and_then(|fields| fields.string("name"));
        declared.map_or(Cow::Borrowed(&self.name), Cow::Owned)
    }

    /// The server or group that the tool belongs to.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The tool's name without its server's name as a prefix. The comparison is case-sensitive: on the server `Alarm`,
    /// the name `alarm_set` has no prefix, because `alarm` is a word of the name.
    pub fn name_without_server(&self) -> &str {
        without_server_prefix(&self.name, self.server())
    }

    /// The human-readable title, if the owner set one.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The description, from which hidden characters were removed.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Additional search words that the tool's owner set.
    pub fn keywords(&self) -> impl Iterator<Item = &str> {
        self.keywords.iter().map(AsRef::as_ref)
    }

    /// The owner's policy on deferring the tool.
    pub fn defer(&self) -> DeferPolicy {
        self.defer
    }

    /// This tool, but with another policy on deferring it.
    #[must_use]
    pub fn with_defer(self, defer: DeferPolicy) -> Self {
        Self { defer, ..self }
    }

    /// The format of the tool's definition.
    pub fn format(&self) -> DefinitionFormat {
        self.format
    }

    /// The owner's definition, as JSON text in [`format`](Self::format).
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// The input schema, as JSON text. For a tool that declares no schema, it is the schema of a tool without
    /// parameters.
    pub fn schema(&self) -> &str {
        let stated = self
            .schema
            .as_ref()
            .and_then(|range| self.definition.get(range.start as usize..range.end as usize));
        stated.unwrap_or(EMPTY_SCHEMA)
    }

    /// The tool's MCP annotations, if it has any.
    pub fn annotations(&self) -> Option<ToolAnnotations> {
        let stated = Fields::read(&self.definition)?;
        let flags = Fields::read(stated.get("annotations")?)?;
        let flag = |key| flags.get(key).and_then(|raw| raw.parse().ok());
        let hints = ToolAnnotations {
            read_only_hint: flag("readOnlyHint"),
            destructive_hint: flag("destructiveHint"),
            idempotent_hint: flag("idempotentHint"),
            open_world_hint: flag("openWorldHint"),
        };
        (hints != ToolAnnotations::default()).then_some(hints)
    }

    /// This tool, but with another policy on who decides whether it only reads.
    #[must_use]
    pub fn with_access(self, access: AccessPolicy) -> Self {
        Self { access, ..self }
    }

    /// Whether the tool only reads, and why.
    pub fn access(&self) -> ToolAccess {
        self.access.decide(self.annotations().unwrap_or_default())
    }

    /// The parsed input schema. `ingest` has checked that it is valid JSON.
    pub(crate) fn schema_value(&self) -> serde_json::Value {
        serde_json::from_str(self.schema()).unwrap_or_default()
    }

    /// The definition as it is shown in full. It is the owner's text, unless the tool was renamed or its description
    /// was truncated.
    pub fn shown_definition(&self) -> Cow<'_, str> {
        if self.shown_differs {
            Cow::Owned(self.definition_with(None, None))
        } else {
            Cow::Borrowed(&self.definition)
        }
    }

    /// The definition with the tool's current name and, if given, another schema or description. Everything else is
    /// unchanged.
    pub(crate) fn definition_with(
        &self,
        schema: Option<&str>,
        description: Option<&str>,
    ) -> String {
        let Some(outer) = Fields::read(&self.definition) else {
            return self.definition.to_string();
        };
        let inner = self.format.inner(&outer);
        let fields = inner.as_ref().unwrap_or(&outer);
        let mut edits: Vec<(&str, Option<String>)> = Vec::new();
        if fields.string("name").as_deref() != Some(&*self.name) {
            edits.push(("name", Some(json::quote(&self.name))));
        }
        let cut = || self.shown_differs && fields.get("description").is_some();
        let own = cut().then_some(&*self.description);
        if let Some(description) = description.or(own) {
            edits.push(("description", Some(json::quote(description))));
        }
        if let Some(schema) = schema {
            let written = self.format.edited_schema_key(fields);
            edits.push((written, Some(schema.to_owned())));
            // If a format has several keys for the schema, only one may be present.
            let others = self.format.schema_keys().iter().filter(|key| **key != written);
            edits.extend(others.map(|key| (*key, None)));
            if fields.get("strict") == Some("true") {
                // Strict mode does not allow a schema with additional properties, such as a stub.
                edits.push(("strict", Some("false".into())));
            }
        }
        let edited = fields.with(&edits);
        if inner.is_some() { outer.with(&[("function", Some(edited))]) } else { edited }
    }

    /// A hash of everything that the model sees of this tool. It does not depend on the order of keys or on white space
    /// in the schema.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hasher = blake3::Hasher::new();
        let schema = self.schema_value();
        let mut canonical = String::new();
        write_canonical(&schema, &mut canonical);
        for part in [&*self.name, self.title().unwrap_or(""), &*self.description, &canonical] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut short = [0; 16];
        short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Fingerprint(short)
    }
}

/// Removes a prefix that consists of the server's name and a separator from a tool's name.
pub(crate) fn without_server_prefix<'a>(name: &'a str, server: Option<&str>) -> &'a str {
    let is_servers = |rest: &&str| server.is_some_and(|server| rest.starts_with(server));
    let hermes = || name.strip_prefix("mcp_").filter(is_servers);
    let name = name.strip_prefix("mcp__").or_else(hermes).unwrap_or(name);
    let rest = server.and_then(|server| name.strip_prefix(server)).unwrap_or(name);
    let own = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
    if own.len() < rest.len() && !own.is_empty() { own } else { name }
}

/// Writes JSON with sorted keys and without white space. The recursion depth is limited by `Limits::schema_depth`.
fn write_canonical(value: &serde_json::Value, out: &mut String) {
    match value {
        serde_json::Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (key, value) in keys {
                out.push_str(&json::quote(key));
                out.push(':');
                write_canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        serde_json::Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// A 128-bit hash of everything that the model sees of a tool.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 16]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0; 16];
        let ok = text.len() == 32
            && text.is_ascii()
            && bytes.iter_mut().enumerate().all(|(i, byte)| {
                u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map(|b| *byte = b).is_ok()
            });
        if ok { Ok(Self(bytes)) } else { Err(serde::de::Error::custom("not a fingerprint")) }
    }
}
