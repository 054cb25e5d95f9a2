//! Edits YAML line by line. Only block mappings are edited; anything else is an error that says so. The result of every
//! edit is parsed and compared, so a text that this code misreads is not changed.
//!
//! Rejected: writing the file with a YAML serializer, because all serializers lose comments.

mod render;

use std::ops::Range;

use serde_json::Value;

use crate::edit::{Edit, Place};
use crate::problem::FileProblem;
use crate::{lines, tree};

/// A text as lines, each with its line ending.
struct Lines<'a> {
    all: Vec<&'a str>,
}

/// A key of a block mapping with its value.
struct Node {
    key: String,
    /// The comments directly above, the line with the key, and the lines of the value.
    block: Range<usize>,
    /// The line with the key.
    line: usize,
    indent: usize,
}

pub(crate) fn edit(text: &str, edit: &Edit<'_>) -> Result<String, FileProblem> {
    let document = Lines::of(text);
    match edit {
        Edit::Remove { path, keep_comments } => match document.find(path)? {
            Some(mut node) => {
                if *keep_comments {
                    node.block.start = node.line;
                }
                document.remove(path, &node)
            }
            None => Ok(text.to_owned()),
        },
        Edit::Set { path, value, place } => document.set(path, value, place),
        Edit::Copy { path, from, place } => {
            let source = Lines::of(from);
            let Some(node) = source.find(path)? else {
                return Err(FileProblem::unsupported(format!("`{}` is missing", path.join("."))));
            };
            let copied: Vec<&str> = source.all[node.block.clone()].to_vec();
            document.insert_lines(path, &copied, node.indent, place)
        }
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// Splits a line of a block mapping into the key and the text after the colon.
fn key_of(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    if let Some(quote) = line.chars().next().filter(|quote| matches!(quote, '"' | '\'')) {
        let end = line[1..].find(quote)? + 1;
        let rest = line[end + 1..].trim_start().strip_prefix(':')?;
        return Some((line[1..end].to_owned(), rest));
    }
    if line.starts_with(['-', '#', '?', '&', '*', '!', '{', '[', '|', '>', '%', '@']) {
        return None;
    }
    let at = line.find(": ").or_else(|| line.ends_with(':').then(|| line.len() - 1))?;
    Some((line[..at].trim().to_owned(), &line[at + 1..]))
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self { all: text.split_inclusive('\n').collect() }
    }

    /// Returns the keys of the block mapping in these lines.
    fn children(&self, range: Range<usize>) -> Vec<Node> {
        let is_content = |at: &usize| {
            let line = self.all[*at];
            !is_blank(line)
                && !is_comment(line)
                && !line.starts_with("---")
                && !line.starts_with('%')
        };
        let Some(first) = range.clone().find(is_content) else { return Vec::new() };
        let indent = indent_of(self.all[first]);
        // A list may have the same indentation as its key.
        let is_key = |at: &usize| {
            let line = self.all[*at];
            is_content(at) && indent_of(line) <= indent && !line.trim_start().starts_with("- ")
        };
        let starts: Vec<usize> = range.clone().filter(is_key).collect();
        let mut nodes = Vec::new();
        for (index, line) in starts.iter().copied().enumerate() {
            let next = starts.get(index + 1).copied().unwrap_or(range.end);
            let Some((key, _)) = key_of(self.all[line]) else { continue };
            let mut end = next;
            // Empty lines and comments before the next key do not belong to this value, unless they are indented more.
            while end > line + 1 {
                let last = self.all[end - 1];
                if is_blank(last) || is_comment(last) && indent_of(last) <= indent {
                    end -= 1;
                } else {
                    break;
                }
            }
            let mut start = line;
            while start > range.start && is_comment(self.all[start - 1]) {
                start -= 1;
            }
            nodes.push(Node { key, block: start..end, line, indent });
        }
        nodes
    }

    fn value_lines(node: &Node) -> Range<usize> {
        node.line + 1..node.block.end
    }

    /// Finds the node at a path. Fails if a mapping on the way is not a block mapping.
    fn find(&self, path: &[String]) -> Result<Option<Node>, FileProblem> {
        let mut range = 0..self.all.len();
        let mut found: Option<Node> = None;
        for key in path {
            if let Some(parent) = &found {
                self.check_block(parent)?;
            }
            let node = self.children(range).into_iter().rfind(|node| node.key == *key);
            let Some(node) = node else { return Ok(None) };
            range = Self::value_lines(&node);
            found = Some(node);
        }
        Ok(found)
    }

    /// Returns the text after the colon of a key, without a comment.
    fn inline_value(&self, node: &Node) -> &'a str {
        let rest = key_of(self.all[node.line]).map_or("", |(_, rest)| rest).trim();
        if rest.starts_with('#') {
            return "";
        }
        rest.split(" #").next().unwrap_or_default().trim()
    }

    fn check_block(&self, node: &Node) -> Result<(), FileProblem> {
        match self.inline_value(node) {
            "" | "{}" | "null" | "~" => Ok(()),
            _ => Err(FileProblem::new(
                format!("`{}` at line {} is not a block mapping", node.key, node.line + 1),
                "write one key per line, each indented below the name; then run the command again",
            )),
        }
    }

    fn set(&self, path: &[String], value: &Value, place: &Place) -> Result<String, FileProblem> {
        if let Some(node) = self.find(path)? {
            let place = Place::Before(node.key.clone());
            // The new node is inserted before the old node, which is then the second node with this name.
            let text = self.insert_new(path, value, &place)?;
            let added = text.matches('\n').count() - self.text().matches('\n').count();
            let document = Lines::of(&text);
            let moved = node.block.start + added..node.block.end + added;
            let kept = document.all[..moved.start].iter().chain(&document.all[moved.end..]);
            return Ok(kept.copied().collect());
        }
        self.insert_new(path, value, place)
    }

    fn text(&self) -> String {
        self.all.concat()
    }

    fn insert_new(
        &self,
        path: &[String],
        value: &Value,
        place: &Place,
    ) -> Result<String, FileProblem> {
        let (last, _) = path.split_last().ok_or_else(|| tree::not_an_object("the document"))?;
        let node = render::block(last, value, 0);
        let rendered: Vec<&str> = node.split_inclusive('\n').collect();
        self.insert_lines(path, &rendered, 0, place)
    }

    /// Inserts the lines of a node, which are indented by `indent`, as the last key of `path`.
    fn insert_lines(
        &self,
        path: &[String],
        node: &[&str],
        indent: usize,
        place: &Place,
    ) -> Result<String, FileProblem> {
        let (_, parents) = path.split_last().ok_or_else(|| tree::not_an_object("the document"))?;
        let mut all: Vec<String> = self.all.iter().map(|line| (*line).to_owned()).collect();
        let newline = lines::newline(&self.text());
        let mut range = 0..self.all.len();
        let mut level = 0;
        for (depth, key) in parents.iter().enumerate() {
            let found = self.children(range.clone()).into_iter().rfind(|node| node.key == *key);
            let Some(parent) = found else {
                // The missing mappings are created at the end of the last one that exists.
                let mut added = Vec::new();
                for (more, key) in parents[depth..].iter().enumerate() {
                    added.push(format!(
                        "{}{}:{newline}",
                        " ".repeat(level + more * 2),
                        render::key(key)
                    ));
                }
                added.extend(reindented(
                    node,
                    indent,
                    level + (parents.len() - depth) * 2,
                    newline,
                ));
                return Ok(spliced(all, end_of(&self.all, range), added, newline));
            };
            self.check_block(&parent)?;
            if !self.inline_value(&parent).is_empty() {
                all[parent.line] = self.without_inline_value(&parent);
            }
            range = Self::value_lines(&parent);
            level = parent.indent + 2;
        }
        let siblings = self.children(range.clone());
        let level = siblings.first().map_or(level, |sibling| sibling.indent);
        let index = match place {
            Place::First => Some(0),
            Place::Before(key) => siblings.iter().position(|node| node.key == *key),
            Place::After(key) => siblings.iter().position(|node| node.key == *key).map(|at| at + 1),
            Place::Last => None,
        };
        let at = match index.and_then(|index| siblings.get(index)) {
            Some(next) => next.block.start,
            None => siblings.last().map_or_else(|| end_of(&self.all, range), |last| last.block.end),
        };
        Ok(spliced(all, at, reindented(node, indent, level, newline), newline))
    }

    /// Returns the line of a key without `{}` or `null` after the colon.
    fn without_inline_value(&self, node: &Node) -> String {
        let (line, value) = (self.all[node.line], self.inline_value(node));
        let Some(at) = line.find(':').and_then(|colon| Some(line[colon..].find(value)? + colon))
        else {
            return line.to_owned();
        };
        format!("{}{}", line[..at].trim_end(), &line[at + value.len()..])
    }

    fn remove(&self, path: &[String], node: &Node) -> Result<String, FileProblem> {
        let mut all: Vec<String> = self.all.iter().map(|line| (*line).to_owned()).collect();
        all.drain(node.block.clone());
        let Some((_, parents)) = path.split_last() else { return Ok(self.text()) };
        if let Some(parent) = self.find(parents)?.filter(|_| !parents.is_empty()) {
            let is_only = self.children(Self::value_lines(&parent)).len() == 1;
            if is_only && self.inline_value(&parent).is_empty() {
                // Without keys, the value would be null.
                let line = &all[parent.line];
                let colon = line.find(':').map_or(line.len(), |colon| colon + 1);
                all[parent.line] = format!("{} {{}}{}", &line[..colon], &line[colon..]);
            }
        }
        Ok(all.concat())
    }
}

/// Returns the end of a range without the empty lines and the end marker at its end.
fn end_of(all: &[&str], range: Range<usize>) -> usize {
    let mut end = range.end;
    while end > range.start && (is_blank(all[end - 1]) || all[end - 1].starts_with("...")) {
        end -= 1;
    }
    end
}

/// Changes the indentation of the lines of a node, and their line endings.
fn reindented(node: &[&str], from: usize, to: usize, newline: &str) -> Vec<String> {
    let line = |line: &&str| {
        let text = line.trim_end_matches(['\r', '\n']);
        let text = if indent_of(text) >= from { &text[from..] } else { text.trim_start() };
        if text.is_empty() {
            newline.to_owned()
        } else {
            format!("{}{text}{newline}", " ".repeat(to))
        }
    };
    node.iter().map(line).collect()
}

fn spliced(mut all: Vec<String>, at: usize, added: Vec<String>, newline: &str) -> String {
    if at > 0 && !all[at - 1].ends_with('\n') {
        all[at - 1].push_str(newline);
    }
    all.splice(at..at, added);
    all.concat()
}
