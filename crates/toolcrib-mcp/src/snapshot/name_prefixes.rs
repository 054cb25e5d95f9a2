//! The prefixes of each server's tools, prompts and resources.
//!
//! Prefixes come from the config, and no two servers have the same prefix. A name consists of a prefix and the server's
//! own name, so no server can choose a name that changes or replaces another server's. The one server with an empty
//! prefix keeps its own names. If such a name could also belong to another server, a hash is added to it, whether or
//! not the other server has such a name.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use toolcrib_core::{IngestedTools, is_app_uri, wire_name};

use super::SnapshotServer;
use crate::config::ToolOverride;

/// The non-empty prefixes of all servers.
#[derive(Debug)]
pub(super) struct Prefixes(BTreeSet<String>);

/// Returns the prefix of one server. The default is the server's name.
pub(super) fn prefix(server: &SnapshotServer) -> &str {
    server.config.prefix.as_deref().unwrap_or(&server.name)
}

impl Prefixes {
    pub(super) fn of(servers: &[SnapshotServer]) -> Self {
        let all = servers.iter().map(prefix).filter(|prefix| !prefix.is_empty());
        Self(all.map(str::to_owned).collect())
    }

    /// Gives a server's tools the names that clients use.
    ///
    /// A name depends only on the config and on the tool's own name. If the config gives a tool the name of another
    /// tool, the other tool gets a name with a hash, whether or not the server lists both. So a server cannot use its
    /// list to move a name from one tool to another.
    pub(super) fn rename_tools(
        &self,
        prefix: &str,
        overrides: &BTreeMap<String, ToolOverride>,
        tools: IngestedTools,
    ) -> IngestedTools {
        let given: BTreeSet<&str> =
            overrides.values().filter_map(|change| change.name.as_deref()).collect();
        tools.renamed(|own| match overrides.get(own).and_then(|change| change.name.as_deref()) {
            Some(name) => Cow::Owned(self.tool_name(prefix, name).into_owned()),
            None if given.contains(own) => Cow::Owned(wire_name::for_displaced_tool(prefix, own)),
            None => self.tool_name(prefix, own),
        })
    }

    /// Returns the name that clients use for a tool that the config does not rename.
    pub(super) fn tool_name<'n>(&self, prefix: &str, own_name: &'n str) -> Cow<'n, str> {
        if prefix.is_empty() {
            self.unprefixed_name(own_name)
        } else {
            Cow::Owned(wire_name::for_tool(prefix, own_name))
        }
    }

    /// Returns the name that clients use for a tool or prompt of the server with an empty prefix.
    pub(super) fn unprefixed_name<'n>(&self, own_name: &'n str) -> Cow<'n, str> {
        wire_name::for_unprefixed_tool(own_name, self.0.iter().map(String::as_str))
    }

    /// Whether a URI begins with the prefix of any server.
    pub(super) fn has_any_uri_prefix(&self, uri: &str) -> bool {
        self.0.iter().any(|prefix| strip_uri_prefix(prefix, uri).is_some())
    }
}

/// Adds a server's prefix to one of its URIs. The address of a user interface (MCP Apps) gets no prefix: hosts look for its
/// scheme, and find the address in the `_meta` of a tool.
pub(crate) fn prefixed_uri(prefix: &str, own_uri: &str) -> String {
    if prefix.is_empty() || is_app_uri(own_uri) {
        own_uri.to_owned()
    } else {
        format!("{}+{own_uri}", scheme_prefix(prefix))
    }
}

/// Returns the server's own URI, if `uri` begins with the prefix.
pub(crate) fn strip_uri_prefix<'a>(prefix: &str, uri: &'a str) -> Option<&'a str> {
    uri.strip_prefix(&*scheme_prefix(prefix))?.strip_prefix('+')
}

/// Converts a prefix to the form that it has in URIs, which begins with a letter and contains only letters, digits, `.`
/// and `-`. A prefix that does not have this form gets a hash, so that it stays different from other prefixes.
fn scheme_prefix(prefix: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if prefix.starts_with(|c: char| c.is_ascii_alphabetic()) && prefix.chars().all(is_allowed) {
        return prefix.to_owned();
    }
    let hash = blake3::hash(prefix.as_bytes()).to_hex();
    let readable: String =
        prefix.chars().map(|c| if is_allowed(c) { c } else { '-' }).take(40).collect();
    format!("s-{readable}-{}", &hash[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixed_uris_name_their_server_and_never_clash() {
        assert_eq!(prefixed_uri("notes", "file:///a"), "notes+file:///a");
        assert_eq!(prefixed_uri("", "file:///a"), "file:///a");
        assert_eq!(prefixed_uri("notes", "ui://a"), "ui://a");
        assert_eq!(strip_uri_prefix("notes", "notes+ui://a"), Some("ui://a"));
        assert_eq!(strip_uri_prefix("notes", "notes+file:///a"), Some("file:///a"));
        assert_eq!(strip_uri_prefix("note", "notes+file:///a"), None);
        assert_ne!(prefixed_uri("my notes", "x:1"), prefixed_uri("my-notes", "x:1"));
        let uri = prefixed_uri("名前 1", "x:1");
        assert!(uri.starts_with("s-") && uri.ends_with("+x:1"), "{uri}");
    }
}
