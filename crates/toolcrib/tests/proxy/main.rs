//! The proxy as its clients see it: the real binary between a test agent and the scripted provider.
//!
//! `differential` plays a conversation with and without Toolcrib and expects the agent to see the same; `prefix` checks
//! over two hundred turns that each request begins with the previous one; `callers` tries what a key must not give
//! access to; `key_leaks` puts keys in wrong places; `rejected_requests` sends what must not be forwarded; `state_loss`
//! removes the state in the middle; `key_revocation` changes keys while the proxy runs; `savings` counts tokens;
//! `behaviours` shows each row of docs/presets; `endless_responses` is a provider that never stops; `scope` is a caller
//! with a limited scope; `websocket` requests another protocol; `stored_responses` requests what another caller
//! created; `tls` encrypts the connections to the provider and to Redis; `response_scope` is a provider whose responses
//! a limited caller must not get.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

mod agent;
mod api;
mod behaviours;
mod callers;
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
