//! What a search answers, as one type.
//!
//! The text the model gets is made from it once, at the edge, in one of three forms, and a
//! transcript is read back through the same file. Catalog text in a reply is data: it cannot close
//! the wrapper it stands in, whatever it says.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::Fields;

/// How replies are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// One JSON object.
    #[default]
    Json,
    /// A `<functions>` block, the encoding some models see their first tools in.
    Functions,
    /// Markdown.
    Markdown,
}

/// The answer to one search or description.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Reply {
    /// What was asked.
    pub query: String,
    /// The tools, best first.
    pub hits: Vec<Found>,
    /// The names that are loaded now.
    pub loaded: Vec<String>,
    /// Names that were asked for and are not there.
    pub missing: Vec<Missing>,
    /// Tools that matched but found no room: by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
    /// What there is, after a browse or a miss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<Available>,
    /// Words that were read as others: `isue` as `issue`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub did_you_mean: Vec<Correction>,
    /// Servers that are still connecting: what is missing may be theirs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connecting: Vec<String>,
    /// What else the model should know, in sentences of ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How it is to be written, by the settings.
    #[serde(skip)]
    pub form: Form,
}

/// One tool of a reply.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its server.
    pub server: Option<String>,
    /// Its description.
    pub description: String,
    /// Its score; higher is better, comparable within one reply only.
    pub score: f32,
    /// Its whole input schema, as its owner wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Box<RawValue>>,
    /// Its schema in one line, where the whole one found no room or was shown before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A name that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// As it was asked for.
    pub name: String,
    /// Names like it.
    pub nearest: Vec<String>,
}

/// A word that was read as another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Correction {
    /// As it was written.
    pub word: String,
    /// As it was read.
    pub read_as: String,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Available {
    /// Every name.
    Names(Vec<String>),
    /// Too many to name: the servers and how many tools each has.
    Servers(Vec<ServerSize>),
}

/// A server and its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerSize {
    /// The server; empty for tools without one.
    pub server: String,
    /// How many tools it has in scope.
    pub tools: usize,
}

impl Reply {
    /// The answer as the model gets it, in the form that is set.
    pub fn for_model(&self) -> String {
        self.text(self.form)
    }

    /// The answer in a form of one's own choosing.
    pub fn text(&self, form: Form) -> String {
        match form {
            Form::Json => serde_json::to_string(self).unwrap_or_default(),
            Form::Functions => self.functions(),
            Form::Markdown => self.markdown(),
        }
    }

    fn functions(&self) -> String {
        let mut text = String::new();
        if !self.hits.is_empty() {
            text.push_str("<functions>\n");
            for hit in &self.hits {
                let function = Function {
                    description: &hit.description,
                    name: &hit.name,
                    parameters: hit.input_schema.as_deref(),
                    signature: hit.signature.as_deref(),
                };
                let json = serde_json::to_string(&function).unwrap_or_default();
                // Inside JSON `<` stands only in strings, so its escape is the same JSON; line breaks
                // stand only between its parts.
                let json = json.replace('<', "\\u003c").replace(['\n', '\r'], " ");
                let _ = writeln!(text, "<function>{json}</function>");
            }
            text.push_str("</functions>\n");
        }
        self.write_rest(&mut text);
        text
    }

    fn markdown(&self) -> String {
        let mut text = String::new();
        for hit in &self.hits {
            let _ = writeln!(text, "### {}\n", code(&hit.name));
            for line in hit.description.lines() {
                let _ = writeln!(text, "> {line}");
            }
            let schema = hit.input_schema.as_ref().map(|raw| raw.get());
            let body = schema.or(hit.signature.as_deref()).unwrap_or("{}");
            let fence = "`".repeat(longest_run(body, '`').max(2) + 1);
            let kind = if schema.is_some() { "json" } else { "ts" };
            let _ = writeln!(text, "\n{fence}{kind}\n{body}\n{fence}\n");
        }
        self.write_rest(&mut text);
        text
    }

    /// What is no tool: in both text forms one JSON line each, so that names stay data.
    fn write_rest(&self, text: &mut String) {
        let rest = Rest {
            missing: &self.missing,
            omitted: &self.omitted,
            available: self.available.as_ref(),
            did_you_mean: &self.did_you_mean,
            connecting: &self.connecting,
        };
        let rest = serde_json::to_string(&rest).unwrap_or_default().replace('<', "\\u003c");
        if rest != "{}" {
            let _ = writeln!(text, "{rest}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
    }
}

#[derive(Serialize)]
struct Function<'a> {
    description: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
}

#[derive(Serialize)]
struct Rest<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    missing: &'a [Missing],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    omitted: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    available: Option<&'a Available>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    did_you_mean: &'a [Correction],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    connecting: &'a [String],
}

/// `text` as inline code, whatever backticks it has.
fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// What stands in inline code that [`code`] wrote.
fn uncode(text: &str) -> Option<String> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let inner = text.get(ticks..text.len().checked_sub(ticks)?).filter(|_| ticks > 0)?;
    let padded = inner.starts_with(" `") || inner.ends_with("` ");
    let inner = if padded { inner.strip_prefix(' ')?.strip_suffix(' ')? } else { inner };
    Some(inner.to_owned())
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}

/// The tools that a reply of ours loaded, in whatever form it was written; none for other text.
pub(crate) fn names_in(text: &str) -> Vec<String> {
    if let Some(fields) = Fields::read(text) {
        let loaded = fields.get("loaded").and_then(|raw| serde_json::from_str(raw).ok());
        if let Some(loaded) = loaded {
            return loaded;
        }
        // A refusal that carried the schema.
        let shown = fields.get("input_schema").and_then(|_| fields.string("tool"));
        return shown.into_iter().collect();
    }
    let functions = text.lines().filter_map(|line| {
        let json = line.strip_prefix("<function>")?.strip_suffix("</function>")?;
        Fields::read(json)?.string("name")
    });
    let headings = text.lines().filter_map(|line| uncode(line.strip_prefix("### ")?));
    functions.chain(headings).collect()
}
