//! The two doors: standard streams for one client, HTTP for many.

mod heard;
mod http;
mod listener;
mod stdio;

pub use http::{Door, MountedService, Opened};
pub use stdio::stdio;

use thiserror::Error;

use crate::http::guard::Unusable;
use crate::http::token::TokenError;

/// Why a door does not open.
#[derive(Debug, Error)]
pub enum Closed {
    /// The profile is not in the config.
    #[error("there is no profile `{0}` in the config")]
    Profile(String),
    /// The client never made itself known.
    #[error("the client did not introduce itself: {0}")]
    Handshake(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// An entry of the config can never match.
    #[error(transparent)]
    Guard(#[from] Unusable),
    /// There is no token to compare with.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Serving ended with an error.
    #[error("serving ended: {0}")]
    Io(#[from] std::io::Error),
}

impl Closed {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Profile(_) => "profiles are tables `[profiles.NAME]` in the config".into(),
            Self::Handshake(_) => {
                "`toolcrib mcp` is started by an MCP client, which speaks first; README shows how"
                    .into()
            }
            Self::Listen { .. } => {
                "another program may have the port: choose one with `--listen 127.0.0.1:PORT`"
                    .into()
            }
            Self::Guard(_) => "correct `[http]` in the config".into(),
            Self::Token(error) => error.hint(),
            Self::Io(_) => "see the log".into(),
        }
    }
}
