//! The HTTP listener: what it refuses, what it answers itself, its token and its certificate.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use serde_json::{Value, json};
use toolcrib_testkit::tls::write_certificate;

use crate::http::{self, Request, Response, receive};
use crate::probe::{DEADLINE, until_true};
use crate::stage::{Served, Stage};

const ONE: &str = "one-one-one-one-one-one";
const TWO: &str = "two-two-two-two-two-two";

/// The first line of the answer to a request, sent as it is.
fn raw(served: &Served, request: &str) -> String {
    let mut socket = TcpStream::connect(&served.address).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// Neither method reaches a service, and the root is a page of ours; the provider sees none of it.
#[test]
fn methods_and_the_root_page() {
    let provider = TcpListener::bind("127.0.0.1:0").unwrap();
    provider.set_nonblocking(true).unwrap();
    let url = format!("http://{}", provider.local_addr().unwrap());
    let stage = Stage::new("methods").with(&format!("[proxy]\nopenai = '{url}'\n"));
    let served = stage.serve();
    let end = "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for path in ["/mcp", "/v1/chat/completions", "/v1/models", "/healthz", "/metrics", "/"] {
        let answer = raw(&served, &format!("TRACE {path} {end}"));
        assert!(answer.starts_with("HTTP/1.1 405"), "{path}: {answer}");
        assert!(answer.to_ascii_lowercase().contains("allow: get"), "{answer}");
    }
    let answer = raw(&served, &format!("CONNECT localhost:443 {end}"));
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    for (method, status) in [("GET", 200), ("POST", 405), ("DELETE", 405), ("PROPFIND", 405)] {
        let answer = raw(&served, &format!("{method} / {end}"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{method}: {answer}");
        for place in ["/mcp", "/healthz", "/v1/"] {
            assert!(answer.contains(place), "{answer}");
        }
    }
    assert!(provider.accept().is_err(), "nothing of it was forwarded");
}

fn post(served: &Served, token: &str, more: &[(&'static str, &str)], body: &Value) -> Response {
    let mut headers = vec![
        ("Authorization", format!("Bearer {token}")),
        ("Accept", "application/json, text/event-stream".to_owned()),
        ("Content-Type", "application/json".to_owned()),
    ];
    headers.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    let body = body.to_string();
    let request = Request { method: "POST", path: "/mcp", headers, body: body.as_bytes() };
    let socket = http::send(&served.address, &request).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    receive(socket).unwrap()
}

/// The status of the statistics of the proxy, for which the token is a key.
fn stats(served: &Served, key: &str) -> u16 {
    let headers = vec![("X-Toolcrib-Key", key.to_owned())];
    let request = Request { method: "GET", path: "/toolcrib/stats", headers, body: b"" };
    http::ask(&served.address, &request).unwrap().0
}

/// A token that is replaced, in the config or in the file that the config names, is worth nothing from then on,
/// and what was begun with it ends.
#[test]
fn a_token_is_revoked_without_a_restart() {
    for is_in_file in [false, true] {
        let stage = Stage::new(&format!("revoked-{is_in_file}"));
        let file = stage.folder.join("secret");
        std::fs::write(&file, ONE).unwrap();
        let config = |token: &str| {
            let token =
                if is_in_file { format!("${{file:{}}}", file.display()) } else { token.into() };
            format!("[http]\ntoken = '{token}'\n")
        };
        stage.write(&config(ONE));
        let served = stage.serve();
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
        let begun = post(&served, ONE, &[], &hello);
        assert_eq!(begun.status, 200);
        let id = begun.header("mcp-session-id").unwrap().to_owned();
        let session = [("Mcp-Session-Id", id.as_str())];
        let headers = vec![
            ("Authorization", format!("Bearer {ONE}")),
            ("Accept", "text/event-stream".to_owned()),
            ("Mcp-Session-Id", id.clone()),
        ];
        let listen = Request { method: "GET", path: "/mcp", headers, body: b"" };
        let socket = http::send(&served.address, &listen).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut stream = receive(socket).unwrap();
        assert_eq!(stream.status, 200);
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        assert_eq!(post(&served, ONE, &session, &list).status, 200);
        assert_eq!((stats(&served, ONE), stats(&served, TWO)), (200, 401));

        if is_in_file {
            std::fs::write(&file, TWO).unwrap();
        } else {
            stage.write(&config(TWO));
        }
        until_true("the old token is refused", || post(&served, ONE, &[], &hello).status == 401);
        while stream.line().is_some() {}
        assert_eq!((stats(&served, ONE), stats(&served, TWO)), (401, 200));
        until_true("its session is over", || post(&served, TWO, &session, &list).status == 404);
        assert_eq!(post(&served, TWO, &[], &hello).status, 200);
        assert!(!stage.said().contains(ONE) && !stage.said().contains(TWO), "{}", stage.said());
    }
}

/// A gateway over HTTPS, and its address by the name in its certificate.
fn over_tls(stage: &Stage, more: &str) -> (Served, String) {
    let path = |name: &str| stage.folder.join(name).display().to_string();
    let (certificate, key) = (path("certificate.pem"), path("key.pem"));
    stage.write(&format!(
        "[http]\ntls = {{ certificate = '{certificate}', key = '{key}' }}\n{more}"
    ));
    let served = stage.serve();
    assert!(stage.said().contains("listening on https://"), "{}", stage.said());
    let port = served.address.rsplit_once(':').unwrap().1;
    let url = format!("https://localhost:{port}");
    (served, url)
}

/// Asks a proxy for its statistics, trusting the authority in the test's folder as it is now.
fn is_trusted(stage: &Stage, url: &str) -> bool {
    let mut command = stage.bare(&["stats", "--live", url]);
    command.env("SSL_CERT_FILE", stage.folder.join("authority.pem"));
    command.stdout(Stdio::null()).status().unwrap().success()
}

#[test]
fn the_listener_speaks_tls_and_takes_a_renewed_certificate() {
    let stage = Stage::new("tls");
    write_certificate(&stage.folder);
    let (served, url) = over_tls(&stage, "header_timeout = 1\n");
    assert!(is_trusted(&stage, &url));
    // Clients that never finish their handshake are not in the way of others, and are cut off.
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(&served.address).unwrap()).collect();
    assert!(is_trusted(&stage, &url));
    for mut socket in silent {
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        assert_eq!(socket.read(&mut [0]).unwrap(), 0, "it is closed");
    }
    // HTTP without TLS gets no answer of HTTP.
    let mut plain = TcpStream::connect(&served.address).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");

    write_certificate(&stage.folder);
    until_true("the new certificate is in use", || is_trusted(&stage, &url));
}

#[test]
fn a_certificate_that_cannot_be_used_stops_the_start() {
    let stage = Stage::new("bad-tls");
    write_certificate(&stage.folder);
    let certificate = std::fs::read(stage.folder.join("certificate.pem")).unwrap();
    write_certificate(&stage.folder);
    let path = |name: &str| stage.folder.join(name).display().to_string();
    stage.write(&format!(
        "[http]\ntls = {{ certificate = '{}', key = '{}' }}\n",
        path("certificate.pem"),
        path("key.pem")
    ));
    let fails = |problem: &str, hint: &str| {
        let before = stage.said().len();
        let status = stage.toolcrib(&["serve", "--listen", "127.0.0.1:0"]).status().unwrap();
        let said = stage.said()[before..].to_owned();
        assert!(!status.success(), "{said}");
        assert!(said.contains(problem) && said.contains(hint), "{said}");
    };
    std::fs::write(stage.folder.join("certificate.pem"), certificate).unwrap();
    fails("the private key does not belong to the certificate", "must be the private key of");
    std::fs::write(stage.folder.join("certificate.pem"), "nothing").unwrap();
    fails("the file contains no certificate", "`certificate` is a PEM file");
    write_certificate(&stage.folder);
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(stage.folder.join("key.pem"), permissions).unwrap();
    fails("other users may read `", "chmod 600");
    std::fs::remove_file(stage.folder.join("key.pem")).unwrap();
    fails("No such file", "`http.tls.key` must name a PEM file");
}

/// Anybody can send such requests, as many as they like.
#[test]
fn refused_requests_do_not_fill_the_log() {
    let stage = Stage::new("refused").with(&format!("[http]\ntoken = '{ONE}'\n"));
    let served = stage.serve();
    for host in ["localhost", "elsewhere.example"] {
        for _ in 0..50 {
            let request = format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let answer = raw(&served, &request);
            assert!(answer.starts_with("HTTP/1.1 40"), "{answer}");
        }
    }
    let said = stage.said();
    let lines: Vec<_> = said.lines().filter(|line| line.contains("request denied")).collect();
    assert_eq!(lines.len(), 2, "one for each reason: {lines:#?}");
    assert!(lines[0].contains("a bearer token is required"), "{lines:#?}");
    assert!(lines[1].contains("is not served here"), "{lines:#?}");
}
