//! Tests of a background gateway that is replaced by one of another build.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::environment::TestEnvironment;
use crate::print_duration;
use crate::probe::{count, is_alive, until_true};
use crate::raw_client::{Era, RawClient};

/// An update replaces the executable while clients of the old build are working. They keep their background gateway,
/// new clients start one of the new build, and the old one ends with its last client.
#[test]
fn an_update_interrupts_no_call() {
    let environment =
        TestEnvironment::new("update").faulty("shop", &["--slow", "300"]).background("never");
    let old: Vec<RawClient> = (0..5).map(|_| environment.shared(Era::Older)).collect();
    for client in &old {
        client.ready("shop__echo");
    }
    let gateway = environment.background_pid();
    let calls: Vec<_> = old
        .iter()
        .flat_map(|client| (0..10).map(move |n| (n, client.begin("shop__echo", json!({"n": n})))))
        .collect();

    let updated = environment.folder.join("toolcrib-updated");
    std::fs::copy(env!("CARGO_BIN_EXE_toolcrib"), &updated).unwrap();
    std::fs::File::options().append(true).open(&updated).unwrap().write_all(b"\n").unwrap();
    let mut command = Command::new(&updated);
    command.args(["mcp", "--config"]).arg(environment.config()).current_dir(&environment.folder);
    command
        .env("HOME", &environment.folder)
        .env("XDG_STATE_HOME", environment.folder.join("state"));
    command.stderr(Stdio::null());
    let began = Instant::now();
    let new = RawClient::stdio(command, Era::Older);
    new.ready("shop__echo");
    print_duration("first call of a client of the new build", began.elapsed());

    for (n, call) in &calls {
        assert_eq!(call.end()["structuredContent"], json!({"n": n}));
    }
    assert_eq!(count(&environment.log("shop"), "start"), 2, "one process for each build");
    assert!(is_alive(gateway), "the old build still serves its clients");
    assert_eq!(old[0].call("shop__echo", json!({"n": 1}))["structuredContent"], json!({"n": 1}));
    drop(old);
    until_true("the old build ends with its last client", || !is_alive(gateway));
    assert_eq!(new.call("shop__echo", json!({"n": 2}))["structuredContent"], json!({"n": 2}));
}
