//! What stands before the names of each server's tools, prompts and resources.
//!
//! Prefixes come from the config, and no two servers have the same one. A name is made of a prefix and the
//! server's own name for the thing, so no server can choose a name that changes or takes another's. The one
//! server whose prefix is empty keeps its own names; of those, the ones that could be another server's get a
//! hash, whether or not the other server has such a name.

use std::borrow::Cow;
use std::collections::BTreeSet;

use toolcrib_core::{IngestedTools, wire_name};

use super::Supplier;

/// The prefixes of all servers.
#[derive(Debug)]
pub(super) struct Prefixes(BTreeSet<String>);

/// What stands before the names of one server.
pub(super) fn prefix(supplier: &Supplier) -> &str {
    supplier.config.prefix.as_deref().unwrap_or(&supplier.name)
}

impl Prefixes {
    pub(super) fn of(suppliers: &[Supplier]) -> Self {
        let all = suppliers.iter().map(prefix).filter(|prefix| !prefix.is_empty());
        Self(all.map(str::to_owned).collect())
    }

    /// A server's tools under the names that clients use.
    pub(super) fn name_tools(&self, prefix: &str, tools: IngestedTools) -> IngestedTools {
        if prefix.is_empty() {
            tools.renamed(|own| self.unprefixed(own))
        } else {
            tools.prefixed(prefix)
        }
    }

    /// The name of a tool or prompt of the server without a prefix.
    pub(super) fn unprefixed<'n>(&self, own: &'n str) -> Cow<'n, str> {
        wire_name::unprefixed(own, self.0.iter().map(String::as_str))
    }

    /// Whether an address begins as the addresses of a server with a prefix do.
    pub(super) fn begin_address(&self, own: &str) -> bool {
        self.0.iter().any(|prefix| own_address(prefix, own).is_some())
    }
}

/// An address that names its server.
pub(crate) fn address(prefix: &str, own: &str) -> String {
    if prefix.is_empty() { own.to_owned() } else { format!("{}+{own}", scheme(prefix)) }
}

/// The part of an address that was its server's own, where it begins as that server's addresses do.
pub(crate) fn own_address<'a>(prefix: &str, address: &'a str) -> Option<&'a str> {
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
        assert_eq!(address("notes", "file:///a"), "notes+file:///a");
        assert_eq!(address("", "file:///a"), "file:///a");
        assert_eq!(own_address("notes", "notes+file:///a"), Some("file:///a"));
        assert_eq!(own_address("note", "notes+file:///a"), None);
        assert_ne!(address("my notes", "x:1"), address("my-notes", "x:1"));
        let odd = address("名前 1", "x:1");
        assert!(odd.starts_with("s-") && odd.ends_with("+x:1"), "{odd}");
    }
}
