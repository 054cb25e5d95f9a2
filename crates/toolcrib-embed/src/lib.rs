//! Text into vectors, without a network, a service or a wait.
//!
//! A [`Model`] is a table: a vector for each piece of a word. The vector of a text is the sum of its
//! pieces' vectors at length 1, so a query takes microseconds, and near texts have a dot product near 1.
//! The table inside the binary is [`Model::builtin`]. A catalog is held as [`Rows`] of int8, a quarter
//! of the memory of floats, and every search looks at all of them: exact, and fast enough to a hundred
//! thousand tools and more.
//!
//! ```
//! use toolcrib_embed::{Field, Model};
//!
//! let model = Model::builtin();
//! let mut rows = model.rows();
//! rows.push(&model.embed_fields(&[(Field::Name, "send_message")]).quantised());
//! rows.push(&model.embed_fields(&[(Field::Name, "delete_file")]).quantised());
//!
//! let mut cosines = Vec::new();
//! rows.scan(&model.embed("remove a file").quantised(), &mut cosines);
//! assert!(cosines[1] > cosines[0]);
//! ```
//!
//! Reading order: `words` and `run` (text into folded words), `vocabulary` and `wordpiece` (words into
//! pieces of the table), `table` (the file), [`Model`], [`Vector`], [`Rows`], `dot` (the one module with
//! instructions of its own); `external` for tables with a tokenizer from another crate.

// Sums are the same on every machine, so the tests ask for exactly the numbers.
// Pure: see clippy.toml.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::float_cmp))]

mod dot;
mod error;
mod external;
mod field;
mod model;
mod reader;
mod rows;
mod run;
mod table;
mod vector;
mod vocabulary;
mod wordpiece;
mod words;

pub use error::Error;
pub use external::ExternalTable;
pub use field::Field;
pub use model::Model;
pub use reader::Tokenizer;
pub use rows::{Row, Rows};
pub use vector::Vector;
