//! A config that cannot be used: what is wrong, where, and what to do.
//!
//! No value from the file is ever in it. Any line of a config can hold a token, so an error names
//! keys, servers, lines and columns, and leaves the rest to whoever may open the file.

use std::fmt;

/// A config that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// What is wrong.
    pub problem: String,
    /// The line, counted from 1, where it is known.
    pub line: Option<usize>,
    /// The character in that line, counted from 1.
    pub column: Option<usize>,
    /// How to mend it.
    pub hint: String,
}

impl ConfigError {
    /// An error of which no place is known.
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { problem: problem.into(), line: None, column: None, hint: hint.into() }
    }

    /// The same at a place: line and column.
    #[must_use]
    pub(super) fn at(self, place: Option<(usize, usize)>) -> Self {
        let (line, column) = place.unzip();
        Self { line, column, ..self }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        if let Some(line) = self.line {
            write!(f, " at line {line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Line and column of a byte, both counted from 1.
pub(super) fn place_of(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}
