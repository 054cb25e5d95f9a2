//! The diff that `connect` and `disconnect` show, without secrets.
//!
//! Only known words are shown: keys, server names, and those values of servers that `toolcrib import` shows as well.
//! Every other word becomes `***`, including words in comments and in the lines around a change, because a client's file
//! may contain secrets anywhere. Rejected: searching for known secrets, because a secret that is spelled differently in
//! the file would be shown.

use std::collections::BTreeSet;

use serde_json::Value;
use toolcrib_client_files::{DiffLine, LineKind, diff};
use toolcrib_mcp::config::{ImportedConfig, Transport, masked_for_preview};

/// The text that is shown in place of unknown words.
const MASK: &str = "***";
/// Lines shown around each change.
const CONTEXT_LINES: usize = 1;
/// Values that have the same meaning in every file.
const COMMON: [&str; 14] = [
    "true",
    "false",
    "null",
    "stdio",
    "http",
    "sse",
    "local",
    "remote",
    "custom",
    "streamable_http",
    "streamableHttp",
    "-",
    "---",
    ":",
];

/// The words that may be shown.
#[derive(Debug, Default)]
pub(super) struct KnownWords {
    words: BTreeSet<String>,
}

impl KnownWords {
    /// Adds a text and each of its words.
    fn add(&mut self, text: &str) {
        if text.is_empty() || text.contains(MASK) {
            return;
        }
        self.words.insert(text.to_owned());
        self.words.extend(text.split_whitespace().map(str::to_owned));
    }

    /// Adds the timeouts of a document. Another number may be a secret.
    pub(super) fn add_numbers(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    if value.is_object() || key.to_lowercase().contains("timeout") {
                        self.add_numbers(value);
                    }
                }
            }
            Value::Number(number) => self.add(&number.to_string()),
            _ => {}
        }
    }

    /// Adds all keys of a document.
    pub(super) fn add_keys(&mut self, value: &Value) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                self.add(key);
                self.add_keys(value);
            }),
            Value::Array(list) => list.iter().for_each(|value| self.add_keys(value)),
            _ => {}
        }
    }

    /// Adds all keys and values of a value that Toolcrib writes.
    pub(super) fn add_all(&mut self, value: &Value) {
        self.add_keys(value);
        match value {
            Value::Object(map) => map.values().for_each(|value| self.add_all(value)),
            Value::Array(list) => list.iter().for_each(|value| self.add_all(value)),
            Value::String(text) => self.add(text),
            other => self.add(&other.to_string()),
        }
    }

    /// Adds the parts of servers that are not secret.
    pub(super) fn add_servers(&mut self, imported: &ImportedConfig) {
        for server in imported.servers.values().map(masked_for_preview) {
            match &server.transport {
                Transport::Stdio { command, args, env, cwd } => {
                    self.add(command);
                    let values = args.iter().chain(env.values());
                    values.for_each(|value| self.add(value.expose()));
                    if let Some(cwd) = cwd {
                        self.add(&cwd.to_string_lossy());
                    }
                }
                Transport::Http { url, headers, .. } => {
                    self.add(url.trim_end_matches(MASK).trim_end_matches('/'));
                    for value in headers.values() {
                        self.add(value.expose());
                    }
                }
            }
            server.allow.iter().chain(&server.deny).for_each(|pattern| self.add(pattern));
        }
    }

    fn contains(&self, text: &str) -> bool {
        text.is_empty() || COMMON.contains(&text) || self.words.contains(text)
    }

    /// Returns a line with `***` in place of unknown words.
    fn mask(&self, line: &str) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '"' | '\'' => quoted_length(rest),
                _ if is_separator(first) => {
                    out.push(first);
                    rest = &rest[first.len_utf8()..];
                    continue;
                }
                _ => rest.find(is_separator).unwrap_or(rest.len()),
            };
            let (word, after) = rest.split_at(length);
            if word.starts_with('#') || ["//", "/*"].iter().any(|start| word.starts_with(start)) {
                out.push_str(if word.starts_with('#') { "# " } else { "// " });
                out.push_str(MASK);
                return out;
            }
            rest = after;
            let shown = if self.is_known(word) { word.to_owned() } else { self.masked_word(word) };
            // Several unknown words in a row are shown as one.
            let is_repeated = shown == MASK && out.trim_end_matches(' ').ends_with(MASK);
            if is_repeated {
                out.truncate(out.trim_end_matches(' ').len());
            } else {
                out.push_str(&shown);
            }
        }
        out
    }

    /// Returns `***` in place of a word. The scheme and the host of a known URL stay.
    fn masked_word(&self, word: &str) -> String {
        let inner = word.trim_matches(['"', '\'']);
        let path = inner.find("://").and_then(|at| {
            let start = at + "://".len();
            inner[start..].find(['/', '?', '#']).map(|length| start + length)
        });
        let shown = match path.map(|at| &inner[..at]) {
            Some(origin) if self.contains(origin) => format!("{origin}/{MASK}"),
            _ => MASK.to_owned(),
        };
        match word.chars().next() {
            Some(quote @ ('"' | '\'')) => format!("{quote}{shown}{quote}"),
            _ if word.ends_with(':') => format!("{shown}:"),
            _ => shown,
        }
    }

    fn is_known(&self, word: &str) -> bool {
        let inner = word
            .strip_prefix(['"', '\''])
            .map(|rest| rest.strip_suffix(['"', '\'']).unwrap_or(rest));
        if let Some(inner) = inner {
            let text = serde_json::from_str::<String>(word).unwrap_or_else(|_| inner.to_owned());
            self.contains(&text) || self.contains(inner)
        } else {
            let bare = word.trim_end_matches(':');
            // The header of a TOML table is several keys with dots between them.
            self.contains(bare) || bare.split('.').all(|part| self.contains(part))
        }
    }
}

/// Whether a character ends a word. A colon does not, because it is part of URLs.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || matches!(c, '{' | '}' | '[' | ']' | '(' | ')' | ',' | '=' | '"' | '\'')
}

/// Returns the length of the quoted text at the beginning, including the quotes.
fn quoted_length(text: &str) -> usize {
    let mut characters = text.char_indices();
    let quote = characters.next().map_or('"', |(_, quote)| quote);
    let mut is_escaped = false;
    for (at, c) in characters {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if quote == '"' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the difference between two versions of a file, with only known words.
pub(super) fn preview(before: &str, after: &str, known: &KnownWords) -> Vec<DiffLine> {
    let mut lines = diff(before, after, CONTEXT_LINES);
    for line in &mut lines {
        if line.kind != LineKind::Group {
            line.text = known.mask(&line.text);
        }
    }
    lines
}

/// Returns the sign in front of a line of a difference.
pub(super) fn sign(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Group => "",
        LineKind::Context => " ",
        LineKind::Removed => "-",
        LineKind::Added => "+",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_known_words_are_shown() {
        let mut known = KnownWords::default();
        known.add_keys(
            &json!({"mcp_servers": {"files": {"env": {"API_KEY": "s3cret"}, "args": []}}}),
        );
        known.add_all(&json!(["npx", "-y", "https://a/mcp"]));
        for (line, expected) in [
            (
                "  \"files\": { \"env\": {\"API_KEY\": \"s3cret\"} }, // files isn't s4",
                "  \"files\": { \"env\": {\"API_KEY\": \"***\"} }, // ***",
            ),
            ("[mcp_servers.files.env]", "[mcp_servers.files.env]"),
            ("API_KEY = 's3cret' # s4cret", "API_KEY = '***' # ***"),
            ("    API_KEY: Bearer s3cret", "    API_KEY: ***"),
            ("    - npx", "    - npx"),
            ("args = [\"-y\", 'https://a/mcp', 12345]", "args = [\"-y\", 'https://a/mcp', ***]"),
            ("\"open s3cret", "\"***\""),
            ("export API_KEY=s3cret", "*** API_KEY=***"),
        ] {
            assert_eq!(known.mask(line), expected);
        }
    }
}
