//! Tests of the last output of a server that exits, and of log levels across restarts.

use serde_json::json;

use crate::environment::TestEnvironment;
use crate::probe::{count, last_start, signal, until_true};
use crate::raw_client::Era;

/// A server writes its own token and 60,000 characters to standard error and exits. The log and `doctor` show one line of
/// this, without the token. Every reply to a search repeats why a server is down, so the model gets only the exit code.
#[test]
fn the_last_stderr_lines_of_a_server_are_short_and_without_secrets() {
    let cry =
        r#"printf 'bad token %s ' "$TOKEN" >&2; head -c 60000 /dev/zero | tr '\\0' x >&2; exit 3"#;
    let environment = TestEnvironment::new("words").faulty("fine", &[]).with(&format!(
        "[servers.crying]\ncommand = 'sh'\nargs = ['-c', {}]\nenv = {{ TOKEN = 'CANARY-TOKEN' }}\n",
        json!(cry)
    ));
    let peer = environment.stdio(Era::Older);
    peer.ready("fine__echo");
    until_true("the server is down, with its reason", || {
        let why = peer.search("select:fine__echo")["down"][0]["why"].take();
        why == json!("it exited with code 3")
    });
    let doctor = environment.doctor();
    let error = doctor[0]["error"].as_str().unwrap();
    assert!(error.starts_with("it exited with code 3; the end of its stderr: "), "{error}");
    assert!(error.chars().count() <= 301, "{error}");
    let doctor = format!("{doctor:?}");
    assert!(!doctor.contains("CANARY") && doctor.len() < 4_000, "{doctor}");
    assert!(!environment.stderr().contains("CANARY"), "{}", environment.stderr());
}

/// A log level that a client sets reaches the server. After a crash it must also reach the new process.
#[test]
fn a_log_level_survives_a_restart_of_the_server() {
    let environment = TestEnvironment::new("level").faulty("talker", &["--logging"]);
    let peer = environment.stdio(Era::Older);
    peer.ready("talker__echo");
    peer.ask("logging/setLevel", json!({"level": "warning"}));
    let log = environment.log("talker");
    until_true("the server receives the level", || count(&log, "level warning") == 1);
    peer.ask("logging/setLevel", json!({"level": "error"}));
    peer.ask("logging/setLevel", json!({"level": "debug"}));
    until_true("the server receives the most verbose level", || count(&log, "level debug") == 1);
    assert_eq!(count(&log, "level error"), 0, "a less verbose level is not sent");
    signal(last_start(&log).unwrap(), "-KILL");
    until_true("the new process receives the level", || count(&log, "level debug") == 2);
}
