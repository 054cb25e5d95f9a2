//! Tests of a gateway with faults around it: the real binary runs between raw JSON-RPC clients and servers with
//! configurable faults.
//!
//! No test depends on the speed of the machine. Each test waits for a condition, with one deadline that is far longer
//! than any step takes (see [`probe`]). Timeouts of the gateway that could end a wait are raised in the test's config.
//! Durations are printed and not asserted; `cargo test -p toolcrib --test faults -- --nocapture` shows them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "requests and figures are made where they are used"
)]

mod apps;
mod background_faults;
mod background_roots;
mod background_sharing;
mod background_starts;
mod background_upgrade;
mod bodies;
mod client_disconnect;
mod client_isolation;
mod client_limits;
mod connections;
mod crash;
#[cfg(feature = "deep")]
mod deep_tier;
mod environment;
mod faulty_http_server;
mod faulty_sse_server;
mod first_start;
mod flapping_server;
mod hanging_servers;
mod hidden_text;
mod http;
mod http_server_faults;
mod lazy_start;
mod limits;
mod list_change_flood;
mod list_limits;
mod listener;
mod live_stats;
mod log_lines;
mod malformed;
mod missed_changes;
mod probe;
mod question_origin;
mod raw_client;
mod received_messages;
mod reload;
mod retained_messages;
mod scope;
mod server_exit;
mod server_floods;
mod server_floods_http;
mod server_instructions;
mod shutdown;
mod sign_in;
mod sign_in_server;
mod slow_client;
mod slow_readers;
mod small_servers;
mod split_calls;
mod sse_server_faults;
mod state;
mod stdio_noise;
mod task_environment;
mod task_ids;
mod task_polling;
mod tasks;
mod templates;
mod tool_name_claims;
mod tool_overrides;
mod wardens;

fn print_figure(what: &str, value: impl std::fmt::Display) {
    println!("figure: {what}: {value}");
}

fn print_duration(what: &str, time: std::time::Duration) {
    print_figure(what, format!("{time:?}"));
}
