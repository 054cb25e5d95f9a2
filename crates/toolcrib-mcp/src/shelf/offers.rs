//! Prompts and resources of all servers, under names that cannot clash.
//!
//! A prompt gets the wire name of its server and itself, as tools do. A resource's address gets its
//! server before its scheme: `notes+file:///a.txt`. Both depend on the server and the name alone. A server
//! with the prefix "" keeps its own names; where two of those clash, the first server in order that a client
//! may know of has it.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::wire_name;

use super::Supplier;

/// What is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Prompts,
    Resources,
    Templates,
}

impl Kind {
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
        lists: impl Iterator<Item = (&'a Supplier, &'a [Value])>,
    ) -> Self {
        let key = kind.key();
        let mut offers = Self { listed: Vec::new(), by_name: HashMap::new() };
        for (supplier, list) in lists {
            let prefix = supplier.config.prefix.as_deref().unwrap_or(&supplier.name);
            for entry in list {
                let Some(own) = entry.get(key).and_then(Value::as_str) else { continue };
                let name = match kind {
                    Kind::Prompts if prefix.is_empty() => own.to_owned(),
                    Kind::Prompts => wire_name::of(prefix, own),
                    Kind::Resources | Kind::Templates => address(prefix, own),
                };
                let places = offers.by_name.entry(name.clone()).or_default();
                match places.last().map(|last| &offers.listed[*last].server) {
                    Some(server) if *server == supplier.name => {
                        tracing::warn!(%server, "`{name}` is listed twice; the first counts");
                        continue;
                    }
                    Some(_) => {
                        tracing::warn!(server = %supplier.name, "`{name}` is another server's already");
                    }
                    None => {}
                }
                places.push(offers.listed.len());
                let mut definition = entry.clone();
                if let Some(fields) = definition.as_object_mut() {
                    fields.insert(key.to_owned(), Value::String(name));
                }
                offers.listed.push(Offer {
                    server: Arc::clone(&supplier.name),
                    own: own.to_owned(),
                    definition,
                });
            }
        }
        offers
    }

    /// Those of some servers, in order, as clients see them.
    pub(crate) fn list(&self, of: impl Fn(&str) -> bool) -> Vec<Value> {
        let mut firsts: Vec<usize> =
            self.by_name.values().filter_map(|at| self.first(at, &of)).collect();
        firsts.sort_unstable();
        firsts.into_iter().map(|at| self.listed[at].definition.clone()).collect()
    }

    /// By the name that clients use, or by its own where only one of these servers has that.
    pub(crate) fn find(&self, name: &str, of: impl Fn(&str) -> bool) -> Option<&Offer> {
        let named = self.by_name.get(name).and_then(|places| self.first(places, &of));
        if let Some(at) = named {
            return Some(&self.listed[at]);
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

/// Whether a template can stand for an address. A variable stands for anything but nothing; what kind of
/// variable it is (RFC 6570 has many) is for its server to know.
pub(crate) fn fits(template: &str, address: &str) -> bool {
    let mut rest = address;
    let mut pieces = template.split('{');
    let Some(head) = pieces.next().and_then(|head| rest.strip_prefix(head)) else { return false };
    rest = head;
    let mut open = false;
    for piece in pieces {
        let Some((_, literal)) = piece.split_once('}') else { return false };
        open = literal.is_empty();
        if open {
            continue;
        }
        // At least one character is the variable's.
        let from = rest.chars().next().map_or(0, char::len_utf8);
        let Some(at) = rest.get(from..).and_then(|tail| tail.find(literal)) else { return false };
        rest = &rest[from + at + literal.len()..];
    }
    if open { !rest.is_empty() } else { rest.is_empty() }
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

    #[test]
    fn templates_fit_addresses() {
        for (template, address, yes) in [
            ("test://template/{id}/data", "test://template/123/data", true),
            ("test://template/{id}/data", "test://template//data", false),
            ("test://template/{id}/data", "test://template/1/other", false),
            ("file:///{+path}", "file:///a/b/c", true),
            ("file:///{path}", "file:///", false),
            ("x://{a}{b}", "x://yz", true),
            ("x://fixed", "x://fixed", true),
            ("x://fixed", "x://fixed/more", false),
            ("x://{broken", "x://1", false),
        ] {
            assert_eq!(fits(template, address), yes, "{template} {address}");
        }
    }
}
