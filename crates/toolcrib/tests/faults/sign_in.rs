//! Tests that `toolcrib login` signs in to a server that requires OAuth, and that the gateway uses and refreshes the token.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::atomic::Ordering;

use serde_json::json;

use crate::environment::TestEnvironment;
use crate::raw_client::Era;
use crate::sign_in_server::{self, CANARY, browse};

/// Signs in to a server with this path, and uses it with a token that becomes invalid.
fn sign_in(path: &str, transport: &str) {
    let server = sign_in_server::start();
    let config = format!("[servers.mail]\nurl = 'http://{}{path}'", server.address);
    let environment = TestEnvironment::new(&format!("sign-in-{transport}")).with(&config);
    let health = &environment.doctor()[0];
    assert_eq!(health["state"], "needs login", "{health}");

    let mut login =
        environment.toolcrib(&["login", "mail"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines: Vec<String> = BufReader::new(login.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .inspect(|line| {
            if line.starts_with("http://") {
                let page = browse(line);
                assert!(page.starts_with("HTTP/1.1 200"), "{page}");
            }
        })
        .collect();
    assert!(login.wait().unwrap().success());
    assert!(lines.last().unwrap().starts_with("Signed in to `mail`."), "{lines:?}");

    let client = environment.stdio(Era::Older);
    client.ready("mail__echo");
    let before = server.rejected.load(Ordering::SeqCst);
    assert_eq!(server.refreshes.load(Ordering::SeqCst), 0);
    server.revoke();
    let answer = client.call("mail__echo", json!({"n": 1}));
    assert_eq!(answer["structuredContent"], json!({"n": 1}), "{answer}");
    assert_eq!(server.refreshes.load(Ordering::SeqCst), 1);
    assert_eq!(server.rejected.load(Ordering::SeqCst), before + 1);
    let health = &environment.doctor()[0];
    assert_eq!((&health["state"], &health["transport"]), (&json!("up"), &json!(transport)));
    assert!(!environment.stderr().contains(CANARY), "{}", environment.stderr());
}

#[test]
fn a_login_is_used_and_refreshed_over_streamable_http() {
    sign_in("/mcp", "http");
}

#[test]
fn a_login_is_used_and_refreshed_over_http_sse() {
    sign_in("/sse", "sse");
}
