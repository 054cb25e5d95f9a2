//! The error type for files that cannot be used, with a hint for the operator.

use thiserror::Error;

/// The reason why a file of a Model2Vec folder cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{file}`: {problem}")]
pub struct Error {
    /// The name of the file.
    pub file: &'static str,
    /// What is wrong with the file.
    pub problem: String,
    /// What the operator can do about the problem, in one line.
    pub hint: String,
}

impl Error {
    /// Returns an error about a file that does not have the format that Model2Vec writes.
    pub(crate) fn format(file: &'static str, problem: String) -> Self {
        let hint =
            "use a folder that Model2Vec saved, with `tokenizer.json` and `model.safetensors`";
        Self { file, problem, hint: hint.into() }
    }
}
