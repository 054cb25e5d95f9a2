//! End-to-end tests of the gateway between real servers and real clients.
//!
//! The servers and clients are those that people use, installed by `scripts/install-peers`, and those of
//! `toolcrib-testkit`. Nothing is mocked: every test runs the binary.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

mod arguments;
mod behaviours;
mod changes;
mod clients;
mod command_line;
mod conformance;
mod documented_snippets;
mod everything;
mod listing;
mod logs;
mod other_systems;
mod presets;
mod replies;
mod servers;
mod sse;
mod support;
mod tls;
mod unknown_fields;
mod waiting;
