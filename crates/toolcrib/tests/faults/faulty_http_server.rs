//! An MCP server over HTTP, each of whose tools fails in a different way. It is written without a library, so that it
//! can break rules that a library would enforce.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

/// The tools, each named after its fault.
pub(crate) const FAULTS: [&str; 8] =
    ["error_500", "html", "no_json", "empty", "cut", "giant_body", "giant_event", "endless"];

/// Starts the server, which runs as long as the test process, and returns its address.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            std::thread::spawn(move || serve(socket));
        }
    });
    address
}

/// Reads a request, and returns its first line and its body.
pub(crate) fn request(socket: &TcpStream) -> Option<(String, Vec<u8>)> {
    let (head, body) = request_with_headers(socket)?;
    Some((head.lines().next()?.to_owned(), body))
}

/// Reads a request, and returns its first line with all headers, and its body.
pub(crate) fn request_with_headers(socket: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut input = BufReader::new(socket.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    input.read_line(&mut head).ok()?;
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        match line.trim().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?;
            }
            Some(_) => {}
            None => break,
        }
        head += &line;
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// Handles one request per connection. The thread ends when the client closes the connection.
fn serve(mut socket: TcpStream) -> Option<()> {
    let (first, body) = request(&socket)?;
    if first.starts_with("POST /locked") {
        let asks = "WWW-Authenticate: Bearer resource_metadata=\"http://127.0.0.1:9/\"\r\n";
        return say(&mut socket, "401 Unauthorized", asks, b"");
    }
    if first.starts_with("POST /bare") {
        return say(&mut socket, "401 Unauthorized", "", b"");
    }
    if !first.starts_with("POST /mcp") {
        return say(&mut socket, "405 Method Not Allowed", "", b"");
    }
    let message: Value = serde_json::from_slice(&body).ok()?;
    let Some(id) = message.get("id") else { return say(&mut socket, "202 Accepted", "", b"") };
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "web", "version": "1"},
        }),
        "ping" => json!({}),
        "tools/list" => {
            let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": FAULTS.iter().chain(&["echo"]).map(tool).collect::<Vec<_>>()})
        }
        "tools/call" if message["params"]["name"] != "echo" => {
            return fail(&mut socket, message["params"]["name"].as_str()?, id);
        }
        "tools/call" => {
            json!({"content": [], "structuredContent": message["params"]["arguments"]})
        }
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            return document(&mut socket, &answer);
        }
    };
    document(&mut socket, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

pub(crate) fn say(socket: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> Option<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).ok()?;
    socket.write_all(body).ok()
}

pub(crate) fn document(socket: &mut TcpStream, answer: &Value) -> Option<()> {
    let kind = "Content-Type: application/json\r\n";
    say(socket, "200 OK", kind, answer.to_string().as_bytes())
}

/// Sends the invalid response that `fault` names.
fn fail(socket: &mut TcpStream, fault: &str, id: &Value) -> Option<()> {
    let json = "Content-Type: application/json\r\n";
    let open = |kind: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n")
    };
    let start =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
    match fault {
        "error_500" => say(socket, "500 Internal Server Error", "", b"stack trace"),
        "html" => say(socket, "200 OK", "Content-Type: text/html\r\n", b"<html>Log in</html>"),
        "no_json" => say(socket, "200 OK", json, b"{\"jsonrpc\": "),
        "empty" => say(socket, "200 OK", json, b""),
        "cut" => {
            let head = format!("HTTP/1.1 200 OK\r\n{json}Content-Length: 1000\r\n\r\n");
            socket.write_all(format!("{head}{start}").as_bytes()).ok()
        }
        "giant_body" => {
            socket.write_all(open("application/json").as_bytes()).ok()?;
            socket.write_all(start.as_bytes()).ok()?;
            without_end(socket, &[b'x'; 1 << 14])
        }
        "giant_event" => {
            socket.write_all(open("text/event-stream").as_bytes()).ok()?;
            socket.write_all(format!("data: {start}").as_bytes()).ok()?;
            without_end(socket, &[b'x'; 1 << 14])
        }
        // `endless`: sends small events, none of which is the response.
        _ => {
            socket.write_all(open("text/event-stream").as_bytes()).ok()?;
            let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "still here"}});
            without_end(socket, format!("data: {note}\n\n").as_bytes())
        }
    }
}

/// Writes `piece` repeatedly until the client closes the connection or a gigabyte is written.
fn without_end(socket: &mut TcpStream, piece: &[u8]) -> Option<()> {
    let mut written = 0_u64;
    while written < 1 << 30 {
        socket.write_all(piece).ok()?;
        written += piece.len() as u64;
    }
    None
}
