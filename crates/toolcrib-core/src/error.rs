//! Errors that the operator must fix.
//!
//! Mistakes that the *model* can correct are not errors but replies: see [`Refusal`](crate::call::Refusal).

use thiserror::Error;

/// Why an input or a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not UTF-8.
    #[error("not UTF-8 text: the first invalid byte is at offset {offset}")]
    NotText {
        /// The offset of the first invalid byte.
        offset: usize,
    },
    /// The text is neither JSON nor JSON lines.
    #[error("not JSON: {problem} at line {line}, column {column}")]
    NotJson {
        /// The parser's message.
        problem: String,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
    },
    /// The JSON contains no list of tools.
    #[error("no tools in this JSON: found {found}")]
    NoTools {
        /// What the JSON contains instead.
        found: String,
    },
    /// The settings are invalid.
    #[error("{problem}")]
    Settings {
        /// What is wrong and where.
        problem: String,
        /// How to fix it.
        hint: String,
    },
    /// An exported ledger is invalid.
    #[error("not a ledger: {problem}")]
    Ledger {
        /// What is wrong.
        problem: String,
    },
}

impl Error {
    /// How to fix the error, in one line.
    pub fn hint(&self) -> String {
        match self {
            Self::NotText { .. } => "save the file as UTF-8".into(),
            Self::NotJson { .. } => {
                "a catalog is a JSON document, or one JSON object per line (`.jsonl`)".into()
            }
            Self::NoTools { .. } => "use an MCP `tools/list` result, a `tools` array of an LLM \
                request, or lines of {\"name\",\"description\",\"input_schema\",\"server\"}"
                .into(),
            Self::Settings { hint, .. } => hint.clone(),
            Self::Ledger { .. } => {
                "use a text that `Ledger::export` returned; without a ledger, the model searches again"
                    .into()
            }
        }
    }
}
