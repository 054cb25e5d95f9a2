//! Tests of `toolcrib doctor` with servers that work, but behave oddly when they are started for the first time.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::environment::{TestEnvironment, testkit};
use crate::probe::count;

/// Adds a server that is started by a shell script. In the script, `$1` is the path of a log and `$2` a test server.
fn shell(environment: TestEnvironment, name: &str, script: &str, server: &str) -> TestEnvironment {
    let args = json!(["-c", script, "sh", environment.log(name), testkit(server)]);
    let entry = format!("[servers.{name}]\ncommand = \"sh\"\nstart_timeout = 600\nargs = {args}\n");
    environment.with(&entry)
}

/// While `npx` downloads a server, nothing reads the gateway's requests. After 10 s without an answer, the handshake of
/// the older protocol is sent as well, and these servers answer only this handshake.
#[test]
fn slow_servers_of_both_protocols_are_up_at_the_first_run() {
    let both_requests = r#"
        echo start >> "$1"
        read -r probe
        read -r initialize
        { printf '%s\n%s\n' "$probe" "$initialize"; cat; } | "$2"
    "#;
    // Ignores the probe, and never answers it.
    let only_initialize = r#"
        echo start >> "$1"
        read -r probe
        "$2"
    "#;
    let environment = TestEnvironment::new("slow-start");
    let environment = shell(environment, "newer", both_requests, "fixture-server");
    let environment = shell(environment, "older", both_requests, "faulty-server");
    let environment = shell(environment, "strict", only_initialize, "faulty-server");
    let rows = environment.doctor();
    let column = |key: &str| rows.iter().map(|row| row[key].clone()).collect::<Vec<_>>();
    assert_eq!(column("state"), ["up", "up", "up"], "{rows:#?}");
    let eras = ["stateless 2026-07-28", "handshake 2025-11-25", "handshake 2025-11-25"];
    assert_eq!(column("era"), eras, "{rows:#?}");
    assert!(column("tools").iter().all(|tools| tools.as_u64() > Some(0)), "{rows:#?}");
    for name in ["newer", "older", "strict"] {
        assert_eq!(count(&environment.log(name), "start"), 1, "`{name}` is started once");
    }
}

/// Some servers of the older protocol exit when their first request is not the handshake.
#[test]
fn a_server_that_exits_on_the_probe_is_up_at_the_first_run() {
    let script = r#"
        echo start >> "$1"
        read -r first
        case "$first" in *server/discover*) echo 'expected initialize' >&2; exit 3;; esac
        { printf '%s\n' "$first"; cat; } | "$2"
    "#;
    let environment = shell(TestEnvironment::new("exits"), "picky", script, "faulty-server");
    let rows = environment.doctor();
    assert_eq!((&rows[0]["state"], &rows[0]["error"]), (&json!("up"), &Value::Null), "{rows:#?}");
    assert_eq!(count(&environment.log("picky"), "start"), 2);
}

/// `doctor` reports text on standard output that is not MCP, whether or not the server works.
#[test]
fn text_on_standard_output_is_reported() {
    let environment = TestEnvironment::new("stray-text");
    let environment =
        shell(environment, "banner", "echo 'Welcome to my server'; \"$2\"", "faulty-server");
    let environment = shell(environment, "usage", "echo 'Usage: TOKEN-42 FILE'; exit 1", "");
    let environment = environment.with("env = { KEY = \"TOKEN-42\" }");
    let rows = environment.doctor();
    let note = "it writes text that is not MCP to standard output, which is ignored: `Welcome to my server`";
    assert_eq!((&rows[0]["state"], &rows[0]["notes"]), (&json!("up"), &json!([note])), "{rows:#?}");
    let error = "it writes text that is not MCP to standard output: `Usage: *** FILE`; \
                 it exited with code 1";
    assert_eq!(
        (&rows[1]["state"], &rows[1]["error"]),
        (&json!("down"), &json!(error)),
        "{rows:#?}"
    );
    let hint = rows[1]["hint"].as_str().unwrap();
    assert!(hint.contains("its log to standard error"), "{hint}");
}

/// The exit code says whether everything works. Without any server, nothing works.
#[test]
fn doctor_exits_with_1_unless_everything_works() {
    for (name, servers, code) in [
        ("none", "", 1),
        ("disabled", "[servers.a]\ncommand = 'x'\nenabled = false\n", 1),
        ("down", "[servers.a]\ncommand = '/nowhere/x'\n", 1),
    ] {
        let environment = TestEnvironment::new(&format!("doctor-{name}")).with(servers);
        let done =
            environment.toolcrib(&["doctor", "--json"]).stdout(Stdio::piped()).output().unwrap();
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!((done.status.code(), &report["well"]), (Some(code), &json!(false)), "{report}");
    }
    let environment = TestEnvironment::new("doctor-well").faulty("fine", &[]);
    let done = environment.toolcrib(&["doctor"]).stdout(Stdio::piped()).output().unwrap();
    assert_eq!(done.status.code(), Some(0));
}

/// On a narrow terminal each server has a block of its own, and no line is longer than the terminal.
#[test]
fn doctor_fits_on_narrow_terminals() {
    let environment = TestEnvironment::new("narrow")
        .faulty("fine", &[])
        .with("[servers.missing]\ncommand = '/nowhere/x'");
    for columns in [60, 80, 120] {
        let mut doctor = environment.toolcrib(&["doctor"]);
        doctor.env("COLUMNS", columns.to_string());
        let done = doctor.stdout(Stdio::piped()).output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
        let block = "missing: down\n  error: cannot find the command `/nowhere/x`\n  hint:  ";
        assert!(text.contains(block), "{columns}: {text}");
    }
}
