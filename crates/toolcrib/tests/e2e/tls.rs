//! Tests of servers over HTTPS: certificates are checked against the certificate authorities of the system, or against
//! those in `SSL_CERT_FILE`.

use std::process::Command;

use serde_json::{Value, json};
use toolcrib_testkit::tls::TlsTerminator;

use crate::support::client::{Client, Era};
use crate::support::gateway::{
    Home, HttpServerProcess, IN_FULL, start_http_server, wait_until_ready,
};
use crate::support::wire::Wire;
use crate::support::{DEADLINE, testkit};

/// Starts the fixture over HTTP and a TLS terminator in front of it. Returns both, and a home folder whose config
/// contains the address of the terminator.
fn fixture() -> (HttpServerProcess, TlsTerminator, Home) {
    let mut command = Command::new(testkit("fixture-server"));
    command.args(["--http", "127.0.0.1:0"]);
    let server = start_http_server(command);
    let address = server.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let tls = TlsTerminator::start(address);
    let url = format!("https://{}/mcp", tls.address());
    let home = Home::new(&format!("{IN_FULL}[servers.fixture]\nurl = '{url}'\n"));
    (server, tls, home)
}

#[test]
fn a_server_over_https_works() {
    let (_server, tls, home) = fixture();
    let trusting = format!("SSL_CERT_FILE={}", tls.ca_file().display());
    for era in [Era::Older, Era::Newer] {
        let program = [vec!["env".to_owned(), trusting.clone()], home.mcp()].concat();
        let mut client = Client::named("test", Wire::stdio(&program, home.path()), era);
        wait_until_ready(&mut client);
        let exchange = client.call("fixture__test_simple_text", &json!({}));
        let text = &exchange.answer["result"]["content"][0]["text"];
        assert_eq!(text, "Nothing but a short text.", "{exchange:?}");
    }
}

#[test]
fn a_server_with_an_untrusted_certificate_is_reported() {
    let (_process, _front, home) = fixture();
    let done = Command::new("timeout")
        .arg(DEADLINE.as_secs().to_string())
        .args(home.doctor())
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", home.path().join("state"))
        .env_remove("SSL_CERT_FILE")
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&done.stdout).unwrap();
    let row = &answer["servers"][0];
    assert_eq!(row["state"], "down", "{row}");
    assert!(
        row["error"].as_str().unwrap().ends_with(": invalid peer certificate: UnknownIssuer"),
        "{row}"
    );
    assert!(row["hint"].as_str().unwrap().contains("unknown authority"), "{row}");
}
