//! Tests with servers as real processes: their streams work, and no process is left behind, however a server ends.
//!
//! The test executable has several roles. When cargo runs it, it runs the tests. With `role:warden` it is the warden
//! that the tests launch, with `role:gateway` a gateway that can be killed, and with `role:reader` a reader whose
//! memory is measured. Every process of a test has a mark in its environment, so that the test can find it in `/proc`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod process_tree;
mod roles;
mod shutdown;
mod start;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, atomic::AtomicU32};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolcrib_mcp::lines::{LineEvent, LineSplitter};
use toolcrib_mcp::process::{Exit, GracePeriods, Launch, Process, SpawnError, environment, warden};

/// Maximum time for a test, and for each wait in it; longer than they take on a busy machine. A test that reaches this
/// deadline fails. The processes that must not be left behind run for 600 s, so they do not exit before the deadline.
const DEADLINE: Duration = Duration::from_mins(2);

const MARK: &str = "TOOLCRIB_TEST_MARK";

/// A server with two children: one in its process group, and one in a session of its own. The server exits when its
/// stdin ends.
const WITH_CHILDREN: &str = "sleep 600 & setsid sleep 600 & echo ready; cat";
/// Like [`WITH_CHILDREN`], but all processes ignore SIGTERM, SIGINT and SIGHUP.
const IGNORES_SIGNALS: &str =
    "trap '' TERM INT HUP; sleep 600 & setsid sleep 600 & echo ready; while :; do sleep 1; done";

const TESTS: &[(&str, fn())] = &[
    ("bytes_pass_unchanged", start::bytes_pass_unchanged),
    ("a_line_of_a_gigabyte_takes_little_memory", start::a_line_of_a_gigabyte_takes_little_memory),
    ("end_also_ends_the_children", shutdown::end_also_ends_the_children),
    ("a_server_that_ignores_signals_is_killed", shutdown::a_server_that_ignores_signals_is_killed),
    ("dropping_the_process_ends_the_server", shutdown::dropping_the_process_ends_the_server),
    ("a_killed_gateway_leaves_no_process", shutdown::a_killed_gateway_leaves_no_process),
    (
        "a_killed_gateway_leaves_no_server_that_ignores_signals",
        shutdown::a_killed_gateway_leaves_no_server_that_ignores_signals,
    ),
    ("a_terminated_gateway_leaves_no_process", shutdown::a_terminated_gateway_leaves_no_process),
    ("a_killed_server_leaves_no_children", shutdown::a_killed_server_leaves_no_children),
    ("a_server_that_exits_leaves_no_children", shutdown::a_server_that_exits_leaves_no_children),
    ("a_killed_inner_warden_leaves_no_process", shutdown::a_killed_inner_warden_leaves_no_process),
    ("a_killed_outer_warden_leaves_no_process", shutdown::a_killed_outer_warden_leaves_no_process),
    ("a_terminated_warden_ends_the_server", shutdown::a_terminated_warden_ends_the_server),
    ("the_exit_code_is_reported", start::the_exit_code_is_reported),
    ("stdin_and_stdout_end_with_the_server", start::stdin_and_stdout_end_with_the_server),
    (
        "no_signal_is_sent_while_a_server_exits_in_time",
        shutdown::no_signal_is_sent_while_a_server_exits_in_time,
    ),
    ("sigterm_is_sent_once", shutdown::sigterm_is_sent_once),
    ("a_command_that_cannot_be_run_is_an_error", start::a_command_that_cannot_be_run_is_an_error),
    (
        "the_server_has_exactly_the_given_environment",
        start::the_server_has_exactly_the_given_environment,
    ),
    ("stderr_is_kept_and_never_blocks", start::stderr_is_kept_and_never_blocks),
];

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(role) if role == "role:warden" => warden::run(args),
        Some(role) if role == "role:gateway" => roles::gateway(args),
        Some(role) if role == "role:reader" => roles::reader(),
        filter => {
            run_tests(&filter.and_then(|filter| filter.into_string().ok()).unwrap_or_default())
        }
    }
}

/// Runs the tests concurrently, because they spend most of their time waiting.
fn run_tests(filter: &str) -> ExitCode {
    let chosen = TESTS.iter().filter(|(name, _)| filter.starts_with('-') || name.contains(filter));
    let running: Vec<_> = chosen
        .map(|(name, test)| {
            (
                name,
                std::thread::spawn(move || {
                    let start = Instant::now();
                    (catch_unwind(AssertUnwindSafe(test)).is_ok(), start.elapsed())
                }),
            )
        })
        .collect();
    let mut passed = true;
    for (name, thread) in running {
        let (ok, took) = thread.join().unwrap();
        passed &= ok;
        println!(
            "test {name} ... {} ({:.2} s)",
            if ok { "ok" } else { "FAILED" },
            took.as_secs_f64()
        );
    }
    ExitCode::from(u8::from(!passed))
}
