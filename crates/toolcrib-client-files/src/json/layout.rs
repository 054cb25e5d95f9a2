//! The layout of a JSON text: its line ending and its indentation. New text is written in the same layout.

use jsonc_parser::ast::Object;
use serde_json::Value;

use super::Document;
use crate::lines;

/// Maximum length of a list that is written in one line, in bytes.
const ONE_LINE: usize = 100;

pub(super) struct Layout {
    pub(super) newline: &'static str,
    /// One level of indentation.
    unit: String,
    /// Whether the document is a single line, as some programs write it.
    pub(super) is_compact: bool,
}

impl Layout {
    pub(super) fn of(document: &Document<'_>) -> Self {
        let text = document.text;
        let root = document.root.as_ref().and_then(|root| root.as_object());
        let is_compact = root.is_some_and(|root| {
            !root.properties.is_empty() && !text[root.range.start..root.range.end].contains('\n')
        });
        let indents = text.lines().map(|line| &line[..line.len() - line.trim_start().len()]);
        let first = indents.into_iter().find(|indent| !indent.is_empty());
        let unit = match first {
            Some(indent) if indent.starts_with('\t') => "\t".to_owned(),
            // Indentation by more than eight spaces is probably more than one level.
            Some(indent) if indent.len() <= 8 => indent.to_owned(),
            _ => "  ".to_owned(),
        };
        Self { newline: lines::newline(text), unit, is_compact }
    }

    /// Returns the indentation of the properties of an object.
    pub(super) fn indent_of_properties(
        &self,
        document: &Document<'_>,
        object: &Object<'_>,
    ) -> String {
        let first = object.properties.first().map(|first| first.range.start);
        match first.filter(|start| is_first_in_line(document.text, *start)) {
            Some(start) => indent_at(document.text, start).to_owned(),
            None => format!("{}{}", indent_at(document.text, object.range.start), self.unit),
        }
    }

    /// Writes a value whose first line is already indented by `indent`.
    pub(super) fn render(&self, value: &Value, indent: &str) -> String {
        let parts: Vec<String> = match value {
            _ if self.is_compact => return value.to_string(),
            Value::Object(map) if !map.is_empty() => {
                let inner = format!("{indent}{}", self.unit);
                let member = |(key, value): (&String, &Value)| {
                    format!("{}: {}", Value::from(key.as_str()), self.render(value, &inner))
                };
                map.iter().map(member).collect()
            }
            Value::Array(list) if !list.is_empty() => {
                let inner = format!("{indent}{}", self.unit);
                let parts: Vec<String> =
                    list.iter().map(|value| self.render(value, &inner)).collect();
                let line = format!("[{}]", parts.join(", "));
                if line.len() <= ONE_LINE && !line.contains('\n') {
                    return line;
                }
                parts
            }
            _ => return value.to_string(),
        };
        let (open, close) = if value.is_array() { ('[', ']') } else { ('{', '}') };
        let newline = self.newline;
        let separator = format!(",{newline}{indent}{}", self.unit);
        let body = parts.join(&separator);
        format!("{open}{newline}{indent}{}{body}{newline}{indent}{close}", self.unit)
    }
}

/// Returns the position where the line of a position starts.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns the whitespace at the beginning of the line of a position.
pub(super) fn indent_at(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Whether only whitespace is before this position in its line.
pub(super) fn is_first_in_line(text: &str, at: usize) -> bool {
    text[line_start(text, at)..at].trim().is_empty()
}
