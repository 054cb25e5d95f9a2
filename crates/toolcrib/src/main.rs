//! The `toolcrib` command: parses the arguments, runs one command, and prints text or JSON.
//!
//! Exit codes: 0 for success, 1 for a negative result (nothing found, a server is down), 2 for wrong usage or input.

mod args;
mod commands;
mod config;
mod deep;
mod documentation;
mod load;
mod output;
mod progress;
mod terminal;
mod usage_error;
mod user_folders;
mod vectors;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use output::{Failure, Output};

fn main() -> ExitCode {
    // The gateway starts this program again as the warden of a server's process. A warden has only one thread, so this
    // check must come before anything that starts another one.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|argument| argument == "warden")
        && arguments.next().is_some_and(|argument| argument == "--")
    {
        return toolcrib_mcp::process::warden::run(arguments);
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage_error::report_usage_error(&error),
    };
    let json = args.command.json();
    let mut output = Output::new(json);
    let result = match args.command {
        Command::Demo(args) => commands::demo::run(&args, &mut output),
        Command::Search(args) => commands::search::run(&args, &mut output),
        Command::Explain(args) => commands::explain::run(&args, &mut output),
        Command::Stats(args) => commands::stats::run(&args, &mut output),
        Command::Tools(args) => commands::tools::run(&args, &mut output),
        Command::Call(args) => commands::call::run(&args, &mut output),
        Command::Eval(args) => commands::eval::run(&args, &mut output),
        Command::Completions(args) => commands::completions::run(&args, &mut output),
        Command::Docs(args) => commands::docs::run(&args, &mut output),
        Command::Man(args) => commands::man::run(&args, &mut output),
        Command::Mcp(args) => commands::gateway::mcp::run(&args, &mut output),
        Command::Serve(args) => commands::gateway::serve::run(&args, &mut output),
        Command::Import(args) => commands::import::run(&args, &mut output),
        Command::Connect(args) => commands::connect_then_check::run(&args, &mut output),
        Command::Disconnect(args) => commands::connect::disconnect::run(&args, &mut output),
        Command::Doctor(args) => commands::gateway::doctor::run(&args, &mut output),
        Command::Login(args) => commands::gateway::login::run(&args, &mut output),
        Command::Ps(args) => commands::gateway::ps::list(&args, &mut output),
        Command::Stop(args) => commands::gateway::ps::stop(&args, &mut output),
        Command::Restart(args) => commands::gateway::ps::restart(&args, &mut output),
        Command::Background(args) => commands::gateway::background::run(&args),
    };
    match result.and_then(|succeeded| output.finish().map(|()| succeeded)) {
        // It is not an error if the reader closes the pipe, as in `toolcrib … | head`.
        Ok(true) | Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(Failure::AlreadyReported) => ExitCode::from(2),
        Err(failure) => output::report_failure(&failure, json),
    }
}
