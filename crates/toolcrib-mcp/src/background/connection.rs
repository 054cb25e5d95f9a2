//! Does the I/O of a [`Relay`]: between the standard streams of `toolcrib mcp` and a gateway.

use std::io;
use std::pin::pin;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::liveness::until_unresponsive;
use super::relay::{ClientMessage, GatewayMessage, Relay};
use crate::upstream::sleep_until;

/// Maximum number of the client's lines that wait to be sent to the gateway.
const MAX_WAITING: usize = 4;
/// Maximum number of lines that wait to be written to the client.
const MAX_UNWRITTEN: usize = 16;
/// How long the gateway may take to end the session after the client has closed its side. A working gateway needs at
/// most half of this.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(15);

/// How long the client may take to read the last lines after it has closed its side.
const LAST_WRITES_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to a gateway.
pub type GatewayStream = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// Connects a relay to gateways.
pub trait GatewayConnector {
    /// Returns a connection to a gateway, or `None` if there will be no other gateway. Called again whenever a gateway
    /// has ended or does not respond. `is_expected` means that the last gateway announced its end.
    fn connect(&mut self, is_expected: bool) -> impl Future<Output = Option<GatewayStream>>;

    /// Returns whether the gateway of the last connection responds.
    fn responds(&self) -> impl Future<Output = bool>;
}

/// What the config says about a relay.
#[derive(Debug, Clone, Copy)]
pub struct RelaySettings {
    /// Maximum size of one message of the client, in bytes. The gateway has a lower limit, and answers a larger message
    /// with an error.
    pub line_bytes: usize,
    /// How often to check whether the gateway responds, and how long to wait for its response.
    pub check_interval: Duration,
}

/// Serves the client on standard input and output through a gateway.
pub async fn relay_stdio(
    settings: RelaySettings,
    connector: impl GatewayConnector,
) -> io::Result<()> {
    let (input, output) = rmcp::transport::stdio_pipes();
    relay_client(input, output, settings, connector).await
}

/// Serves a client through a gateway until the client closes its side.
async fn relay_client<R, W>(
    input: R,
    output: W,
    settings: RelaySettings,
    mut connector: impl GatewayConnector,
) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (sender, mut from_client) = mpsc::channel(MAX_WAITING);
    let reader = tokio::spawn(read_lines(input, settings.line_bytes, sender));
    let (to_client, receiver) = mpsc::channel(MAX_UNWRITTEN);
    let writer = tokio::spawn(write_lines(output, receiver));
    let relay = Mutex::new(Relay::default());
    // A line of the client that was not completely sent.
    let mut unsent = None;
    let mut is_first = true;
    let mut ended = Ok(());
    loop {
        let is_expected = relay.lock().is_end_announced();
        let Some((reads, writes)) = connector.connect(is_expected).await else { break };
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
            let mut unresponsive =
                pin!(until_unresponsive(&relay, &connector, settings.check_interval));
            let mut client_is_done = false;
            let mut deadline = None;
            loop {
                tokio::select! {
                    // If writing to the gateway fails, its output ends soon, too. Until then, its remaining answers are
                    // passed on.
                    () = &mut to_gateway, if !client_is_done => {
                        client_is_done = true;
                        deadline = Some(Instant::now() + LAST_ANSWERS_TIMEOUT);
                    }
                    end = &mut to_client => break (client_is_done, end),
                    () = &mut unresponsive => break (client_is_done, OutputEnd::Gateway),
                    () = sleep_until(deadline) => break (true, OutputEnd::Gateway),
                }
            }
        };
        match ends {
            (true, _) | (_, OutputEnd::Client) => break,
            (false, OutputEnd::Gateway) => {}
        }
        let (lines, can_wait) = {
            let mut relay = relay.lock();
            if let Some(reason) = relay.end_reason() {
                ended = Err(io::Error::other(reason));
                break;
            }
            let lines = relay.gateway_lost();
            (lines, relay.can_wait())
        };
        if !send_all(&to_client, lines).await {
            break;
        }
        if can_wait && unsent.is_none() {
            // The gateway was told to stop, so the next one is started only when the client needs it.
            tracing::info!("the background gateway was stopped; the next request starts it again");
            match from_client.recv().await {
                Some(line) => unsent = Some(line),
                None => break,
            }
        }
    }
    reader.abort();
    drop(to_client);
    let unwritten = writer.abort_handle();
    if tokio::time::timeout(LAST_WRITES_TIMEOUT, writer).await.is_err() {
        unwritten.abort();
    }
    ended
}

/// Why forwarding to the client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputEnd {
    Client,
    Gateway,
}

/// Sends `setup` and then all lines of the client to the gateway, until the client closes its side. `unsent` holds the
/// current line until it is completely written, so that it can be sent to the next gateway.
async fn forward_client(
    relay: &Mutex<Relay>,
    setup: Vec<String>,
    unsent: &mut Option<Vec<u8>>,
    from_client: &mut mpsc::Receiver<Vec<u8>>,
    mut gateway: impl AsyncWrite + Unpin,
) {
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
            return;
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

/// Never returns. The caller drops it when [`forward_gateway`] reports that the gateway has ended.
async fn wait_for_end() {
    std::future::pending::<()>().await;
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
        // There is no maximum size here, because the gateway limits its own messages. A last line without a line break was
        // cut off, and is dropped.
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::io::{DuplexStream, duplex, split};
    use tokio::task::LocalSet;

    use super::super::relay::STOPPING;
    use super::*;

    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    async fn line(stream: &mut BufReader<DuplexStream>) -> String {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    async fn send(stream: &mut BufReader<DuplexStream>, line: &str) {
        stream.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Connects to one gateway after another.
    struct Gateways(VecDeque<DuplexStream>);

    impl GatewayConnector for Gateways {
        async fn connect(&mut self, _is_expected: bool) -> Option<GatewayStream> {
            let (reads, writes) = split(self.0.pop_front()?);
            Some((Box::new(reads) as _, Box::new(writes) as _))
        }

        /// Only the last gateway responds.
        async fn responds(&self) -> bool {
            if !self.0.is_empty() {
                std::future::pending::<()>().await;
            }
            true
        }
    }

    /// Starts a relay. Returns its client and its gateways, in the order in which it connects to them.
    fn relay<const GATEWAYS: usize>()
    -> (BufReader<DuplexStream>, [BufReader<DuplexStream>; GATEWAYS], tokio::task::JoinHandle<()>)
    {
        let (client, client_end) = duplex(1 << 16);
        let mut ends = VecDeque::new();
        let gateways = [(); GATEWAYS].map(|()| {
            let (gateway, end) = duplex(1 << 16);
            ends.push_back(end);
            BufReader::new(gateway)
        });
        let (input, output) = split(client_end);
        let task = tokio::task::spawn_local(async move {
            let settings =
                RelaySettings { line_bytes: 1 << 16, check_interval: Duration::from_secs(30) };
            relay_client(input, output, settings, Gateways(ends)).await.unwrap();
        });
        (BufReader::new(client), gateways, task)
    }

    #[tokio::test]
    async fn an_open_request_is_sent_to_the_next_gateway_even_if_the_last_one_was_stopped() {
        let test = async {
            let (mut client, [mut first, mut second], _task) = relay();
            send(&mut client, INITIALIZE).await;
            assert_eq!(line(&mut first).await, INITIALIZE);
            send(&mut first, &format!(r#"{{"jsonrpc":"2.0","method":"{STOPPING}"}}"#)).await;
            drop(first);
            assert_eq!(line(&mut second).await, INITIALIZE);
            send(&mut second, ANSWER).await;
            assert_eq!(line(&mut client).await, ANSWER);
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_gateway_that_hangs_is_replaced_if_a_request_is_open() {
        let test = async {
            let (mut client, [mut first, mut second], _task) = relay();
            tokio::time::sleep(Duration::from_hours(1)).await;
            send(&mut client, INITIALIZE).await;
            assert_eq!(line(&mut first).await, INITIALIZE);
            let began = Instant::now();
            assert_eq!(line(&mut second).await, INITIALIZE);
            let waited = began.elapsed();
            assert!((30..=61).contains(&waited.as_secs()), "{waited:?}");
            tokio::time::sleep(Duration::from_hours(1)).await;
            send(&mut second, ANSWER).await;
            assert_eq!(line(&mut client).await, ANSWER);
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_gateway_that_hangs_does_not_keep_the_relay_running_after_its_client() {
        let test = async {
            let (client, [mut gateway], task) = relay();
            drop(client);
            assert_eq!(line(&mut gateway).await, "", "the gateway sees the end of the input");
            task.await.unwrap();
        };
        LocalSet::new().run_until(test).await;
    }
}
