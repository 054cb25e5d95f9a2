//! Tables that others publish: a folder with a `tokenizer.json` and a `model.safetensors`.
//!
//! That is Model2Vec's format, and WordLlama's under another name for the tensor. Newer folders have two
//! more tensors: `weights`, one for each token, and `mapping`, the row of each token where many tokens
//! share one. Their `config.json` is not read: all it could say here is whether vectors are normalised,
//! and ours always are.
//!
//! A crate of its own because a general tokenizer brings 40 others. The program needs it only for
//! such folders, under its feature `model2vec`.

// Pure: see clippy.toml.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod error;
mod read;
mod tensors;
mod tokenizer;

pub use error::Error;
pub use read::read;
