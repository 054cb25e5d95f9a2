//! Which server an address belongs to that does not name its server.
//!
//! Clients know resources by addresses with their server's name (`notes+file:///a.txt`). Servers speak of
//! their own addresses in results, and clients read those as well. Such an address goes to the only
//! server that resource_owner it. A server resource_owner the addresses that it lists and those that begin with the text of one of its
//! templates before the first variable. If no server lists an address, those that list others of the same scheme (on
//! the web: of the same host) claim it as well. A template that spells out no scheme, or no host on the web, resource_owner
//! nothing, so that it cannot capture the addresses of others.
//!
//! Rejected: the most specific claim wins. A server could list an address that another's template covers, or spell out
//! a longer beginning, to receive the other's reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::entry_list::EntryList;

/// Whose address it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResourceOwner {
    /// This server's.
    One(Arc<str>),
    /// Several servers claim it, in the order of their names.
    Several(Vec<Arc<str>>),
    /// No server resource_owner it.
    Nobody,
}

impl ResourceOwner {
    fn of(servers: BTreeSet<&Arc<str>>) -> Self {
        let mut servers: Vec<_> = servers.into_iter().map(Arc::clone).collect();
        match servers.len() {
            0 => Self::Nobody,
            1 => servers.pop().map_or(Self::Nobody, Self::One),
            _ => Self::Several(servers),
        }
    }
}

/// Whose an address is among some servers.
pub(super) fn resource_owner(
    uri: &str,
    resources: &EntryList,
    templates: &EntryList,
    of: impl Fn(&str) -> bool,
) -> ResourceOwner {
    let resources = || resources.iter().filter(|entry| of(&entry.server));
    let templates = templates.iter().filter(|entry| of(&entry.server));
    let listed = resources().filter(|entry| entry.own_name == uri).map(|entry| &entry.server);
    let mut claimants: BTreeSet<&Arc<str>> = listed.collect();
    let uri = folded(uri);
    let covers = |space: Option<String>| space.is_some_and(|space| uri.starts_with(&space));
    if claimants.is_empty() {
        let by_space = resources().filter(|entry| covers(space(&entry.own_name)));
        claimants.extend(by_space.map(|entry| &entry.server));
    }
    let by_template = templates.filter(|entry| covers(beginning(&entry.own_name)));
    claimants.extend(by_template.map(|entry| &entry.server));
    ResourceOwner::of(claimants)
}

/// The addresses that a server resource_owner by listing one: those of its scheme, on the web those of its host.
fn space(uri: &str) -> Option<String> {
    let uri = folded(uri);
    let scheme = scheme(&uri)?;
    if is_web(scheme) {
        let host_ends = authority_end(&uri)?;
        return Some(format!("{}/", &uri[..host_ends]));
    }
    Some(format!("{scheme}:"))
}

/// The beginning of a template up to its first variable, if that spells out a scheme, and a host on the web.
fn beginning(template: &str) -> Option<String> {
    let literal = template.split('{').next().unwrap_or_default();
    let begins = folded(literal);
    let scheme = scheme(&begins)?;
    let host = authority_end(&begins).is_some_and(|end| begins[end..].starts_with('/'));
    (host || !is_web(scheme)).then_some(begins)
}

/// An address with its scheme and host in lower case: those are the same in any case.
fn folded(uri: &str) -> String {
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

/// Where the host of an address ends, with its port; `None` for an address without one, such as `urn:a`.
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
    fn a_listed_address_claims_its_scheme_or_its_host() {
        for (uri, expected) in [
            ("file:///a/b", Some("file:")),
            ("NOTE://Box/1", Some("note:")),
            ("https://Example.com:80/A", Some("https://example.com:80/")),
            ("https://example.com", Some("https://example.com/")),
            ("urn:isbn:1", Some("urn:")),
            ("/no/scheme", None),
            ("1x:y", None),
        ] {
            assert_eq!(space(uri).as_deref(), expected, "{uri}");
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
        ] {
            assert_eq!(beginning(template).as_deref(), expected, "{template}");
        }
    }
}
