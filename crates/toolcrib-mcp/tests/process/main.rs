//! Servers as real processes: what goes in comes out, and nothing is left of them, however it ends.
//!
//! The executable plays three parts. Run by cargo it is the tests; as `role:warden` it is the warden they
//! launch; as `role:gateway` a gateway that can be killed. Every process of a test carries a
//! mark in its environment, by which it is found in `/proc`.

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

/// Longer than anything here takes on a busy machine. Reaching it is a failure, never a way to wait. The
/// processes that must not be left behind live for 600 s.
const DEADLINE: Duration = Duration::from_mins(2);

const MARK: &str = "TOOLCRIB_TEST_MARK";

/// A server with a child in its group and one that left it; it ends when its stdin does.
const FAMILY: &str = "sleep 600 & setsid sleep 600 & echo ready; cat";
/// The same, but nobody in it listens to anything but SIGKILL.
const STUBBORN: &str =
    "trap '' TERM INT HUP; sleep 600 & setsid sleep 600 & echo ready; while :; do sleep 1; done";

const TESTS: &[(&str, fn())] = &[
    ("bytes_pass_unchanged", start::bytes_pass_unchanged),
    ("a_line_of_a_gigabyte_costs_no_memory", start::a_line_of_a_gigabyte_costs_no_memory),
    ("ended_with_its_family", shutdown::ended_with_its_family),
    ("ended_though_stubborn", shutdown::ended_though_stubborn),
    ("dropped_it_ends_too", shutdown::dropped_it_ends_too),
    ("gateway_killed", shutdown::gateway_killed),
    ("gateway_killed_server_stubborn", shutdown::gateway_killed_server_stubborn),
    ("gateway_terminated", shutdown::gateway_terminated),
    ("server_killed", shutdown::server_killed),
    ("server_exits_before_its_children", shutdown::server_exits_before_its_children),
    ("inner_warden_killed", shutdown::inner_warden_killed),
    ("outer_warden_killed", shutdown::outer_warden_killed),
    ("warden_terminated", shutdown::warden_terminated),
    ("the_exit_code_is_passed_on", start::the_exit_code_is_passed_on),
    ("stdin_and_stdout_end_when_they_should", start::stdin_and_stdout_end_when_they_should),
    (
        "no_signal_comes_while_a_server_may_end_on_its_own",
        shutdown::no_signal_comes_while_a_server_may_end_on_its_own,
    ),
    ("sigterm_comes_once", shutdown::sigterm_comes_once),
    ("the_command_cannot_be_run", start::the_command_cannot_be_run),
    ("the_environment_is_what_was_given", start::the_environment_is_what_was_given),
    ("stderr_is_kept_and_never_in_the_way", start::stderr_is_kept_and_never_in_the_way),
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

/// All at once: they wait more than they work.
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
