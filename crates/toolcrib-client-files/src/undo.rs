//! Undoes an edit of a file that may have been changed since: the file gets its original content back, except for what
//! was changed since.
//!
//! The wanted value is computed from the parsed texts. Then the lines of the three versions are merged, and the result
//! is used if it has exactly the wanted value. Otherwise, for example because the client has formatted the file again,
//! the current text is edited.

use serde_json::Value;
use thiserror::Error;

use crate::edit::{Edit, KeyPath, Place};
use crate::format::Format;
use crate::lines::{merge, with_lf};
use crate::problem::FileProblem;
use crate::tree;

/// An edit that was made: two versions of the file, and the paths at which they differ on purpose.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The text before the edit, or `None` if there was no file.
    pub original: Option<&'a str>,
    /// The text after the edit.
    pub edited: &'a str,
    /// The paths that the edit set or removed.
    pub paths: &'a [KeyPath],
}

/// The result of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// The file had not been changed since. Its original text, or `None` if there was no file.
    Original(Option<String>),
    /// The file had been changed since. The text without our part.
    Merged(String),
    /// There was no file before the edit, and nothing else is in it now.
    Empty,
}

/// A value that was changed in the file since the edit, and that the undo would overwrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path of the value.
    pub path: KeyPath,
    /// What is in the way.
    pub problem: &'static str,
}

/// Why an edit cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UndoError {
    /// Values were changed since the edit.
    #[error("{} changed since", .0.iter().map(|conflict| format!("`{}`", conflict.path.join("."))).collect::<Vec<_>>().join(", "))]
    Conflicts(Vec<Conflict>),
    /// A text cannot be parsed or edited.
    #[error(transparent)]
    File(#[from] FileProblem),
}

/// Undoes a change of a file whose text is now `current`.
pub fn undo(format: Format, change: Change<'_>, current: &str) -> Result<Undone, UndoError> {
    let Change { original, edited, paths } = change;
    if current == edited {
        return Ok(Undone::Original(original.map(str::to_owned)));
    }
    let original_text = original.unwrap_or_default();
    let versions = Versions {
        original: format.parse(original_text)?,
        edited: format.parse(edited)?,
        current: format.parse(current)?,
    };
    let edits = versions.inverse(original_text, paths)?;
    let undone = format.edit(current, &edits)?;
    let wanted = format.parse(&undone)?;
    if original.is_none() && wanted.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(Undone::Empty);
    }
    let merged = merge(edited, original_text, current)
        .or_else(|| merge_ignoring_line_endings(edited, original_text, current));
    match merged {
        Some(merged) if format.parse(&merged).as_ref() == Ok(&wanted) => Ok(Undone::Merged(merged)),
        _ => Ok(Undone::Merged(undone)),
    }
}

/// Merges the lines if only the line endings of the current text are different everywhere.
fn merge_ignoring_line_endings(edited: &str, original: &str, current: &str) -> Option<String> {
    let has_crlf = current.contains("\r\n");
    if has_crlf == edited.contains("\r\n") {
        return None;
    }
    let merged = merge(&with_lf(edited), &with_lf(original), &with_lf(current))?;
    Some(if has_crlf { merged.replace('\n', "\r\n") } else { merged })
}

struct Versions {
    original: Value,
    edited: Value,
    current: Value,
}

impl Versions {
    /// Returns the edits that undo the change in the current version.
    fn inverse<'a>(
        &self,
        original_text: &'a str,
        paths: &[KeyPath],
    ) -> Result<Vec<Edit<'a>>, UndoError> {
        let mut conflicts = Vec::new();
        let mut edits = Vec::new();
        for path in self.in_order(paths) {
            let before = tree::get(&self.original, path);
            let after = tree::get(&self.edited, path);
            let now = tree::get(&self.current, path);
            // The user may have removed our entry or added a removed one again. Then nothing is left to undo.
            if before == after || now == before {
                continue;
            }
            let is_ours = match (after, now) {
                (Some(after), Some(now)) => is_still(after, now),
                (None, None) => true,
                _ => false,
            };
            if !is_ours {
                let problem = match (before, now) {
                    (_, None) => "was removed",
                    (Some(_), _) if after.is_none() => "is now a different value",
                    _ => "was changed",
                };
                conflicts.push(Conflict { path: path.clone(), problem });
            } else if before.is_some() {
                let place = self.place(path);
                edits.push(Edit::Copy { path: path.clone(), from: original_text, place });
            } else {
                // A comment above our entry is the user's.
                edits.push(Edit::Remove { path: path.clone(), keep_comments: true });
            }
        }
        if !conflicts.is_empty() {
            return Err(UndoError::Conflicts(conflicts));
        }
        self.restore_containers(original_text, paths, &mut edits)?;
        Ok(edits)
    }

    /// Returns the paths in the order of the original, and those that are not in the original at the end, so that each
    /// restored key finds the key before it.
    fn in_order<'p>(&self, paths: &'p [KeyPath]) -> Vec<&'p KeyPath> {
        let mut paths: Vec<&KeyPath> = paths.iter().collect();
        paths.sort_by_key(|path| {
            let (last, parents) = path.split_last()?;
            let keys = tree::keys(&self.original, parents);
            Some(keys.iter().position(|key| *key == last).unwrap_or(usize::MAX))
        });
        paths
    }

    /// Returns the place of a restored key: after the nearest key before it that exists or is restored.
    fn place(&self, path: &[String]) -> Place {
        let Some((last, parents)) = path.split_last() else { return Place::Last };
        let keys = tree::keys(&self.original, parents);
        let before = keys.iter().take_while(|key| **key != last);
        let exists = |key: &&&String| {
            let path: KeyPath = parents.iter().cloned().chain([(**key).clone()]).collect();
            let is_removed = tree::get(&self.edited, &path).is_none();
            is_removed || tree::get(&self.current, &path).is_some()
        };
        before.filter(exists).last().map_or(Place::First, |key| Place::After((*key).clone()))
    }

    /// Adds edits for objects that the change created, or whose value it replaced, if they are empty now.
    fn restore_containers<'a>(
        &self,
        original_text: &'a str,
        paths: &[KeyPath],
        edits: &mut Vec<Edit<'a>>,
    ) -> Result<(), FileProblem> {
        let mut wanted = self.current.clone();
        for edit in &*edits {
            match edit {
                Edit::Copy { path, .. } => {
                    let value = tree::get(&self.original, path).cloned().unwrap_or_default();
                    tree::set(&mut wanted, path, value)?;
                }
                Edit::Remove { path, .. } => tree::remove(&mut wanted, path),
                Edit::Set { .. } => {}
            }
        }
        for path in paths {
            for depth in (1..path.len()).rev() {
                let container = &path[..depth];
                let before = tree::get(&self.original, container);
                let is_empty = tree::get(&wanted, container)
                    .is_some_and(|now| now.as_object().is_some_and(serde_json::Map::is_empty));
                if !is_empty || before.is_some_and(Value::is_object) {
                    continue;
                }
                let path = container.to_vec();
                if let Some(before) = before {
                    tree::set(&mut wanted, container, before.clone())?;
                    edits.push(Edit::Copy { path, from: original_text, place: Place::Last });
                } else {
                    tree::remove(&mut wanted, container);
                    edits.push(Edit::Remove { path, keep_comments: true });
                }
            }
        }
        Ok(())
    }
}

/// Keys of an entry that decide what runs or which server is used, in the formats of all clients.
const ESSENTIAL_KEYS: [&str; 16] = [
    "args",
    "bearer_token_env_var",
    "cmd",
    "command",
    "cwd",
    "env",
    "env_vars",
    "environment",
    "envs",
    "headers",
    "httpUrl",
    "http_headers",
    "serverUrl",
    "type",
    "uri",
    "url",
];

/// Keys with the URL of an entry.
const URL_KEYS: [&str; 4] = ["httpUrl", "serverUrl", "uri", "url"];
/// Keys with which the user gives a token to the server at our URL, as we ask them to.
const TOKEN_KEYS: [&str; 3] = ["bearer_token_env_var", "headers", "http_headers"];

/// Whether a value is still the one that was written. Clients add keys to entries, such as `disabled` or approvals of
/// tools. These do not count, because they mean nothing without the entry.
fn is_still(written: &Value, now: &Value) -> bool {
    let (Value::Object(written), Value::Object(now)) = (written, now) else {
        return written == now;
    };
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let has_url = URL_KEYS.iter().any(|key| written.contains_key(*key));
    let is_token = |key: &str| has_url && TOKEN_KEYS.contains(&key);
    let is_minor = |key: &str, value: &Value| {
        !ESSENTIAL_KEYS.contains(&key) || is_token(key) || is_empty(value)
    };
    let is_same = |key: &str, value: &Value| match now.get(key) {
        Some(now) => now == value || is_token(key) && is_empty(value),
        None => false,
    };
    written.iter().all(|(key, value)| is_same(key, value))
        && now.iter().all(|(key, value)| written.contains_key(key) || is_minor(key, value))
}
