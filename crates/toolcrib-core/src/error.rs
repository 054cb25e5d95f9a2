//! What the operator must fix.
//!
//! The other kind of failure, what the *model* can fix, is an answer and not an error: see
//! [`Refusal`](crate::call::Refusal).

use thiserror::Error;

/// Input or configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not UTF-8.
    #[error("not UTF-8 text, from byte {offset} on")]
    NotText {
        /// The first byte that does not fit.
        offset: usize,
    },
    /// The text is neither JSON nor JSON lines.
    #[error("not JSON: {problem} at line {line}, column {column}")]
    NotJson {
        /// What the parser stumbled over.
        problem: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// The JSON holds no list of tools.
    #[error("no tools in this JSON: found {found}")]
    NoTools {
        /// What was there instead.
        found: String,
    },
    /// The settings cannot be read or contradict themselves.
    #[error("{problem}")]
    Settings {
        /// What is wrong, and where.
        problem: String,
        /// How to mend it.
        hint: String,
    },
    /// An exported ledger cannot be read.
    #[error("not a ledger: {problem}")]
    Ledger {
        /// What is wrong with it.
        problem: String,
    },
}

impl Error {
    /// What to do about it, in one line.
    pub fn hint(&self) -> String {
        match self {
            Self::NotText { .. } => "save the file as UTF-8".into(),
            Self::NotJson { .. } => {
                "a catalog is a JSON document, or one JSON object a line (`.jsonl`)".into()
            }
            Self::NoTools { .. } => "give an MCP `tools/list` result, a `tools` array of an LLM \
                request, or lines of {\"name\",\"description\",\"input_schema\",\"server\"}"
                .into(),
            Self::Settings { hint, .. } => hint.clone(),
            Self::Ledger { .. } => {
                "give what `Ledger::export` returned; without it the conversation searches again"
                    .into()
            }
        }
    }
}
