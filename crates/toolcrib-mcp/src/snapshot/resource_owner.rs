//! Determines which server a URI without a server's prefix belongs to.
//!
//! Clients know resources by URIs with a prefix (`notes+file:///a.txt`). Servers use their own URIs in results, and
//! clients read those as well. Such a URI belongs to the only server that claims it. A server claims the URIs that it
//! lists, those of its tools' user interfaces, and those that begin with the text before the first variable of one of its
//! templates. If no server lists a URI, it is also claimed by the servers that list other URIs with the same scheme, and
//! on the web with the same host. This last rule does not apply to user interfaces.
//! A template that spells out no scheme claims nothing, and neither does one for the web or for user interfaces that spells
//! out no host. So it cannot capture other servers' URIs.
//!
//! Rejected: the most specific claim wins. A server could list a URI that another server's template covers, or spell
//! out a longer prefix, to receive the other server's reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::entry_list::EntryList;

/// The scheme of the addresses of user interfaces.
const APP_SCHEME: &str = "ui";

/// Which server a URI belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResourceOwner {
    /// Exactly one server claims the URI.
    Server(Arc<str>),
    /// Several servers claim the URI. They are sorted by name.
    Ambiguous(Vec<Arc<str>>),
    /// No server claims the URI.
    Unknown,
}

impl ResourceOwner {
    fn of(servers: BTreeSet<&Arc<str>>) -> Self {
        let mut servers: Vec<_> = servers.into_iter().map(Arc::clone).collect();
        match servers.len() {
            0 => Self::Unknown,
            1 => servers.pop().map_or(Self::Unknown, Self::Server),
            _ => Self::Ambiguous(servers),
        }
    }
}

/// Determines which of the included servers a URI belongs to. `with_tool` are the included servers with a tool whose user
/// interface has this URI. Servers need not list such URIs.
pub(super) fn resource_owner(
    uri: &str,
    with_tool: &BTreeSet<Arc<str>>,
    resources: &EntryList,
    templates: &EntryList,
    includes: impl Fn(&str) -> bool,
) -> ResourceOwner {
    let resources = || resources.iter().filter(|entry| includes(&entry.server));
    let templates = templates.iter().filter(|entry| includes(&entry.server));
    let listed = resources().filter(|entry| entry.own_name == uri).map(|entry| &entry.server);
    let mut claimants: BTreeSet<&Arc<str>> = listed.chain(with_tool).collect();
    let uri = lowercase_authority(uri);
    let covers = |prefix: Option<String>| prefix.is_some_and(|prefix| uri.starts_with(&prefix));
    if claimants.is_empty() {
        let by_prefix = resources().filter(|entry| covers(claimed_prefix(&entry.own_name)));
        claimants.extend(by_prefix.map(|entry| &entry.server));
    }
    let by_template = templates.filter(|entry| covers(template_prefix(&entry.own_name)));
    claimants.extend(by_template.map(|entry| &entry.server));
    ResourceOwner::of(claimants)
}

/// Returns the prefix of the URIs that a server claims by listing this URI: the URI's scheme and, on the web, also its
/// host. Returns `None` if the URI lacks one of these, or is the address of a user interface: all servers use the same
/// scheme for these, and the user must not see the interface of another server.
fn claimed_prefix(uri: &str) -> Option<String> {
    let uri = lowercase_authority(uri);
    let scheme = scheme(&uri).filter(|scheme| *scheme != APP_SCHEME)?;
    if is_web(scheme) {
        let host_ends = authority_end(&uri)?;
        return Some(format!("{}/", &uri[..host_ends]));
    }
    Some(format!("{scheme}:"))
}

/// Returns the text of a template before its first variable. Returns `None` if this text does not spell out a scheme
/// and, on the web and for user interfaces, also a host.
fn template_prefix(template: &str) -> Option<String> {
    let literal = template.split('{').next().unwrap_or_default();
    let prefix = lowercase_authority(literal);
    let scheme = scheme(&prefix)?;
    let host = authority_end(&prefix).is_some_and(|end| prefix[end..].starts_with('/'));
    (host || !is_web(scheme) && scheme != APP_SCHEME).then_some(prefix)
}

/// Converts the scheme and the host of a URI to lower case, because these parts are case-insensitive.
fn lowercase_authority(uri: &str) -> String {
    let end = match (scheme(uri), authority_end(uri)) {
        (Some(_), Some(end)) => end,
        (Some(scheme), None) => scheme.len(),
        (None, _) => return uri.to_owned(),
    };
    format!("{}{}", uri[..end].to_ascii_lowercase(), &uri[end..])
}

fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(plain))
        .then_some(scheme)
}

/// Returns the index at which a URI's host and port end, or `None` for a URI without a host, such as `urn:a`.
fn authority_end(uri: &str) -> Option<usize> {
    let start = scheme(uri)?.len() + 1;
    let rest = uri.get(start..)?.strip_prefix("//")?;
    Some(start + 2 + rest.find(['/', '?', '#']).unwrap_or(rest.len()))
}

fn is_web(scheme: &str) -> bool {
    matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_uri_claims_its_scheme_or_its_host() {
        for (uri, expected) in [
            ("file:///a/b", Some("file:")),
            ("NOTE://Box/1", Some("note:")),
            ("https://Example.com:80/A", Some("https://example.com:80/")),
            ("https://example.com", Some("https://example.com/")),
            ("urn:isbn:1", Some("urn:")),
            ("ui://view/a", None),
            ("/no/scheme", None),
            ("1x:y", None),
        ] {
            assert_eq!(claimed_prefix(uri).as_deref(), expected, "{uri}");
        }
    }

    #[test]
    fn a_template_claims_what_it_spells_out() {
        for (template, expected) in [
            ("{+path}", None),
            ("{scheme}://{+rest}", None),
            ("https://{+rest}", None),
            ("https://example.com{+rest}", None),
            ("https://Example.com/{+rest}", Some("https://example.com/")),
            ("file:///{+path}", Some("file:///")),
            ("note://{id}", Some("note://")),
            ("Note:{id}", Some("note:")),
            ("ui://{+rest}", None),
            ("ui://chart/{id}", Some("ui://chart/")),
        ] {
            assert_eq!(template_prefix(template).as_deref(), expected, "{template}");
        }
    }
}
