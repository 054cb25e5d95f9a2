//! Tests of the HTTP listener: requests that it rejects or answers itself, its token and its certificate.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use serde_json::{Value, json};
use toolcrib_testkit::tls::write_certificate;

use crate::environment::{HttpGateway, TestEnvironment};
use crate::http::{self, Request, Response, receive};
use crate::probe::{DEADLINE, until_true};

const ONE: &str = "one-one-one-one-one-one";
const TWO: &str = "two-two-two-two-two-two";

/// Sends a request exactly as written, and returns the response.
fn raw(gateway: &HttpGateway, request: &str) -> String {
    let mut socket = TcpStream::connect(&gateway.address).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// Requests with methods that a path does not allow are rejected before they reach a service, and the root is a page of
/// Toolcrib's own. The provider must receive nothing.
#[test]
fn other_methods_and_the_root_page_are_answered() {
    let provider = TcpListener::bind("127.0.0.1:0").unwrap();
    provider.set_nonblocking(true).unwrap();
    let url = format!("http://{}", provider.local_addr().unwrap());
    let environment = TestEnvironment::new("methods").with(&format!("[proxy]\nopenai = '{url}'\n"));
    let gateway = environment.serve();
    let end = "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for path in ["/mcp", "/v1/chat/completions", "/v1/models", "/healthz", "/metrics", "/"] {
        let answer = raw(&gateway, &format!("TRACE {path} {end}"));
        assert!(answer.starts_with("HTTP/1.1 405"), "{path}: {answer}");
        assert!(answer.to_ascii_lowercase().contains("allow: get"), "{answer}");
    }
    let answer = raw(&gateway, &format!("CONNECT localhost:443 {end}"));
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    for (method, status) in [("GET", 200), ("POST", 405), ("DELETE", 405), ("PROPFIND", 405)] {
        let answer = raw(&gateway, &format!("{method} / {end}"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{method}: {answer}");
        for place in ["/mcp", "/healthz", "/v1/"] {
            assert!(answer.contains(place), "{answer}");
        }
    }
    assert!(provider.accept().is_err(), "no request was forwarded");
}

fn post(
    gateway: &HttpGateway,
    token: &str,
    more: &[(&'static str, &str)],
    body: &Value,
) -> Response {
    let mut headers = vec![
        ("Authorization", format!("Bearer {token}")),
        ("Accept", "application/json, text/event-stream".to_owned()),
        ("Content-Type", "application/json".to_owned()),
    ];
    headers.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    let body = body.to_string();
    let request = Request { method: "POST", path: "/mcp", headers, body: body.as_bytes() };
    let socket = http::send(&gateway.address, &request).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    receive(socket).unwrap()
}

/// Requests the proxy's statistics with this key, and returns the status.
fn stats(gateway: &HttpGateway, key: &str) -> u16 {
    let headers = vec![("X-Toolcrib-Key", key.to_owned())];
    let request = Request { method: "GET", path: "/toolcrib/stats", headers, body: b"" };
    http::ask(&gateway.address, &request).unwrap().0
}

/// A token can be replaced in the config or in a file that the config names. The old token must be invalid at once, and
/// streams that were opened with it must end.
#[test]
fn a_token_is_revoked_without_a_restart() {
    for is_in_file in [false, true] {
        let environment = TestEnvironment::new(&format!("revoked-{is_in_file}"));
        let file = environment.folder.join("secret");
        std::fs::write(&file, ONE).unwrap();
        let config = |token: &str| {
            let token =
                if is_in_file { format!("${{file:{}}}", file.display()) } else { token.into() };
            format!("[http]\ntoken = '{token}'\n")
        };
        environment.write(&config(ONE));
        let gateway = environment.serve();
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
        let begun = post(&gateway, ONE, &[], &hello);
        assert_eq!(begun.status, 200);
        let id = begun.header("mcp-session-id").unwrap().to_owned();
        let session = [("Mcp-Session-Id", id.as_str())];
        let headers = vec![
            ("Authorization", format!("Bearer {ONE}")),
            ("Accept", "text/event-stream".to_owned()),
            ("Mcp-Session-Id", id.clone()),
        ];
        let listen = Request { method: "GET", path: "/mcp", headers, body: b"" };
        let socket = http::send(&gateway.address, &listen).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut stream = receive(socket).unwrap();
        assert_eq!(stream.status, 200);
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        assert_eq!(post(&gateway, ONE, &session, &list).status, 200);
        assert_eq!((stats(&gateway, ONE), stats(&gateway, TWO)), (200, 401));

        if is_in_file {
            std::fs::write(&file, TWO).unwrap();
        } else {
            environment.write(&config(TWO));
        }
        until_true("the old token is refused", || post(&gateway, ONE, &[], &hello).status == 401);
        while stream.line().is_some() {}
        assert_eq!((stats(&gateway, ONE), stats(&gateway, TWO)), (401, 200));
        until_true("the old token's session has ended", || {
            post(&gateway, TWO, &session, &list).status == 404
        });
        assert_eq!(post(&gateway, TWO, &[], &hello).status, 200);
        assert!(
            !environment.stderr().contains(ONE) && !environment.stderr().contains(TWO),
            "{}",
            environment.stderr()
        );
    }
}

/// Starts a gateway over HTTPS. Returns the gateway and its URL, which contains the host name in its certificate.
fn over_tls(environment: &TestEnvironment, more: &str) -> (HttpGateway, String) {
    let path = |name: &str| environment.folder.join(name).display().to_string();
    let (certificate, key) = (path("certificate.pem"), path("key.pem"));
    environment.write(&format!(
        "[http]\ntls = {{ certificate = '{certificate}', key = '{key}' }}\n{more}"
    ));
    let gateway = environment.serve();
    assert!(environment.stderr().contains("listening on https://"), "{}", environment.stderr());
    let port = gateway.address.rsplit_once(':').unwrap().1;
    let url = format!("https://localhost:{port}");
    (gateway, url)
}

/// Requests the proxy's statistics, trusting the certificate authority that is currently in the test's folder. Returns
/// whether that succeeds.
fn is_trusted(environment: &TestEnvironment, url: &str) -> bool {
    let mut command = environment.toolcrib_without_config(&["stats", "--live", url]);
    command.env("SSL_CERT_FILE", environment.folder.join("authority.pem"));
    command.stdout(Stdio::null()).status().unwrap().success()
}

#[test]
fn the_listener_serves_tls_and_loads_a_renewed_certificate() {
    let environment = TestEnvironment::new("tls");
    write_certificate(&environment.folder);
    let (gateway, url) = over_tls(&environment, "header_timeout = 1\n");
    assert!(is_trusted(&environment, &url));
    // Clients that never finish their TLS handshake do not block others, and are disconnected.
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(&gateway.address).unwrap()).collect();
    assert!(is_trusted(&environment, &url));
    for mut socket in silent {
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        assert_eq!(socket.read(&mut [0]).unwrap(), 0, "the connection is closed");
    }
    // A plain HTTP request to the TLS port gets no HTTP response.
    let mut plain = TcpStream::connect(&gateway.address).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");

    write_certificate(&environment.folder);
    until_true("the new certificate is in use", || is_trusted(&environment, &url));
}

#[test]
fn an_unusable_certificate_prevents_the_start() {
    let environment = TestEnvironment::new("bad-tls");
    write_certificate(&environment.folder);
    let certificate = std::fs::read(environment.folder.join("certificate.pem")).unwrap();
    write_certificate(&environment.folder);
    let path = |name: &str| environment.folder.join(name).display().to_string();
    environment.write(&format!(
        "[http]\ntls = {{ certificate = '{}', key = '{}' }}\n",
        path("certificate.pem"),
        path("key.pem")
    ));
    let fails = |problem: &str, hint: &str| {
        let before = environment.stderr().len();
        let status = environment.toolcrib(&["serve", "--listen", "127.0.0.1:0"]).status().unwrap();
        let stderr = environment.stderr()[before..].to_owned();
        assert!(!status.success(), "{stderr}");
        assert!(stderr.contains(problem) && stderr.contains(hint), "{stderr}");
    };
    std::fs::write(environment.folder.join("certificate.pem"), certificate).unwrap();
    fails("the private key does not belong to the certificate", "must be the private key of");
    std::fs::write(environment.folder.join("certificate.pem"), "nothing").unwrap();
    fails("the file contains no certificate", "`certificate` is a PEM file");
    write_certificate(&environment.folder);
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(environment.folder.join("key.pem"), permissions).unwrap();
    fails("other users may read `", "chmod 600");
    std::fs::remove_file(environment.folder.join("key.pem")).unwrap();
    fails("No such file", "`http.tls.key` must name a PEM file");
}

/// Anyone can send requests that are rejected, in any number, so each reason for a rejection is logged at most once a
/// minute.
#[test]
fn rejected_requests_do_not_fill_the_log() {
    let environment = TestEnvironment::new("refused").with(&format!("[http]\ntoken = '{ONE}'\n"));
    let gateway = environment.serve();
    for host in ["localhost", "elsewhere.example"] {
        for _ in 0..50 {
            let request = format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let answer = raw(&gateway, &request);
            assert!(answer.starts_with("HTTP/1.1 40"), "{answer}");
        }
    }
    let stderr = environment.stderr();
    let lines: Vec<_> = stderr.lines().filter(|line| line.contains("request denied")).collect();
    assert_eq!(lines.len(), 2, "one line for each reason: {lines:#?}");
    assert!(lines[0].contains("a bearer token is required"), "{lines:#?}");
    assert!(lines[1].contains("is not served here"), "{lines:#?}");
}
