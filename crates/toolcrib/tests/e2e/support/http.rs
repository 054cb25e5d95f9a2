//! Streamable HTTP without a library. Each message is sent on its own connection, and every received message goes to a
//! channel.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// The URL of a server, and the session id if there is a session.
pub(crate) struct HttpEndpoint {
    host: String,
    path: String,
    session: Arc<Mutex<Option<String>>>,
}

impl HttpEndpoint {
    pub(crate) fn at(url: &str) -> Self {
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        Self { host: host.to_owned(), path: format!("/{path}"), session: Arc::default() }
    }

    /// Sends `message`, whose exact text is `body`. Messages that are received in response go to the channel as they
    /// arrive.
    pub(crate) fn post_text(&self, message: &Value, body: &str, tell: Sender<Value>) {
        let mut head = self.head("POST");
        let _ =
            write!(head, "Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in standard(message) {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        self.exchange(format!("{head}\r\n{body}"), tell, message.get("id").cloned());
    }

    /// Opens the stream for messages that the server sends on its own.
    pub(crate) fn listen(&self, tell: Sender<Value>) {
        self.exchange(format!("{}\r\n", self.head("GET")), tell, None);
    }

    fn head(&self, method: &str) -> String {
        let mut head = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\n",
            self.path, self.host
        );
        if let Some(session) = &*self.session.lock().unwrap() {
            let _ =
                write!(head, "Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
        }
        head
    }

    fn exchange(&self, request: String, tell: Sender<Value>, id: Option<Value>) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let session = Arc::clone(&self.session);
        thread::spawn(move || {
            stream.write_all(request.as_bytes()).unwrap();
            let mut response = Response::read(BufReader::new(stream));
            if let Some(id) = response.header("mcp-session-id") {
                *session.lock().unwrap() = Some(id.to_owned());
            }
            let is =
                |kind: &str| response.header("content-type").is_some_and(|k| k.starts_with(kind));
            if is("text/event-stream") {
                return response.events(&tell);
            }
            let is_json = is("application/json");
            let mut body = String::new();
            let _ = response.body.read_to_string(&mut body);
            let message = match serde_json::from_str(&body) {
                Ok(message) if is_json => message,
                _ if id.is_none() => return,
                _ => json!({"id": id, "status": response.status, "body": body}),
            };
            let _ = tell.send(message);
        });
    }
}

/// Returns the headers of a request of the newer protocol, which repeat parts of its message.
fn standard(message: &Value) -> Vec<(&'static str, String)> {
    let params = &message["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let Some(version) = version else { return Vec::new() };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut headers = vec![("MCP-Protocol-Version", version.to_owned())];
    headers.extend(text(&message["method"]).map(|method| ("Mcp-Method", method)));
    let named = text(&params["name"]).or_else(|| text(&params["uri"]));
    headers.extend(named.map(|name| ("Mcp-Name", name)));
    headers
}

struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: BufReader<Body>,
}

impl Response {
    fn read(mut stream: BufReader<TcpStream>) -> Self {
        let mut line = || {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let status = line().split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        while let Some((name, value)) = line().split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let chunked =
            headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = BufReader::new(Body { stream, chunked, left: 0 });
        Self { status, headers, body }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Sends the message of each server-sent event to the channel until the stream ends.
    fn events(self, tell: &Sender<Value>) {
        for line in self.body.lines().map_while(Result::ok) {
            let Some(data) = line.strip_prefix("data:") else { continue };
            if data.trim().is_empty() {
                continue;
            }
            let message = serde_json::from_str(data.trim()).unwrap_or(Value::String(line));
            if tell.send(message).is_err() {
                return;
            }
        }
    }
}

/// A reader for the body of a response, which removes the chunk framing.
struct Body {
    stream: BufReader<TcpStream>,
    chunked: bool,
    left: usize,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if !self.chunked {
            return self.stream.read(buffer);
        }
        if self.left == 0 {
            let mut size = String::new();
            while size.trim().is_empty() {
                size.clear();
                if self.stream.read_line(&mut size)? == 0 {
                    return Ok(0);
                }
            }
            self.left = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = buffer.len().min(self.left);
        let read = self.stream.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}
