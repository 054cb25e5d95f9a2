//! The reply formats that are not JSON: a `<functions>` block and Markdown.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Reply, ReplyMetadata};

impl Reply {
    pub(super) fn functions(&self) -> String {
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
                // In JSON, `<` occurs only within strings, so escaping it does not change the value. Line breaks occur
                // only between tokens, so they can be replaced with spaces.
                let json = json.replace('<', "\\u003c").replace(['\n', '\r'], " ");
                let _ = writeln!(text, "<function>{json}</function>");
            }
            text.push_str("</functions>\n");
        }
        self.write_metadata(&mut text);
        text
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        for hit in &self.hits {
            let _ = writeln!(text, "### {}\n", code(&hit.name));
            for line in hit.description.lines() {
                let _ = writeln!(text, "> {line}");
            }
            let schema = hit.input_schema.as_ref().map(|raw| raw.get());
            let Some(body) = schema.or(hit.signature.as_deref()) else {
                text.push('\n');
                continue;
            };
            let fence = "`".repeat(longest_run(body, '`').max(2) + 1);
            let kind = if schema.is_some() { "json" } else { "ts" };
            let _ = writeln!(text, "\n{fence}{kind}\n{body}\n{fence}\n");
        }
        self.write_metadata(&mut text);
        text
    }

    /// Writes the fields of the reply other than the tools, and then the notes. The fields are one line of JSON, so
    /// that names stay quoted.
    fn write_metadata(&self, text: &mut String) {
        let metadata = ReplyMetadata { available: self.available.as_ref(), ..self.metadata() };
        let metadata = serde_json::to_string(&metadata).unwrap_or_default().replace('<', "\\u003c");
        if metadata != "{}" {
            let _ = writeln!(text, "{metadata}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
    }
}

/// A tool in the `<functions>` block. The description comes first, as in the prompts of the models that use this form.
#[derive(Serialize)]
struct Function<'a> {
    description: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
}

/// Formats `text` as inline code in Markdown. The text may contain backticks.
fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text, '`') + 1);
    let edge = ['`', ' '];
    let pad = if text.starts_with(edge) || text.ends_with(edge) { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}
