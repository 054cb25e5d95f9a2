//! Any spelling of a name, to the tool it means.
//!
//! Models paste names as they saw them last: the wire name, `server/tool`, `server.tool`, quoted,
//! in backticks, without the prefix, with `-` for `_`, in another case. A spelling is folded to its
//! words and looked up; it resolves when exactly one tool in scope answers to it.
//!
//! Servers choose their tools' names, so a loose spelling must not lead to a server that it does not name:
//! the server's name and the tool's must meet between two words of the spelling (`files_read` is not
//! `file__s_read`), and a spelling that begins with a server's name means that server's tools alone.

use std::borrow::Cow;
use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::catalog::{Catalog, ToolId};
use crate::scope::Scope;
use crate::text::words;
use crate::tool::Tool;
use crate::wire_name;

/// What a spelling means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Exactly one tool.
    One(ToolId, How),
    /// Several tools, each as good as the other, by id.
    Several(Vec<ToolId>),
    /// None.
    Nothing,
}

/// How a spelling led to its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Letter for letter.
    Exact,
    /// The whole name in another spelling.
    Whole,
    /// The name without its prefix.
    Tail,
}

/// Hashes of folded names, sorted, so that a lookup is a binary search and costs 16 bytes a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spellings {
    whole: Vec<(u64, ToolId)>,
    tails: Vec<(u64, ToolId)>,
}

impl Spellings {
    pub(crate) fn of(catalog: &Catalog) -> Self {
        let mut spellings = Self::default();
        for id in catalog.ids() {
            let tool = catalog.tool(id);
            let folded = squash(tool.name());
            if let Some(server) = tool.server() {
                // `server/tool` for a name that came without its server.
                spellings.whole.push((hash(&format!("{}{folded}", squash(server))), id));
                if tool.name_without_server() != tool.name() {
                    spellings.tails.push((hash(&squash(tool.name_without_server())), id));
                }
            }
            let wire = wire_name::of_full(tool.name());
            if wire != tool.name() {
                spellings.whole.push((hash(&squash(&wire)), id));
            }
            for tail in tails(tool.name()) {
                spellings.tails.push((hash(&squash(tail)), id));
            }
            spellings.whole.push((hash(&folded), id));
        }
        for list in [&mut spellings.whole, &mut spellings.tails] {
            list.sort_unstable();
            list.dedup();
        }
        spellings
    }

    /// The tool in scope that a spelling means. `unlisted` are servers whose tools are not known yet.
    pub(crate) fn resolve(
        &self,
        catalog: &Catalog,
        scope: &Scope,
        unlisted: &[String],
        spelling: &str,
    ) -> Meaning {
        // Quotes and blanks may be part of a name, so the whole text counts first.
        let bare = unwrap(spelling);
        let exact = |name| catalog.find(name).filter(|id| scope.contains(*id));
        if let Some(id) = exact(spelling).or_else(|| exact(bare)) {
            return Meaning::One(id, How::Exact);
        }
        let spelling = bare;
        let spelled = Spelled::of(spelling);
        if spelled.folded.is_empty() {
            return Meaning::Nothing;
        }
        // A client's own prefix, as in `mcp__github__create_issue`, means nothing to us.
        let bare = spelled.without("mcp");
        let mut named = spelled.servers(catalog, scope, unlisted);
        named.extend(bare.iter().flat_map(|bare| bare.servers(catalog, scope, unlisted)));
        let meant = |tool: &Tool| {
            named.is_empty() || tool.server().is_none_or(|server| named.contains(&server))
        };
        for (list, how) in [(&self.whole, How::Whole), (&self.tails, How::Tail)] {
            let find = |spelled: &Spelled| {
                let mut found = lookup(list, hash(&spelled.folded), scope);
                // A hash is a hint: a stranger could make two names share one.
                found.retain(|id| {
                    let tool = catalog.tool(*id);
                    meant(tool) && answers_to(tool, spelled, how)
                });
                found
            };
            let mut found = find(&spelled);
            if found.is_empty()
                && how == How::Whole
                && let Some(bare) = &bare
            {
                found = find(bare);
            }
            match found[..] {
                [] => {}
                [id] => return Meaning::One(id, how),
                _ => return Meaning::Several(found),
            }
        }
        Meaning::Nothing
    }
}

fn lookup(list: &[(u64, ToolId)], key: u64, scope: &Scope) -> Vec<ToolId> {
    let from = list.partition_point(|(hash, _)| *hash < key);
    list[from..]
        .iter()
        .take_while(|(hash, _)| *hash == key)
        .map(|(_, id)| *id)
        .filter(|id| scope.contains(*id))
        .collect()
}

/// A spelling as its letters and digits, and where its words end.
struct Spelled {
    folded: String,
    ends: Vec<usize>,
}

impl Spelled {
    fn of(spelling: &str) -> Self {
        let (mut folded, mut ends) = (String::new(), Vec::new());
        words::each(spelling, &mut |word| {
            folded.push_str(word);
            ends.push(folded.len());
        });
        Self { folded, ends }
    }

    /// The same without its first word, if it is this one.
    fn without(&self, first: &str) -> Option<Self> {
        let rest = self.folded.strip_prefix(first)?;
        let ends = self.ends.iter().filter_map(|end| end.checked_sub(first.len()));
        Some(Self { folded: rest.to_owned(), ends: ends.filter(|end| *end > 0).collect() })
    }

    /// Whether the server's name may end here and the tool's begin: only between two words. A spelling
    /// without separators may be split anywhere.
    fn parts_at(&self, at: usize) -> bool {
        at == 0 || self.ends.len() <= 1 || self.ends.contains(&at)
    }

    /// Whether it begins with a name as words of its own, and goes on after it.
    fn begins_with(&self, name: &str) -> bool {
        !name.is_empty()
            && name.len() < self.folded.len()
            && self.folded.starts_with(name)
            && self.ends.contains(&name.len())
    }

    /// The servers in scope that it begins with, by their names or by what stands before their tools' names.
    fn servers<'c>(
        &self,
        catalog: &'c Catalog,
        scope: &Scope,
        unlisted: &'c [String],
    ) -> Vec<&'c str> {
        let named = |ids: &[ToolId], server: &str| {
            let prefix = ids.first().and_then(|id| catalog.tool(*id).name().split_once("__"));
            self.begins_with(&squash(server))
                || prefix.is_some_and(|(prefix, _)| self.begins_with(&squash(prefix)))
        };
        let listed = catalog
            .servers()
            .iter()
            .filter(|(server, ids)| named(ids, server) && ids.iter().any(|id| scope.contains(*id)));
        let unlisted = unlisted.iter().filter(|server| self.begins_with(&squash(server)));
        listed.map(|(server, _)| &**server).chain(unlisted.map(String::as_str)).collect()
    }
}

/// Whether a tool's name, in one of its spellings, really is this one.
fn answers_to(tool: &Tool, spelled: &Spelled, how: How) -> bool {
    let (name, folded) = (squash(tool.name()), &*spelled.folded);
    if how == How::Tail {
        return name.ends_with(folded);
    }
    let prefix = tool.name().split_once("__").map_or(0, |(prefix, _)| squash(prefix).len());
    let server =
        tool.server().map(squash).filter(|server| folded.strip_prefix(&**server) == Some(&*name));
    (name == folded && spelled.parts_at(prefix))
        || server.is_some_and(|server| {
            spelled.parts_at(server.len()) && spelled.parts_at(server.len() + prefix)
        })
        || matches!(wire_name::of_full(tool.name()), Cow::Owned(wire) if squash(&wire) == folded)
}

/// A name as its letters and digits: where the words part is anybody's guess in `GitHub`.
pub(crate) fn squash(name: &str) -> String {
    let mut squashed = String::new();
    words::each(name, &mut |word| squashed.push_str(word));
    squashed
}

fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// What remains of a name when prefixes are taken off at `__`, `.`, `/` and `:`.
fn tails(name: &str) -> impl Iterator<Item = &str> {
    ["__", ".", "/", ":"]
        .into_iter()
        .flat_map(move |mark| name.match_indices(mark).map(move |(at, _)| &name[at + mark.len()..]))
        .filter(|tail| !tail.is_empty())
}

/// A name without the quotes, backticks, brackets and full stops it was pasted in.
pub(crate) fn unwrap(spelling: &str) -> &str {
    spelling.trim_matches(|c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '"' | '\''
                    | '`'
                    | '“'
                    | '”'
                    | '‘'
                    | '’'
                    | '<'
                    | '>'
                    | ','
                    | ';'
                    | '('
                    | ')'
                    | '['
                    | ']'
                    | '.'
                    | ':'
                    | '!'
                    | '?'
            )
    })
}

/// How alike a name must be, of 100, to be what a missing one was meant to be: a model may well try
/// it.
pub(crate) const ALIKE: u32 = 35;

/// Names that are offered for one that is not there.
const NEAREST: usize = 3;

/// The names most like a spelling, nearest first, as far as they reach `floor`, of 100.
pub(crate) fn nearest<'a>(
    catalog: &'a Catalog,
    scope: &Scope,
    spelling: &str,
    floor: u32,
) -> Vec<&'a str> {
    let wanted = squash(unwrap(&toolcrib_text::shorten(spelling, 128)));
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut scored: Vec<(u32, &str)> = scope
        .ids()
        .filter_map(|id| {
            let name = catalog.tool(id).name();
            let likeness = likeness(&wanted, &squash(name));
            (likeness >= floor).then_some((likeness, name))
        })
        .collect();
    scored.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    // Far behind the best is not near: a shared prefix alone makes any two names alike.
    let best = scored.first().map_or(0, |(likeness, _)| *likeness);
    scored.retain(|(likeness, _)| 10 * likeness >= 6 * best);
    scored.truncate(NEAREST);
    scored.into_iter().map(|(_, name)| name).collect()
}

/// 0 to 100: shared pairs of letters (Dice), the measure that forgives order and typos alike.
pub(crate) fn likeness(a: &str, b: &str) -> u32 {
    let pairs = |text: &str| {
        let mut pairs: Vec<[u8; 2]> =
            text.as_bytes().windows(2).map(|pair| [pair[0], pair[1]]).collect();
        pairs.sort_unstable();
        pairs
    };
    let (a, b) = (pairs(a), pairs(b));
    if a.is_empty() || b.is_empty() {
        return 0;
    }
    let (mut i, mut j, mut shared) = (0, 0, 0usize);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                shared += 1;
                i += 1;
                j += 1;
            }
        }
    }
    (200 * shared / (a.len() + b.len())) as u32
}
