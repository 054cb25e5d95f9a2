//! Tests of the store with a real Redis.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod records;
mod redis_failures;
mod secrets;

use std::time::Duration;

use toolcrib_store::{Key, RedisOptions, RedisStore};
use toolcrib_testkit::redis::Server;

/// Returns the key whose hash starts with this number. [`redis_key`] returns the name of this key in Redis.
fn key(number: u32) -> Key {
    let mut hash = [0; 32];
    hash[..4].copy_from_slice(&number.to_be_bytes());
    Key::new(hash)
}

fn redis_key(number: u32) -> String {
    format!("toolcrib:{number:08x}{:056}", 0)
}

/// Returns options with long timeouts, because these tests do not test speed and the machine may be busy.
fn long_timeouts() -> RedisOptions {
    let limit = Duration::from_secs(30);
    RedisOptions { connect_timeout: limit, response_timeout: limit, ..RedisOptions::default() }
}

fn open(server: &Server) -> RedisStore {
    RedisStore::open(&server.url(), long_timeouts()).unwrap()
}
