//! The four dialects, from the bytes a client sends to the bytes it gets back.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod chat;
mod endless;
mod exchange;
mod gemini;
mod messages;
mod models;
mod played;
mod presets;
mod responses;
mod scope;
mod support;
mod translate;
