//! The first line on the socket of a background gateway, and the answer to it.
//!
//! Each build of Toolcrib has its own socket, so both sides of [`Hello::Serve`] are the same build. The other requests
//! are also sent to gateways of other builds, so their format must not change.

use std::io;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
};

use crate::ClientEnvironment;
use crate::os_text;

/// Maximum size of a line, in bytes. A [`Hello`] contains the environment of a client, which has at most 6 MiB on Linux.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// The first line that is sent to a background gateway.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hello {
    /// Serve a client. After [`HelloReply::Serving`], both sides exchange MCP messages.
    Serve(Box<ClientHello>),
    /// Answer with [`HelloReply::Done`], to show that the gateway responds.
    Ping,
    /// Return the status of the gateway, as a [`HelloReply::Status`].
    Status,
    /// Stop the gateway and its servers.
    Stop,
    /// Stop as soon as no client is connected, because there is a gateway of another build.
    Retire,
    /// Restart the processes of the server with this name.
    Restart(String),
}

/// A client that wants to be served.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClientHello {
    /// The process id of `toolcrib mcp`.
    pub pid: u32,
    /// The config file, as an absolute path.
    #[serde(with = "os_text")]
    pub config: PathBuf,
    /// Whether the config file was named on the command line. Such a file is trusted even if others can change it.
    pub is_config_named: bool,
    /// The profile of the client.
    pub profile: Option<String>,
    /// The other options of the command line.
    pub options: Value,
    /// The environment in which the references of the config are resolved.
    pub environment: ClientEnvironment,
}

/// The answer to a [`Hello`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelloReply {
    /// The client is served on this connection from now on.
    Serving,
    /// The status of the gateway.
    Status(Value),
    /// The request was carried out. The text says what was done.
    Done(String),
    /// The request was not carried out, for this reason.
    Rejected(String),
}

/// Writes a [`Hello`] or a [`HelloReply`].
pub async fn write_line(
    output: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    output.write_all(&line).await?;
    output.flush().await
}

/// Reads a [`Hello`] or a [`HelloReply`], and nothing after it.
pub async fn read_line<T: DeserializeOwned>(
    input: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<T> {
    let mut line = Vec::new();
    input.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}
