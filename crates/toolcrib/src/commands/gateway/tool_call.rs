//! Calls one tool as an MCP client of the gateway, for `toolcrib call`.
//!
//! The call goes through the background gateway, so a server that is already running is not started again, and the next
//! call does not have to start it. The client announces no capabilities, so servers know that it cannot answer
//! questions.

use std::io::IsTerminal as _;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use toolcrib_mcp::background::GatewayStream;
use toolcrib_text::clean::one_line;

use super::mcp::{background_gateway, start_own_gateway};
use super::relay_connector::serve_in_process;
use super::{SHUTDOWN_TIMEOUT, block_on, gateway_failure, stop_on_signals};
use crate::args::McpArgs;
use crate::config::network::LoadedConfig;
use crate::output::{Failure, print_stderr};

/// The newest version of the protocol with a handshake.
const PROTOCOL_VERSION: &str = "2025-11-25";
/// JSON-RPC's code for a method that does not exist.
const METHOD_NOT_FOUND: i32 = -32601;

/// What the gateway answered.
#[derive(Debug)]
pub(in super::super) enum ToolCallAnswer {
    /// The result of the tool, as JSON text. The tool may have reported an error in it.
    Result(Box<RawValue>),
    /// The call was not possible.
    Error(RpcError),
}

/// An error in a JSON-RPC response.
#[derive(Debug, Serialize, Deserialize)]
pub(in super::super) struct RpcError {
    pub(in super::super) code: i64,
    pub(in super::super) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in super::super) data: Option<Value>,
}

/// Calls a tool by the name that clients see.
pub(in super::super) fn call_tool(
    args: &McpArgs,
    config: LoadedConfig,
    name: &str,
    arguments: &RawValue,
) -> Result<ToolCallAnswer, Failure> {
    let params = json!({"name": name, "arguments": arguments});
    block_on(async {
        let stop = stop_on_signals()?;
        if let Some(background) = background_gateway(args, &config)
            && let Ok(stream) = background.join().await
        {
            return tokio::select! {
                answer = call(stream, params) => answer,
                () = stop.cancelled() => Err(interrupted()),
            };
        }
        let gateway = start_own_gateway(args, config)?;
        let (stream, task) = serve_in_process(&gateway, args.profile.clone(), stop.clone());
        let answer = tokio::select! {
            answer = call(stream, params) => answer,
            () = stop.cancelled() => Err(interrupted()),
        };
        task.abort();
        gateway.stop(SHUTDOWN_TIMEOUT).await;
        answer
    })
}

fn interrupted() -> Failure {
    gateway_failure(
        &"interrupted; the call may or may not have been executed",
        "check its effect before you repeat it",
    )
}

/// A message from the gateway.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<RpcError>,
}

/// Opens a session on the stream and calls a tool.
async fn call(
    (input, output): GatewayStream,
    mut params: Value,
) -> Result<ToolCallAnswer, Failure> {
    let mut session = Session { input: BufReader::new(input), output };
    let client = json!({"name": "toolcrib-call", "version": env!("CARGO_PKG_VERSION")});
    let setup =
        json!({"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client});
    if let ToolCallAnswer::Error(error) = session.request(0, "initialize", setup).await? {
        return Err(gateway_failure(&error.message, "see the log that `toolcrib ps` names"));
    }
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
    if std::io::stderr().is_terminal() {
        params["_meta"] = json!({"progressToken": 1});
    }
    session.request(1, "tools/call", params).await
}

/// A session with the gateway.
struct Session {
    input: BufReader<Box<dyn tokio::io::AsyncRead + Send + Unpin>>,
    output: Box<dyn tokio::io::AsyncWrite + Send + Unpin>,
}

impl Session {
    async fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let mut line = message.to_string();
        line.push('\n');
        let sent = async {
            self.output.write_all(line.as_bytes()).await?;
            self.output.flush().await
        };
        sent.await.map_err(|error| disconnected(&error))
    }

    /// Sends a request and waits for its response.
    async fn request(
        &mut self,
        id: u64,
        method: &str,
        params: Value,
    ) -> Result<ToolCallAnswer, Failure> {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request).await?;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = self.input.read_until(b'\n', &mut line).await;
            if read.map_err(|error| disconnected(&error))? == 0 {
                return Err(disconnected(&"it ended the connection"));
            }
            let Ok(message) = serde_json::from_slice::<Message>(&line) else { continue };
            match (message.method.as_deref(), message.id) {
                (Some(method), Some(id)) => self.answer(method, &id).await?,
                (Some(method), None) => print_progress(method, message.params.as_ref()),
                (None, Some(answered)) if answered == json!(id) => {
                    if let Some(error) = message.error {
                        return Ok(ToolCallAnswer::Error(error));
                    }
                    let result = message.result.ok_or_else(|| {
                        gateway_failure(&"a response has no result", "this is a bug; report it")
                    })?;
                    return Ok(ToolCallAnswer::Result(result));
                }
                (None, _) => {}
            }
        }
    }

    /// Answers a request from the gateway.
    async fn answer(&mut self, method: &str, id: &Value) -> Result<(), Failure> {
        let answer = if method == "ping" {
            json!({"jsonrpc": "2.0", "id": id, "result": {}})
        } else {
            let message = format!("`toolcrib call` cannot answer `{method}`");
            let error = json!({"code": METHOD_NOT_FOUND, "message": message});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        };
        self.send(&answer).await
    }
}

/// Prints the progress that a server reports.
fn print_progress(method: &str, params: Option<&Value>) {
    let Some(params) = params.filter(|_| method == "notifications/progress") else { return };
    let number = |key: &str| params.get(key).and_then(Value::as_f64);
    let steps = match (number("progress"), number("total")) {
        (Some(done), Some(total)) => format!("{done} of {total}"),
        (Some(done), None) => done.to_string(),
        _ => return,
    };
    let message = params.get("message").and_then(Value::as_str).map(one_line).unwrap_or_default();
    print_stderr(format!("{steps} {message}").trim_end());
}

fn disconnected(error: &impl std::fmt::Display) -> Failure {
    gateway_failure(
        &format!("the connection to the gateway failed: {error}"),
        "the call may or may not have been executed; `toolcrib ps` names the log of the gateway",
    )
}
