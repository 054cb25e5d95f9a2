//! Tests of HTTP servers that send invalid responses, or none.

use std::time::Instant;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{at_most, peak_memory, until_true};
use crate::raw_client::Era;
use crate::{faulty_http_server, print_duration, print_figure};

/// A call that is answered with an invalid response fails within its timeout. The server can be called again
/// afterwards, and memory stays bounded.
#[test]
fn each_fault_of_an_http_server_fails_one_call() {
    let address = faulty_http_server::start();
    let server = format!("[servers.web]\nurl = 'http://{address}/mcp'\ncall_timeout = 2\n");
    let environment = TestEnvironment::new("web").with(&server);
    let peer = environment.stdio(Era::Older);
    peer.ready("web__echo");
    let base = peak_memory(peer.gateway());
    for fault in faulty_http_server::FAULTS {
        let began = Instant::now();
        let answer = peer.call(&format!("web__{fault}"), json!({}));
        let failed = answer["isError"] == true || answer["error"].is_object();
        assert!(failed, "{fault}: {answer}");
        print_duration(&format!("an error after {fault}"), began.elapsed());
        print_figure(
            fault,
            if answer["error"].is_object() { &answer["error"] } else { &answer["content"] },
        );
        // The server can be called again, immediately or after a reconnect.
        peer.ready("web__echo");
        print_duration(&format!("error and fine again after {fault}"), began.elapsed());
    }
    let over = peak_memory(peer.gateway()).saturating_sub(base) >> 20;
    at_most("MiB over base after a gigabyte over HTTP", over, 64);
}

/// `doctor` reports an address where no server listens, and servers that require a login. Other servers still work.
#[test]
fn an_unreachable_server_and_servers_that_need_a_login_are_reported() {
    let address = faulty_http_server::start();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut environment = TestEnvironment::new("locked");
    for (name, url) in [
        ("absent", format!("http://{free}/mcp?key=canary")),
        ("bare", format!("http://{address}/bare")),
        ("locked", format!("http://{address}/locked")),
        ("open", format!("http://{address}/mcp")),
    ] {
        environment = environment.with(&format!("[servers.{name}]\nurl = '{url}'\n"));
    }
    let began = Instant::now();
    let rows = environment.doctor();
    print_duration("a doctor's round", began.elapsed());
    let states: Vec<&Value> = rows.iter().map(|row| &row["state"]).collect();
    assert_eq!(states, ["down", "needs login", "needs login", "up"], "{rows:#?}");
    assert!(rows[0]["error"].as_str().unwrap().contains("refused"), "{}", rows[0]);
    let hint = rows[2]["hint"].as_str().unwrap();
    assert!(hint.starts_with("run: toolcrib login locked --config /"), "{}", rows[2]);
    let peer = environment.stdio(Era::Older);
    peer.ready("open__echo");
    assert!(
        !format!("{rows:?}{}", environment.stderr()).contains("canary"),
        "no key of an address is printed or logged"
    );
    until_true("three servers are reported as down", || {
        let down = peer.search("select:open__echo")["down"].take();
        down.as_array().is_some_and(|down| down.len() == 3)
    });
}
