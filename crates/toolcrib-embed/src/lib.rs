//! Embeds text as vectors, without a network or a service.
//!
//! An [`EmbeddingModel`] is a static table with one vector for each word piece. The vector of a text is the
//! sum of the vectors of its pieces, normalised to length 1. Embedding a query therefore takes microseconds,
//! and the dot product of two vectors is their cosine similarity. [`EmbeddingModel::builtin`] is the table
//! inside the binary. The vectors of a catalog are stored in a [`FlatIndex`] as int8, in a quarter of the
//! memory of floats. A search compares the query with every vector: the result is exact, and fast enough for
//! more than a hundred thousand tools.
//!
//! ```
//! use toolcrib_embed::{EmbeddedField, EmbeddingModel};
//!
//! let model = EmbeddingModel::builtin();
//! let mut index = model.new_index();
//! index.push(&model.embed_fields(&[(EmbeddedField::Name, "send_message")]).quantised());
//! index.push(&model.embed_fields(&[(EmbeddedField::Name, "delete_file")]).quantised());
//!
//! let mut cosines = Vec::new();
//! index.scan(&model.embed("remove a file").quantised(), &mut cosines);
//! assert!(cosines[1] > cosines[0]);
//! ```
//!
//! Reading order: `split` and `alphanumeric_run` (text into words), `vocabulary` and `wordpiece` (words into
//! pieces), `table_file` (the file format), [`EmbeddingModel`], [`Vector`], [`FlatIndex`], `simd` (the only
//! module with `unsafe`). `external` is for tables whose tokenizer is in another crate. With the feature `deep`,
//! `encoder` is a transformer that embeds texts more accurately, in milliseconds instead of microseconds. Its file also
//! contains the classifiers in `general_type`.

// This crate is pure, so it may not use the methods and types that clippy.toml disallows.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
// Sums have the same bits on every machine, so the tests compare floats exactly.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::float_cmp))]

mod alphanumeric_run;
#[cfg(feature = "deep")]
mod encoder;
mod error;
mod external;
mod field;
mod flat_index;
mod general_type;
mod model;
mod segmenter;
mod simd;
mod split;
mod table_file;
mod vector;
mod vocabulary;
mod wordpiece;

#[cfg(feature = "deep")]
pub use encoder::{EncodedText, Encoder, Token};
pub use error::Error;
pub use external::ExternalTable;
pub use field::EmbeddedField;
pub use flat_index::{FlatIndex, QuantisedVector};
pub use general_type::{GeneralType, GeneralTypes, LinearProbe};
pub use model::EmbeddingModel;
pub use segmenter::Tokenizer;
pub use vector::Vector;
