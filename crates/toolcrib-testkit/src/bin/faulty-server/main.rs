//! An MCP server that does everything wrong that it is told to, to stand behind the gateway in
//! tests.
//!
//! It speaks the legacy revision on stdio, by hand and without a library, so that it can also
//! break the rules a library would keep. Without arguments it behaves well; each fault is an
//! argument of its own, and they combine. Every fault has been seen in a real server.

mod answers;
mod cargo;
mod family;
mod faults;
mod flood;
mod journal;
mod script;
mod server;
mod tools;
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
        server.die_after(delay);
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
