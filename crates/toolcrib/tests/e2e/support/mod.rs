//! Code that all of these tests share: where the peers are installed, a gateway with its own home folder, and clients
//! that speak the protocol without a library.

pub(crate) mod client;
pub(crate) mod gateway;
pub(crate) mod http;
pub(crate) mod pair;
pub(crate) mod wire;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Maximum time that a test waits for anything; then it fails. Even on a busy machine, nothing that succeeds takes this
/// long.
pub(crate) const DEADLINE: Duration = Duration::from_mins(2);
/// Interval between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the path of a program or script that `scripts/install-peers` installed.
pub(crate) fn peer(path: &str) -> String {
    let file = root().join(".tools/peers").join(path);
    assert!(file.exists(), "`{}` is missing; hint: run `scripts/install-peers`", file.display());
    file.to_str().unwrap().to_owned()
}

/// Returns the path of a server of `toolcrib-testkit`.
pub(crate) fn testkit(name: &str) -> String {
    let file = toolcrib_testkit::program(env!("CARGO_BIN_EXE_toolcrib"), name);
    file.to_str().unwrap().to_owned()
}

/// A command with its arguments.
pub(crate) type Program = Vec<String>;

/// Returns the command of a server written in JavaScript.
pub(crate) fn node(script: &str, arguments: &[&str]) -> Program {
    let mut program = vec![peer("node_modules/.bin/node"), script.to_owned()];
    program.extend(arguments.iter().map(ToString::to_string));
    program
}

/// Returns the command of a server of `toolcrib-testkit`, with arguments.
pub(crate) fn testkit_program(name: &str, arguments: &[&str]) -> Program {
    let mut program = vec![testkit(name)];
    program.extend(arguments.iter().map(ToString::to_string));
    program
}

/// Polls until `look` returns a value. Panics at the deadline.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(start.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Asserts that two values are equal. Panics with the first difference.
#[track_caller]
pub(crate) fn assert_same(found: &Value, expected: &Value, what: &str) {
    if let Some((at, found, expected)) = difference(found, expected, String::new()) {
        panic!("{what}: at `{at}`\n   found: {found}\nexpected: {expected}");
    }
}

type Difference<'a> = (String, &'a Value, &'a Value);

fn difference<'a>(a: &'a Value, b: &'a Value, at: String) -> Option<Difference<'a>> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys = x.keys().chain(y.keys());
            keys.into_iter().find_map(|key| {
                let here = format!("{at}/{key}");
                match (x.get(key), y.get(key)) {
                    (Some(x), Some(y)) => difference(x, y, here),
                    (x, y) => Some((here, x.unwrap_or(&Value::Null), y.unwrap_or(&Value::Null))),
                }
            })
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            let mut pairs = x.iter().zip(y).enumerate();
            pairs.find_map(|(index, (x, y))| difference(x, y, format!("{at}/{index}")))
        }
        _ => (a != b).then_some((at, a, b)),
    }
}
