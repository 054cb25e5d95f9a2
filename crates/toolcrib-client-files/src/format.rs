//! The formats of client files, and the check that every edit has exactly the wanted result.

use serde_json::{Map, Value};

use crate::edit::Edit;
use crate::problem::FileProblem;
use crate::{dotenv, json, toml_document, tree, yaml, yaml_lines};

/// Maximum size of a file, in bytes. Toolcrib's own config has the same maximum.
const MAX_BYTES: usize = 4 << 20;

/// The format of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, which may have comments and trailing commas.
    Json,
    /// TOML.
    Toml,
    /// YAML. Only block mappings can be edited.
    Yaml,
    /// Lines `NAME=value`.
    Dotenv,
}

impl Format {
    /// Parses a text whose top level is an object. An empty text is an empty object.
    pub fn parse(self, text: &str) -> Result<Value, FileProblem> {
        if text.len() > MAX_BYTES {
            return Err(FileProblem::unsupported("the file is larger than 4 MiB"));
        }
        let (_, text) = split_bom(text);
        let value = match self {
            Self::Json => json::parse(text)?,
            Self::Toml => toml_document::parse(text)?,
            Self::Yaml => yaml::parse(text)
                .map_err(|error| FileProblem::new(error.to_string(), error.hint()))?,
            Self::Dotenv => dotenv::parse(text),
        };
        match value {
            Value::Null => Ok(Value::Object(Map::new())),
            Value::Object(_) => Ok(value),
            _ => Err(tree::not_an_object("the document")),
        }
    }

    /// Applies edits to a text. The result is parsed and compared with the wanted value, so an edit that would change
    /// anything else is an error.
    pub fn edit(self, text: &str, edits: &[Edit<'_>]) -> Result<String, FileProblem> {
        let (bom, body) = split_bom(text);
        let mut body = body.to_owned();
        let mut wanted = self.parse(text)?;
        for edit in edits {
            let source = match edit {
                Edit::Copy { from, .. } => Some(self.parse(from)?),
                _ => None,
            };
            if !apply(&mut wanted, edit, source.as_ref())? {
                continue;
            }
            body = self.edit_checked(&body, edit, source.as_ref(), &wanted)?;
        }
        Ok(format!("{bom}{body}"))
    }

    fn edit_checked(
        self,
        text: &str,
        edit: &Edit<'_>,
        source: Option<&Value>,
        wanted: &Value,
    ) -> Result<String, FileProblem> {
        let edited = self.edit_text(text, edit);
        let problem = match edited {
            Ok(edited) if self.parse(&edited).as_ref() == Ok(wanted) => return Ok(edited),
            Ok(_) => FileProblem::unsupported(format!(
                "`{}` cannot be changed without changing other parts of the file",
                edit.path().join(".")
            )),
            Err(problem) => problem,
        };
        // If the text from the other document cannot be inserted here, only the value is copied, without its
        // formatting.
        let value = source.and_then(|source| tree::get(source, edit.path()));
        let (Edit::Copy { path, place, .. }, Some(value)) = (edit, value) else {
            return Err(problem);
        };
        let plain = Edit::Set { path: path.clone(), value: value.clone(), place: place.clone() };
        self.edit_checked(text, &plain, None, wanted)
    }

    fn edit_text(self, text: &str, edit: &Edit<'_>) -> Result<String, FileProblem> {
        match self {
            Self::Json => json::edit(text, edit),
            Self::Toml => toml_document::edit(text, edit),
            Self::Yaml => yaml_lines::edit(text, edit),
            Self::Dotenv => dotenv::edit(text, edit),
        }
    }
}

/// Applies an edit to the parsed document. Returns whether it changes anything.
fn apply(wanted: &mut Value, edit: &Edit<'_>, source: Option<&Value>) -> Result<bool, FileProblem> {
    let value = match edit {
        Edit::Set { value, .. } => Some(value),
        Edit::Copy { path, .. } => source.and_then(|source| tree::get(source, path)),
        Edit::Remove { .. } => None,
    };
    let now = tree::get(wanted, edit.path());
    if now == value {
        return Ok(false);
    }
    match value {
        Some(value) => tree::set(wanted, edit.path(), value.clone())?,
        None => tree::remove(wanted, edit.path()),
    }
    Ok(true)
}

/// Splits a text into its byte order mark, which some editors write, and the rest.
pub(crate) fn split_bom(text: &str) -> (&str, &str) {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => text.split_at(text.len() - rest.len()),
        None => ("", text),
    }
}
