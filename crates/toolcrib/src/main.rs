//! The `toolcrib` command: arguments in, one of the libraries at work, text or JSON out.
//!
//! Exit codes: 0 for an answer, 1 when the answer is no, 2 for wrong usage or input.

mod args;
mod commands;
mod config;
mod load;
mod output;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use output::{Failure, Output};

fn main() -> ExitCode {
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
    };
    match done.and_then(|said| output.finish().map(|()| said)) {
        // Closed: whoever reads us has had enough, as in `toolcrib … | head`.
        Ok(true) | Err(Failure::Closed) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => output::failed(&failure, json),
    }
}
