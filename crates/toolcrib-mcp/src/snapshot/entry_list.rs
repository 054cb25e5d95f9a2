//! Prompts and resources of all servers, under names that cannot clash.
//!
//! A prompt gets the wire name of its server and itself, as tools do. A resource's address gets its
//! server before its scheme: `notes+file:///a.txt`. Both depend on the server and the name alone. The server
//! with the prefix "" keeps its own names, except those that could be another server's: such a prompt is
//! renamed, and such a resource is withheld. Text is cleaned of hidden characters; an entry whose name,
//! address or key has some is withheld, since a cleaned name would no longer be its server's.

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

/// What is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Prompts,
    Resources,
    Templates,
}

impl EntryKind {
    /// One of them, for the log.
    fn noun(self) -> &'static str {
        match self {
            Self::Prompts => "prompt",
            Self::Resources => "resource",
            Self::Templates => "resource template",
        }
    }

    /// The key by which clients ask for one.
    fn key(self) -> &'static str {
        match self {
            Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// One thing that one server entries.
#[derive(Debug, Clone)]
pub(crate) struct ListEntry {
    pub(crate) server: Arc<str>,
    /// As its server knows it.
    pub(crate) own_name: String,
    /// As its server describes it, but for the name.
    pub(crate) definition: Value,
}

/// All that is offered of one kind.
#[derive(Debug)]
pub(crate) struct EntryList {
    listed: Vec<ListEntry>,
    /// The places in `listed` of each name, in the order of the servers.
    by_name: HashMap<String, Vec<usize>>,
}

impl EntryList {
    pub(super) fn of<'a>(
        kind: EntryKind,
        prefixes: &Prefixes,
        lists: impl Iterator<Item = (&'a SnapshotServer, &'a Definitions)>,
        findings: &mut ListWarningsBuilder<'_>,
    ) -> Self {
        let key = kind.key();
        let mut entries = Self { listed: Vec::new(), by_name: HashMap::new() };
        for (server, list) in lists {
            let (prefix, server) = (prefix(server), &server.name);
            for mut definition in list.values() {
                let Some(own) = definition.get(key).and_then(Value::as_str) else { continue };
                let own = own.to_owned();
                let noun = kind.noun();
                if let Some(why) = withheld(kind, prefix, prefixes, &own, &definition) {
                    findings
                        .add(server, &format!("{noun} `{}` withheld: {why}", loggable_name(&own)));
                    continue;
                }
                let name = match kind {
                    EntryKind::Prompts if prefix.is_empty() => {
                        prefixes.unprefixed_name(&own).into_owned()
                    }
                    EntryKind::Prompts => wire_name::of(prefix, &own),
                    EntryKind::Resources | EntryKind::Templates => prefixed_uri(prefix, &own),
                };
                let remark = |problem: &str| format!("{noun} `{}` {problem}", loggable_name(&name));
                let places = entries.by_name.entry(name.clone()).or_default();
                match places.last().map(|last| &entries.listed[*last].server) {
                    Some(last) if last == server => {
                        findings.add(server, &remark("is listed twice; the first counts"));
                        continue;
                    }
                    Some(_) => findings.add(server, &remark("is already another server's")),
                    None => {}
                }
                places.push(entries.listed.len());
                let removed = clean_value(&mut definition);
                if !removed.is_empty() {
                    let (name, removed) = (loggable_name(&name), class_names(&removed));
                    let line = format!("{noun} `{name}`: removed from what is shown: {removed}");
                    findings.add(server, &line);
                }
                if let Some(fields) = definition.as_object_mut() {
                    fields.insert(key.to_owned(), Value::String(name));
                }
                entries.listed.push(ListEntry {
                    server: Arc::clone(server),
                    own_name: own,
                    definition,
                });
            }
        }
        entries
    }

    /// Those of some servers, in order, as clients see them.
    pub(crate) fn list(&self, of: impl Fn(&str) -> bool) -> Vec<&Value> {
        let mut firsts: Vec<usize> =
            self.by_name.values().filter_map(|at| self.first(at, &of)).collect();
        firsts.sort_unstable();
        firsts.into_iter().map(|at| &self.listed[at].definition).collect()
    }

    /// By the name that clients use.
    pub(crate) fn named(&self, name: &str, of: impl Fn(&str) -> bool) -> Option<&ListEntry> {
        let at = self.by_name.get(name).and_then(|places| self.first(places, &of))?;
        Some(&self.listed[at])
    }

    /// By the name that clients use, or by its own where only one of these servers has that.
    pub(crate) fn find(&self, name: &str, of: impl Fn(&str) -> bool) -> Option<&ListEntry> {
        if let Some(entry) = self.named(name, &of) {
            return Some(entry);
        }
        // A server speaks of its own resources in results, and those are passed on as they are.
        let mut own =
            self.listed.iter().filter(|entry| entry.own_name == name && of(&entry.server));
        own.next().filter(|_| own.next().is_none())
    }

    /// The first of these that is one of some servers': what others have of that name says nothing.
    fn first(&self, places: &[usize], of: &impl Fn(&str) -> bool) -> Option<usize> {
        places.iter().copied().find(|at| of(&self.listed[*at].server))
    }

    /// The entries of some servers, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ListEntry> {
        self.listed.iter()
    }
}

/// Why an entry is not offered.
fn withheld(
    kind: EntryKind,
    prefix: &str,
    prefixes: &Prefixes,
    own: &str,
    entry: &Value,
) -> Option<&'static str> {
    let arguments = entry.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let mut names = arguments.filter_map(|argument| argument.get("name")?.as_str()).chain([own]);
    if names.any(has_invisible_chars) || has_hidden_key(entry) {
        return Some("a name, an address or a key in it has invisible characters");
    }
    let address = kind != EntryKind::Prompts && prefix.is_empty();
    (address && prefixes.matches_any_uri_prefix(own))
        .then_some("its address begins as another server's do")
}
