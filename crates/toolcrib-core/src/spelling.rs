//! Resolves any spelling of a tool's name to the tool.
//!
//! Models write names as they last saw them: the wire name, `server/tool`, `server.tool`, quoted, in backticks, without
//! the prefix, with `-` for `_`, or in another case. A spelling is reduced to its letters and digits and looked up. It
//! resolves if exactly one tool in scope matches.
//!
//! Servers choose the names of their tools, so a server could choose a name that attracts calls to another server's
//! tools. Two rules prevent this. First, the boundary between server and tool must be a boundary between two words of
//! the spelling, so `files_read` does not resolve to `file__s_read`. Second, a spelling that begins with the name of a
//! server matches only tools of that server.

use std::borrow::Cow;
use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::catalog::{Catalog, ToolId};
use crate::scope::Scope;
use crate::text::words;
use crate::tool::Tool;
use crate::wire_name;

/// The tools that a spelling resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// Exactly one tool.
    One(ToolId, SpellingMatch),
    /// Several tools, which match equally well, sorted by id.
    Several(Vec<ToolId>),
    /// No tool.
    Nothing,
}

/// How a spelling matches the name of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpellingMatch {
    /// The spelling is exactly the name.
    Exact,
    /// The spelling is another way to write the full name.
    FullName,
    /// The spelling is the name without its prefix.
    WithoutPrefix,
}

/// Sorted hashes of folded names, so that a lookup is a binary search. Each name takes 16 bytes.
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
            let folded = fold_to_alphanumeric(tool.name());
            if let Some(server) = tool.server() {
                // The model may also write `server/tool`, even if the tool's name has no server prefix.
                spellings
                    .whole
                    .push((hash(&format!("{}{folded}", fold_to_alphanumeric(server))), id));
                if tool.name_without_server() != tool.name() {
                    spellings
                        .tails
                        .push((hash(&fold_to_alphanumeric(tool.name_without_server())), id));
                }
            }
            let wire = wire_name::for_full_name(tool.name());
            if wire != tool.name() {
                spellings.whole.push((hash(&fold_to_alphanumeric(&wire)), id));
            }
            for tail in tails(tool.name()) {
                spellings.tails.push((hash(&fold_to_alphanumeric(tail)), id));
            }
            spellings.whole.push((hash(&folded), id));
        }
        for list in [&mut spellings.whole, &mut spellings.tails] {
            list.sort_unstable();
            list.dedup();
        }
        spellings
    }

    /// Resolves a spelling to a tool in scope. `unlisted` has the names of servers whose tools are not known yet.
    pub(crate) fn resolve(
        &self,
        catalog: &Catalog,
        scope: &Scope,
        unlisted: &[String],
        spelling: &str,
    ) -> Resolution {
        // Quotes and spaces may be part of a name, so the text is first looked up unchanged.
        let bare = trim_quotes(spelling);
        let exact = |name| catalog.find(name).filter(|id| scope.contains(*id));
        if let Some(id) = exact(spelling).or_else(|| exact(bare)) {
            return Resolution::One(id, SpellingMatch::Exact);
        }
        let spelling = bare;
        let spelled = FoldedSpelling::of(spelling);
        if spelled.folded.is_empty() {
            return Resolution::Nothing;
        }
        // Some clients add the prefix `mcp`, as in `mcp__github__create_issue`. It is ignored.
        let bare = spelled.without("mcp");
        let mut named = spelled.servers(catalog, scope, unlisted);
        named.extend(bare.iter().flat_map(|bare| bare.servers(catalog, scope, unlisted)));
        let meant = |tool: &Tool| {
            named.is_empty() || tool.server().is_none_or(|server| named.contains(&server))
        };
        for (list, how) in
            [(&self.whole, SpellingMatch::FullName), (&self.tails, SpellingMatch::WithoutPrefix)]
        {
            let find = |spelled: &FoldedSpelling| {
                let mut found = lookup(list, hash(&spelled.folded), scope);
                // Hashes may collide, even intentionally, so the names themselves are also compared.
                found.retain(|id| {
                    let tool = catalog.tool(*id);
                    meant(tool) && matches_name(tool, spelled, how)
                });
                found
            };
            let mut found = find(&spelled);
            if found.is_empty()
                && how == SpellingMatch::FullName
                && let Some(bare) = &bare
            {
                found = find(bare);
            }
            match found[..] {
                [] => {}
                [id] => return Resolution::One(id, how),
                _ => return Resolution::Several(found),
            }
        }
        Resolution::Nothing
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

/// The letters and digits of a spelling, and the positions where its words end.
struct FoldedSpelling {
    folded: String,
    ends: Vec<usize>,
}

impl FoldedSpelling {
    fn of(spelling: &str) -> Self {
        let (mut folded, mut ends) = (String::new(), Vec::new());
        words::each(spelling, &mut |word| {
            folded.push_str(word);
            ends.push(folded.len());
        });
        Self { folded, ends }
    }

    /// The spelling without `first` at its beginning. Returns `None` if it does not begin with `first`.
    fn without(&self, first: &str) -> Option<Self> {
        let rest = self.folded.strip_prefix(first)?;
        let ends = self.ends.iter().filter_map(|end| end.checked_sub(first.len()));
        Some(Self { folded: rest.to_owned(), ends: ends.filter(|end| *end > 0).collect() })
    }

    /// Whether the boundary between server and tool may be at position `at`. It must be between two words. A spelling
    /// without separators may be split anywhere.
    fn may_split_at(&self, at: usize) -> bool {
        at == 0 || self.ends.len() <= 1 || self.ends.contains(&at)
    }

    /// Whether the spelling begins with `name`, ending at a word boundary, and has more text after it.
    fn begins_with(&self, name: &str) -> bool {
        !name.is_empty()
            && name.len() < self.folded.len()
            && self.folded.starts_with(name)
            && self.ends.contains(&name.len())
    }

    /// Returns the servers that the spelling names, among the servers with tools in scope and the servers in
    /// `unlisted`. A spelling names a server if it begins with the server's name or with the prefix of the server's
    /// tools.
    fn servers<'c>(
        &self,
        catalog: &'c Catalog,
        scope: &Scope,
        unlisted: &'c [String],
    ) -> Vec<&'c str> {
        let named = |ids: &[ToolId], server: &str| {
            let prefix = ids.first().and_then(|id| catalog.tool(*id).name().split_once("__"));
            self.begins_with(&fold_to_alphanumeric(server))
                || prefix.is_some_and(|(prefix, _)| self.begins_with(&fold_to_alphanumeric(prefix)))
        };
        let listed = catalog
            .servers()
            .iter()
            .filter(|(server, ids)| named(ids, server) && ids.iter().any(|id| scope.contains(*id)));
        let unlisted =
            unlisted.iter().filter(|server| self.begins_with(&fold_to_alphanumeric(server)));
        listed.map(|(server, _)| &**server).chain(unlisted.map(String::as_str)).collect()
    }
}

/// Whether the tool's name really matches the spelling, and not only its hash.
fn matches_name(tool: &Tool, spelled: &FoldedSpelling, how: SpellingMatch) -> bool {
    let (name, folded) = (fold_to_alphanumeric(tool.name()), &*spelled.folded);
    if how == SpellingMatch::WithoutPrefix {
        return name.ends_with(folded);
    }
    let prefix =
        tool.name().split_once("__").map_or(0, |(prefix, _)| fold_to_alphanumeric(prefix).len());
    let server = tool
        .server()
        .map(fold_to_alphanumeric)
        .filter(|server| folded.strip_prefix(&**server) == Some(&*name));
    (name == folded && spelled.may_split_at(prefix))
        || server.is_some_and(|server| {
            spelled.may_split_at(server.len()) && spelled.may_split_at(server.len() + prefix)
        })
        || matches!(wire_name::for_full_name(tool.name()), Cow::Owned(wire) if fold_to_alphanumeric(&wire) == folded)
}

/// Reduces a name to its letters and digits in lower case. Word boundaries are dropped, because names such as `GitHub`
/// may be written as one word or as two.
pub(crate) fn fold_to_alphanumeric(name: &str) -> String {
    let mut squashed = String::new();
    words::each(name, &mut |word| squashed.push_str(word));
    squashed
}

fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// The rest of a name after each `__`, `.`, `/` and `:`.
fn tails(name: &str) -> impl Iterator<Item = &str> {
    ["__", ".", "/", ":"]
        .into_iter()
        .flat_map(move |mark| name.match_indices(mark).map(move |(at, _)| &name[at + mark.len()..]))
        .filter(|tail| !tail.is_empty())
}

/// Removes quotes, backticks, brackets and punctuation around a name.
pub(crate) fn trim_quotes(spelling: &str) -> &str {
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

/// Minimum similarity, from 0 to 100, of a name that is suggested in place of a missing one. It is high enough that it
/// makes sense for a model to try the suggestion.
pub(crate) const SUGGESTION_SIMILARITY: u32 = 35;

/// Maximum number of names that are suggested in place of a missing one.
const MAX_SUGGESTIONS: usize = 3;

/// The names that are most similar to a spelling, best first. Their similarity, from 0 to 100, is at least `floor`.
pub(crate) fn similar_names<'a>(
    catalog: &'a Catalog,
    scope: &Scope,
    spelling: &str,
    floor: u32,
) -> Vec<&'a str> {
    most_similar(spelling, scope.ids().map(|id| catalog.tool(id).name()), floor)
}

/// Returns the names that are most similar to a spelling, best first: at most three, and none if all are too different.
///
/// ```
/// let names = ["read_file", "write_file"];
/// assert_eq!(toolcrib_core::nearest_names("raed_file", names), ["read_file", "write_file"]);
/// assert!(toolcrib_core::nearest_names("x", names).is_empty());
/// ```
pub fn nearest_names<'a>(spelling: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    most_similar(spelling, names, SUGGESTION_SIMILARITY)
}

fn most_similar<'a>(
    spelling: &str,
    names: impl IntoIterator<Item = &'a str>,
    floor: u32,
) -> Vec<&'a str> {
    let wanted = fold_to_alphanumeric(trim_quotes(&toolcrib_text::shorten(spelling, 128)));
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut scored: Vec<(u32, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let similarity = bigram_similarity(&wanted, &fold_to_alphanumeric(name));
            (similarity >= floor).then_some((similarity, name))
        })
        .collect();
    scored.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    // Names that are much less similar than the best one are dropped, because a common prefix alone makes any two names
    // somewhat similar.
    let best = scored.first().map_or(0, |(similarity, _)| *similarity);
    scored.retain(|(similarity, _)| 10 * similarity >= 6 * best);
    scored.truncate(MAX_SUGGESTIONS);
    scored.into_iter().map(|(_, name)| name).collect()
}

/// The Dice coefficient of the letter pairs of two names, from 0 to 100. It tolerates typos and reordered words.
///
/// Rejected: `strsim::sorensen_dice`, which computes the same measure. It counts pairs in a hash map and took 2.1 to
/// 2.9 times as long on 6,066 names.
pub(crate) fn bigram_similarity(a: &str, b: &str) -> u32 {
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
