//! What goes wrong around a gateway, and what must hold all the same: the real binary between raw
//! JSON-RPC clients and servers that misbehave on demand.
//!
//! No test depends on how fast the machine is: each waits for a condition, with one deadline, far longer than any
//! step takes (see [`probe`]), and timeouts of the product that could end a wait are raised in the test's
//! config. Times are printed and not asserted; `cargo test -p toolcrib --test faults -- --nocapture` shows them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "requests and figures are made where they are used"
)]

mod bodies;
mod connections;
mod crash;
mod ending;
mod exhaust;
mod exhaust_http;
mod flapping;
mod flood;
mod hanging;
mod hidden_text;
mod hoarding;
mod http;
mod inbox;
mod kept;
mod leaving;
mod limits;
mod listener;
mod lists;
mod log_lines;
mod malformed;
mod noise;
mod origin;
mod peer;
mod probe;
mod reload;
mod remote;
mod renaming;
mod scope;
mod stage;
mod state;
mod strangers;
mod templates;
mod unheard;
mod unread;
mod wardens;
mod web;
mod words;

/// Prints a figure.
fn figure(what: &str, value: impl std::fmt::Display) {
    println!("figure: {what}: {value}");
}

/// Prints how long something took.
fn took(what: &str, time: std::time::Duration) {
    figure(what, format!("{time:?}"));
}
