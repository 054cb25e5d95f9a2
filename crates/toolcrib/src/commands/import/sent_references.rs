//! The variables and files whose contents would be sent to a project's server, because its URL or its headers refer to
//! them.

use std::collections::BTreeSet;
use std::iter;

use toolcrib_mcp::Secret;
use toolcrib_mcp::config::{Server, Transport};
use toolcrib_server::expand::is_variable_name;

/// Returns a notice for each variable and each file whose contents would be sent to the server. The contents are not
/// read.
pub(super) fn notices(name: &str, server: &Server) -> Vec<String> {
    let Transport::Http { url, headers, oauth, .. } = &server.transport else { return Vec::new() };
    let secrets = headers.values().chain(&oauth.client_secret).map(Secret::expose);
    let sent: BTreeSet<String> =
        iter::once(url.as_str()).chain(secrets).flat_map(references).collect();
    let origin = origin(url);
    sent.into_iter().map(|sent| format!("`{name}` sends {sent} to {origin}")).collect()
}

/// Returns the variables and files that a text refers to, including references in default values.
fn references(text: &str) -> Vec<String> {
    let mut references = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        rest = after;
        if before.ends_with('$') {
            continue;
        }
        if let Some(path) = after.strip_prefix("file:") {
            let path = path.split('}').next().unwrap_or_default();
            references.push(format!("the file {path}"));
            continue;
        }
        let after = after.strip_prefix("env:").unwrap_or(after);
        let name = after.split(['}', ':']).next().unwrap_or_default();
        if is_variable_name(name) && !matches!(name, "userHome" | "workspaceFolder" | "input") {
            references.push(format!("the variable {name}"));
        }
    }
    references
}

/// Returns the scheme and the host of a URL. References in the URL are not expanded.
fn origin(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) if ["http", "https"].contains(&scheme) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}")
        }
        _ => "the host in its `url`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_anywhere_in_a_text() {
        for (text, expected) in [
            ("Bearer ${A}", &["the variable A"][..]),
            ("${env:A}${B:-${C:-x}}", &["the variable A", "the variable B", "the variable C"][..]),
            ("${file:~/key}", &["the file ~/key"][..]),
            ("$${A} $${file:~/key} ${userHome} ${input:a} ${", &[][..]),
            ("$${A}${B}", &["the variable B"][..]),
        ] {
            assert_eq!(references(text), expected, "{text}");
        }
    }

    #[test]
    fn an_origin_has_no_password_and_no_path() {
        for (url, expected) in [
            ("http://host:80/a?b", "http://host:80"),
            ("https://me:secret@${A}.example/${B}", "https://${A}.example"),
            ("${URL:-https://a}/mcp", "the host in its `url`"),
        ] {
            assert_eq!(origin(url), expected);
        }
    }
}
