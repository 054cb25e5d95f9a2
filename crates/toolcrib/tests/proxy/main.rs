//! The proxy as its clients meet it: the real binary between an agent of ours and the scripted provider.
//!
//! `differential` holds a conversation twice, with Toolcrib and without, and wants the agent to see the
//! same; `prefix` reads what the provider got over two hundred turns, and wants each request to begin
//! with the one before it; `callers` tries what a key must not open; `keys` puts keys in
//! wrong places; `refused` sends what must not be forwarded; `lost` takes the state away in the middle;
//! `revoked` changes keys while the proxy runs; `savings` counts tokens; `behaviours` shows each row of docs/presets
//! through this binary; `endless` is a provider that does not stop; `scope` is a caller that may not know of every
//! tool; `socket` asks for another protocol; `stored` asks for what another caller created; `tls` encrypts the way to
//! the provider and to Redis; `unchecked` is a provider whose responses a limited caller must not get.

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
