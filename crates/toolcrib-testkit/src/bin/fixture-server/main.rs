//! A correct MCP server, for tests of the gateway.
//!
//! It has everything that the official conformance suite expects of a server, both in the older protocol, which has
//! sessions, and in the newer one, which is stateless. When the suite runs against a gateway in front of this server,
//! any failure is the gateway's fault. The server uses stdio, or Streamable HTTP with `--http ADDRESS`.

mod changes;
mod content;
mod definition;
mod input_rounds;
mod input_tools;
mod media;
mod notifications;
mod prompts;
mod resources;
mod schemas;
mod serve;
mod server;
mod tasks;
mod tools;

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;

/// An MCP server with everything that the conformance suite needs
#[derive(Parser)]
#[command(name = "fixture-server")]
struct Arguments {
    /// Serve Streamable HTTP on this address instead of stdio. Port 0 selects a free port
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let served = match arguments.http {
        Some(address) => serve::http(address).await,
        None => serve::stdio().await,
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
