//! What stands before the names of each server's tools, prompts and resources.
//!
//! Prefixes come from the config, and no two servers have the same one. A name is made of a prefix and the
//! server's own name for the thing, so no server can choose a name that changes or takes another's. The one
//! server whose prefix is empty keeps its own names; of those, the ones that could be another server's get a
//! hash, whether or not the other server has such a name.

use std::borrow::Cow;
use std::collections::BTreeSet;

use toolcrib_core::{IngestedTools, wire_name};

use super::SnapshotServer;

/// The prefixes of all servers.
#[derive(Debug)]
pub(super) struct Prefixes(BTreeSet<String>);

/// What stands before the names of one server.
pub(super) fn prefix(server: &SnapshotServer) -> &str {
    server.config.prefix.as_deref().unwrap_or(&server.name)
}

impl Prefixes {
    pub(super) fn of(servers: &[SnapshotServer]) -> Self {
        let all = servers.iter().map(prefix).filter(|prefix| !prefix.is_empty());
        Self(all.map(str::to_owned).collect())
    }

    /// A server's tools under the names that clients use.
    pub(super) fn rename_tools(&self, prefix: &str, tools: IngestedTools) -> IngestedTools {
        if prefix.is_empty() {
            tools.renamed(|own| self.unprefixed_name(own))
        } else {
            tools.prefixed(prefix)
        }
    }

    /// The name of a tool or prompt of the server without a prefix.
    pub(super) fn unprefixed_name<'n>(&self, own: &'n str) -> Cow<'n, str> {
        wire_name::unprefixed(own, self.0.iter().map(String::as_str))
    }

    /// Whether an address begins as the addresses of a server with a prefix do.
    pub(super) fn matches_any_uri_prefix(&self, own: &str) -> bool {
        self.0.iter().any(|prefix| strip_uri_prefix(prefix, own).is_some())
    }
}

/// An address that names its server.
pub(crate) fn prefixed_uri(prefix: &str, own: &str) -> String {
    if prefix.is_empty() { own.to_owned() } else { format!("{}+{own}", scheme(prefix)) }
}

/// The part of an address that was its server's own, where it begins as that server's addresses do.
pub(crate) fn strip_uri_prefix<'a>(prefix: &str, address: &'a str) -> Option<&'a str> {
    address.strip_prefix(&*scheme(prefix))?.strip_prefix('+')
}

/// A server's name as the beginning of a scheme: letters, digits, `.` and `-` are all it may have.
fn scheme(prefix: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if prefix.starts_with(|c: char| c.is_ascii_alphabetic()) && prefix.chars().all(plain) {
        return prefix.to_owned();
    }
    let hash = blake3::hash(prefix.as_bytes()).to_hex();
    let readable: String =
        prefix.chars().map(|c| if plain(c) { c } else { '-' }).take(40).collect();
    format!("s-{readable}-{}", &hash[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_their_server_and_nobody_elses_can_be_the_same() {
        assert_eq!(prefixed_uri("notes", "file:///a"), "notes+file:///a");
        assert_eq!(prefixed_uri("", "file:///a"), "file:///a");
        assert_eq!(strip_uri_prefix("notes", "notes+file:///a"), Some("file:///a"));
        assert_eq!(strip_uri_prefix("note", "notes+file:///a"), None);
        assert_ne!(prefixed_uri("my notes", "x:1"), prefixed_uri("my-notes", "x:1"));
        let odd = prefixed_uri("名前 1", "x:1");
        assert!(odd.starts_with("s-") && odd.ends_with("+x:1"), "{odd}");
    }
}
