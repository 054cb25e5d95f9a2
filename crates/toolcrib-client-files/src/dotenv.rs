//! Reads and edits dotenv files: lines `NAME=value`, optionally after `export`.

use serde_json::{Map, Value};

use crate::edit::Edit;
use crate::lines;
use crate::problem::FileProblem;

/// Returns the variables as an object. If a name occurs several times, the last line takes precedence.
pub(crate) fn parse(text: &str) -> Value {
    let mut variables = Map::new();
    for (name, value) in text.lines().filter_map(assignment) {
        variables.insert(name.to_owned(), Value::String(value.to_owned()));
    }
    Value::Object(variables)
}

/// Splits a line into the name and the value, without quotes around the value.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || name.starts_with('#') {
        return None;
    }
    let quoted =
        ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    Some((name, quoted.unwrap_or(value)))
}

pub(crate) fn edit(text: &str, edit: &Edit<'_>) -> Result<String, FileProblem> {
    let [name] = edit.path() else {
        return Err(FileProblem::unsupported("a dotenv file has no nested values"));
    };
    let has_name = |line: &str| assignment(line).is_some_and(|(known, _)| known == name);
    let written = match edit {
        Edit::Set { value, .. } => Some(format!("{name}={}", value.as_str().unwrap_or_default())),
        Edit::Copy { from, .. } => from.lines().rfind(|line| has_name(line)).map(str::to_owned),
        Edit::Remove { .. } => None,
    };
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let last = all.iter().rposition(|line| has_name(line));
    let newline = lines::newline(text);
    let mut out = String::new();
    for (at, line) in all.iter().enumerate() {
        match (&written, last == Some(at)) {
            // An earlier line with the same name has no effect, so it stays when the value is set.
            (Some(written), true) => {
                out.push_str(written);
                out.push_str(&line[line.trim_end_matches(['\r', '\n']).len()..]);
            }
            (None, _) if has_name(line) => {}
            _ => out.push_str(line),
        }
    }
    if let (Some(written), None) = (written, last) {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push_str(newline);
        }
        out.push_str(&written);
        out.push_str(newline);
    }
    Ok(out)
}
