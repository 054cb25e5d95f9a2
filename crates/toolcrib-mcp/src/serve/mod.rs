//! How clients connect: one client over stdio, or many through the routes of an HTTP server.

mod backlog;
mod http;
mod http_sessions;
mod inbound_queue;
mod line_rejection;
mod log_routing;
mod stdio;
mod stdio_transport;

pub use http::routes;
pub use stdio::{StreamClient, stdio, stream};

use thiserror::Error;

/// Why a client cannot be served over stdio.
#[derive(Debug, Error)]
pub enum StdioError {
    /// The profile is not in the config.
    #[error("there is no profile `{0}` in the config")]
    Profile(String),
    /// The client sent no valid handshake.
    #[error("the handshake with the client failed: {0}")]
    Handshake(String),
    /// An I/O error ended the connection.
    #[error("the connection to the client failed: {0}")]
    Io(#[from] std::io::Error),
}

impl StdioError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Profile(_) => "add a table `[profiles.NAME]` to the config",
            Self::Handshake(_) => {
                "`toolcrib mcp` is meant to be started by an MCP client; `toolcrib docs clients` shows how"
            }
            Self::Io(_) => "see the log",
        }
    }
}
