//! The store against a real Redis.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod failure;
mod records;
mod secrets;

use std::time::Duration;

use toolcrib_store::{Key, Options, Redis};
use toolcrib_testkit::redis::Server;

/// A key that is told from others by its number, and its name in Redis.
fn key(number: u32) -> Key {
    let mut hash = [0; 32];
    hash[..4].copy_from_slice(&number.to_be_bytes());
    Key::new(hash)
}

fn name(number: u32) -> String {
    format!("toolcrib:{number:08x}{:056}", 0)
}

/// Patient with a busy machine, as what is tested is not how fast it is.
fn patient() -> Options {
    let limit = Duration::from_secs(30);
    Options { connect: limit, answer: limit, ..Options::default() }
}

fn open(server: &Server) -> Redis {
    Redis::open(&server.url(), patient()).unwrap()
}
