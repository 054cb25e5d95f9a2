//! Measures speed and memory use of the gateway, as its clients see them.
//!
//! Client and server are separate processes, and the client uses no MCP library. Calls are made directly to a server
//! and through the gateway, alternating, so that other load on the machine affects both measurements. Compare only
//! figures of the same run.
//!
//! `cargo run --release -p toolcrib-bench --bin gateway -- [overhead|search|start|load|sessions]...`

#![allow(clippy::print_stdout)]

mod catalog_server;
mod client;
mod http;
mod load;
mod overhead;
mod search;
mod sessions;
mod start;
mod stdio;

use std::process::ExitCode;

use toolcrib_bench::{BenchError, process};

/// The name of a section on the command line, and the function that measures it.
type Section = (&'static str, fn() -> Result<(), BenchError>);

const SECTIONS: [Section; 5] = [
    ("overhead", overhead::measure),
    ("search", search::measure),
    ("start", start::measure),
    ("load", load::measure),
    ("sessions", sessions::measure),
];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let done = match wanted.as_slice() {
        [role, file] if role == catalog_server::ROLE => catalog_server::serve(file),
        _ => run(&wanted),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: &[String]) -> Result<(), BenchError> {
    let known = |name: &String| SECTIONS.iter().any(|(section, _)| section == name);
    if let Some(odd) = wanted.iter().find(|name| !known(name)) {
        return Err(
            format!("there is no part `{odd}`: overhead, search, start, load, sessions").into()
        );
    }
    process::build()?;
    for (name, measure) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            println!("\n## {name}\n");
            measure()?;
        }
    }
    Ok(())
}
