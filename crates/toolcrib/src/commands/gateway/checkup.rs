//! Starts every server once to check whether it works, for `toolcrib doctor` and for commands that ask servers for
//! their tools. While the servers start, the terminal shows which of them have not answered yet.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcrib_core::TokenCounter;
use toolcrib_mcp::config::{RunPolicy, Server, StartPolicy, Transport};
use toolcrib_mcp::{Gateway, GatewayConfig, PoolClients, ServerStatus};
use toolcrib_text::clean::one_line;

use super::environment;
use crate::output::print_stderr;

/// The minimum start timeout of a server whose command may have to download it first, in seconds. Only the first start
/// takes that long, so the gateway itself uses the configured timeout.
const DOWNLOAD_TIMEOUT: f64 = 120.0;

/// The commands that may download the program that they start.
const DOWNLOADERS: [&str; 13] = [
    "npx", "bunx", "pnpx", "uvx", "pipx", "npm", "pnpm", "yarn", "bun", "deno", "uv", "docker",
    "podman",
];

const SPINNER_INTERVAL: Duration = Duration::from_millis(100);
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Makes the gateway start every enabled server at once, with a longer timeout for servers that may have to be
/// downloaded first. Returns the run policies that the config sets for the servers.
pub(super) fn start_all_eagerly(config: &mut GatewayConfig) -> BTreeMap<String, RunPolicy> {
    let enabled = config.servers.iter_mut().filter(|(_, server)| server.enabled);
    let policies = enabled.map(|(name, server)| {
        let policy = server.run_policy(name);
        (server.start, server.idle) = (Some(StartPolicy::Eager), None);
        if may_download_itself(server) {
            server.start_timeout = server.start_timeout.max(DOWNLOAD_TIMEOUT);
        }
        (name.clone(), policy)
    });
    policies.collect()
}

/// Whether the command of a server may download the server first.
fn may_download_itself(server: &Server) -> bool {
    let Transport::Stdio { command, .. } = &server.transport else { return false };
    let program = Path::new(command).file_stem().and_then(|name| name.to_str());
    program.is_some_and(|program| DOWNLOADERS.contains(&program))
}

/// Starts the servers and waits until each has answered or failed. The caller must stop the gateway.
pub(super) async fn start_and_wait(
    config: GatewayConfig,
    counter: Arc<dyn TokenCounter>,
) -> Arc<Gateway> {
    let enabled = config.servers.iter().filter(|(_, server)| server.enabled);
    let waiting = RefCell::new(WaitingServers::new(enabled.map(|(name, _)| name.clone())));
    let gateway = Gateway::start(config, environment(), PoolClients::None, counter);
    {
        let settled = |name: &str, status: &ServerStatus| waiting.borrow_mut().settle(name, status);
        let mut settle = std::pin::pin!(gateway.wait_until_settled(settled));
        let mut ticks = tokio::time::interval(SPINNER_INTERVAL);
        loop {
            tokio::select! {
                () = &mut settle => break,
                _ = ticks.tick() => waiting.borrow_mut().draw(),
            }
        }
    }
    waiting.borrow().finish();
    gateway
}

/// The servers that have not answered yet, as a line on the terminal.
struct WaitingServers {
    names: BTreeSet<String>,
    began: Instant,
    frame: usize,
    /// Whether standard error is a terminal.
    is_terminal: bool,
    /// Whether the line can be redrawn.
    has_spinner: bool,
}

impl WaitingServers {
    fn new(names: impl Iterator<Item = String>) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            names: names.collect(),
            began: Instant::now(),
            frame: 0,
            is_terminal,
            has_spinner: is_terminal && !is_dumb,
        }
    }

    /// Prints whether a server works.
    fn settle(&mut self, name: &str, status: &ServerStatus) {
        if !self.names.remove(name) || !self.is_terminal {
            return;
        }
        self.erase();
        let seconds = self.began.elapsed().as_secs_f64();
        let state = status.phase.name();
        print_stderr(&format!("{}: {state} after {seconds:.1} s", one_line(name)));
        self.draw();
    }

    /// Draws the line. Write errors are ignored, because the line is only informative.
    fn draw(&mut self) {
        if !self.has_spinner || self.names.is_empty() {
            return;
        }
        self.frame = (self.frame + 1) % SPINNER.len();
        let seconds = self.began.elapsed().as_secs();
        let names: Vec<String> = self.names.iter().map(|name| one_line(name)).collect();
        let text = format!("{} {seconds} s, waiting for {}", SPINNER[self.frame], names.join(", "));
        let width = crate::terminal::stderr_width().unwrap_or(80);
        let text = toolcrib_text::shorten(&text, width.saturating_sub(1));
        let mut stderr = io::stderr();
        let _ = write!(stderr, "\r\x1b[K{text}");
        let _ = stderr.flush();
    }

    /// Prints an empty line between the lines about the servers and the output of the command.
    fn finish(&self) {
        self.erase();
        if self.is_terminal {
            print_stderr("");
        }
    }

    fn erase(&self) {
        if self.has_spinner {
            let mut stderr = io::stderr();
            let _ = write!(stderr, "\r\x1b[K");
            let _ = stderr.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_downloads_itself_gets_more_time() {
        let server = |command: &str| {
            Server::new(Transport::Stdio {
                command: command.to_owned(),
                args: vec![],
                env: BTreeMap::default(),
                cwd: None,
            })
        };
        for (command, expected) in
            [("npx", true), ("/opt/bin/uvx", true), ("node", false), ("my-npx", false)]
        {
            assert_eq!(may_download_itself(&server(command)), expected, "{command}");
        }
    }
}
