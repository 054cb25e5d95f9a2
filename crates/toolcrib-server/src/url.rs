//! URLs in a config: whether a URL is usable, and how much of it may be printed.
//!
//! URLs are parsed only as far as these two questions require. The HTTP client parses them completely. Only a part of a
//! URL may be printed, because people put keys before the host, into the query and into the path.

/// Returns what is wrong with a URL, phrased so that it can follow the name of the config key. `None` if nothing is
/// wrong.
pub fn problem(url: &str) -> Option<&'static str> {
    if url.starts_with('-') {
        return Some("begins with `-`");
    }
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("contains spaces or control characters");
    }
    let Some((_, rest)) = split(url) else { return Some("is not an http or https address") };
    let (authority, _) = authority(rest);
    if authority.contains('@') {
        return Some("has a user name or password in it");
    }
    let (host, port) = host_and_port(authority);
    if host.is_empty() || host == "[]" {
        return Some("names no host");
    }
    port.is_some_and(|port| port.parse::<u16>().is_err()).then_some("has an invalid port")
}

/// Returns the URL without its user name, password and query, and without path segments that look like keys, so that it
/// may be printed.
pub fn redact(url: &str) -> String {
    let Some((scheme, rest)) = split(url) else { return "***".into() };
    let (authority, path) = authority(rest);
    let host = authority.rsplit('@').next().unwrap_or_default();
    let user = if host.len() < authority.len() { "***@" } else { "" };
    let (path, query) = match path.find(['?', '#']) {
        Some(at) => (&path[..at], "?***"),
        None => (path, ""),
    };
    let parts: Vec<&str> =
        path.split('/').map(|part| if looks_like_key(part) { "***" } else { part }).collect();
    format!("{scheme}://{user}{host}{}{query}", parts.join("/"))
}

/// Whether a URL refers to this machine, to this port if there is one, and to `base` or a path below it.
pub fn is_local(url: &str, port: Option<u16>, base: &str) -> bool {
    let Some((_, rest)) = split(url) else { return false };
    let (authority, path) = authority(rest);
    let (host, written) = host_and_port(authority.rsplit('@').next().unwrap_or_default());
    let local = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"];
    let path = path.split(['?', '#']).next().unwrap_or_default();
    local.iter().any(|name| host.eq_ignore_ascii_case(name))
        && (port.is_none() || written.and_then(|written| written.parse().ok()) == port)
        && path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a text could be a key: at least 16 ASCII letters, digits or characters of `_-.+=`, with at least one letter
/// and one digit.
pub fn looks_like_key(text: &str) -> bool {
    text.len() >= 16
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '='))
        && text.contains(|c: char| c.is_ascii_digit())
        && text.contains(|c: char| c.is_ascii_alphabetic())
}

/// Splits an `http` or `https` URL into its scheme and the rest. Returns `None` for any other URL.
fn split(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    ["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
        .then_some((scheme, rest))
}

fn authority(rest: &str) -> (&str, &str) {
    rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()))
}

fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    // A colon inside brackets belongs to an IPv6 address and does not begin the port.
    match authority.rfind(':') {
        Some(at) if !authority[at..].contains(']') => {
            (&authority[..at], Some(&authority[at + 1..]))
        }
        _ => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_urls_with_a_host_are_usable() {
        for (url, expected) in [
            ("https://example.com/mcp", None),
            ("HTTP://[::1]:8080/mcp", None),
            ("http://localhost:3000", None),
            ("ftp://example.com", Some("is not an http or https address")),
            ("example.com", Some("is not an http or https address")),
            ("--help", Some("begins with `-`")),
            ("https:///mcp", Some("names no host")),
            ("https://:80/mcp", Some("names no host")),
            ("https://u:p@example.com", Some("has a user name or password in it")),
            ("https://example.com:99999", Some("has an invalid port")),
            ("https://exam ple.com", Some("contains spaces or control characters")),
        ] {
            assert_eq!(problem(url), expected, "{url}");
        }
    }

    #[test]
    fn possible_keys_are_redacted() {
        for (url, expected) in [
            ("https://u:p@example.com/mcp?key=1#x", "https://***@example.com/mcp?***"),
            ("https://example.com/s/a1b2c3d4e5f6a7b8/mcp", "https://example.com/s/***/mcp"),
            ("https://example.com/mcp/v1", "https://example.com/mcp/v1"),
            ("what is this", "***"),
        ] {
            assert_eq!(redact(url), expected);
        }
    }

    #[test]
    fn local_urls_are_recognised() {
        for (url, is_ours) in [
            ("http://127.0.0.1:4180/mcp", true),
            ("http://LOCALHOST:4180/mcp/work?x=1", true),
            ("http://[::1]:4180/mcp", true),
            ("http://127.0.0.1:4181/mcp", false),
            ("http://127.0.0.1:4180/mcpx", false),
            ("http://example.com:4180/mcp", false),
        ] {
            assert_eq!(is_local(url, Some(4180), "/mcp"), is_ours, "{url}");
        }
    }
}
