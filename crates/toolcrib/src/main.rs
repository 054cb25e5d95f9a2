//! The `toolcrib` command: arguments in, one of the libraries at work, text or JSON out.
//!
//! Exit codes: 0 for an answer, 1 when the answer is no, 2 for wrong usage or input.

mod args;
mod commands;
mod config;
mod load;
mod output;
mod progress;
mod vectors;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use output::{Failure, Output};

fn main() -> ExitCode {
    // Before anything else, threads above all: this is us again, watching over a server's process.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "warden")
        && words.next().is_some_and(|word| word == "--")
    {
        return toolcrib_mcp::process::warden::run(words);
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return output::usage(&error),
    };
    let json = args.command.json();
    let mut output = Output::new(json);
    let done = match args.command {
        Command::Demo(args) => commands::demo::run(&args, &mut output),
        Command::Search(args) => commands::search::run(&args, &mut output),
        Command::Explain(args) => commands::explain::run(&args, &mut output),
        Command::Stats(args) => commands::stats::run(&args, &mut output),
        Command::Eval(args) => commands::eval::run(&args, &mut output),
        Command::Mcp(args) => commands::gateway::mcp::run(&args, &mut output),
        Command::Serve(args) => commands::gateway::serve::run(&args, &mut output),
        Command::Import(args) => commands::import::run(&args, &mut output),
        Command::Doctor(args) => commands::gateway::doctor::run(&args, &mut output),
        Command::Login(args) => commands::gateway::login::run(&args, &mut output),
    };
    match done.and_then(|said| output.finish().map(|()| said)) {
        // Closed: whoever reads us has had enough, as in `toolcrib … | head`.
        Ok(true) | Err(Failure::Closed) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(Failure::Told) => ExitCode::from(2),
        Err(failure) => output::failed(&failure, json),
    }
}
