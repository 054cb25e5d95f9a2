//! HTTP without a library. Each request has its own connection, and the complete response is read.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Read timeout, which is longer than anything here takes. If the proxy hangs, the test fails instead of hanging as
/// well.
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the data of each event of a stream, without the final `[DONE]`.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

/// Posts a body with the headers that the four providers' SDKs send.
pub(crate) fn post(url: &str, path: &str, body: &str) -> io::Result<Response> {
    post_with(url, path, "", body)
}

/// Like `post`, with additional headers. Each header ends with `\r\n`.
pub(crate) fn post_with(url: &str, path: &str, headers: &str, body: &str) -> io::Result<Response> {
    let headers =
        format!("Authorization: Bearer sk-client\r\nanthropic-version: 2023-06-01\r\n{headers}");
    send(url, &format!("POST {path}"), headers.as_bytes(), body)
}

/// Sends a request with only these headers, which may contain any bytes. Each header must include its line end.
pub(crate) fn send(
    url: &str,
    method_and_path: &str,
    headers: &[u8],
    body: &str,
) -> io::Result<Response> {
    read(open(url, method_and_path, headers, body)?)
}

/// Sends a request, and returns the connection without reading the response.
pub(crate) fn open(
    url: &str,
    method_and_path: &str,
    headers: &[u8],
    body: &str,
) -> io::Result<BufReader<TcpStream>> {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!(
        "{method_and_path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), headers, b"\r\n", body.as_bytes()].concat())?;
    Ok(BufReader::new(stream))
}

/// Requests an upgrade to a WebSocket, as Codex does before it falls back to POST.
pub(crate) fn upgrade(url: &str, path: &str) -> io::Result<Response> {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Authorization: Bearer sk-client\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    read(BufReader::new(stream))
}

fn read(mut stream: BufReader<TcpStream>) -> io::Result<Response> {
    let status = line(&mut stream)?;
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or(ErrorKind::UnexpectedEof)?;
    let mut headers = Vec::new();
    while let Some((name, value)) = line(&mut stream)?.split_once(':') {
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let has = |name: &str| headers.iter().find(|(known, _)| known == name);
    let mut body = Vec::new();
    if has("transfer-encoding").is_some() {
        loop {
            let size = usize::from_str_radix(&line(&mut stream)?, 16);
            let size = size.map_err(|_| ErrorKind::UnexpectedEof)?;
            let start = body.len();
            body.resize(start + size, 0);
            stream.read_exact(&mut body[start..])?;
            line(&mut stream)?;
            if size == 0 {
                break;
            }
        }
    } else {
        stream.read_to_end(&mut body)?;
    }
    Ok(Response { status, headers, body: String::from_utf8(body).unwrap() })
}

fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}
