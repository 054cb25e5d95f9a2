//! Reads published embedding tables: a folder with a `tokenizer.json` and a `model.safetensors`.
//!
//! This is the format of Model2Vec. WordLlama uses the same format with another tensor name. Newer folders have two
//! more tensors: `weights`, the weight of each token, and `mapping`, the row of each token if tokens share rows.
//! `config.json` is not read, because its only relevant setting is whether vectors are normalised, and this crate
//! always normalises them.
//!
//! This is a separate crate because a general tokenizer has 40 dependencies. The program includes it only with its
//! feature `model2vec`.

// This crate is pure, so it may not use the methods and types that clippy.toml disallows.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod error;
mod read;
mod tensors;
mod tokenizer;

pub use error::Error;
pub use read::read;
