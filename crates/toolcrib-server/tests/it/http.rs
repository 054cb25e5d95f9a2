//! Tests of a server with two services.

use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use toolcrib_server::access::Access;
use toolcrib_server::http::Authentication;
use toolcrib_server::{HttpServer, HttpSettings, metrics};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

async fn bound() -> HttpServer {
    let access = Access::Bearer(TOKEN.into());
    let settings = HttpSettings::default();
    HttpServer::bind("127.0.0.1:0".parse().unwrap(), &settings, access).await.unwrap()
}

/// Sends a GET request; returns the status and the body.
async fn get_path(server: std::net::SocketAddr, path: &str, headers: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn each_service_chooses_how_it_authenticates() {
    let server = bound().await;
    let address = server.address();
    let with_token = Router::new().route("/with_token", get(|| async { "with_token" }));
    let with_own_keys = Router::new().fallback(|headers: HeaderMap| async move {
        headers
            .get("authorization")
            .map(|value| value.to_str().unwrap().to_owned())
            .unwrap_or_default()
    });
    let server = server
        .mount(with_token, Authentication::BearerToken)
        .mount(with_own_keys, Authentication::OwnKeys);
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve(metrics::registry(), stop.clone()));

    let bearer = format!("host: localhost\r\nauthorization: Bearer {TOKEN}\r\n");
    for (path, headers, status) in [
        ("/with_token", "host: localhost\r\n", 401),
        ("/with_token", bearer.as_str(), 200),
        ("/metrics", "host: localhost\r\n", 401),
        ("/metrics", bearer.as_str(), 200),
        ("/healthz", "host: localhost\r\n", 200),
        ("/other", "host: localhost\r\n", 200),
        ("/with_token", "host: evil.com\r\n", 403),
        ("/metrics", "host: evil.com\r\n", 403),
        ("/healthz", "host: evil.com\r\n", 403),
        ("/other", "host: evil.com\r\n", 403),
        ("/other", "host: localhost\r\norigin: https://evil.com\r\n", 403),
    ] {
        assert_eq!(get_path(address, path, headers).await.0, status, "{path} {headers}");
    }
    assert_eq!(get_path(address, "/metrics", &bearer).await.1, "# EOF\n");
    let (_, seen) =
        get_path(address, "/other", "host: localhost\r\nauthorization: Bearer sk-x\r\n").await;
    assert!(seen.contains("Bearer sk-x"), "another credential reaches the service: {seen}");

    stop.cancel();
    serving.await.unwrap();
}

#[tokio::test]
async fn a_request_in_flight_is_answered_after_a_stop() {
    let server = bound().await;
    let (address, shutdown) = (server.address(), server.graceful_shutdown());
    let (begun, stop) = (CancellationToken::new(), CancellationToken::new());
    let (reached, stopped) = (begun.clone(), stop.clone());
    let slow = Router::new().route(
        "/slow",
        get(move || async move {
            reached.cancel();
            stopped.cancelled().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            "late"
        }),
    );
    let server = server.mount(shutdown.track(slow), Authentication::OwnKeys);
    let serving = tokio::spawn(server.serve(metrics::registry(), stop.clone()));
    let request = tokio::spawn(get_path(address, "/slow", "host: localhost\r\n"));
    begun.cancelled().await;
    stop.cancel();
    let (status, body) = request.await.unwrap();
    assert_eq!((status, body.contains("late")), (200, true), "{body}");
    serving.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "the listener is closed");
}

/// The body timeout applies to the time without any byte, so a client that sends one byte at a time gets its response.
#[tokio::test(start_paused = true)]
async fn a_slow_body_that_makes_progress_is_received() {
    let settings = HttpSettings { body_timeout: 2, header_timeout: 3, ..HttpSettings::default() };
    let server = HttpServer::bind("127.0.0.1:0".parse().unwrap(), &settings, Access::Open);
    let server = server.await.unwrap();
    let address = server.address();
    let echo = Router::new().route("/echo", post(|body: String| async { body }));
    let server = server.mount(echo, Authentication::BearerToken);
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve(metrics::registry(), stop.clone()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head =
        "POST /echo HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 9\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    for digit in b'1'..=b'9' {
        // The test's clock is paused, so this advances the time without waiting.
        tokio::time::sleep(Duration::from_secs(1)).await;
        stream.write_all(&[digit]).await.unwrap();
    }
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200") && response.ends_with("123456789"), "{response}");
    stop.cancel();
    serving.await.unwrap();
}

/// If a service does not read a large body, the client still gets the response and can reuse the connection.
#[tokio::test]
async fn a_client_gets_the_response_even_if_its_body_is_not_read() {
    let server = bound().await;
    let address = server.address();
    let ignoring = Router::new().route("/ignoring", post(|| async { "ignored" }));
    let server = server.mount(ignoring, Authentication::OwnKeys);
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve(metrics::registry(), stop.clone()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = vec![b' '; 8 << 20];
    for last in [false, true] {
        let close = if last { "connection: close\r\n" } else { "" };
        let length = body.len();
        let head = format!(
            "POST /ignoring HTTP/1.1\r\nhost: localhost\r\n{close}content-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
    }
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert_eq!(response.matches("HTTP/1.1 200").count(), 2, "{response}");
    stop.cancel();
    serving.await.unwrap();
}
