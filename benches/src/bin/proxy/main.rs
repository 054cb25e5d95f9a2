//! Measures the overhead of the LLM proxy, as its clients see it.
//!
//! The proxy runs as a process between a minimal client and a scripted upstream. The client also sends requests
//! directly to the upstream, in rotation with those through the proxy, so that other load on the machine affects both
//! measurements. Compare only figures of the same run.
//!
//! `cargo run --release -p toolcrib-bench --bin proxy -- [overhead|first-token|streams|cold|all]...`

#![allow(clippy::print_stdout)]

mod client;
mod cold;
mod compare;
mod first_token;
mod overhead;
mod recorded_exchange;
mod streams;
mod upstream;

use std::process::ExitCode;

use toolcrib_bench::{BenchError, process};

/// The name of a section on the command line, and the function that measures it.
type Section = (&'static str, fn() -> Result<(), BenchError>);

const SECTIONS: [Section; 4] = [
    ("overhead", overhead::measure),
    ("first-token", first_token::measure),
    ("streams", streams::measure),
    ("cold", cold::measure),
];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    match run(&wanted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: &[String]) -> Result<(), BenchError> {
    let known =
        |name: &String| name == "all" || SECTIONS.iter().any(|(section, _)| section == name);
    if let Some(odd) = wanted.iter().find(|name| !known(name)) {
        let names = "overhead, first-token, streams, cold, all";
        return Err(format!("there is no part `{odd}`: {names}").into());
    }
    process::build()?;
    let all = wanted.is_empty() || wanted.iter().any(|name| name == "all");
    for (name, measure) in SECTIONS {
        if all || wanted.iter().any(|wanted| wanted == name) {
            println!("\n## {name}\n");
            measure()?;
        }
    }
    Ok(())
}
