//! How clients connect: standard streams for one client, routes of an HTTP server for many.

mod arrivals;
mod backlog;
mod client_wire;
mod http;
mod session_manager;
mod sessions;
mod stdio;
mod unread;

pub use http::routes;
pub use stdio::stdio;

use thiserror::Error;

/// Why a client on standard streams is not served.
#[derive(Debug, Error)]
pub enum Closed {
    /// The profile is not in the config.
    #[error("there is no profile `{0}` in the config")]
    Profile(String),
    /// The client sent no valid handshake.
    #[error("the client did not introduce itself: {0}")]
    Handshake(String),
    /// Serving ended with an error.
    #[error("serving ended: {0}")]
    Io(#[from] std::io::Error),
}

impl Closed {
    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Profile(_) => "profiles are tables `[profiles.NAME]` in the config",
            Self::Handshake(_) => {
                "`toolcrib mcp` is started by an MCP client, which speaks first; README shows how"
            }
            Self::Io(_) => "see the log",
        }
    }
}
