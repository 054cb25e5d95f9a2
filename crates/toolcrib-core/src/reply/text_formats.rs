//! The forms that are text: a `<functions>` block and Markdown.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Reply, Rest};

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
        self.write_rest(&mut text);
        text
    }

    /// What is no tool: in both text forms one JSON line each, so that names stay data.
    fn write_rest(&self, text: &mut String) {
        let rest = Rest { available: self.available.as_ref(), ..self.rest() };
        let rest = serde_json::to_string(&rest).unwrap_or_default().replace('<', "\\u003c");
        if rest != "{}" {
            let _ = writeln!(text, "{rest}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
    }
}

/// A tool of the block: the description first, as models see it in the list they begin with.
#[derive(Serialize)]
struct Function<'a> {
    description: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
}

/// `text` as inline code, whatever backticks it has.
fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text, '`') + 1);
    let edge = ['`', ' '];
    let pad = if text.starts_with(edge) || text.ends_with(edge) { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}
