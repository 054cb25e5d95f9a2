//! An MCP server with configurable faults, for tests of the gateway.
//!
//! It speaks the protocol versions that begin with `initialize`, on stdio and without a library, so that it can also
//! break rules that a library would enforce. Without arguments, it behaves correctly. Each argument adds a fault, and
//! faults can be combined. All of these faults have been seen in real servers.

mod faults;
mod flood;
mod grandchildren;
mod journal;
mod results;
mod script;
mod server;
mod tools;
mod unknown_fields;
mod wire;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use crate::faults::Faults;
use crate::server::Server;

fn main() -> ExitCode {
    let faults = Faults::parse();
    let server = match Server::start(faults) {
        Ok(server) => Arc::new(server),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(delay) = server.faults.die_after {
        server.crash_after(delay);
    }
    if server.faults.define.is_some() {
        server.watch_definitions();
    }
    let mut input = io::stdin().lock();
    while let Ok(Some(line)) = wire::read_line(&mut input) {
        server.receive(&line);
    }
    server.journal.note("exit");
    ExitCode::SUCCESS
}
