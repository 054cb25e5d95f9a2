//! The background gateway: one process that serves all clients of a user with the same config.
//!
//! ```text
//! client ◄─stdio─► toolcrib mcp ◄─┐
//! client ◄─stdio─► toolcrib mcp ◄─┼─ Unix socket ─► background gateway ◄─► servers
//! client ◄─stdio─► toolcrib mcp ◄─┘
//! ```
//!
//! `toolcrib mcp` connects to the socket (`socket`), sends a [`Hello`] on the first line, and then passes messages on
//! between its client and the background gateway. `relay` decides what happens to the messages if the background
//! gateway ends, and `connection` does the I/O.

mod build;
mod connection;
mod daemon;
mod hello;
mod liveness;
mod open_request;
mod relay;
mod shared_output;
mod socket;
mod status;

pub use build::build_id;
pub use connection::{GatewayConnector, GatewayStream, RelaySettings, relay_stdio};
pub use daemon::{Startup, become_daemon, report_startup, run_starter, start_detached};
pub use hello::{ClientHello, Hello, HelloReply, read_line, write_line};
#[cfg(feature = "fuzzing")]
pub use relay::FuzzedRelay;
pub use shared_output::SharedOutput;
pub use socket::{BackgroundSocket, ListeningSocket, SocketError, SocketLock};
pub use status::{
    BackgroundStatus, ClientStatus, ServerProcessStatus, restart_server, server_statuses,
};
