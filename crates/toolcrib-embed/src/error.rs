//! What the operator must fix: a table that cannot be used.

use thiserror::Error;

/// A table of vectors that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes begin with something else.
    #[error("not a table of vectors: it does not begin with `TCRIBEM2`")]
    NotATable,
    /// The bytes end too early.
    #[error("the table ends inside its {part}: {needed} bytes needed, {found} found")]
    Cut {
        /// Where it ends.
        part: &'static str,
        /// The bytes up to the end of that part.
        needed: u64,
        /// The bytes there are.
        found: u64,
    },
    /// The bytes go on after the end.
    #[error("the table goes on after its end: {surplus} bytes too many")]
    Surplus {
        /// How many.
        surplus: u64,
    },
    /// No vectors, or vectors of a length that is not supported.
    #[error("a table of {rows} rows of {dims} dimensions: at least 1 row of 1 to 4096 is needed")]
    Shape {
        /// Numbers in a row.
        dims: u64,
        /// Rows.
        rows: u64,
    },
    /// A weight for each field is needed.
    #[error("{found} field weights where {needed} are needed")]
    FieldWeights {
        /// Weights in the table.
        found: u64,
        /// Fields there are.
        needed: u64,
    },
    /// The vocabulary is not UTF-8.
    #[error("the vocabulary is not UTF-8, from its byte {offset} on")]
    VocabularyNotText {
        /// The first byte that does not fit.
        offset: usize,
    },
    /// The vocabulary has more or fewer entries than there are rows.
    #[error("{entries} vocabulary entries for {rows} rows")]
    VocabularyLength {
        /// Lines of the vocabulary.
        entries: usize,
        /// Rows of the table.
        rows: usize,
    },
    /// One entry, two rows.
    #[error("`{entry}` is twice in the vocabulary")]
    Twice {
        /// The entry.
        entry: String,
    },
    /// A number that no sum can hold.
    #[error("number {index} of the {part} is not finite")]
    NotFinite {
        /// Where it is.
        part: &'static str,
        /// Counted from 0.
        index: usize,
    },
    /// A token whose row is not in the table.
    #[error("a token maps to row {row}, but the table has {rows} rows")]
    Mapping {
        /// The row.
        row: u32,
        /// Rows of the table.
        rows: usize,
    },
    /// More or fewer weights than tokens.
    #[error("{found} token weights for {needed} tokens")]
    TokenWeights {
        /// Weights in the table.
        found: usize,
        /// Tokens.
        needed: usize,
    },
}

impl Error {
    /// What to do about it, in one line.
    pub fn hint(&self) -> String {
        match self {
            Self::NotATable => "give a table written by `training/`".into(),
            Self::Cut { .. } | Self::Surplus { .. } => {
                "the file is damaged: copy or write it again".into()
            }
            Self::FieldWeights { .. } => {
                "the table is of another version: write it again with this version's `training/`"
                    .into()
            }
            Self::Mapping { .. } | Self::TokenWeights { .. } => {
                "the files of the table do not belong together: copy or write all of them again"
                    .into()
            }
            Self::Shape { .. }
            | Self::VocabularyNotText { .. }
            | Self::VocabularyLength { .. }
            | Self::Twice { .. }
            | Self::NotFinite { .. } => {
                "the table was written wrongly: write it again with `training/`".into()
            }
        }
    }
}
