//! What the operator must fix: a file that cannot be used.

use thiserror::Error;

/// A file of the folder that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{file}`: {problem}")]
pub struct Error {
    /// Its name.
    pub file: &'static str,
    /// What is wrong with it.
    pub problem: String,
    /// What to do about it, in one line.
    pub hint: String,
}

impl Error {
    /// A file that is not what Model2Vec saves.
    pub(crate) fn format(file: &'static str, problem: String) -> Self {
        let hint =
            "a folder as Model2Vec saves it is needed: `tokenizer.json` and `model.safetensors`";
        Self { file, problem, hint: hint.into() }
    }
}
