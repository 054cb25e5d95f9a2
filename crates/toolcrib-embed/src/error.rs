//! The error type for tables and encoders that cannot be used, with hints for the operator.

use thiserror::Error;

/// The reason why a table of vectors or an encoder cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file does not begin with the magic bytes.
    #[error("not a table of vectors: it does not begin with `TCRIBEM2`")]
    NotATable,
    /// The file is too short.
    #[error("the table is truncated in its {part}: {needed} bytes needed, {found} found")]
    Truncated {
        /// The part that is incomplete.
        part: &'static str,
        /// Size that the file needs up to the end of that part, in bytes.
        needed: u64,
        /// Actual size of the file, in bytes.
        found: u64,
    },
    /// The file is too long.
    #[error("{surplus} unexpected bytes after the end of the table")]
    TrailingBytes {
        /// Number of surplus bytes.
        surplus: u64,
    },
    /// The table has no rows, or an unsupported number of dimensions.
    #[error("{rows} rows of {dims} dimensions: at least 1 row of 1 to 4096 dimensions is needed")]
    Shape {
        /// Number of dimensions.
        dims: u64,
        /// Number of rows.
        rows: u64,
    },
    /// The number of field weights differs from the number of fields.
    #[error("{found} field weights, but {needed} are needed")]
    FieldWeights {
        /// Number of weights in the table.
        found: u64,
        /// Number of fields.
        needed: u64,
    },
    /// The vocabulary is not UTF-8.
    #[error("the vocabulary is not UTF-8: invalid byte at offset {offset}")]
    VocabularyNotUtf8 {
        /// Offset of the first invalid byte.
        offset: usize,
    },
    /// The number of vocabulary entries differs from the number of rows.
    #[error("{entries} vocabulary entries for {rows} rows")]
    VocabularyLength {
        /// Number of lines in the vocabulary.
        entries: usize,
        /// Number of rows in the table.
        rows: usize,
    },
    /// The vocabulary has an entry twice.
    #[error("the vocabulary has the entry `{entry}` twice")]
    DuplicateEntry {
        /// The entry.
        entry: String,
    },
    /// A number is infinite or NaN.
    #[error("number {index} of the {part} is not finite")]
    NotFinite {
        /// The part of the table that contains the number.
        part: &'static str,
        /// Position of the number in that part, from 0.
        index: usize,
    },
    /// A token maps to a row that the table does not have.
    #[error("a token maps to row {row}, but the table has {rows} rows")]
    RowOutOfRange {
        /// The row.
        row: u32,
        /// Number of rows in the table.
        rows: usize,
    },
    /// The number of token weights differs from the number of tokens.
    #[error("{found} token weights for {needed} tokens")]
    TokenWeights {
        /// Number of weights in the table.
        found: usize,
        /// Number of tokens.
        needed: usize,
    },
    /// The file does not begin with the magic bytes of an encoder.
    #[error("not the weights of an encoder: the file does not begin with `TCRIBEN2`")]
    NotAnEncoder,
    /// The encoder has sizes that this version does not support.
    #[error("unsupported encoder: {reason}")]
    EncoderShape {
        /// The limit that is exceeded.
        reason: &'static str,
    },
    /// The file of an encoder has the wrong length.
    #[error("the weights of this encoder take {needed} bytes, but the file has {found}")]
    EncoderLength {
        /// Length that follows from the header, in bytes.
        needed: u64,
        /// Actual length of the file, in bytes.
        found: u64,
    },
    /// The vocabulary has no entry for a token that the encoder needs.
    #[error("the vocabulary has no entry `{entry}`")]
    MissingEntry {
        /// The entry.
        entry: &'static str,
    },
}

impl Error {
    /// Returns what the operator can do about the error, in one line.
    pub fn hint(&self) -> String {
        match self {
            Self::NotATable => "use a table that was written by `training/`".into(),
            Self::NotAnEncoder => {
                "use weights that were written by `training/write_encoder.py`".into()
            }
            Self::EncoderShape { .. } => "use an encoder of the size of all-MiniLM-L6-v2".into(),
            Self::Truncated { .. } | Self::TrailingBytes { .. } | Self::EncoderLength { .. } => {
                "the file is damaged: copy it again or write it again with `training/`".into()
            }
            Self::FieldWeights { .. } => {
                "the table is from another version: write it again with this version's `training/`"
                    .into()
            }
            Self::RowOutOfRange { .. } | Self::TokenWeights { .. } => {
                "the files of the table do not belong together: copy all of them again".into()
            }
            Self::Shape { .. }
            | Self::VocabularyNotUtf8 { .. }
            | Self::VocabularyLength { .. }
            | Self::DuplicateEntry { .. }
            | Self::MissingEntry { .. }
            | Self::NotFinite { .. } => {
                "the file is invalid: write it again with `training/`".into()
            }
        }
    }
}
