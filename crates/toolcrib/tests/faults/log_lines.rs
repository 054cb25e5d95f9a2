//! Tests that a server's texts cannot end a log line or control a terminal.

use serde_json::json;

use crate::environment::TestEnvironment;
use crate::probe::until_true;
use crate::raw_client::Era;

/// Text with a line break and a forged log line, a carriage return, a terminal escape sequence, a right-to-left
/// override, a zero-width space and a tag character.
const TEXT: &str = "over\n2026-01-01T00:00:00Z  INFO forged\rback \u{1b}[2Jclear \u{202e}left \u{200b}zero \u{e0041}tag";

fn is_plain(c: char) -> bool {
    c == '\n' || !(c.is_control() || toolcrib_text::clean::hidden(c).is_some())
}

#[test]
fn a_server_cannot_forge_log_lines() {
    let say = ["--say", TEXT, "--storm", "1", "--refuse-list", "2", "--die-on", "die"];
    let environment = TestEnvironment::new("log-lines").faulty("loud", &say);
    let peer = environment.stdio(Era::Older);
    peer.ready("loud__echo");
    // This tool makes the server announce a changed list. The gateway fetches the list again, and the server answers
    // with an error that contains the text.
    peer.call("loud__storm", json!({}));
    until_true("the refusal is logged", || environment.stderr().contains("no list today"));
    // When the server exits, the last lines of its standard error are logged as the reason.
    peer.call("loud__die", json!({}));
    until_true("the server's exit is logged", || environment.stderr().contains("server is down"));
    let stderr = environment.stderr();
    assert!(stderr.lines().all(|line| !line.starts_with("2026-01-01")), "{stderr:?}");
    assert_eq!(stderr.chars().find(|c| !is_plain(*c)), None, "{stderr:?}");
    let refused = stderr.lines().find(|line| line.contains("no list today")).unwrap();
    assert!(refused.contains(r"over\n2026-01-01T00:00:00Z  INFO forged"), "{refused}");
}

/// The tables and errors of `doctor` are printed to a terminal as well, so they must be escaped, too.
#[test]
fn a_server_cannot_control_the_terminal_of_doctor() {
    let environment = TestEnvironment::new("doctor-lines")
        .faulty("named", &["--say", TEXT])
        .faulty("refuses", &["--say", TEXT, "--refuse-list", "1"]);
    let done =
        environment.toolcrib(&["doctor"]).stdout(std::process::Stdio::piped()).output().unwrap();
    let shown = String::from_utf8(done.stdout).unwrap();
    assert!(shown.contains("forged"), "{shown:?}");
    assert!(shown.lines().all(|line| !line.starts_with("2026-01-01")), "{shown:?}");
    assert_eq!(shown.chars().find(|c| !is_plain(*c)), None, "{shown:?}");
}

/// A server can send any text as its protocol version, even a long one with line breaks.
#[test]
fn doctor_prints_a_protocol_version_as_one_short_line() {
    let version = format!("2025-11-25\nforged: everything is well {}", "x".repeat(2_000_000));
    let script = json!({"protocolVersion": version, "capabilities": {"tools": {}}, "tools": {}});
    let environment = TestEnvironment::new("doctor-version").scripted("odd", &script, "");
    let done =
        environment.toolcrib(&["doctor"]).stdout(std::process::Stdio::piped()).output().unwrap();
    let shown = String::from_utf8(done.stdout).unwrap();
    assert!(shown.len() < 4_000, "{} bytes", shown.len());
    assert!(shown.lines().all(|line| !line.starts_with("forged")), "{shown}");
    let era = environment.doctor()[0]["era"].as_str().unwrap_or_default().to_owned();
    assert!(era.chars().count() <= 48 && era.contains("2025-11-25 forged"), "{era}");
}
