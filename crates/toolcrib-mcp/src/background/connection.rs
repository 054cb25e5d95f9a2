//! Does the I/O of a [`Relay`]: between the standard streams of `toolcrib mcp` and a gateway.

use std::io;
use std::pin::pin;

use parking_lot::Mutex;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;

use super::relay::{ClientMessage, GatewayMessage, Relay};

/// Maximum number of the client's lines that wait to be sent to the gateway.
const MAX_WAITING: usize = 4;
/// Maximum number of lines that wait to be written to the client.
const MAX_UNWRITTEN: usize = 16;

/// A connection to a gateway.
pub type GatewayStream = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// Serves the client on standard input and output through a gateway, see [`relay_client`].
pub async fn relay_stdio(
    line_bytes: usize,
    connect: impl AsyncFnMut() -> Option<GatewayStream>,
) -> io::Result<()> {
    let (input, output) = rmcp::transport::stdio_pipes();
    relay_client(input, output, line_bytes, connect).await
}

/// Serves a client through a gateway until the client closes its side. `connect` returns a connection to a gateway, or
/// `None` if there will be no other gateway. It is called again whenever a gateway has ended.
///
/// `line_bytes` is the maximum size of one message of the client. The gateway has a lower limit, and answers a larger
/// message with an error.
async fn relay_client<R, W>(
    input: R,
    output: W,
    line_bytes: usize,
    mut connect: impl AsyncFnMut() -> Option<GatewayStream>,
) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (sender, mut from_client) = mpsc::channel(MAX_WAITING);
    let reader = tokio::spawn(read_lines(input, line_bytes, sender));
    let (to_client, receiver) = mpsc::channel(MAX_UNWRITTEN);
    let writer = tokio::spawn(write_lines(output, receiver));
    let relay = Mutex::new(Relay::default());
    // A line of the client that was not completely sent.
    let mut unsent = None;
    let mut is_first = true;
    let mut ended = Ok(());
    loop {
        let Some((reads, writes)) = connect().await else { break };
        let mut setup = Vec::new();
        if !std::mem::take(&mut is_first) {
            setup = relay.lock().lines_for_next_gateway();
            let notifications = relay.lock().change_notifications();
            if !send_all(&to_client, notifications).await {
                break;
            }
        }
        let ends = {
            let mut to_gateway =
                pin!(forward_client(&relay, setup, &mut unsent, &mut from_client, writes));
            let mut to_client = pin!(forward_gateway(&relay, reads, &to_client));
            let mut client_is_done = false;
            loop {
                tokio::select! {
                    // An error of the connection is followed by the end of what the gateway sends. Until then, its
                    // last answers are passed on.
                    end = &mut to_gateway, if !client_is_done => client_is_done = end == InputEnd::Client,
                    end = &mut to_client => break (client_is_done, end),
                }
            }
        };
        match ends {
            (true, _) | (_, OutputEnd::Client) => break,
            (false, OutputEnd::Gateway) => {}
        }
        let (lines, is_stopping) = {
            let mut relay = relay.lock();
            if let Some(reason) = relay.end_reason() {
                ended = Err(io::Error::other(reason));
                break;
            }
            (relay.gateway_lost(), relay.is_stopping())
        };
        if !send_all(&to_client, lines).await {
            break;
        }
        if is_stopping && unsent.is_none() {
            // The gateway was told to stop, so the next one is started only when the client needs it.
            match from_client.recv().await {
                Some(line) => unsent = Some(line),
                None => break,
            }
        }
    }
    reader.abort();
    drop(to_client);
    let _ = writer.await;
    ended
}

/// Why forwarding to the gateway ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputEnd {
    Client,
    Gateway,
}

/// Why forwarding to the client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputEnd {
    Client,
    Gateway,
}

/// Sends `setup` and then all lines of the client to the gateway. `unsent` is the line that is being sent.
async fn forward_client(
    relay: &Mutex<Relay>,
    setup: Vec<String>,
    unsent: &mut Option<Vec<u8>>,
    from_client: &mut mpsc::Receiver<Vec<u8>>,
    mut gateway: impl AsyncWrite + Unpin,
) -> InputEnd {
    for line in setup {
        if write_line(&mut gateway, line.into_bytes()).await.is_err() {
            return wait_for_end().await;
        }
    }
    loop {
        if unsent.is_none() {
            *unsent = from_client.recv().await;
        }
        let Some(line) = unsent.clone() else {
            let _ = gateway.shutdown().await;
            return InputEnd::Client;
        };
        let message = relay.lock().client_message(line);
        if let ClientMessage::Forward(line, id) = message {
            let mut sending = NotSentOnDrop { relay, id };
            if write_line(&mut gateway, line).await.is_err() {
                drop(sending);
                return wait_for_end().await;
            }
            sending.id = None;
        }
        *unsent = None;
    }
}

/// Waits until the other direction finds that the gateway has ended.
async fn wait_for_end() -> InputEnd {
    std::future::pending::<()>().await;
    InputEnd::Gateway
}

/// Forgets a request if it is dropped before the request was completely written.
struct NotSentOnDrop<'a> {
    relay: &'a Mutex<Relay>,
    id: Option<String>,
}

impl Drop for NotSentOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.relay.lock().not_sent(id);
        }
    }
}

/// Sends all lines of the gateway to the client.
async fn forward_gateway(
    relay: &Mutex<Relay>,
    gateway: impl AsyncRead + Unpin,
    to_client: &mpsc::Sender<String>,
) -> OutputEnd {
    let mut gateway = BufReader::new(gateway);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        // The gateway limits what it sends. A line without its end is incomplete.
        match gateway.read_until(b'\n', &mut bytes).await {
            Ok(1..) if bytes.ends_with(b"\n") => {}
            _ => return OutputEnd::Gateway,
        }
        bytes.pop();
        let Ok(line) = String::from_utf8(std::mem::take(&mut bytes)) else { continue };
        let message = relay.lock().gateway_message(line);
        if let GatewayMessage::Forward(line) = message
            && to_client.send(line).await.is_err()
        {
            return OutputEnd::Client;
        }
    }
}

async fn send_all(to_client: &mpsc::Sender<String>, lines: Vec<String>) -> bool {
    for line in lines {
        if to_client.send(line).await.is_err() {
            return false;
        }
    }
    true
}

async fn write_line(output: &mut (impl AsyncWrite + Unpin), mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    output.write_all(&line).await?;
    output.flush().await
}

/// Writes lines in order until all senders are dropped or the client no longer reads.
async fn write_lines(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<String>) {
    while let Some(line) = lines.recv().await {
        if write_line(&mut output, line.into_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads lines until the input ends. A line that is too long is passed on truncated, so that the gateway rejects it.
async fn read_lines(
    input: impl AsyncRead + Unpin,
    line_bytes: usize,
    lines: mpsc::Sender<Vec<u8>>,
) {
    let mut input = BufReader::new(input);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = (&mut input).take(line_bytes as u64 + 1).read_until(b'\n', &mut bytes).await;
        if !matches!(read, Ok(1..)) {
            return;
        }
        let is_complete = bytes.ends_with(b"\n");
        if bytes.len() > line_bytes && !is_complete && !skip_line(&mut input).await {
            return;
        }
        if is_complete {
            bytes.pop();
        }
        if lines.send(std::mem::take(&mut bytes)).await.is_err() {
            return;
        }
    }
}

/// Skips the rest of a line. Returns false at the end of the input.
async fn skip_line(input: &mut (impl AsyncBufRead + Unpin)) -> bool {
    loop {
        let Ok(chunk) = input.fill_buf().await else { return false };
        if chunk.is_empty() {
            return false;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(chunk.len(), |at| at + 1);
        input.consume(length);
        if end.is_some() {
            return true;
        }
    }
}
