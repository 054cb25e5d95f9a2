//! Expands references in a config, such as `${NAME}`.
//!
//! The functions get the lookup as an argument, so only [`from_system`] reads from the system. A reference without a
//! value is an error that names the reference, because a program that is started with an incomplete token fails in ways
//! that are hard to understand. References inside an expanded value are not expanded.
//!
//! | reference | value |
//! |---|---|
//! | `${NAME}`, `${env:NAME}` | an environment variable |
//! | `${NAME:-text}` | an environment variable, or `text` if it is not set |
//! | `${file:PATH}` | the contents of a file, without the final line break; the path is absolute or begins with `~/` |
//! | `${userHome}` | the home folder |
//! | `${workspaceFolder}` | the current folder |
//! | `$${` | a literal `${` |

use std::io::Read as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::Secret;

/// Maximum nesting depth of references in the defaults of other references. Real configs have at most one level.
const MAX_DEPTH: usize = 8;
/// Maximum size of a referenced file, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// What a reference refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// An environment variable.
    Variable(&'a str),
    /// The contents of a file.
    File(&'a str),
    /// The user's home folder.
    Home,
    /// The current folder.
    Folder,
}

/// Why a reference cannot be expanded. The error contains names, never values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReferenceError {
    /// The environment variable is not set.
    #[error("the variable `{0}` is not set")]
    UnsetVariable(String),
    /// The file cannot be read.
    #[error("the file `{0}` cannot be read")]
    UnreadableFile(String),
    /// The path of the file is relative. It would depend on the working folder, which may contain files from anyone.
    #[error("the path of `${{file:{0}}}` is relative")]
    RelativeFile(String),
    /// The reference is `${input:…}`. An editor would ask its user for the value, but Toolcrib cannot ask.
    #[error("`${{input:{0}}}` needs an editor that asks its user, and Toolcrib cannot ask")]
    Input(String),
    /// The home folder is unknown.
    #[error("the home folder is unknown")]
    UnknownHome,
    /// The current folder is unknown.
    #[error("the current folder is unknown")]
    UnknownFolder,
    /// The text contains a `${` without a matching `}`, or with an unknown reference between the two.
    #[error("a `${{` does not begin a known reference")]
    Malformed,
}

impl ReferenceError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::UnsetVariable(_) => {
                "set it in the environment of Toolcrib, or give a default: `${NAME:-text}`"
            }
            Self::UnreadableFile(_) => {
                "check the path and its permissions; the file must be UTF-8 of at most 64 KiB"
            }
            Self::RelativeFile(_) => {
                "write an absolute path, or one that begins with `~/`: Toolcrib may be started in any folder"
            }
            Self::Input(_) => {
                "put the value into an environment variable and write `${NAME}` instead"
            }
            Self::UnknownHome => "set HOME",
            Self::UnknownFolder => "start Toolcrib in a folder that exists",
            Self::Malformed => {
                "write `${NAME}`, `${NAME:-text}` or `${file:PATH}`; for a literal `${`, write `$${`"
            }
        }
    }
}

/// Expands the references in a text that may contain secrets.
pub fn expand_secret(
    text: &Secret,
    lookup: &impl Fn(Reference<'_>) -> Option<String>,
) -> Result<Secret, ReferenceError> {
    expand_text(text.expose(), lookup).map(Secret::from)
}

/// Expands the references in a text.
pub fn expand_text(
    text: &str,
    lookup: &impl Fn(Reference<'_>) -> Option<String>,
) -> Result<String, ReferenceError> {
    expand_at(text, lookup, 0)
}

fn expand_at(
    text: &str,
    lookup: &impl Fn(Reference<'_>) -> Option<String>,
    depth: usize,
) -> Result<String, ReferenceError> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = &from[2..];
            continue;
        }
        out.push_str(before);
        let end = closing_brace(from).ok_or(ReferenceError::Malformed)?;
        out.push_str(&resolve(&from[2..end], lookup, depth)?);
        rest = &from[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns the position of the `}` that ends the reference at the start of `text`. Skips references inside its default.
fn closing_brace(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' if at > 0 && bytes[at - 1] == b'$' => open += 1,
            b'}' => {
                open = open.checked_sub(1)?;
                if open == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn resolve(
    inner: &str,
    lookup: &impl Fn(Reference<'_>) -> Option<String>,
    depth: usize,
) -> Result<String, ReferenceError> {
    match inner {
        "userHome" => return lookup(Reference::Home).ok_or(ReferenceError::UnknownHome),
        "workspaceFolder" => return lookup(Reference::Folder).ok_or(ReferenceError::UnknownFolder),
        _ => {}
    }
    if let Some(path) = inner.strip_prefix("file:") {
        if !path.starts_with("~/") && Path::new(path).is_relative() {
            return Err(ReferenceError::RelativeFile(path.to_owned()));
        }
        let content = lookup(Reference::File(path))
            .ok_or_else(|| ReferenceError::UnreadableFile(path.to_owned()))?;
        let content = content.strip_suffix('\n').unwrap_or(&content);
        return Ok(content.strip_suffix('\r').unwrap_or(content).to_owned());
    }
    if let Some(id) = inner.strip_prefix("input:") {
        return Err(ReferenceError::Input(id.to_owned()));
    }
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if !is_variable_name(name) {
        return Err(ReferenceError::Malformed);
    }
    match (lookup(Reference::Variable(name)), default) {
        (Some(value), _) => Ok(value),
        (None, Some(default)) if depth < MAX_DEPTH => expand_at(default, lookup, depth + 1),
        (None, Some(_)) => Err(ReferenceError::Malformed),
        (None, None) => Err(ReferenceError::UnsetVariable(name.to_owned())),
    }
}

/// Whether a text can be the name of an environment variable. Parentheses are allowed because of `ProgramFiles(x86)` on
/// Windows.
pub fn is_variable_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '(' | ')'))
}

/// Looks up the value of a reference in the environment of this process. Returns `None` if the reference has no value,
/// or if its file cannot be read or is too large.
pub fn from_system(source: Reference<'_>) -> Option<String> {
    let folder = || Some(std::env::current_dir().ok()?.to_str()?.to_owned());
    look_up(source, &|name| std::env::var(name).ok(), &folder)
}

/// Looks up the value of a reference in an environment with these variables and this working folder. Files are read
/// from this machine.
pub fn look_up(
    source: Reference<'_>,
    variable: &dyn Fn(&str) -> Option<String>,
    folder: &dyn Fn() -> Option<String>,
) -> Option<String> {
    let home = || variable("HOME").or_else(|| variable("USERPROFILE"));
    match source {
        Reference::Variable(name) => variable(name),
        Reference::Home => home(),
        Reference::Folder => folder(),
        Reference::File(path) => {
            let path = match path.strip_prefix("~/") {
                Some(rest) => Path::new(&home()?).join(rest),
                None => PathBuf::from(path),
            };
            let mut text = String::new();
            let file = std::fs::File::open(path).ok()?;
            file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).ok()?;
            (text.len() as u64 <= MAX_FILE_BYTES).then_some(text)
        }
    }
}
