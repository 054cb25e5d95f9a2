//! HTTP/1.1 without a library. Each request has its own connection, and the response is read as it arrives.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;

pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: Vec<(&'a str, String)>,
    pub(crate) body: &'a [u8],
}

/// A response whose head has been read. The body is read on demand.
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    body: BufReader<Box<dyn Read + Send>>,
}

/// Sends a request and returns the socket, so that the caller can close it before the response is complete.
pub(crate) fn send(address: &str, request: &Request<'_>) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    let Request { method, path, headers, body } = request;
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").map_err(io::Error::other)?;
    }
    write!(head, "Content-Length: {}\r\n\r\n", body.len()).map_err(io::Error::other)?;
    socket.write_all(head.as_bytes())?;
    // This error is ignored, because a gateway that rejects the request early may close the connection before it has
    // read everything.
    let _ = socket.write_all(body);
    Ok(socket)
}

/// Reads the head of a response.
pub(crate) fn receive(socket: TcpStream) -> io::Result<Response> {
    let mut input = BufReader::new(socket);
    let status = line(&mut input)?;
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let mut headers = Vec::new();
    loop {
        let line = line(&mut input)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let has = |name: &str, value: &str| headers.iter().any(|(n, v)| n == name && v == value);
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let body: Box<dyn Read + Send> = if has("transfer-encoding", "chunked") {
        Box::new(Chunks { input, left: 0 })
    } else if let Some((_, length)) = length {
        Box::new(input.take(length.parse().unwrap_or(0)))
    } else {
        Box::new(input)
    };
    let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(Response { status, headers, body: BufReader::new(body) })
}

/// Sends a request, reads the complete response, and returns its status and body.
pub(crate) fn ask(address: &str, request: &Request<'_>) -> io::Result<(u16, String)> {
    let mut response = receive(send(address, request)?)?;
    let mut text = String::new();
    response.body.read_to_string(&mut text)?;
    Ok((response.status, text))
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the next line of the body, or `None` at its end.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.body.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }
}

fn line(input: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

/// A reader that decodes a body with chunked transfer encoding.
struct Chunks {
    input: BufReader<TcpStream>,
    left: usize,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let mut size = line(&mut self.input)?;
            if size.is_empty() {
                size = line(&mut self.input)?;
            }
            self.left = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = buffer.len().min(self.left);
        let read = self.input.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}
