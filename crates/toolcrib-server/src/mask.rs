//! Masks secrets in parts of a config before they are printed. Literals that may be tokens become `***`, and references
//! are kept. [`bytes`] masks one known secret in any other data.
//!
//! Values of environment variables and headers are always masked. Command line arguments are mostly names of packages
//! and folders, and a preview without them would be useless, so only those that look like secrets are masked.

use crate::Secret;
use crate::expand::is_variable_name;
use crate::url::{looks_like_key, redact};

/// The replacement for a secret.
const MASK: &str = "***";
/// If the name of a command line option contains one of these words, its value is a secret.
const SECRET_WORDS: [&str; 8] =
    ["key", "token", "secret", "password", "passwd", "auth", "credential", "bearer"];
/// Prefixes of the tokens of well-known services.
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

/// Removes the secrets from a URL. A URL that is a single reference is kept. A URL that only begins with a reference is
/// masked.
pub fn url(url: &str) -> String {
    let shown = redact(url);
    let is_all_reference = url.contains("${") && is_reference(url);
    if shown == MASK && is_all_reference { url.to_owned() } else { shown }
}

/// Masks a value unless it is a reference such as `${NAME}`.
pub fn value(value: &Secret) -> Secret {
    if is_reference(value.expose()) { value.clone() } else { MASK.into() }
}

/// Masks the command line arguments that look like secrets.
pub fn arguments(args: &[Secret]) -> Vec<Secret> {
    // Whether the previous argument is an option whose value is a secret.
    let mut after_secret_option = false;
    let mask = |arg: &Secret| {
        let text = arg.expose();
        let takes_value = is_secret_option(text) && !text.contains(['=', ' ', ':']);
        let is_value = std::mem::replace(&mut after_secret_option, takes_value);
        let hide = !is_reference(text) && (is_value || is_secret(text));
        if hide { mask_argument(text) } else { arg.clone() }
    };
    args.iter().map(mask).collect()
}

/// Masks a secret in these bytes. Returns `None` if they do not contain the secret, or if the secret is too short to be
/// searched for.
pub fn bytes(bytes: &[u8], secret: &Secret) -> Option<Vec<u8>> {
    let key = secret.expose().as_bytes();
    let find = |bytes: &[u8]| bytes.windows(key.len()).position(|window| window == key);
    let mut at = secret.is_searchable().then(|| find(bytes)).flatten()?;
    let (mut masked, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    loop {
        masked.extend_from_slice(&rest[..at]);
        masked.extend_from_slice(MASK.as_bytes());
        rest = &rest[at + key.len()..];
        match find(rest) {
            Some(next) => at = next,
            None => break,
        }
    }
    masked.extend_from_slice(rest);
    Some(masked)
}

/// Whether a text consists of one reference, optionally after the name of an authentication scheme.
fn is_reference(text: &str) -> bool {
    let text = ["Bearer ", "bearer ", "Basic ", "token "]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
        .unwrap_or(text);
    text.is_empty()
        || text
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'))
            .is_some_and(has_no_literal)
}

/// Whether the text between the braces of a reference has no literal part. A default that repeats the name, as in
/// `${NAME:-$NAME}`, is not a literal.
fn has_no_literal(inner: &str) -> bool {
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = inner.split_once(":-").unwrap_or((inner, ""));
    let same = default.is_empty() || default.strip_prefix('$') == Some(name);
    same && is_variable_name(name)
        || ["file:", "input:"]
            .iter()
            .any(|kind| inner.starts_with(kind) && !inner.contains(['{', '}']))
}

/// Whether an argument is the name of an option whose value is a secret.
fn is_secret_option(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    text.starts_with('-') && SECRET_WORDS.iter().any(|word| lower.contains(word))
}

fn is_secret(text: &str) -> bool {
    let bare = text.rsplit('/').next().unwrap_or_default();
    PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        // Texts such as `TOKEN=…`, `--token=…`, `Authorization: …`, `postgres://user:…@host` and `https://…?key=…`.
        || text.contains('=')
        || text.contains(": ")
        || text.contains("://") && (redact(text) != text)
        || !text.contains(['/', '@']) && looks_like_key(bare) && !text.starts_with("--")
}

/// Masks the value in an argument such as `--token=…` and keeps the name before it.
fn mask_argument(text: &str) -> Secret {
    match text.find(['=', ':', ' ']) {
        Some(at)
            if text[..at].len() <= 40 && !looks_like_key(&text[..at]) && !text.contains("://") =>
        {
            format!("{}{MASK}", &text[..=at]).into()
        }
        _ => MASK.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stay_and_literals_are_masked() {
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
            assert_eq!(value(&text.into()).expose(), expected);
        }
    }

    #[test]
    fn a_known_secret_is_masked_everywhere() {
        let mask = |text: &str, secret: &str| {
            let masked = bytes(text.as_bytes(), &secret.into())?;
            Some(String::from_utf8(masked).unwrap())
        };
        let secret = "sk-012345";
        assert_eq!(mask("sk-012345, sk-012345x", secret).as_deref(), Some("***, ***x"));
        assert_eq!(mask("sk-01234", secret), None);
        assert_eq!(mask("", secret), None);
        assert_eq!(mask("a key", "key"), None, "too short to be searched for");
    }

    #[test]
    fn only_arguments_that_look_like_secrets_are_masked() {
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
