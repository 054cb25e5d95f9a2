//! Reads YAML documents as JSON values, for the configuration files of systems that use YAML.
//!
//! These systems read their files with `PyYAML`, so its rules apply: a key may occur twice, `on` and `yes` are
//! booleans, and `<<` merges mappings. Keys are always text, as in JSON. The values are built from the parser's events
//! rather than with serde, because the serde layer was one of the slowest dependencies to build.

mod scalar;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value};
use thiserror::Error;

/// Maximum estimated size of a document in memory, in bytes. Each alias counts as a copy of its target, and a value
/// with an anchor counts twice, because a copy is stored for its aliases.
const MAX_BYTES: usize = 32 << 20;
/// Estimated size of a value without its text, in bytes.
const VALUE_BYTES: usize = 128;
/// Maximum nesting depth of lists and mappings, with aliases expanded. Without a limit, dropping a value could overflow
/// the stack, because values are dropped recursively.
const MAX_DEPTH: usize = 128;

/// Why a YAML text cannot be used.
#[derive(Debug, Error, PartialEq)]
pub enum YamlError {
    /// The text is not YAML.
    #[error("{problem} at line {line}, column {column}")]
    Invalid {
        /// What is wrong.
        problem: String,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
    },
    /// The text contains more than one document.
    #[error("more than one YAML document")]
    SeveralDocuments,
    /// The document would need too much memory.
    #[error("too large or too deeply nested, with aliases expanded")]
    TooLarge,
}

impl YamlError {
    /// Returns what the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "the file must be YAML",
            Self::SeveralDocuments => "keep one document in the file",
            Self::TooLarge => "keep only the settings about tools in the file",
        }
    }

    fn invalid(problem: impl Into<String>, at: &Marker) -> Self {
        Self::Invalid { problem: problem.into(), line: at.line(), column: at.col() + 1 }
    }
}

/// Parses a text that contains a single document. An empty text is null.
pub fn parse(text: &str) -> Result<Value, YamlError> {
    let mut builder = YamlBuilder::default();
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| match error.kind() {
            ErrorKind::RecursionLimitExceeded => YamlError::TooLarge,
            _ => YamlError::invalid(error.info(), error.marker()),
        })?;
        builder.take(event, &span.start)?;
    }
    Ok(builder.document.unwrap_or_default())
}

/// Builds a value from the events of the parser.
#[derive(Default)]
struct YamlBuilder {
    open: Vec<Collection>,
    anchored: HashMap<usize, Node>,
    document: Option<Value>,
    /// Estimated size of all values read so far, in bytes.
    bytes: usize,
    /// Estimated size of the copies in `anchored`, in bytes.
    anchored_bytes: usize,
}

/// A value, its form as a mapping key, its size and its depth. The size and the depth include the expanded aliases
/// inside the value.
#[derive(Clone)]
struct Node {
    value: Value,
    /// `None` for lists and mappings, which cannot be keys.
    key: Option<MappingKey>,
    bytes: usize,
    depth: usize,
}

/// A key in a mapping.
#[derive(Clone)]
enum MappingKey {
    /// The text as it is written: the key of `on: push` is `on`, not `true`.
    Text(String),
    /// The key `<<`, which merges other mappings into this one.
    Merge,
}

/// A list or mapping whose end has not been read.
struct Collection {
    content: Content,
    start: Marker,
    /// The id of the collection's anchor; zero if it has none.
    anchor: usize,
    bytes_before: usize,
    /// Depth of the deepest value in the collection.
    depth: usize,
}

enum Content {
    List(Vec<Value>),
    Mapping {
        entries: Map<String, Value>,
        key: Option<MappingKey>,
        merged: Vec<Map<String, Value>>,
    },
}

impl YamlBuilder {
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
                let Some(target) = self.anchored.get(&anchor) else {
                    return Err(YamlError::invalid("alias inside the value it refers to", at));
                };
                self.bytes += target.bytes;
                self.check_size()?;
                let target = target.clone();
                self.add(target, at)
            }
            _ => Ok(()),
        }
    }

    fn check_size(&self) -> Result<(), YamlError> {
        let bytes = self.bytes + self.anchored_bytes;
        if bytes > MAX_BYTES { Err(YamlError::TooLarge) } else { Ok(()) }
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
        self.bytes += bytes;
        self.check_size()?;
        let is_merge = text == "<<" && style == ScalarStyle::Plain && tag.is_none();
        let key = if is_merge { MappingKey::Merge } else { MappingKey::Text(text.to_owned()) };
        let value = scalar::value(text, style, tag);
        self.finish(Node { value, key: Some(key), bytes, depth: 0 }, anchor, at)
    }

    fn start(&mut self, content: Content, anchor: usize, at: &Marker) -> Result<(), YamlError> {
        if self.open.len() == MAX_DEPTH {
            return Err(YamlError::TooLarge);
        }
        let bytes_before = self.bytes;
        self.bytes += VALUE_BYTES;
        self.check_size()?;
        self.open.push(Collection { content, start: *at, anchor, bytes_before, depth: 0 });
        Ok(())
    }

    fn end(&mut self) -> Result<(), YamlError> {
        let Some(collection) = self.open.pop() else { return Ok(()) };
        let value = match collection.content {
            Content::List(items) => Value::Array(items),
            Content::Mapping { mut entries, merged, .. } => {
                for (key, value) in merged.into_iter().flatten() {
                    entries.entry(key).or_insert(value);
                }
                Value::Object(entries)
            }
        };
        let bytes = self.bytes - collection.bytes_before;
        let node = Node { value, key: None, bytes, depth: collection.depth + 1 };
        self.finish(node, collection.anchor, &collection.start)
    }

    /// Adds a value. If the value has an anchor, keeps a copy for its aliases.
    fn finish(&mut self, node: Node, anchor: usize, at: &Marker) -> Result<(), YamlError> {
        if anchor != 0 {
            self.anchored_bytes += node.bytes;
            self.check_size()?;
            self.anchored.insert(anchor, node.clone());
        }
        self.add(node, at)
    }

    /// Adds a value to the innermost open list or mapping.
    fn add(&mut self, node: Node, at: &Marker) -> Result<(), YamlError> {
        if self.open.len() + node.depth > MAX_DEPTH {
            return Err(YamlError::TooLarge);
        }
        let Some(collection) = self.open.last_mut() else {
            self.document = Some(node.value);
            return Ok(());
        };
        collection.depth = collection.depth.max(node.depth);
        match &mut collection.content {
            Content::List(items) => items.push(node.value),
            Content::Mapping { entries, key, merged } => match key.take() {
                Some(MappingKey::Text(name)) => {
                    entries.insert(name, node.value);
                }
                Some(MappingKey::Merge) => {
                    let sources = merge_sources(node.value).ok_or_else(|| {
                        YamlError::invalid("`<<` must be a mapping or a list of mappings", at)
                    })?;
                    // If `<<` occurs twice, the last one takes precedence, as with any repeated key. If one `<<` lists
                    // several mappings, the first mapping takes precedence.
                    merged.splice(..0, sources);
                }
                None => {
                    let problem = || YamlError::invalid("mapping key is a list or a mapping", at);
                    *key = Some(node.key.ok_or_else(problem)?);
                }
            },
        }
        Ok(())
    }
}

/// Returns the mappings that the value of a `<<` key merges. `None` if the value is neither a mapping nor a list of
/// mappings.
fn merge_sources(value: Value) -> Option<Vec<Map<String, Value>>> {
    let mapping = |value| match value {
        Value::Object(entries) => Some(entries),
        _ => None,
    };
    match value {
        Value::Array(values) => values.into_iter().map(mapping).collect(),
        one => mapping(one).map(|entries| vec![entries]),
    }
}
