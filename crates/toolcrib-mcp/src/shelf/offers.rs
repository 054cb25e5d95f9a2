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

use super::Supplier;
use super::findings::Collector;
use super::prefixes::{Prefixes, address, prefix};
use crate::hidden_text::{classes, clean_value, has_hidden_key, is_hidden_name, shown};
use crate::upstream::Definitions;

/// What is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Prompts,
    Resources,
    Templates,
}

impl Kind {
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

/// One thing that one server offers.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) server: Arc<str>,
    /// As its server knows it.
    pub(crate) own: String,
    /// As its server describes it, but for the name.
    pub(crate) definition: Value,
}

/// All that is offered of one kind.
#[derive(Debug)]
pub(crate) struct Offers {
    listed: Vec<Offer>,
    /// The places in `listed` of each name, in the order of the servers.
    by_name: HashMap<String, Vec<usize>>,
}

impl Offers {
    pub(super) fn of<'a>(
        kind: Kind,
        prefixes: &Prefixes,
        lists: impl Iterator<Item = (&'a Supplier, &'a Definitions)>,
        findings: &mut Collector<'_>,
    ) -> Self {
        let key = kind.key();
        let mut offers = Self { listed: Vec::new(), by_name: HashMap::new() };
        for (supplier, list) in lists {
            let (prefix, server) = (prefix(supplier), &supplier.name);
            for mut definition in list.values() {
                let Some(own) = definition.get(key).and_then(Value::as_str) else { continue };
                let own = own.to_owned();
                let noun = kind.noun();
                if let Some(why) = withheld(kind, prefix, prefixes, &own, &definition) {
                    findings.add(server, &format!("{noun} `{}` withheld: {why}", shown(&own)));
                    continue;
                }
                let name = match kind {
                    Kind::Prompts if prefix.is_empty() => prefixes.unprefixed(&own).into_owned(),
                    Kind::Prompts => wire_name::of(prefix, &own),
                    Kind::Resources | Kind::Templates => address(prefix, &own),
                };
                let remark = |problem: &str| format!("{noun} `{}` {problem}", shown(&name));
                let places = offers.by_name.entry(name.clone()).or_default();
                match places.last().map(|last| &offers.listed[*last].server) {
                    Some(last) if last == server => {
                        findings.add(server, &remark("is listed twice; the first counts"));
                        continue;
                    }
                    Some(_) => findings.add(server, &remark("is already another server's")),
                    None => {}
                }
                places.push(offers.listed.len());
                let removed = clean_value(&mut definition);
                if !removed.is_empty() {
                    let (name, removed) = (shown(&name), classes(&removed));
                    let line = format!("{noun} `{name}`: removed from what is shown: {removed}");
                    findings.add(server, &line);
                }
                if let Some(fields) = definition.as_object_mut() {
                    fields.insert(key.to_owned(), Value::String(name));
                }
                offers.listed.push(Offer { server: Arc::clone(server), own, definition });
            }
        }
        offers
    }

    /// Those of some servers, in order, as clients see them.
    pub(crate) fn list(&self, of: impl Fn(&str) -> bool) -> Vec<&Value> {
        let mut firsts: Vec<usize> =
            self.by_name.values().filter_map(|at| self.first(at, &of)).collect();
        firsts.sort_unstable();
        firsts.into_iter().map(|at| &self.listed[at].definition).collect()
    }

    /// By the name that clients use.
    pub(crate) fn named(&self, name: &str, of: impl Fn(&str) -> bool) -> Option<&Offer> {
        let at = self.by_name.get(name).and_then(|places| self.first(places, &of))?;
        Some(&self.listed[at])
    }

    /// By the name that clients use, or by its own where only one of these servers has that.
    pub(crate) fn find(&self, name: &str, of: impl Fn(&str) -> bool) -> Option<&Offer> {
        if let Some(offer) = self.named(name, &of) {
            return Some(offer);
        }
        // A server speaks of its own resources in results, and those are passed on as they are.
        let mut own = self.listed.iter().filter(|offer| offer.own == name && of(&offer.server));
        own.next().filter(|_| own.next().is_none())
    }

    /// The first of these that is one of some servers': what others have of that name says nothing.
    fn first(&self, places: &[usize], of: &impl Fn(&str) -> bool) -> Option<usize> {
        places.iter().copied().find(|at| of(&self.listed[*at].server))
    }

    /// The offers of some servers, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Offer> {
        self.listed.iter()
    }
}

/// Why an entry is not offered.
fn withheld(
    kind: Kind,
    prefix: &str,
    prefixes: &Prefixes,
    own: &str,
    entry: &Value,
) -> Option<&'static str> {
    let arguments = entry.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let mut names = arguments.filter_map(|argument| argument.get("name")?.as_str()).chain([own]);
    if names.any(is_hidden_name) || has_hidden_key(entry) {
        return Some("a name, an address or a key in it has invisible characters");
    }
    let address = kind != Kind::Prompts && prefix.is_empty();
    (address && prefixes.begin_address(own)).then_some("its address begins as another server's do")
}
