//! The scripted provider as a program. It prints its URL and runs until it is stopped.
//!
//! Without a script, it looks for `goal: TOOL {ARGUMENTS}` in the user's message, calls that tool and reports the
//! result. `GET /_requests` returns the requests that it has received, and `DELETE /_requests` deletes them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use toolcrib_testkit::provider::{Options, Pace, Provider, Script};

/// A scripted LLM provider with four APIs
#[derive(Parser)]
struct Arguments {
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// A file with a JSON object that contains scripts by name. If the first user message contains `script:NAME`, that
    /// script is played, otherwise `default`
    #[arg(long)]
    script: Option<PathBuf>,
    /// Invalidate Anthropic thinking blocks if anything before them is changed
    #[arg(long)]
    binding: bool,
    /// Send tool calls without ids
    #[arg(long)]
    no_call_ids: bool,
    /// Stream this many text deltas in response to every request, and keep no requests
    #[arg(long)]
    deltas: Option<usize>,
    /// The pause before each delta, in microseconds
    #[arg(long, default_value_t = 1000)]
    pause: u64,
}

fn main() -> ExitCode {
    match play(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn play(arguments: Arguments) -> io::Result<()> {
    let mut scripts: BTreeMap<String, Script> = match arguments.script {
        Some(path) => serde_json::from_slice(&std::fs::read(path)?)?,
        None => BTreeMap::new(),
    };
    let provider = Provider::start(Options {
        listen: arguments.listen,
        script: scripts.remove("default").unwrap_or_default(),
        scripts,
        bind_thinking: arguments.binding,
        call_ids: !arguments.no_call_ids,
        keep_requests: arguments.deltas.is_none(),
        pace: arguments
            .deltas
            .map(|deltas| Pace { deltas, pause: Duration::from_micros(arguments.pause) }),
        ..Options::default()
    })?;
    writeln!(io::stdout(), "{}", provider.url)?;
    loop {
        std::thread::park();
    }
}
