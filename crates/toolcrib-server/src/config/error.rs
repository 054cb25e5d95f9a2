//! Errors in a config: what is wrong, where, and what to do.
//!
//! These errors never contain a value from the file. Any line of a config may contain a token, so an error names only
//! keys, servers, lines and columns.

use std::fmt;

use toolcrib_text::did_you_mean;

/// Why a config cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// What is wrong.
    pub problem: String,
    /// The line of the error, counted from 1, if known.
    pub line: Option<usize>,
    /// The character within the line, counted from 1.
    pub column: Option<usize>,
    /// How to fix the problem.
    pub hint: String,
}

impl ConfigError {
    /// Creates an error without a position.
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { problem: problem.into(), line: None, column: None, hint: hint.into() }
    }

    /// Converts an error of the TOML parser. Removes the values that its message quotes and the excerpt of the line,
    /// because they may contain secrets.
    /// If a key is misspelled, the hint also suggests the most similar one.
    pub fn from_toml(text: &str, error: &toml::de::Error, hint: &str) -> Self {
        let hint = match did_you_mean(error.message()) {
            Some(key) => format!("did you mean `{key}`? {hint}"),
            None => hint.to_owned(),
        };
        let converted = Self::new(without_values(error.message()), hint);
        match error.span() {
            Some(span) => converted.at_byte(text, span.start),
            None => converted,
        }
    }

    /// Sets the position to that of a byte offset in `text`.
    #[must_use]
    pub fn at_byte(self, text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        Self { line: Some(line), column: Some(before[start..].chars().count() + 1), ..self }
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

/// An error about a value that is out of range or contradicts another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSetting {
    /// The path of keys from the top level of the file to the value.
    pub path: Vec<String>,
    /// What is wrong, phrased so that it can follow the name of the key.
    pub problem: String,
    /// How to fix the problem.
    pub hint: String,
}

impl InvalidSetting {
    /// Creates an error about the value at `path`.
    pub fn new(path: &[&str], problem: impl Into<String>, hint: impl Into<String>) -> Self {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        Self { path, problem: problem.into(), hint: hint.into() }
    }

    /// Returns `Ok` if `is_valid`, and the error otherwise.
    pub fn unless(is_valid: bool, error: impl FnOnce() -> Self) -> Result<(), Self> {
        if is_valid { Ok(()) } else { Err(error()) }
    }

    /// Prepends the keys of `table` to the path.
    #[must_use]
    pub fn within(self, table: &[&str]) -> Self {
        let path = table.iter().map(|key| (*key).to_owned()).chain(self.path).collect();
        Self { path, ..self }
    }
}

/// Removes the config value that an error message of serde quotes.
fn without_values(message: &str) -> String {
    let lead = ["invalid type: ", "invalid value: ", "unknown variant "];
    let Some(lead) = lead.into_iter().find(|lead| message.starts_with(lead)) else {
        return message.trim_end().to_owned();
    };
    // The quoted value may also contain this separator. The last occurrence is the real one, because the text after it
    // does not come from the file.
    let end = message.rfind(", expected ").unwrap_or(message.len());
    let kind = message[lead.len()..end].split(['"', '`']).next().unwrap_or_default();
    format!("{}{}", format!("{lead}{}", kind.trim()).trim_end_matches([' ', ':']), &message[end..])
}

#[cfg(test)]
mod tests {
    use super::without_values;

    #[test]
    fn messages_lose_the_value_and_keep_the_expectation() {
        for (message, expected) in [
            (
                "invalid type: string \"a, expected b\", expected a map",
                "invalid type: string, expected a map",
            ),
            (
                "invalid type: integer `5`, expected a string",
                "invalid type: integer, expected a string",
            ),
            ("invalid type: map, expected a string", "invalid type: map, expected a string"),
            (
                "unknown variant `s3cret`, expected one of `never`, `always`",
                "unknown variant, expected one of `never`, `always`",
            ),
            (
                "unknown field `comand`, expected `command`",
                "unknown field `comand`, expected `command`",
            ),
        ] {
            assert_eq!(without_values(message), expected);
        }
    }
}
