//! An MCP server that requires OAuth, over Streamable HTTP at `/mcp` and over HTTP+SSE at `/sse`. It is also its own
//! authorization server. Whoever opens its sign-in page is signed in.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::faulty_http_server::{document, request_with_headers, say};

/// The start of every secret that the server creates.
pub(crate) const CANARY: &str = "canary-of-the-login";

/// The server and what it has received.
#[derive(Default)]
pub(crate) struct SignInServer {
    pub(crate) address: String,
    /// How often a refresh token was exchanged.
    pub(crate) refreshes: AtomicU64,
    /// How many requests arrived without a valid token.
    pub(crate) rejected: AtomicU64,
    /// The number in the next token or session id.
    next_number: AtomicU64,
    valid_token: Mutex<Option<String>>,
    streams: Mutex<HashMap<u64, TcpStream>>,
}

/// Starts the server, which runs as long as the test process.
pub(crate) fn start() -> Arc<SignInServer> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = Arc::new(SignInServer { address, ..SignInServer::default() });
    let shared = Arc::clone(&server);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let server = Arc::clone(&shared);
            std::thread::spawn(move || server.serve(socket));
        }
    });
    server
}

/// Opens the sign-in page and follows its redirect, as a browser does. Returns the last response.
pub(crate) fn browse(url: &str) -> String {
    let response = get(url);
    match response.lines().find_map(|line| line.strip_prefix("Location: ")) {
        Some(target) => get(target.trim()),
        None => response,
    }
}

fn get(url: &str) -> String {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    response
}

/// Returns the value of a field of a form or a query.
fn form_field(form: &str, name: &str) -> String {
    let mut fields = form.split('&').filter_map(|field| field.split_once('='));
    let value = fields.find(|(field, _)| *field == name).expect(name).1;
    let mut parts = value.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(part[2..].bytes());
    }
    String::from_utf8(bytes).unwrap()
}

impl SignInServer {
    /// Makes the current token invalid. The client must refresh it or sign in again.
    pub(crate) fn revoke(&self) {
        *self.valid_token.lock().unwrap() = None;
    }

    fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Handles one request per connection.
    fn serve(&self, mut socket: TcpStream) -> Option<()> {
        let (head, body) = request_with_headers(&socket)?;
        let target = head.split(' ').nth(1)?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match path {
            "/.well-known/oauth-authorization-server" => document(
                &mut socket,
                &json!({
                    "issuer": self.at(""),
                    "authorization_endpoint": self.at("/authorize"),
                    "token_endpoint": self.at("/token"),
                    "registration_endpoint": self.at("/register"),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                }),
            ),
            "/register" => {
                let asked: Value = serde_json::from_slice(&body).ok()?;
                let answer = json!({"client_id": "me", "redirect_uris": asked["redirect_uris"]});
                document(&mut socket, &answer)
            }
            "/authorize" => {
                let (back, state) = (form_field(query, "redirect_uri"), form_field(query, "state"));
                let location = format!("Location: {back}?code={CANARY}&state={state}\r\n");
                say(&mut socket, "302 Found", &location, b"")
            }
            "/token" => self.issue_token(&mut socket, str::from_utf8(&body).ok()?),
            _ => match path.strip_prefix("/.well-known/oauth-protected-resource") {
                Some(resource) => document(
                    &mut socket,
                    &json!({"resource": self.at(resource), "authorization_servers": [self.at("")]}),
                ),
                None => self.serve_mcp(socket, &head, path, query, &body),
            },
        }
    }

    fn issue_token(&self, socket: &mut TcpStream, form: &str) -> Option<()> {
        if form_field(form, "grant_type") == "refresh_token" {
            self.refreshes.fetch_add(1, Ordering::SeqCst);
        }
        let token = format!("{CANARY}-{}", self.next_number.fetch_add(1, Ordering::SeqCst));
        *self.valid_token.lock().unwrap() = Some(token.clone());
        let refresh = format!("{token}-refresh");
        document(
            socket,
            &json!({"access_token": token, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600}),
        )
    }

    fn serve_mcp(
        &self,
        mut socket: TcpStream,
        head: &str,
        path: &str,
        query: &str,
        body: &[u8],
    ) -> Option<()> {
        let valid = self.valid_token.lock().unwrap().clone();
        let is_valid = |token: String| head.contains(&format!("Bearer {token}\r\n"));
        if !valid.is_some_and(is_valid) {
            self.rejected.fetch_add(1, Ordering::SeqCst);
            let metadata = self.at(&format!("/.well-known/oauth-protected-resource{path}"));
            let challenge =
                format!("WWW-Authenticate: Bearer resource_metadata=\"{metadata}\"\r\n");
            return say(&mut socket, "401 Unauthorized", &challenge, b"");
        }
        match (head.starts_with("GET "), path) {
            (true, "/sse") => self.open_stream(socket),
            (false, "/post") => {
                let session = query.strip_prefix("session=")?.parse().ok()?;
                if let Some(answer) = Self::answer(body) {
                    let event = format!("data: {answer}\n\n");
                    let mut streams = self.streams.lock().unwrap();
                    streams.get_mut(&session)?.write_all(event.as_bytes()).ok()?;
                }
                say(&mut socket, "202 Accepted", "", b"")
            }
            (false, "/mcp") => match Self::answer(body) {
                Some(answer) => document(&mut socket, &answer),
                None => say(&mut socket, "202 Accepted", "", b""),
            },
            _ => say(&mut socket, "405 Method Not Allowed", "", b""),
        }
    }

    fn open_stream(&self, mut socket: TcpStream) -> Option<()> {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        socket.write_all(head.as_bytes()).ok()?;
        let session = self.next_number.fetch_add(1, Ordering::SeqCst);
        self.streams.lock().unwrap().insert(session, socket.try_clone().ok()?);
        write!(socket, "event: endpoint\ndata: /post?session={session}\n\n").ok()?;
        // Waits until the client closes the stream.
        socket.read_to_end(&mut Vec::new()).ok().map(drop)
    }

    /// Returns the answer to a message, or `None` if it needs none.
    fn answer(body: &[u8]) -> Option<Value> {
        let message: Value = serde_json::from_slice(body).ok()?;
        let (id, params) = (message.get("id")?, &message["params"]);
        let result = match message["method"].as_str()? {
            "initialize" => json!({
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "mail", "version": "1"},
            }),
            "tools/list" => {
                json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
            }
            "tools/call" => json!({"content": [], "structuredContent": params["arguments"]}),
            _ => {
                let error = json!({"code": -32_601, "message": "unknown method"});
                return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }
}
