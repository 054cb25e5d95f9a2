//! Tests of the four APIs, from the client's request to the client's response.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod chat;
mod conversation;
mod driven_turn;
mod exchange;
mod gemini;
mod hosted_search_models;
mod messages;
mod presets;
mod responses;
mod scope;
mod translate;
mod unbounded_streams;
