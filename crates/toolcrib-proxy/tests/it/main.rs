//! Tests the proxy over real sockets: what it forwards unchanged, how it handles failures, and what each caller can
//! see.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client_disconnects;
mod client_requests;
mod client_responses;
mod conversation_state;
mod credentials;
mod hidden_round_limits;
mod limited_callers;
mod pass_through;
mod reports;
mod scope;
mod setup;
mod translation;
mod unsupported_features;
mod upstream_failures;
