//! Which tools a query may find, and which tools it mentions by name.

use super::RankInputs;
use super::index::{Index, Term};
use crate::catalog::{Catalog, ToolId};
use crate::query::WordQuery;
use crate::scope::Scope;
use crate::spelling::{self, Resolution, SpellingMatch};
use crate::text::{stem, words};

/// Bonus for a tool whose name is in the query. It is higher than any sum of word points.
const EXACT_NAME_BONUS: f32 = 1_000.0;
/// Bonus for a tool whose name without the server prefix is in the query. It is lower than the bonus for the full name,
/// so that tools with their full name in the query come first.
const UNPREFIXED_NAME_BONUS: f32 = 500.0;

/// Maximum number of tools that get a bonus because the query mentions them by name.
const MAX_NAMED_TOOLS: usize = 64;

/// Decides which tools pass the scope and the conditions of the query: `server:`, `+word` and `-word`.
pub(super) struct QueryFilter<'a> {
    index: &'a Index,
    catalog: &'a Catalog,
    pub(super) scope: &'a Scope,
    servers: &'a [String],
    /// The terms of the required words; `None` for a word that no tool has.
    must: Vec<Option<Term>>,
    /// Whether required words must be in the name.
    in_name: bool,
    must_not: Vec<Option<Term>>,
    /// Whether every tool passes. This is the common case. It is precomputed, because it is checked thousands of times
    /// per query.
    passes_all: bool,
}

impl<'a> QueryFilter<'a> {
    pub(super) fn new(
        index: &'a Index,
        inputs: &RankInputs<'a>,
        words: &'a WordQuery,
        scope: &'a Scope,
    ) -> Self {
        let terms = |list: &[String]| -> Vec<Option<Term>> {
            let words =
                list.iter().flat_map(|text| words::all(text)).take(index.limits.query_words);
            words.map(|word| index.term_of_stem(&stem(&word))).collect()
        };
        let (must, must_not) = (terms(&words.must), terms(&words.must_not));
        let servers = &words.servers;
        let passes_all =
            scope.is_all() && servers.is_empty() && must.is_empty() && must_not.is_empty();
        let (catalog, in_name) = (inputs.catalog, inputs.must_in_name);
        Self { index, catalog, scope, servers, must, in_name, must_not, passes_all }
    }

    /// Whether the query has `server:` or `-word`. If so, it has results even without words to rank by: all tools that
    /// pass the filter.
    pub(super) fn is_narrow(&self) -> bool {
        !self.servers.is_empty() || !self.must_not.is_empty()
    }

    pub(super) fn passes(&self, id: ToolId) -> bool {
        self.passes_all || self.passes_conditions(id)
    }

    fn passes_conditions(&self, id: ToolId) -> bool {
        let has = |term: &Option<Term>| {
            let id = id.index() as u32;
            term.is_some_and(|term| self.index.postings(term).0.binary_search(&id).is_ok())
        };
        let named =
            |term: &Option<Term>| term.is_some_and(|term| self.index.is_in_full_name(id, term));
        let server = || self.catalog.tool(id).server().unwrap_or_default();
        self.scope.contains(id)
            && (self.servers.is_empty()
                || self.servers.iter().any(|name| name.eq_ignore_ascii_case(server())))
            && self.must.iter().all(|term| if self.in_name { named(term) } else { has(term) })
            && !self.must_not.iter().any(has)
    }
}

/// The tools that a query mentions by name, and the bonus of each.
pub(super) struct NamedTools(Vec<(ToolId, f32)>);

impl NamedTools {
    pub(super) fn in_query(
        index: &Index,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
    ) -> Self {
        let mut named = Self(Vec::new());
        // The whole query may be the name of a tool, unless it is too long for a name.
        if words.text.len() <= 2 * inputs.limits.name_bytes {
            named.add(index, inputs, scope, &words.text);
        }
        for token in words.text.split_whitespace().map(spelling::trim_quotes) {
            if is_identifier(token) {
                named.add(index, inputs, scope, token);
            }
        }
        named
    }

    fn add(&mut self, index: &Index, inputs: &RankInputs<'_>, scope: &Scope, spelling: &str) {
        let (ids, bonus) = match inputs.spellings.resolve(inputs.catalog, scope, &[], spelling) {
            Resolution::One(id, SpellingMatch::Exact | SpellingMatch::FullName) => {
                (vec![id], EXACT_NAME_BONUS)
            }
            Resolution::One(id, SpellingMatch::WithoutPrefix) => (vec![id], UNPREFIXED_NAME_BONUS),
            Resolution::Several(mut ids) => {
                // If many tools share this name without their prefixes, only those whose full names sort first get the
                // bonus.
                ids.sort_unstable_by_key(|id| index.name_rank(*id));
                ids.truncate(MAX_NAMED_TOOLS);
                (ids, UNPREFIXED_NAME_BONUS)
            }
            Resolution::Nothing => return,
        };
        for id in ids {
            if self.0.len() < MAX_NAMED_TOOLS && self.bonus(id) == 0.0 {
                self.0.push((id, bonus));
            }
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ToolId> + '_ {
        self.0.iter().map(|(id, _)| *id)
    }

    pub(super) fn bonus(&self, id: ToolId) -> f32 {
        self.0.iter().find(|(known, _)| *known == id).map_or(0.0, |(_, bonus)| *bonus)
    }
}

/// Whether a word looks like an identifier rather than prose.
fn is_identifier(token: &str) -> bool {
    let hump = || {
        let mut pairs = token.as_bytes().windows(2);
        pairs.any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
    };
    token.contains(['_', '/', '.', ':', '-']) || hump()
}
