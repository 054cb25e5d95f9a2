//! Tests the servers over stdin and stdout, and the provider over HTTP.
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::needless_pass_by_value, reason = "requests are made where they are sent")]

mod faulty;
mod fixture;
mod peer;
mod provider;
