//! Recognizes servers that keep state between calls, such as an open browser or a terminal.
//!
//! Such a server must not be stopped when it is idle, because its state would be lost, and it must not be shared, because
//! the state belongs to one client. The protocol does not declare this, so the server's name, package and host are
//! compared with a list of words. A server that matches by mistake runs longer than necessary, and each client gets its
//! own process of it.

use super::Transport;

/// Words in the names of servers that keep state.
const WORDS: [&str; 30] = [
    // Browsers.
    "playwright",
    "puppeteer",
    "selenium",
    "webdriver",
    "browser",
    "browsermcp",
    "browserbase",
    "stagehand",
    "chrome",
    "chromium",
    "firefox",
    // Terminals and remote shells.
    "terminal",
    "iterm",
    "tmux",
    "pty",
    "shell",
    "ssh",
    "commander",
    // Interpreters and notebooks.
    "repl",
    "jupyter",
    "ipython",
    "notebook",
    "interpreter",
    // Debuggers.
    "debugger",
    "gdb",
    "lldb",
    // Devices and applications with a session.
    "appium",
    "adb",
    // A chain of thoughts that continues over several calls.
    "sequential",
    "sequentialthinking",
];

/// Programs that run the package that is named in their arguments.
const RUNNERS: [&str; 19] = [
    "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "node", "uv", "uvx", "pipx",
    "python", "python3", "docker", "podman", "cmd", "cmd.exe", "env",
];

/// Returns why a server with this word is treated as one that keeps state.
pub(super) fn reason(word: &str) -> String {
    format!("`{word}` in its name, package or host, so it probably keeps state between calls")
}

/// Returns the word by which a server is recognized as one that keeps state, or `None`.
pub(super) fn stateful_word(name: &str, transport: &Transport) -> Option<&'static str> {
    let (command, args) = match transport {
        Transport::Stdio { command, args, .. } => (command, args),
        Transport::Http { url, .. } => {
            let url = url::Url::parse(url).ok();
            let host = url.as_ref().and_then(|url| url.host_str());
            return [name].into_iter().chain(host).find_map(word_in);
        }
    };
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let args: &[_] = if RUNNERS.contains(&program) { args } else { &[] };
    // A value such as a path or a variable's assignment describes the data that the server works on, not the server.
    // A script is recognized by its file name.
    let packages = args.iter().map(crate::Secret::expose).filter_map(|arg| {
        let is_script = [".js", ".mjs", ".ts", ".py"].iter().any(|ending| arg.ends_with(ending));
        match arg {
            _ if is_script => arg.rsplit(['/', '\\']).next(),
            _ if arg.starts_with(['-', '/', '.', '~', '$']) || arg.contains(['=', ' ', ':']) => {
                None
            }
            _ => Some(arg),
        }
    });
    [name, program].into_iter().chain(packages).find_map(word_in)
}

fn word_in(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    parts.find_map(|part| WORDS.into_iter().find(|word| *word == part))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn word(name: &str, command: &str, args: &[&str]) -> Option<&'static str> {
        let args = args.iter().map(|arg| crate::Secret::from(*arg)).collect();
        let transport =
            Transport::Stdio { command: command.into(), args, env: BTreeMap::new(), cwd: None };
        stateful_word(name, &transport)
    }

    #[test]
    fn servers_that_keep_state_are_recognized_by_their_package() {
        assert_eq!(word("web", "npx", &["-y", "@playwright/mcp@latest"]), Some("playwright"));
        assert_eq!(word("a", "npx", &["chrome-devtools-mcp@latest"]), Some("chrome"));
        assert_eq!(word("a", "docker", &["run", "-i", "--rm", "mcp/puppeteer"]), Some("puppeteer"));
        assert_eq!(word("a", "uvx", &["--from", "mcp-server-ipython", "serve"]), Some("ipython"));
        assert_eq!(word("a", "/usr/bin/tmux-mcp", &[]), Some("tmux"));
        assert_eq!(word("my Browser", "server", &[]), Some("browser"));
        assert_eq!(word("a", "node", &["/opt/tools/terminal-server.js"]), Some("terminal"));
    }

    #[test]
    fn what_a_server_works_on_does_not_count() {
        let files =
            ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/browser", "./shell"];
        assert_eq!(word("files", "npx", &files), None);
        assert_eq!(word("git", "uvx", &["mcp-server-git", "--repository", "~/terminal"]), None);
        assert_eq!(word("a", "docker", &["run", "-e", "SHELL=/bin/sh", "mcp/time"]), None);
        assert_eq!(word("a", "files-server", &["browser"]), None);
        assert_eq!(word("nutshell", "x", &[]), None);
    }
}
