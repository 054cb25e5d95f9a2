//! A server as it may be printed: what could be a token is `***`, references stay.
//!
//! Values of variables and headers are masked whole, whatever they are. Arguments are mostly names of
//! packages and folders, and a preview without them says nothing; of those only what looks like a
//! secret goes.

use super::expand::is_name;
use super::url::{is_keylike, shown};
use super::{OAuth, Server, Transport};
use crate::Secret;

/// What stands for a secret.
const MASK: &str = "***";
/// Words in the name of an option whose value is a secret.
const TELLING: [&str; 8] =
    ["key", "token", "secret", "password", "passwd", "auth", "credential", "bearer"];
/// What tokens of well-known services begin with.
const PREFIXES: [&str; 12] = [
    "sk-",
    "sk_",
    "pk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "eyJ",
    "npm_",
];

/// The server with `***` for everything that could be a secret.
pub fn masked(server: &Server) -> Server {
    let values = |values: &std::collections::BTreeMap<String, Secret>| {
        values.iter().map(|(name, value)| (name.clone(), value_of(value))).collect()
    };
    let transport = match &server.transport {
        Transport::Stdio { command, args, env, cwd } => Transport::Stdio {
            command: command.clone(),
            args: arguments(args),
            env: values(env),
            cwd: cwd.clone(),
        },
        Transport::Http { url, headers, oauth } => Transport::Http {
            url: if shown(url) == MASK && url.contains("${") { reference(url) } else { shown(url) },
            headers: values(headers),
            oauth: OAuth {
                client_secret: oauth.client_secret.as_ref().map(value_of),
                ..oauth.clone()
            },
        },
    };
    Server { transport, ..server.clone() }
}

/// An address that begins with a reference.
fn reference(url: &str) -> String {
    if is_reference(url) { url.to_owned() } else { MASK.to_owned() }
}

fn value_of(value: &Secret) -> Secret {
    if is_reference(value.expose()) { value.clone() } else { MASK.into() }
}

/// Whether a text is made of references, with the name of a scheme before them at most.
fn is_reference(text: &str) -> bool {
    let text = ["Bearer ", "bearer ", "Basic ", "token "]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
        .unwrap_or(text);
    text.is_empty()
        || text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).is_some_and(is_plain)
}

/// Whether what stands in a reference is a name, with a default at most that is that name again.
fn is_plain(inner: &str) -> bool {
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = inner.split_once(":-").unwrap_or((inner, ""));
    let same = default.is_empty() || default.strip_prefix('$') == Some(name);
    same && is_name(name)
        || ["file:", "input:"]
            .iter()
            .any(|kind| inner.starts_with(kind) && !inner.contains(['{', '}']))
}

fn arguments(args: &[Secret]) -> Vec<Secret> {
    let mut told = false;
    let mask = |arg: &Secret| {
        let text = arg.expose();
        let is_value = std::mem::replace(&mut told, tells(text) && !text.contains(['=', ' ', ':']));
        let hide = !is_reference(text) && (is_value || is_secret(text));
        if hide { hidden(text) } else { arg.clone() }
    };
    args.iter().map(mask).collect()
}

/// Whether an argument is an option whose value is a secret.
fn tells(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    text.starts_with('-') && TELLING.iter().any(|word| lower.contains(word))
}

fn is_secret(text: &str) -> bool {
    let bare = text.rsplit('/').next().unwrap_or_default();
    PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        // `TOKEN=…`, `--token=…`, `Authorization: …`, `postgres://user:…@host`, `https://…?key=…`
        || text.contains('=')
        || text.contains(": ")
        || text.contains("://") && (shown(text) != text)
        || !text.contains(['/', '@']) && is_keylike(bare) && !text.starts_with("--")
}

/// The name before the value stays.
fn hidden(text: &str) -> Secret {
    match text.find(['=', ':', ' ']) {
        Some(at) if text[..at].len() <= 40 && !is_keylike(&text[..at]) && !text.contains("://") => {
            format!("{}{MASK}", &text[..=at]).into()
        }
        _ => MASK.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stay_and_literals_go() {
        for (text, expected) in [
            ("${TOKEN}", "${TOKEN}"),
            ("${env:TOKEN}", "${env:TOKEN}"),
            ("Bearer ${TOKEN}", "Bearer ${TOKEN}"),
            ("${file:/run/token}", "${file:/run/token}"),
            ("${TOKEN:-$TOKEN}", "${TOKEN:-$TOKEN}"),
            ("", ""),
            ("${TOKEN:-s3cret}", "***"),
            ("s3cret${TOKEN}", "***"),
            ("${A}s3cret${B}", "***"),
            ("Bearer s3cret", "***"),
            ("debug", "***"),
        ] {
            assert_eq!(value_of(&text.into()).expose(), expected);
        }
    }

    #[test]
    fn arguments_show_unless_they_look_like_secrets() {
        let args = [
            ("-y", "-y"),
            ("@scope/server@1.2.3", "@scope/server@1.2.3"),
            ("mcp-server-git", "mcp-server-git"),
            ("/home/me/projects2024/notes", "/home/me/projects2024/notes"),
            ("--api-key", "--api-key"),
            ("short", "***"),
            ("--token=abc", "--token=***"),
            ("-e", "-e"),
            ("GITHUB_TOKEN=abc", "GITHUB_TOKEN=***"),
            ("--header", "--header"),
            ("Authorization: Bearer abc", "Authorization:***"),
            ("ghp_abc", "***"),
            ("0123456789abcdef0123", "***"),
            ("postgres://user:pass@host/db", "***"),
            ("https://example.com/mcp?key=1", "***"),
            ("https://example.com/mcp", "https://example.com/mcp"),
            ("${TOKEN}", "${TOKEN}"),
        ];
        let shown = arguments(&args.map(|(arg, _)| Secret::from(arg)));
        let shown: Vec<&str> = shown.iter().map(Secret::expose).collect();
        assert_eq!(shown, args.map(|(_, expected)| expected));
    }
}
