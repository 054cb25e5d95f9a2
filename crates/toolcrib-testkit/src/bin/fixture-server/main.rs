//! A correct MCP server, for tests of the gateway.
//!
//! It has what the official conformance suite expects of a server, in both protocol versions, so that the same suite
//! can be run against a gateway in front of it: whatever fails then is the gateway's fault. It speaks stdio, or
//! Streamable HTTP with `--http ADDRESS`.

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
mod tools;

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;

/// An MCP server with everything that the conformance suite needs
#[derive(Parser)]
#[command(name = "fixture-server")]
struct Arguments {
    /// Serve Streamable HTTP on this address instead of stdio; port 0 selects a free port
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
