//! Prompts and resources of all servers, under names that cannot clash.
//!
//! A prompt gets a wire name from its server's prefix and its own name, as tools do. In a resource's URI the prefix is
//! put before the scheme: `notes+file:///a.txt`. So the name or URI that clients use depends only on the server and on
//! the server's own name for the entry. The server with an empty prefix keeps its own names, unless a name could be
//! another server's. Such a prompt is renamed, and such a resource is withheld. Hidden characters are removed from
//! texts. An entry with hidden characters in its name, URI or keys is withheld, because its server would not recognise
//! the cleaned name.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::wire_name;

use super::SnapshotServer;
use super::list_warnings::ListWarningsBuilder;
use super::name_prefixes::{Prefixes, prefix, prefixed_uri};
use crate::hidden_text::{
    class_names, clean_value, has_hidden_key, has_invisible_chars, loggable_name,
};
use crate::upstream::Definitions;

/// The kinds of entries that servers list, apart from tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Prompts,
    Resources,
    Templates,
}

impl EntryKind {
    /// Returns the word for one entry of this kind, for the log.
    fn noun(self) -> &'static str {
        match self {
            Self::Prompts => "prompt",
            Self::Resources => "resource",
            Self::Templates => "resource template",
        }
    }

    /// Returns the key in a definition that identifies the entry.
    fn key(self) -> &'static str {
        match self {
            Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// A prompt, resource or resource template of one server.
#[derive(Debug, Clone)]
pub(crate) struct ListEntry {
    pub(crate) server: Arc<str>,
    /// The name, URI or URI template that the server itself uses for the entry.
    pub(crate) own_name: String,
    /// The server's definition, with the name that clients use.
    pub(crate) definition: Value,
}

/// All entries of one kind, from all servers.
#[derive(Debug)]
pub(crate) struct EntryList {
    listed: Vec<ListEntry>,
    /// For each name that clients use, the indexes of its entries in `listed`, in the order of the servers.
    by_name: HashMap<String, Vec<usize>>,
}

impl EntryList {
    pub(super) fn build<'a>(
        kind: EntryKind,
        prefixes: &Prefixes,
        lists: impl Iterator<Item = (&'a SnapshotServer, &'a Definitions)>,
        warnings: &mut ListWarningsBuilder<'_>,
    ) -> Self {
        let key = kind.key();
        let mut entries = Self { listed: Vec::new(), by_name: HashMap::new() };
        for (server, list) in lists {
            let (prefix, server) = (prefix(server), &server.name);
            for mut definition in list.values() {
                let Some(own_name) = definition.get(key).and_then(Value::as_str) else { continue };
                let own_name = own_name.to_owned();
                let noun = kind.noun();
                if let Some(reason) =
                    withheld_reason(kind, prefix, prefixes, &own_name, &definition)
                {
                    warnings.add(
                        server,
                        &format!("{noun} `{}` withheld: {reason}", loggable_name(&own_name)),
                    );
                    continue;
                }
                let name = match kind {
                    EntryKind::Prompts if prefix.is_empty() => {
                        prefixes.unprefixed_name(&own_name).into_owned()
                    }
                    EntryKind::Prompts => wire_name::for_tool(prefix, &own_name),
                    EntryKind::Resources | EntryKind::Templates => prefixed_uri(prefix, &own_name),
                };
                let warning =
                    |problem: &str| format!("{noun} `{}` {problem}", loggable_name(&name));
                let indexes = entries.by_name.entry(name.clone()).or_default();
                match indexes.last().map(|last| &entries.listed[*last].server) {
                    Some(last) if last == server => {
                        warnings.add(server, &warning("is listed twice; the first one is used"));
                        continue;
                    }
                    Some(_) => {
                        warnings.add(server, &warning("has the same name as another server's"));
                    }
                    None => {}
                }
                indexes.push(entries.listed.len());
                let removed = clean_value(&mut definition);
                if !removed.is_empty() {
                    let (name, removed) = (loggable_name(&name), class_names(&removed));
                    let line = format!("{noun} `{name}`: hidden characters removed: {removed}");
                    warnings.add(server, &line);
                }
                if let Some(fields) = definition.as_object_mut() {
                    fields.insert(key.to_owned(), Value::String(name));
                }
                entries.listed.push(ListEntry { server: Arc::clone(server), own_name, definition });
            }
        }
        entries
    }

    /// Returns the definitions of the entries of the included servers, in order. If several of these servers use the
    /// same name, only the first server's entry is listed.
    pub(crate) fn list(&self, includes: impl Fn(&str) -> bool) -> Vec<&Value> {
        let mut first_indexes: Vec<usize> =
            self.by_name.values().filter_map(|at| self.first(at, &includes)).collect();
        first_indexes.sort_unstable();
        first_indexes.into_iter().map(|at| &self.listed[at].definition).collect()
    }

    /// Finds an entry by the name that clients use.
    pub(crate) fn find_by_client_name(
        &self,
        name: &str,
        includes: impl Fn(&str) -> bool,
    ) -> Option<&ListEntry> {
        let at = self.by_name.get(name).and_then(|indexes| self.first(indexes, &includes))?;
        Some(&self.listed[at])
    }

    /// Finds an entry by the name that clients use. Otherwise finds it by the server's own name, if only one included
    /// server has an entry with that name.
    pub(crate) fn find(&self, name: &str, includes: impl Fn(&str) -> bool) -> Option<&ListEntry> {
        if let Some(entry) = self.find_by_client_name(name, &includes) {
            return Some(entry);
        }
        // Clients also know the servers' own names, because they see them in results, which are passed on unchanged.
        let mut by_own_name =
            self.listed.iter().filter(|entry| entry.own_name == name && includes(&entry.server));
        by_own_name.next().filter(|_| by_own_name.next().is_none())
    }

    /// Returns the index of the first of these entries whose server is included. Entries of servers that are not
    /// included must not influence the result.
    fn first(&self, indexes: &[usize], includes: &impl Fn(&str) -> bool) -> Option<usize> {
        indexes.iter().copied().find(|at| includes(&self.listed[*at].server))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ListEntry> {
        self.listed.iter()
    }
}

/// Returns the reason why an entry is withheld, or `None` if it is not withheld.
fn withheld_reason(
    kind: EntryKind,
    prefix: &str,
    prefixes: &Prefixes,
    own_name: &str,
    entry: &Value,
) -> Option<&'static str> {
    let arguments = entry.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let mut names =
        arguments.filter_map(|argument| argument.get("name")?.as_str()).chain([own_name]);
    if names.any(has_invisible_chars) || has_hidden_key(entry) {
        return Some("a name, a URI or a key in it has invisible characters");
    }
    let is_unprefixed_uri = kind != EntryKind::Prompts && prefix.is_empty();
    (is_unprefixed_uri && prefixes.has_any_uri_prefix(own_name))
        .then_some("its URI begins with another server's prefix")
}
