//! Edits JSON with comments. The parser's tokens give the positions, and only the text of one property changes.
//!
//! Rejected: the editable syntax tree of jsonc-parser, because it cannot insert a property with its original text,
//! which `disconnect` needs.

mod block;
mod layout;

use jsonc_parser::ast::{self, Object, ObjectProp};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::tokens::TokenAndRange;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions};
use serde_json::Value;

use crate::edit::{Edit, Place};
use crate::problem::FileProblem;
use crate::tree;
use block::{Block, Fragment};
use layout::Layout;

const HINT: &str = "comments and trailing commas are allowed; the rest must be JSON";

/// Parses a text without a byte order mark. An empty text is null.
pub(crate) fn parse(text: &str) -> Result<Value, FileProblem> {
    jsonc_parser::parse_to_serde_value(text, &ParseOptions::default())
        .map_err(|error| not_json(text, &error))
}

fn not_json(text: &str, error: &jsonc_parser::errors::ParseError) -> FileProblem {
    let before = &text[..error.range().start.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let kind = error.kind();
    FileProblem::new(format!("not JSON: {kind} at line {line}, column {column}"), HINT)
}

/// A parsed text with its tokens, including comments.
struct Document<'a> {
    text: &'a str,
    root: Option<ast::Value<'a>>,
    tokens: Vec<TokenAndRange<'a>>,
}

impl<'a> Document<'a> {
    fn parse(text: &'a str) -> Result<Self, FileProblem> {
        let collect =
            CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let parsed = jsonc_parser::parse_to_ast(text, &collect, &ParseOptions::default())
            .map_err(|error| not_json(text, &error))?;
        Ok(Self { text, root: parsed.value, tokens: parsed.tokens.unwrap_or_default() })
    }

    /// Follows a path as far as it exists.
    fn locate(&self, path: &[String]) -> Result<Located<'_, 'a>, FileProblem> {
        let Some(root) = &self.root else { return Ok(Located::EmptyDocument) };
        let mut object = root.as_object().ok_or_else(|| tree::not_an_object("the document"))?;
        for (depth, key) in path.iter().enumerate() {
            let Some(index) = position(object, key) else {
                return Ok(Located::Missing { object, depth });
            };
            let property = &object.properties[index];
            if depth + 1 == path.len() {
                return Ok(Located::Found { object, index });
            }
            object = match &property.value {
                ast::Value::Object(object) => object,
                ast::Value::NullKeyword(_) => return Ok(Located::Null { property, depth }),
                _ => return Err(tree::not_an_object(key)),
            };
        }
        Err(tree::not_an_object("the document"))
    }
}

/// Where a path ends in a document.
enum Located<'d, 'a> {
    /// The text contains no value, and at most comments.
    EmptyDocument,
    /// The property at `index` is at the end of the path.
    Found { object: &'d Object<'a>, index: usize },
    /// The object has no property for the key at position `depth` of the path.
    Missing { object: &'d Object<'a>, depth: usize },
    /// The value of the key at position `depth` of the path is null, but an object is needed there.
    Null { property: &'d ObjectProp<'a>, depth: usize },
}

/// Returns the position of a key. If it occurs several times, the last one takes precedence.
fn position(object: &Object<'_>, key: &str) -> Option<usize> {
    object.properties.iter().rposition(|property| property.name.as_str() == key)
}

pub(crate) fn edit(text: &str, edit: &Edit<'_>) -> Result<String, FileProblem> {
    let document = Document::parse(text)?;
    let layout = Layout::of(&document);
    match edit {
        Edit::Set { path, value, place } => document.set(path, value, place, &layout),
        Edit::Remove { path, keep_comments } => match document.locate(path)? {
            Located::Found { object, index } => {
                let block = Block::of(&document, object, index);
                Ok(if *keep_comments { block.without_comments() } else { block }.removed())
            }
            _ => Ok(text.to_owned()),
        },
        Edit::Copy { path, from, place } => document.copy(path, from, place, &layout),
    }
}

impl Document<'_> {
    fn set(
        &self,
        path: &[String],
        value: &Value,
        place: &Place,
        layout: &Layout,
    ) -> Result<String, FileProblem> {
        let replaced = |range: jsonc_parser::common::Range, value: &Value| {
            let indent = layout::indent_at(self.text, range.start);
            let (before, after) = (&self.text[..range.start], &self.text[range.end..]);
            format!("{before}{}{after}", layout.render(value, indent))
        };
        Ok(match self.locate(path)? {
            Located::EmptyDocument => {
                let mut out = self.text.trim_end().to_owned();
                if !out.is_empty() {
                    out.push_str(layout.newline);
                }
                out + &layout.render(&tree::nest(path, value.clone()), "") + layout.newline
            }
            Located::Found { object, index } => {
                replaced(object.properties[index].value.range(), value)
            }
            Located::Null { property, depth } => {
                replaced(property.value.range(), &tree::nest(&path[depth + 1..], value.clone()))
            }
            Located::Missing { object, depth } => {
                let value = tree::nest(&path[depth + 1..], value.clone());
                let indent = layout.indent_of_properties(self, object);
                let fragment = Fragment::new(&path[depth], &value, layout, &indent);
                block::insert(self, object, &fragment, place, layout)
            }
        })
    }

    fn copy(
        &self,
        path: &[String],
        from: &str,
        place: &Place,
        layout: &Layout,
    ) -> Result<String, FileProblem> {
        let source = Document::parse(from)?;
        let (Located::Found { object: from_object, index }, located) =
            (source.locate(path)?, self.locate(path)?)
        else {
            return Err(FileProblem::unsupported(format!("`{}` is missing", path.join("."))));
        };
        match located {
            Located::Missing { object, depth } if depth + 1 == path.len() => {
                let indent = layout.indent_of_properties(self, object);
                let fragment = Fragment::copied(&source, from_object, index, layout, &indent);
                Ok(block::insert(self, object, &fragment, place, layout))
            }
            Located::Found { object, index: own } => {
                let range = object.properties[own].value.range();
                let value = &from_object.properties[index].value;
                let text = &from[value.range().start..value.range().end];
                Ok(format!("{}{text}{}", &self.text[..range.start], &self.text[range.end..]))
            }
            _ => {
                let value = parse(from)?;
                let value = tree::get(&value, path).cloned().unwrap_or_default();
                self.set(path, &value, place, layout)
            }
        }
    }
}
