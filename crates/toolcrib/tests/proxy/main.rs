//! Tests of the proxy as its clients see it: the real binary between a test agent and the scripted provider.
//!
//! - `behaviours` shows each row of docs/presets.
//! - `callers` tries what a key must not give access to.
//! - `deep_tier` waits until the encoder has embedded the tools of a request.
//! - `differential` plays a conversation with and without Toolcrib, and expects the agent to see the same.
//! - `endless_responses` has a provider that never stops.
//! - `key_leaks` puts keys in wrong places.
//! - `key_revocation` changes keys while the proxy runs.
//! - `prefix` checks over two hundred turns that each request begins with the previous one.
//! - `rejected_requests` sends what must not be forwarded.
//! - `response_scope` has a provider whose responses a limited caller must not get.
//! - `savings` counts tokens.
//! - `scope` has a caller with a limited scope.
//! - `state_loss` removes the state in the middle of a conversation.
//! - `stored_responses` requests what another caller created.
//! - `tls` encrypts the connections to the provider and to Redis.
//! - `websocket` requests another protocol.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

mod agent;
mod api;
mod behaviours;
mod callers;
#[cfg(feature = "deep")]
mod deep_tier;
mod differential;
#[cfg(target_os = "linux")]
mod endless_responses;
mod http;
mod key_leaks;
mod key_revocation;
mod large_requests;
mod long_conversation;
mod message_parts;
mod prefix;
mod prefix_check;
mod rejected_requests;
mod replica;
mod response_scope;
mod rng;
mod savings;
mod scenario;
mod scope;
mod script_generator;
mod sdk;
mod state_loss;
mod stored_responses;
mod tls;
mod tools;
mod websocket;
