//! An MCP server that does everything right, to stand behind the gateway in tests.
//!
//! It offers what the official conformance suite asks of a server, in both revisions of the
//! protocol, so that a gateway in front of it can be put through the same suite: whatever fails
//! then is the gateway's doing. It speaks stdio, or Streamable HTTP with `--http ADDRESS`.

mod ask;
mod changes;
mod content;
mod definition;
mod media;
mod prompts;
mod questions;
mod resources;
mod schemas;
mod serve;
mod server;
mod signals;
mod tools;

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;

/// An MCP server with everything the conformance suite asks for.
#[derive(Parser)]
#[command(name = "fixture-server")]
struct Arguments {
    /// Serve Streamable HTTP on this address instead of stdio; port 0 takes a free one.
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
