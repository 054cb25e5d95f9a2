//! A property with the comments that belong to it: comments on the lines directly above it, and a comment after it in
//! the same line. It is removed, inserted and copied together with them.

use std::ops::Range;

use jsonc_parser::ast::Object;
use jsonc_parser::tokens::{Token, TokenAndRange};
use serde_json::Value;

use super::layout::{Layout, indent_at, is_first_in_line, line_start};
use super::{Document, position};
use crate::edit::Place;

/// The position of a property, and of the comments and the comma that belong to it.
pub(super) struct Block<'d> {
    text: &'d str,
    /// The comments above, and the property.
    start: usize,
    /// The property without its comma.
    property: Range<usize>,
    comma: Option<Range<usize>>,
    /// The end of a comment in the same line, else of the comma, else of the property.
    end: usize,
    /// The comma of the previous property, if this is the last property and has no comma after it.
    previous_comma: Option<Range<usize>>,
    /// The end of the previous property.
    previous_end: Option<usize>,
    /// Whether it is the only property of its object.
    inside: Option<Range<usize>>,
}

fn is_comment(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}

impl<'d> Block<'d> {
    pub(super) fn of(document: &'d Document<'_>, object: &Object<'_>, index: usize) -> Self {
        let (text, tokens) = (document.text, &document.tokens);
        let range = object.properties[index].range;
        let property = range.start..range.end;
        let close =
            object.properties.get(index + 1).map_or(object.range.end, |next| next.range.start);
        let comma = comma(tokens, property.end..close);
        let own_end = comma.as_ref().map_or(property.end, |comma| comma.end);
        let mut end = own_end;
        let after = tokens.iter().skip_while(|token| token.range.start < own_end);
        for token in after.take_while(|token| is_comment(token)) {
            if token.range.end > close || text[end..token.range.start].contains('\n') {
                break;
            }
            end = token.range.end;
        }
        // A comment before another property in the same line belongs to that property.
        if !rest_of_line(text, end).trim().is_empty() {
            end = own_end;
        }
        let previous = index.checked_sub(1).map(|index| &object.properties[index].range);
        let is_last = index + 1 == object.properties.len();
        let previous_comma = previous
            .filter(|_| is_last && comma.is_none())
            .and_then(|previous| self::comma(tokens, previous.end..property.start));
        let inside = object.range.start + 1..object.range.end - 1;
        Self {
            text,
            start: start(document, &property),
            property,
            comma,
            end,
            previous_comma,
            previous_end: previous.map(|previous| previous.end),
            inside: Some(inside).filter(|_| object.properties.len() == 1),
        }
    }

    /// Returns the property alone.
    pub(super) fn without_comments(self) -> Self {
        let end = self.comma.as_ref().map_or(self.property.end, |comma| comma.end);
        Self { start: self.property.start, end, ..self }
    }

    /// Returns the text without the block.
    pub(super) fn removed(&self) -> String {
        let text = self.text;
        let own_lines = is_first_in_line(text, self.start);
        let rest = rest_of_line(text, self.end);
        let mut range = if own_lines && rest.trim().is_empty() {
            let newline = text[self.end..].find('\n').map_or(text.len(), |at| self.end + at + 1);
            line_start(text, self.start)..newline
        } else {
            let end = self.comma.as_ref().map_or(self.property.end, |comma| comma.end);
            let spaces = text[end..].len() - text[end..].trim_start_matches([' ', '\t']).len();
            self.property.start..end + spaces
        };
        let mut out = text.to_owned();
        if let Some(comma) = &self.previous_comma {
            // If the object is written in a single line, the space after the comma is removed, too.
            if !own_lines && self.previous_end == Some(comma.start) {
                range = comma.start..self.property.end;
                out.replace_range(range, "");
                return out;
            }
            out.replace_range(range, "");
            out.replace_range(comma.clone(), "");
            return out;
        }
        let removed = range.len();
        out.replace_range(range, "");
        if let Some(inside) = &self.inside {
            let left = inside.start..inside.end.saturating_sub(removed);
            if out.get(left.clone()).is_some_and(|left| left.trim().is_empty()) {
                out.replace_range(left, "");
            }
        }
        out
    }
}

fn rest_of_line(text: &str, at: usize) -> &str {
    text[at..].split('\n').next().unwrap_or_default()
}

/// Returns the position of the first comma in a range.
fn comma(tokens: &[TokenAndRange<'_>], range: Range<usize>) -> Option<Range<usize>> {
    let mut inside = tokens.iter().skip_while(|token| token.range.start < range.start);
    let token = inside.find(|token| !is_comment(token))?;
    let is_comma = token.token == Token::Comma && token.range.end <= range.end;
    is_comma.then_some(token.range.start..token.range.end)
}

/// Returns where the comments above a property start, or where the property starts if there are none.
fn start(document: &Document<'_>, property: &Range<usize>) -> usize {
    let text = document.text;
    let mut start = property.start;
    let before = document.tokens.iter().rev().skip_while(|token| token.range.end > property.start);
    for token in before.take_while(|token| is_comment(token)) {
        let between = &text[token.range.end..start];
        let is_above =
            between.matches('\n').count() <= 1 && is_first_in_line(text, token.range.start);
        if !is_above || !is_first_in_line(text, start) && between.contains('\n') {
            break;
        }
        start = token.range.start;
    }
    start
}

/// The text of a property that is inserted.
pub(super) struct Fragment {
    /// The lines of comments above the property, each with its line ending and then the indentation of the next line.
    above: String,
    property: String,
    /// A comment after it in the same line, with the space before it.
    after: String,
}

impl Fragment {
    pub(super) fn new(key: &str, value: &Value, layout: &Layout, indent: &str) -> Self {
        let separator = if layout.is_compact { ":" } else { ": " };
        let property = format!("{}{separator}{}", Value::from(key), layout.render(value, indent));
        Self { above: String::new(), property, after: String::new() }
    }

    /// Copies a property of another document with its comments, and changes the indentation of its lines.
    pub(super) fn copied(
        source: &Document<'_>,
        object: &Object<'_>,
        index: usize,
        layout: &Layout,
        indent: &str,
    ) -> Self {
        let block = Block::of(source, object, index);
        let text = block.text;
        let old = indent_at(text, block.property.start);
        let indented = |part: &str| {
            let lines = part.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
            let lines = lines.enumerate().map(|(at, line)| match line.strip_prefix(old) {
                Some(rest) if at > 0 && !rest.is_empty() => format!("{indent}{rest}"),
                _ => line.to_owned(),
            });
            lines.collect::<Vec<_>>().join(layout.newline)
        };
        let own_lines = is_first_in_line(text, block.start);
        let above = if own_lines { &text[block.start..block.property.start] } else { "" };
        let after_start = block.comma.as_ref().map_or(block.property.end, |comma| comma.end);
        let has_line = own_lines && rest_of_line(text, block.end).trim().is_empty();
        let after = if has_line { &text[after_start..block.end] } else { "" };
        Self {
            above: indented(above),
            property: indented(&text[block.property.clone()]),
            after: after.to_owned(),
        }
    }
}

/// Inserts a property into an object.
pub(super) fn insert(
    document: &Document<'_>,
    object: &Object<'_>,
    fragment: &Fragment,
    place: &Place,
    layout: &Layout,
) -> String {
    let text = document.text;
    let Fragment { above, property, after } = fragment;
    let newline = layout.newline;
    let indent = layout.indent_of_properties(document, object);
    let count = object.properties.len();
    if count == 0 {
        let inside = object.range.start + 1..object.range.end - 1;
        let comments = text[inside.clone()].trim_end();
        let outer = indent_at(text, object.range.start);
        let (before, behind) = (&text[..inside.start], &text[inside.end..]);
        if layout.is_compact && comments.trim().is_empty() {
            return format!("{before}{property}{behind}");
        }
        let middle = format!("{newline}{indent}{above}{property}{after}{newline}{outer}");
        return format!("{before}{comments}{middle}{behind}");
    }
    let index = match place {
        Place::First => 0,
        Place::Before(key) => position(object, key).unwrap_or(count),
        Place::After(key) => position(object, key).map_or(count, |index| index + 1),
        Place::Last => count,
    };
    if index < count {
        let next = Block::of(document, object, index);
        let (before, behind) = text.split_at(next.start);
        if is_first_in_line(text, next.start) {
            return format!("{before}{above}{property},{after}{newline}{indent}{behind}");
        }
        let (before, behind) = text.split_at(next.property.start);
        let space = if layout.is_compact { "" } else { " " };
        return format!("{before}{property},{space}{behind}");
    }
    let last = Block::of(document, object, count - 1);
    let trailing = if last.comma.is_some() { "," } else { "" };
    // The order is: the comma after the last property, the comment of the last property, the new property.
    let comma = if last.comma.is_some() { "" } else { "," };
    if is_first_in_line(text, last.property.start) {
        let middle = &text[last.property.end..last.end];
        let (before, behind) = (&text[..last.property.end], &text[last.end..]);
        let added = format!("{newline}{indent}{above}{property}{trailing}{after}");
        return format!("{before}{comma}{middle}{added}{behind}");
    }
    let end = last.comma.as_ref().map_or(last.property.end, |comma| comma.end);
    let (before, behind) = text.split_at(end);
    let space = if layout.is_compact { "" } else { " " };
    format!("{before}{comma}{space}{property}{trailing}{behind}")
}
