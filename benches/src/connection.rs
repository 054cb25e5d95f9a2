//! A persistent HTTP connection such as SDKs keep open, implemented directly on a socket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use crate::BenchError;

/// A connection to a server.
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
}

/// A complete response.
#[derive(Debug, Clone)]
pub struct Response {
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the value of a header. `name` must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Connection {
    /// Connects to an address, given as host and port.
    pub fn open(address: &str) -> Result<Self, BenchError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), address: address.to_owned() })
    }

    /// Sends a JSON body and waits for the complete response. Returns an error unless the status is a success.
    pub fn post(&mut self, path: &str, headers: &str, body: &str) -> Result<Response, BenchError> {
        self.stream(path, headers, body, &mut |_| {})
    }

    /// Like `post`, but also calls `arrived` with each chunk of the body as it arrives.
    pub fn stream(
        &mut self,
        path: &str,
        headers: &str,
        body: &str,
        arrived: &mut dyn FnMut(&[u8]),
    ) -> Result<Response, BenchError> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        let mut response = Response { headers: Vec::new(), body: Vec::new() };
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            response.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        match response.header("content-length") {
            Some(length) => {
                response.body = self.bytes(length.parse()?)?;
                arrived(&response.body);
            }
            None => self.chunks(&mut response.body, arrived)?,
        }
        if status.split(' ').nth(1).is_some_and(|code| code.starts_with('2')) {
            Ok(response)
        } else {
            Err(format!("{status}: {}", String::from_utf8_lossy(&response.body)).into())
        }
    }

    fn line(&mut self) -> Result<String, BenchError> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err("the server closed the connection".into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>, BenchError> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn chunks(
        &mut self,
        body: &mut Vec<u8>,
        arrived: &mut dyn FnMut(&[u8]),
    ) -> Result<(), BenchError> {
        loop {
            let length = usize::from_str_radix(&self.line()?, 16)?;
            if length == 0 {
                // Skip the trailers, if any, and the empty line that ends the body.
                while !self.line()?.is_empty() {}
                return Ok(());
            }
            let chunk = self.bytes(length)?;
            arrived(&chunk);
            body.extend(chunk);
            self.line()?;
        }
    }
}
