//! Why a file cannot be parsed or edited.

use thiserror::Error;

/// Why a file cannot be parsed or edited, and what the user can do. The texts contain no values of the file, because
/// these may be secrets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct FileProblem {
    /// What is wrong.
    pub problem: String,
    /// What the user can do about it.
    pub hint: String,
}

impl FileProblem {
    pub(crate) fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: hint.into() }
    }

    /// The file parses, but is written in a way that the editor does not support.
    pub(crate) fn unsupported(problem: impl Into<String>) -> Self {
        Self::new(
            problem,
            "edit this part of the file by hand, as `toolcrib docs clients` describes",
        )
    }
}
