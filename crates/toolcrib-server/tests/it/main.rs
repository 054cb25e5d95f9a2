//! Integration tests of `toolcrib-server`, in one binary.

#![allow(clippy::unwrap_used, missing_docs)]

mod config;
mod expand;
mod guard;
mod http;
