//! Tests of a provider that never stops sending. What the proxy must buffer is limited. What it can forward is
//! forwarded, no matter how long it is.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::http::{self, post_with};
use crate::replica::Replica;

/// Maximum time to wait, which is longer than anything here takes.
const PATIENCE: Duration = Duration::from_mins(2);
/// Headers of a caller with a limited scope. The proxy checks the model's calls for such a caller, so it has to read
/// the stream.
const SCOPE: &str = "x-toolcrib-tools: crm__*\r\n";

/// One stream of a provider: `start` once, then `again` repeated `times` times, then `end`.
struct Script {
    start: String,
    again: String,
    times: usize,
    end: String,
}

/// How a stream ended, as the provider sees it.
#[derive(Debug, PartialEq, Eq)]
enum StreamEnd {
    /// The provider wrote the complete stream.
    Finished,
    /// The proxy closed the connection before the end.
    Closed,
}

/// Starts a provider that plays one script for each request, in order. Returns its URL and a channel that reports how
/// each stream ended.
fn serve(scripts: Vec<Script>) -> (String, Receiver<StreamEnd>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, stream_ends) = channel();
    thread::spawn(move || {
        for script in scripts {
            let (stream, _) = listener.accept().unwrap();
            let result = play(stream, &script);
            sender
                .send(if result.is_ok() { StreamEnd::Finished } else { StreamEnd::Closed })
                .unwrap();
        }
    });
    (url, stream_ends)
}

fn play(mut stream: TcpStream, script: &Script) -> std::io::Result<()> {
    read_request(&mut stream)?;
    stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
    )?;
    let mut chunk = |text: &str| {
        stream.write_all(format!("{:x}\r\n", text.len()).as_bytes())?;
        stream.write_all(text.as_bytes())?;
        stream.write_all(b"\r\n")
    };
    chunk(&script.start)?;
    for _ in 0..script.times {
        chunk(&script.again)?;
    }
    chunk(&script.end)?;
    stream.write_all(b"0\r\n\r\n")
}

fn read_request(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    // The body is a JSON object, so the request is complete when it ends with a brace.
    while !request.ends_with(b"}") {
        let count = stream.read(&mut buffer)?;
        request.extend_from_slice(&buffer[..count]);
    }
    Ok(request)
}

fn replica(url: &str) -> Replica {
    Replica::start(&format!(
        "[proxy]\nopenai = '{url}'\nanthropic = '{url}'\ngemini = '{url}'\n\
         turn_bytes = 1048576\ncall_bytes = 524288\n"
    ))
}

fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// Returns, for each API, a path, a request, and a stream with a call that never ends. Gemini's stream has an endless
/// number of calls instead.
fn endless() -> [(&'static str, &'static str, Script); 4] {
    let more = "x".repeat(1000);
    let script = |start: &[&str], again: &str| Script {
        start: start.iter().map(|data| event(data)).collect(),
        again: event(again).repeat(16),
        times: usize::MAX,
        end: String::new(),
    };
    [
        (
            "/v1/chat/completions",
            r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"crm__find"}}]}"#,
            script(
                &[
                    r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Well."},"finish_reason":null}]}"#,
                    r#"{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"nope","arguments":""}}]},"finish_reason":null}]}"#,
                ],
                &format!(
                    r#"{{"id":"c","choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"{more}"}}}}]}},"finish_reason":null}}]}}"#
                ),
            ),
        ),
        (
            "/v1/messages",
            r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"crm__find","input_schema":{"type":"object"}}]}"#,
            script(
                &[
                    r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1}}}"#,
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"nope","input":{}}}"#,
                ],
                &format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{more}"}}}}"#
                ),
            ),
        ),
        (
            "/v1/responses",
            r#"{"model":"m","stream":true,"input":"Hi","tools":[{"type":"function","name":"crm__find","parameters":{}}]}"#,
            script(
                &[
                    r#"{"type":"response.created","sequence_number":0,"response":{"id":"r","status":"in_progress","output":[]}}"#,
                    r#"{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"function_call","id":"f","call_id":"call_1","name":"nope","arguments":""}}"#,
                ],
                &format!(
                    r#"{{"type":"response.output_text.delta","sequence_number":2,"output_index":1,"content_index":0,"delta":"{more}"}}"#
                ),
            ),
        ),
        (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            r#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"tools":[{"functionDeclarations":[{"name":"crm__find"}]}]}"#,
            script(
                &[
                    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Well."}]},"index":0}]}"#,
                ],
                r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"nope","args":{"a":1}}}]},"index":0}]}"#,
            ),
        ),
    ]
}

#[test]
fn an_endless_call_ends_the_turn_with_an_error_of_the_api() {
    for (path, body, script) in endless() {
        let (url, stream_ends) = serve(vec![script]);
        let replica = replica(&url);
        let answer = post_with(&replica.url, path, SCOPE, body).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let events = answer.events();
        let last = events.last().unwrap();
        let error = if path == "/v1/responses" {
            assert_eq!(last["type"], "response.failed", "{last}");
            &last["response"]["error"]
        } else {
            &last["error"]
        };
        let text = error["message"].as_str().unwrap_or_default();
        assert!(text.contains("_bytes` allows"), "{path}: {last}");
        assert_eq!(stream_ends.recv_timeout(PATIENCE), Ok(StreamEnd::Closed), "{path}");
        assert!(
            replica.log().contains("the upstream's response exceeded a limit and was cut off"),
            "{}",
            replica.log()
        );
    }
}

/// Text is forwarded as it arrives, so a long text takes bounded memory.
#[test]
fn a_very_long_text_is_forwarded_in_bounded_memory() {
    const EVENT: usize = 64 << 10;
    const EVENTS: usize = 1000;
    let chunk = |delta: &str, finish: &str| {
        event(&format!(
            r#"{{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#
        ))
    };
    let (_, body, _) = &endless()[0];
    let text = "y".repeat(EVENT);
    let script = |times: usize| Script {
        start: chunk(r#"{"role":"assistant"}"#, "null"),
        again: chunk(&format!(r#"{{"content":"{text}"}}"#), "null"),
        times,
        end: chunk("{}", r#""stop""#) + "data: [DONE]\n\n",
    };
    let (url, stream_ends) = serve(vec![script(1), script(EVENTS)]);
    let replica = replica(&url);
    let ask = || post_with(&replica.url, "/v1/chat/completions", SCOPE, body).unwrap();
    // The first request loads data that later requests share, so that it does not count in the measurement.
    ask();
    assert_eq!(stream_ends.recv_timeout(PATIENCE), Ok(StreamEnd::Finished));
    let before = replica.peak_memory();
    let answer = ask();
    assert_eq!(stream_ends.recv_timeout(PATIENCE), Ok(StreamEnd::Finished));
    assert_eq!(answer.body.matches('y').count(), EVENT * EVENTS);
    assert!(answer.body.ends_with("data: [DONE]\n\n"));
    // 64 MB were forwarded. The proxy copies at most 1 MiB of them for the record of the turn.
    let grown = replica.peak_memory().saturating_sub(before);
    assert!(grown < 40 << 20, "the memory grew by {grown} bytes");
}

#[test]
fn a_response_that_is_too_large_to_be_buffered_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let provider = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 65536];
        let _ = stream.read(&mut buffer).unwrap();
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"choices\":[\"";
        stream.write_all(head).unwrap();
        let filler = vec![b'z'; 1 << 16];
        while stream.write_all(&filler).is_ok() {}
    });
    let config = format!("[proxy]\nopenai = '{url}'\nresponse_bytes = 1000000\n");
    let replica = Replica::start(&config);
    let (path, body, _) = &endless()[0];
    let body = body.replace(r#""stream":true,"#, "");
    let answer = post_with(&replica.url, path, SCOPE, &body).unwrap();
    assert_eq!(answer.status, 502);
    assert!(answer.body.contains("larger than 1000000 bytes"), "{}", answer.body);
    // The provider ends only if the proxy closes the connection. Otherwise this would wait forever.
    provider.join().unwrap();
}

/// The total of buffered bytes of all responses is limited. A response that would exceed the total is aborted, so that
/// small responses can still be served.
#[test]
fn concurrent_large_responses_are_limited_in_total() {
    const MIB: usize = 1 << 20;
    let (release, released) = channel();
    let url = sized_responses(released);
    let config = format!("[proxy]\nopenai = '{url}'\ntotal_response_bytes = {}\n", 8 * MIB);
    let replica = Replica::start(&config);
    let body = |size: usize, stream: bool| {
        let named = endless()[0].1.replace(r#""model":"m""#, &format!(r#""model":"{size}""#));
        if stream { named } else { named.replace(r#""stream":true,"#, "") }
    };
    let path = "/v1/chat/completions";
    let ask = |size: usize| post_with(&replica.url, path, SCOPE, &body(size, false)).unwrap();
    // The proxy keeps a copy of the text that it forwards, for the record of the turn. So this stream takes up a part
    // of the total.
    let target = format!("POST {path}");
    let mut stream =
        http::open(&replica.url, &target, SCOPE.as_bytes(), &body(3 * MIB, true)).unwrap();
    let mut line = String::new();
    let mut text = 0;
    while text < 3 * MIB {
        line.clear();
        assert!(
            stream.read_line(&mut line).unwrap() > 0,
            "the stream ended after {text} bytes of text"
        );
        text += line.matches('z').count();
    }
    let refused = ask(3 * MIB);
    // The body is not printed here, because it has 3 MiB if the assertion fails.
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("total_response_bytes"), "{}", refused.body);
    assert!(refused.header("retry-after").is_some());
    assert!(replica.log().contains("total_response_bytes"), "{}", replica.log());
    let small = ask(1000);
    assert_eq!((small.status, small.body.matches('z').count()), (200, 1000));
    drop(release);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("[DONE]"), "{rest}");
    // The stream has ended and its memory was released, so the same response now fits.
    let again = ask(3 * MIB);
    assert_eq!((again.status, again.body.matches('z').count()), (200, 3 * MIB));
}

/// Starts a provider whose responses have as many bytes of text as the model's name says, and returns its URL. Its
/// streams end when the sender of `released` is dropped.
fn sized_responses(released: Receiver<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let released = Arc::new(Mutex::new(released));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let released = Arc::clone(&released);
            thread::spawn(move || sized_response(stream, &released));
        }
    });
    url
}

fn sized_response(mut stream: TcpStream, released: &Mutex<Receiver<()>>) -> std::io::Result<()> {
    const PIECE: usize = 64 << 10;
    let request = read_request(&mut stream)?;
    let request = String::from_utf8_lossy(&request);
    let size = request.split_once(r#""model":""#).unwrap().1.split('"').next().unwrap();
    let size: usize = size.parse().unwrap();
    let is_stream = request.contains(r#""stream":true"#);
    let kind = if is_stream { "text/event-stream" } else { "application/json" };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    if !is_stream {
        let text = "z".repeat(size);
        let answer = format!(
            r#"{{"id":"c","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}]}}"#
        );
        return stream.write_all(answer.as_bytes());
    }
    let piece = "z".repeat(PIECE);
    for _ in 0..size / PIECE {
        let delta = event(&format!(
            r#"{{"id":"c","choices":[{{"index":0,"delta":{{"content":"{piece}"}},"finish_reason":null}}]}}"#
        ));
        stream.write_all(delta.as_bytes())?;
    }
    let _ = released.lock().unwrap().recv();
    stream.write_all(
        b"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    )
}
