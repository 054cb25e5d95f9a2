//! Integration tests of what the gateway and the proxy share, in one binary.

#![allow(clippy::unwrap_used, missing_docs)]

mod config;
mod expand;
mod guard;
mod http;
