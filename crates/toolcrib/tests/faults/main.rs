//! What goes wrong around a gateway, and what must hold all the same: the real binary between raw
//! JSON-RPC clients and servers that misbehave on demand.
//!
//! Nothing here sleeps and hopes: whatever takes time is looked at again and again until a deadline
//! (see [`probe`]), and the deadlines are the promises. Each test prints its figure; `cargo test
//! --workspace --test faults -- --nocapture` shows them all.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "requests and figures are made where they are used"
)]

mod crash;
mod ending;
mod flapping;
mod flood;
mod hanging;
mod http;
mod inbox;
mod leaving;
mod limits;
mod noise;
mod peer;
mod probe;
mod reload;
mod remote;
mod scope;
mod stage;
mod state;
mod strangers;
mod web;
mod words;

/// One figure, told beside its bound.
fn figure(what: &str, value: impl std::fmt::Display) {
    println!("figure: {what}: {value}");
}
