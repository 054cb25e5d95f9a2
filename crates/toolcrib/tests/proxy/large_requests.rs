//! Tests of requests and responses that are small, but could take a lot of memory or time because they have very many
//! tiny parts.
//!
//! None of these tests measures time. Quadratic time would exceed the time that the tests wait.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use toolcrib_testkit::provider::{Options, Provider};

use crate::http::{self, Response, post_with};
use crate::replica::Replica;

const CHAT: &str = "/v1/chat/completions";
const LIMITED: &str = "x-toolcrib-tools: show__*\r\n";
const MIB: usize = 1 << 20;

fn start(more: &str) -> (Provider, Replica) {
    let provider = Provider::start(Options::default()).unwrap();
    let url = &provider.url;
    let replica = Replica::start(&format!("{more}[proxy]\nopenai = '{url}'\n"));
    (provider, replica)
}

fn tool(name: &str) -> String {
    format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#)
}

fn chat(messages: &str, tools: &str) -> String {
    format!(r#"{{"model":"m","messages":[{messages}],"tools":[{tools}]}}"#)
}

const HELLO: &str = r#"{"role":"user","content":"Hi."}"#;

fn why(response: &Response) -> &str {
    response.header("x-toolcrib-why").unwrap_or_default()
}

#[test]
fn very_many_short_messages_take_bounded_memory() {
    let (_provider, replica) = start("");
    let turn = r#"{"role":"user"},{"role":"assistant"},"#;
    let ask = |turns: usize| {
        let body = chat(&format!("{}{HELLO}", turn.repeat(turns)), &tool("show__a"));
        post_with(&replica.url, CHAT, "", &body).unwrap()
    };
    assert_eq!(ask(10).status, 200);
    let before = replica.peak_memory();
    // This request has 2.8 MiB of text.
    assert_eq!(ask(80_000).status, 200);
    let grown = replica.peak_memory().saturating_sub(before) / MIB;
    assert!(grown < 160, "the memory grew by {grown} MiB");
}

#[test]
fn the_memory_of_short_messages_counts_towards_the_total_of_bodies() {
    let (provider, replica) = start("[http]\nbody_bytes = 8388608\n");
    let turn = r#"{"role":"user"},{"role":"assistant"},"#;
    let body = chat(&format!("{}{HELLO}", turn.repeat(20_000)), &tool("show__a"));
    let response = post_with(&replica.url, CHAT, "", &body).unwrap();
    assert_eq!(response.status, 413, "{}", response.body);
    assert!(response.body.contains("body_bytes"), "{}", response.body);
    assert_eq!(provider.requests().len(), 0);
}

#[test]
fn a_body_of_very_many_values_passes_through_unread_or_is_rejected() {
    let (provider, replica) = start("");
    let body = chat(&format!("{}{HELLO}", "{},".repeat(600_000)), &tool("show__a"));
    let response = post_with(&replica.url, CHAT, "", &body).unwrap();
    assert_eq!(why(&response), "the body has too many values to be read");
    assert_eq!(provider.requests()[0].body, body.as_bytes());
    let refused = post_with(&replica.url, CHAT, LIMITED, &body).unwrap();
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("more than 500000 values"), "{}", refused.body);
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn more_tools_than_any_provider_accepts_pass_through_or_are_rejected() {
    let (provider, replica) = start("");
    let tools: Vec<String> = (0..10_001).map(|at| tool(&format!("show__{at}"))).collect();
    let body = chat(HELLO, &tools.join(","));
    let response = post_with(&replica.url, CHAT, "", &body).unwrap();
    assert_eq!(why(&response), "too many tools");
    assert_eq!(provider.requests()[0].body, body.as_bytes());
    let refused = post_with(&replica.url, CHAT, LIMITED, &body).unwrap();
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("more than 10000 tools"), "{}", refused.body);
    // A request with exactly the maximum number of tools is still rewritten.
    let body = chat(HELLO, &tools[1..].join(","));
    let response = post_with(&replica.url, CHAT, "x-toolcrib-mode: bridge\r\n", &body).unwrap();
    assert_eq!(response.header("x-toolcrib-mode"), Some("bridge"), "{}", why(&response));
}

/// `tool_choice` names 9,000 tools, and each of them must be sent in full. In an earlier version, each name became a
/// rule that was compared with every tool, which took quadratic time.
#[test]
fn a_tool_choice_that_names_very_many_tools_takes_bounded_time() {
    let (_provider, replica) = start("");
    let names: Vec<String> = (0..9_000).map(|at| tool(&format!("show__{at}"))).collect();
    let names = names.join(",");
    let body = format!(
        r#"{{"model":"m","messages":[{HELLO}],"tools":[{names}],"tool_choice":{{"type":"allowed_tools","allowed_tools":{{"mode":"auto","tools":[{names}]}}}}}}"#
    );
    assert_eq!(post_with(&replica.url, CHAT, "", &body).unwrap().status, 200);
}

/// The provider sends one event of less than a megabyte that contains 300,000 items.
#[test]
fn an_event_of_very_many_items_ends_the_turn() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !request.ends_with(b"}") {
                let count = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..count]);
            }
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            let items = "{},".repeat(299_999);
            let data = format!(
                r#"{{"type":"response.completed","response":{{"id":"r","status":"completed","output":[{items}{{}}]}}}}"#
            );
            let _ = stream.write_all(format!("{head}data: {data}\n\n").as_bytes());
        }
    });
    let replica = Replica::start(&format!("[proxy]\nopenai = '{url}'\n"));
    let body = r#"{"model":"m","stream":true,"input":"Hi.","tools":[{"type":"function","name":"show__a"}]}"#;
    let target = "POST /v1/responses";
    let response = http::send(&replica.url, target, LIMITED.as_bytes(), body).unwrap();
    assert!(response.body.contains("`turn_bytes` allows"), "{} bytes", response.body.len());
}
