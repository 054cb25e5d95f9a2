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
}

impl Error {
    /// What to do about it, in one line.
    pub fn hint(&self) -> String {
        "a folder as Model2Vec saves it is needed: `tokenizer.json` and `model.safetensors`".into()
    }
}
