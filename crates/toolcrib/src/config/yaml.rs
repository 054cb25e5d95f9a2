//! YAML documents as JSON values, for the configuration files of systems that are written in it.
//!
//! Those systems read their files with `PyYAML`, so this reader accepts what `PyYAML` accepts: keys that occur twice, `on` and
//! `yes` as booleans, and merge keys. It builds values from the parser's events instead of going through serde: the serde
//! layer was one of the slowest dependencies to build.

mod scalar;

use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value};
use thiserror::Error;

/// What a document may take in memory, each alias counted as a copy of what it stands for.
const MAX_BYTES: usize = 16 << 20;
/// About what one value takes besides its text.
const VALUE_BYTES: usize = 64;
/// How deep lists and mappings may be nested, aliases included: values are dropped recursively.
const MAX_DEPTH: usize = 128;

/// Why a text is not a document that can be used.
#[derive(Debug, Error, PartialEq)]
pub(crate) enum YamlError {
    #[error("{problem} at line {line}, column {column}")]
    Invalid { problem: String, line: usize, column: usize },
    #[error("several YAML documents")]
    SeveralDocuments,
    #[error("too large, or grown by its aliases")]
    TooLarge,
}

impl YamlError {
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "the file must be YAML",
            Self::SeveralDocuments => "keep one document in the file",
            Self::TooLarge => "keep only the part about tools",
        }
    }

    fn invalid(problem: impl Into<String>, at: &Marker) -> Self {
        Self::Invalid { problem: problem.into(), line: at.line(), column: at.col() + 1 }
    }
}

/// The one document of a text; null where it is empty.
pub(crate) fn parse(text: &str) -> Result<Value, YamlError> {
    let mut builder = Builder::default();
    for next in Parser::new_from_str(text) {
        let (event, span) =
            next.map_err(|error| YamlError::invalid(error.info(), error.marker()))?;
        builder.take(event, &span.start)?;
    }
    Ok(builder.document.unwrap_or_default())
}

/// Builds a value from the events of the parser.
#[derive(Default)]
struct Builder {
    open: Vec<Collection>,
    anchored: HashMap<usize, Finished>,
    document: Option<Value>,
    /// Of all values so far, in [`VALUE_BYTES`] and text.
    bytes: usize,
}

/// A value, and what an alias to it costs.
#[derive(Clone)]
struct Finished {
    value: Value,
    bytes: usize,
    depth: usize,
}

/// A list or mapping whose end has not been read.
struct Collection {
    content: Content,
    start: Marker,
    /// Zero where it has none.
    anchor: usize,
    bytes_before: usize,
    /// Of the deepest value in it.
    depth: usize,
}

enum Content {
    List(Vec<Value>),
    Mapping { entries: Map<String, Value>, key: Option<String>, merged: Vec<Value> },
}

impl Builder {
    fn take(&mut self, event: Event<'_>, at: &Marker) -> Result<(), YamlError> {
        match event {
            Event::DocumentStart(..) if self.document.is_some() => Err(YamlError::SeveralDocuments),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), at)
            }
            Event::SequenceStart(_, anchor, _) => self.start(Content::List(Vec::new()), anchor, at),
            Event::MappingStart(_, anchor, _) => {
                let (entries, merged) = (Map::new(), Vec::new());
                self.start(Content::Mapping { entries, key: None, merged }, anchor, at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let Some(target) = self.anchored.get(&anchor).cloned() else {
                    return Err(YamlError::invalid("an alias to a value that contains it", at));
                };
                self.spend(target.bytes)?;
                self.add(target, at)
            }
            _ => Ok(()),
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), YamlError> {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES { Err(YamlError::TooLarge) } else { Ok(()) }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        at: &Marker,
    ) -> Result<(), YamlError> {
        let bytes = VALUE_BYTES + text.len();
        self.spend(bytes)?;
        // A key is its text: `on: push` is about `on`, not about `true`.
        let value = if self.is_at_key() {
            Value::String(text.to_owned())
        } else {
            scalar::value(text, style, tag)
        };
        let finished = Finished { value, bytes, depth: 0 };
        self.keep(anchor, &finished);
        self.add(finished, at)
    }

    fn start(&mut self, content: Content, anchor: usize, at: &Marker) -> Result<(), YamlError> {
        self.spend(VALUE_BYTES)?;
        if self.open.len() == MAX_DEPTH {
            return Err(YamlError::TooLarge);
        }
        let bytes_before = self.bytes - VALUE_BYTES;
        self.open.push(Collection { content, start: *at, anchor, bytes_before, depth: 0 });
        Ok(())
    }

    fn end(&mut self) -> Result<(), YamlError> {
        let Some(collection) = self.open.pop() else { return Ok(()) };
        let value = match collection.content {
            Content::List(items) => Value::Array(items),
            Content::Mapping { mut entries, merged, .. } => {
                for source in merged {
                    merge(&mut entries, source)
                        .map_err(|problem| YamlError::invalid(problem, &collection.start))?;
                }
                Value::Object(entries)
            }
        };
        let bytes = self.bytes - collection.bytes_before;
        let finished = Finished { value, bytes, depth: collection.depth + 1 };
        self.keep(collection.anchor, &finished);
        self.add(finished, &collection.start)
    }

    /// Whether the next value is the key of a mapping.
    fn is_at_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(Collection { content: Content::Mapping { key: None, .. }, .. })
        )
    }

    fn keep(&mut self, anchor: usize, finished: &Finished) {
        if anchor != 0 {
            self.anchored.insert(anchor, finished.clone());
        }
    }

    /// Adds a value to the list or mapping that is open.
    fn add(&mut self, finished: Finished, at: &Marker) -> Result<(), YamlError> {
        if self.open.len() + finished.depth > MAX_DEPTH {
            return Err(YamlError::TooLarge);
        }
        let value = finished.value;
        let Some(collection) = self.open.last_mut() else {
            self.document = Some(value);
            return Ok(());
        };
        collection.depth = collection.depth.max(finished.depth);
        match &mut collection.content {
            Content::List(items) => items.push(value),
            Content::Mapping { entries, key, merged } => match key.take() {
                Some(name) if name == "<<" => merged.push(value),
                Some(name) => {
                    entries.insert(name, value);
                }
                None => match value {
                    Value::String(text) => *key = Some(text),
                    Value::Number(_) | Value::Bool(_) => *key = Some(value.to_string()),
                    _ => return Err(YamlError::invalid("a key that is no plain text", at)),
                },
            },
        }
        Ok(())
    }
}

/// Adds the entries of a mapping, or of a list of mappings, whose keys are not there yet.
fn merge(entries: &mut Map<String, Value>, source: Value) -> Result<(), &'static str> {
    let sources = match source {
        Value::Array(sources) => sources,
        one => vec![one],
    };
    for source in sources {
        let Value::Object(source) = source else {
            return Err("`<<` with something else than a mapping");
        };
        for (key, value) in source {
            entries.entry(key).or_insert(value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn invalid(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn lists_mappings_and_texts_of_every_style() {
        let text = "\
# A comment.
a: [1, 'two', \"th\\u0072ee\", {b: }]
c:
- |
  kept
  lines
- >-
  one
  line
? d
: e
";
        let value = json!({"a": [1, "two", "three", {"b": null}], "c": ["kept\nlines\n", "one line"], "d": "e"});
        assert_eq!(parse(text), Ok(value));
        assert_eq!(parse("--- \n# nothing\n"), Ok(Value::Null));
        assert_eq!(parse(""), Ok(Value::Null));
    }

    #[test]
    fn keys_are_texts_and_the_last_of_two_wins() {
        assert_eq!(parse("on: 1\n2: 2\non: 3\n"), Ok(json!({"on": 3, "2": 2})));
        assert_eq!(invalid("[a]: 1"), "a key that is no plain text at line 1, column 1");
    }

    #[test]
    fn aliases_are_copies_and_a_merge_adds_what_is_not_there() {
        let text = "\
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 4}
one: {<<: *base, b: 5}
two: {<<: [*base, *more]}
name: &name x
*name : *name
";
        let value = parse(text).unwrap();
        assert_eq!(value["one"], json!({"b": 5, "a": 1}));
        assert_eq!(value["two"], json!({"a": 1, "b": 2, "c": 4}));
        assert_eq!(value["x"], "x");
        assert_eq!(
            invalid("{<<: 1}"),
            "`<<` with something else than a mapping at line 1, column 1"
        );
        assert_eq!(
            invalid("a: &a [*a]"),
            "an alias to a value that contains it at line 1, column 8"
        );
    }

    #[test]
    fn documents_that_grow_or_are_too_deep_are_refused() {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&deep(MAX_DEPTH)).is_ok());
        assert_eq!(parse(&deep(MAX_DEPTH + 1)), Err(YamlError::TooLarge));
        // Deep only by way of an alias.
        let text = format!("a: &a {}\nb: [[[*a]]]\n", deep(MAX_DEPTH - 3));
        assert_eq!(parse(&text), Err(YamlError::TooLarge));
        // One long text, again and again.
        let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(20));
        assert_eq!(parse(&text), Err(YamlError::TooLarge));
        assert_eq!(parse("a: 1\n---\nb: 2\n"), Err(YamlError::SeveralDocuments));
    }
}
