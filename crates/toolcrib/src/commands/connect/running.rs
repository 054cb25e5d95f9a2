//! Finds running processes of a client. A running client has already read its file, and some clients write the file
//! again when they exit.

use toolcrib_mcp::config::ClientKind;

/// Returns the names of a client's programs.
fn programs(client: ClientKind) -> &'static [&'static str] {
    match client {
        ClientKind::ClaudeCode => &["claude"],
        ClientKind::ClaudeDesktop => &["Claude", "claude-desktop"],
        ClientKind::Cursor => &["cursor", "Cursor"],
        ClientKind::VsCode | ClientKind::Cline => &["code", "code-insiders", "Code"],
        ClientKind::Codex => &["codex"],
        ClientKind::Opencode => &["opencode"],
        ClientKind::Gemini => &["gemini"],
        ClientKind::Windsurf => &["windsurf", "Windsurf"],
        ClientKind::Zed => &["zed", "zed-editor"],
        ClientKind::Goose => &["goose", "goosed", "Goose"],
        ClientKind::Hermes => &["hermes", "hermes-agent"],
        ClientKind::Other => &[],
    }
}

/// Interpreters, whose first argument that is not an option is the program.
const INTERPRETERS: [&str; 4] = ["node", "bun", "deno", "python"];

/// Whether a command line starts one of these programs, directly or with an interpreter.
fn starts(words: &[String], programs: &[&str]) -> bool {
    let name = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    let Some(command) = words.first().map(name) else { return false };
    let is_interpreter = INTERPRETERS.iter().any(|known| command.starts_with(known));
    let script = words[1..].iter().find(|word| !word.starts_with('-')).filter(|_| is_interpreter);
    [Some(command), script.map(name)].iter().flatten().any(|name| programs.contains(&name.as_str()))
}

/// Returns the process id of a running client of this user.
pub(super) fn process(client: ClientKind) -> Option<u32> {
    let programs = programs(client);
    let own = std::process::id();
    let mut found = command_lines();
    found.sort_by_key(|(id, _)| *id);
    found.into_iter().find(|(id, words)| *id != own && starts(words, programs)).map(|(id, _)| id)
}

/// Returns the command lines of this user's processes.
#[cfg(target_os = "linux")]
fn command_lines() -> Vec<(u32, Vec<String>)> {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(user) = std::fs::metadata("/proc/self").map(|about| about.uid()) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        if entry.metadata().ok()?.uid() != user {
            return None;
        }
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        Some((id, words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()))
    });
    processes.collect()
}

/// Returns the command lines of this user's processes. Other systems have no `/proc`.
#[cfg(not(target_os = "linux"))]
fn command_lines() -> Vec<(u32, Vec<String>)> {
    let listed = std::process::Command::new("ps").args(["-x", "-o", "pid=,args="]).output();
    let text = listed.map(|done| String::from_utf8_lossy(&done.stdout).into_owned());
    let lines = text.unwrap_or_default();
    lines
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            Some((words.next()?.parse().ok()?, words.collect()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_with_and_without_an_interpreter() {
        let starts = |line: &str, client| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            starts(&words, programs(client))
        };
        assert!(starts("claude --continue", ClientKind::ClaudeCode));
        assert!(starts("node --no-warnings /usr/bin/gemini -p x", ClientKind::Gemini));
        assert!(starts("/venv/bin/python3 /venv/bin/hermes", ClientKind::Hermes));
        assert!(starts("/usr/share/code/code --type=zygote", ClientKind::Cline));
        assert!(!starts("vim /home/me/claude", ClientKind::ClaudeCode));
        assert!(!starts("node server.js claude", ClientKind::ClaudeCode));
        assert!(!starts("/Applications/Claude.app/Contents/MacOS/Claude", ClientKind::ClaudeCode));
    }
}
