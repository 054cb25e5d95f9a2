//! Tests of the command line as users and scripts see it: the real binary, its output and its exit codes. The module
//! `modules` is about the source code instead: it checks which modules of each crate import which others.

#![allow(clippy::unwrap_used, missing_docs)]

mod closed_stderr;
#[cfg(unix)]
mod connect;
mod contract;
#[cfg(feature = "deep")]
mod deep;
mod demo;
mod docs;
mod eval;
mod explain;
#[cfg(feature = "deep")]
mod general_tools;
mod import;
mod listen;
mod modules;
mod presets;
mod reference;
mod sample;
mod sbom;
mod schema;
mod search;
mod security;
mod sizes;
#[cfg(unix)]
mod state;
mod stats;
#[cfg(unix)]
mod trust;
mod vectors;
mod widths;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The exit code and the output of one run of the binary.
#[derive(Debug)]
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    /// Parses standard output as one JSON document.
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn toolcrib(args: &[&str]) -> Run {
    with_input(args, "")
}

fn with_input(args: &[&str], input: &str) -> Run {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    run_in(folder, folder, args, input)
}

/// Runs the binary in a folder, with another folder as the home.
fn run_in(folder: &Path, home: &Path, args: &[&str], input: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(args)
        // The config of the developer who runs the tests must not be used.
        .current_dir(folder)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .env_remove("APPDATA")
        .env_remove("COLUMNS")
        .env("HOME", home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // This error is ignored, because a command that fails early does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: done.status.code().unwrap(), out: text(done.stdout), err: text(done.stderr) }
}

/// Returns a path that only this test uses. Tests run in parallel, each in a thread named after it, and must not read
/// each other's files. With a single test thread, the tests use the same folder one after the other.
fn own_path(name: &str) -> PathBuf {
    let thread = std::thread::current();
    let test = thread.name().unwrap().replace("::", "-");
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("it").join(test).join(name)
}

/// Writes a file that only this test uses, and returns its path.
fn file(name: &str, text: &str) -> String {
    let path = own_path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns the folder of the sample catalog and its queries, which is a dataset for `eval`.
fn sample() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/sample")
}
