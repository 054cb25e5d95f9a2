//! The inverted index: for every term, the tools that contain it and its impact in each.

use rustc_hash::FxHashMap;

use super::fields::{self, FIELDS, IndexedField};
use super::query_plan::TermMatch;
use super::related_terms;
use crate::catalog::{Catalog, ToolId};
use crate::limits::Limits;
use crate::scope::Scope;
use crate::text::{is_stop, split_compound, stem, words};
use crate::tool::Tool;
use toolcrib_text::first_sentence_of;

/// The number of a term in the vocabulary.
pub(super) type Term = u32;

/// The inverted index of one catalog.
#[derive(Debug, Default)]
pub(crate) struct Index {
    terms: FxHashMap<Box<str>, Term>,
    /// Maps each word of the catalog, as written, to its term. If a query contains such a word, it need not be stemmed.
    words: FxHashMap<Box<str>, Term>,
    /// For each term its related terms: first synonyms, then terms with a common prefix.
    related_terms: FxHashMap<Term, Box<[(Term, TermMatch)]>>,
    /// The text of every term, sorted, for lookups by prefix.
    sorted: Vec<(Box<str>, Term)>,
    /// The position of each term in `sorted`.
    sorted_positions: Vec<u32>,
    /// Where the postings of each term begin. There is one more entry than there are terms.
    starts: Vec<u32>,
    tools: Vec<u32>,
    impacts: Vec<f32>,
    /// The inverse document frequency of each term in the entire catalog.
    idfs: Vec<f32>,
    /// For each tool, one list with the terms from which its bonuses are computed. The list contains, in this order:
    ///
    /// - the number of distinct terms of the name, and these terms, with compound words replaced by their parts;
    /// - three sequences: the terms of the name, of the server's name, and of the description's first sentence. Each
    ///   sequence is in the order of the text and ends with [`NO_TERM`].
    tool_terms: TermLists,
    /// The server of each tool, as a position in [`Catalog::servers`], or [`NO_TERM`] for a tool without a server.
    server_of: Vec<u32>,
    /// The position of each tool in the list of tools sorted by name. It is used to break ties.
    name_ranks: Vec<u32>,
    pub(super) limits: Limits,
}

/// Marks a missing server, or the end of a part of a tool's list of terms.
pub(super) const NO_TERM: u32 = u32::MAX;

/// A list of terms for each tool, stored in one allocation.
#[derive(Debug, Default)]
struct TermLists {
    terms: Vec<Term>,
    /// Where each list begins. The last element is the end of the last list.
    starts: Vec<u32>,
}

impl TermLists {
    fn begin(&mut self) {
        self.starts.push(self.terms.len() as u32);
    }

    fn get(&self, id: ToolId) -> &[Term] {
        &self.terms[self.starts[id.index()] as usize..self.starts[id.index() + 1] as usize]
    }

    fn len(&self) -> usize {
        self.terms.len() + self.starts.len()
    }
}

/// How often a term occurs in each field of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Occurrence {
    pub(super) counts: [u32; FIELDS.len()],
}

impl Index {
    pub(super) fn build(catalog: &Catalog, limits: &Limits) -> Self {
        let mut builder = IndexBuilder::default();
        for id in catalog.ids() {
            builder.add(catalog, id, limits);
        }
        let mut index = builder.finish();
        index.limits = limits.clone();
        index.name_ranks = name_ranks(catalog);
        let frequencies = index.starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        index.idfs = frequencies.map(|frequency| idf(frequency, catalog.len())).collect();
        index.server_of = vec![NO_TERM; catalog.len()];
        for (at, (_, ids)) in catalog.servers().iter().enumerate() {
            for id in ids {
                index.server_of[id.index()] = at as u32;
            }
        }
        index
    }

    /// The term of a word that occurs in the catalog in exactly this form.
    pub(super) fn term_of_word(&self, word: &str) -> Option<Term> {
        self.words.get(word).copied()
    }

    /// The terms related to a term. They may include terms that only hidden tools have.
    pub(super) fn related_terms(&self, term: Term) -> &[(Term, TermMatch)] {
        self.related_terms.get(&term).map_or(&[], |list| list)
    }

    /// The term for a stem.
    pub(super) fn term_of_stem(&self, stem: &str) -> Option<Term> {
        self.terms.get(stem).copied()
    }

    /// The text of a term.
    pub(super) fn text(&self, term: Term) -> &str {
        &self.sorted[self.sorted_positions[term as usize] as usize].0
    }

    /// The tools that contain a term, in catalog order, and the impact of the term in each tool. The impact is the
    /// saturated weighted frequency, from 0 to 1.8.
    pub(super) fn postings(&self, term: Term) -> (&[u32], &[f32]) {
        let range = self.starts[term as usize] as usize..self.starts[term as usize + 1] as usize;
        (&self.tools[range.clone()], &self.impacts[range])
    }

    /// The number of tools in scope that contain a term.
    pub(super) fn document_frequency(&self, term: Term, scope: &Scope) -> usize {
        let (tools, _) = self.postings(term);
        if scope.is_all() {
            return tools.len();
        }
        tools.iter().filter(|tool| scope.contains(ToolId::at(**tool as usize))).count()
    }

    /// The inverse document frequency of a term among the tools in scope. For the entire catalog it is precomputed.
    pub(super) fn idf(&self, term: Term, scope: &Scope) -> f32 {
        if scope.is_all() {
            return self.idfs[term as usize];
        }
        idf(self.document_frequency(term, scope), scope.len())
    }

    /// The terms that begin with `prefix`, in alphabetical order.
    pub(super) fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, Term)> + 'a {
        let from = self.sorted.partition_point(|(text, _)| &**text < prefix);
        self.sorted[from..]
            .iter()
            .take_while(move |(text, _)| text.starts_with(prefix))
            .map(|(text, term)| (&**text, *term))
    }

    pub(super) fn name_terms(&self, id: ToolId) -> &[Term] {
        let record = self.tool_terms.get(id);
        &record[1..=record[0] as usize]
    }

    pub(super) fn sequence(&self, id: ToolId) -> &[Term] {
        let record = self.tool_terms.get(id);
        &record[1 + record[0] as usize..]
    }

    /// Whether a term is in the name of a tool or of its server.
    pub(super) fn is_in_full_name(&self, id: ToolId, term: Term) -> bool {
        let mut parts = self.sequence(id).split(|term| *term == NO_TERM).take(2);
        self.name_terms(id).contains(&term) || parts.any(|part| part.contains(&term))
    }

    /// The position of a tool's server in [`Catalog::servers`].
    pub(super) fn server_of(&self, id: ToolId) -> Option<usize> {
        Some(self.server_of[id.index()]).filter(|at| *at != NO_TERM).map(|at| at as usize)
    }

    pub(super) fn name_rank(&self, id: ToolId) -> u32 {
        self.name_ranks[id.index()]
    }

    /// Approximate size on the heap, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let text: usize = self.sorted.iter().map(|(text, _)| 2 * (text.len() + 24)).sum();
        let numbers = self.starts.len()
            + self.tools.len()
            + self.impacts.len()
            + self.idfs.len()
            + self.sorted_positions.len()
            + self.tool_terms.len()
            + self.server_of.len()
            + self.name_ranks.len();
        let words: usize = self.words.keys().map(|word| word.len() + 24).sum();
        let related_terms: usize =
            self.related_terms.values().map(|list| 8 * list.len() + 24).sum();
        text + words + related_terms + 4 * numbers
    }

    /// Calls `visit` with every indexed word of a tool.
    pub(super) fn each_word(
        &self,
        catalog: &Catalog,
        id: ToolId,
        visit: &mut impl FnMut(IndexedField, &str),
    ) {
        fields::each_word(catalog, catalog.tool(id), &self.limits, visit);
    }

    /// Returns how often each term of a tool occurs in each field, and the length of each field in words. The impacts
    /// in the index were computed from the same numbers. The numbers are computed again here, so that `explain` can
    /// show them.
    pub(super) fn occurrences(
        &self,
        catalog: &Catalog,
        id: ToolId,
    ) -> (FxHashMap<Term, Occurrence>, [u32; FIELDS.len()]) {
        let mut found: FxHashMap<Term, Occurrence> = FxHashMap::default();
        let mut lengths = [0; FIELDS.len()];
        self.each_word(catalog, id, &mut |field, word| {
            lengths[field as usize] += 1;
            if let Some(term) = self.term_of_stem(&stem(word)) {
                let entry = found.entry(term).or_insert(Occurrence { counts: [0; FIELDS.len()] });
                entry.counts[field as usize] += 1;
            }
        });
        (found, lengths)
    }
}

/// The inverse document frequency in its BM25 form. It is close to 0 for a term that every tool has, and never
/// negative.
pub(super) fn idf(frequency: usize, total: usize) -> f32 {
    let (frequency, total) = (frequency as f32, total as f32);
    (1.0 + (total - frequency + 0.5) / (frequency + 0.5)).ln()
}

/// The weighted frequency of a term in a tool, summed over all fields.
pub(super) fn total_weighted_frequency(
    counts: &[u32; FIELDS.len()],
    lengths: &[u32; FIELDS.len()],
) -> f32 {
    let mut sum = 0.0;
    for field in FIELDS {
        let at = field as usize;
        if counts[at] > 0 {
            sum += fields::weighted_frequency(field, counts[at], lengths[at]);
        }
    }
    sum
}

#[derive(Default)]
struct IndexBuilder {
    terms: FxHashMap<Box<str>, Term>,
    /// The terms of words that occurred before, so that each word is stemmed only once.
    words: FxHashMap<Box<str>, Term>,
    postings: Vec<(Term, u32, f32)>,
    tool_terms: TermLists,
    /// The terms of the current tool, each with its field.
    seen: Vec<(Term, IndexedField)>,
}

impl IndexBuilder {
    fn add(&mut self, catalog: &Catalog, id: ToolId, limits: &Limits) {
        let mut seen = std::mem::take(&mut self.seen);
        seen.clear();
        let mut lengths = [0u32; FIELDS.len()];
        fields::each_word(catalog, catalog.tool(id), limits, &mut |field, word| {
            lengths[field as usize] += 1;
            seen.push((self.intern(word), field));
        });
        seen.sort_unstable();
        for same in seen.chunk_by(|a, b| a.0 == b.0) {
            let term = same[0].0;
            let mut counts = [0u32; FIELDS.len()];
            for (_, field) in same {
                counts[*field as usize] += 1;
            }
            let impact = fields::saturate(total_weighted_frequency(&counts, &lengths));
            self.postings.push((term, id.index() as u32, impact));
        }
        self.record_order(catalog.tool(id));
        self.seen = seen;
    }

    /// Records the terms of the tool's name, and the order of the tool's words for the bonus for adjacent words.
    fn record_order(&mut self, tool: &Tool) {
        let own = tool.name_without_server();
        self.tool_terms.begin();
        let mut name: Vec<Term> = Vec::new();
        words::each(own, &mut |word| {
            if is_stop(word) {
                return;
            }
            let parts = split_compound(word);
            let whole = [word];
            for part in if parts.is_empty() { &whole[..] } else { &parts[..] } {
                // The terms stay in the order of the words. Sorting them by number would make float sums depend on the
                // order in which other tools were indexed.
                let term = self.intern(part);
                if !name.contains(&term) {
                    name.push(term);
                }
            }
        });
        self.tool_terms.terms.push(name.len() as u32);
        self.tool_terms.terms.extend(name);
        let sentence = first_sentence_of(tool.description(), 200);
        for text in [own, tool.server().unwrap_or_default(), sentence] {
            words::each(text, &mut |word| {
                if !is_stop(word) {
                    let term = self.intern(word);
                    self.tool_terms.terms.push(term);
                }
            });
            self.tool_terms.terms.push(NO_TERM);
        }
    }

    fn intern(&mut self, word: &str) -> Term {
        if let Some(term) = self.words.get(word) {
            return *term;
        }
        let stemmed = stem(word);
        let next = self.terms.len() as Term;
        let term = if let Some(term) = self.terms.get(&*stemmed) {
            *term
        } else {
            self.terms.insert(Box::from(&*stemmed), next);
            next
        };
        self.words.insert(Box::from(word), term);
        term
    }

    /// Builds the index. Postings are grouped by term, and the tools of each term stay in catalog order.
    fn finish(mut self) -> Index {
        self.tool_terms.begin();
        let mut starts = vec![0u32; self.terms.len() + 1];
        for (term, _, _) in &self.postings {
            starts[*term as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut tools = vec![0u32; self.postings.len()];
        let mut impacts = vec![0f32; self.postings.len()];
        for (term, tool, impact) in &self.postings {
            let at = &mut next[*term as usize];
            tools[*at as usize] = *tool;
            impacts[*at as usize] = *impact;
            *at += 1;
        }
        let mut sorted: Vec<_> =
            self.terms.iter().map(|(text, term)| (text.clone(), *term)).collect();
        sorted.sort_unstable();
        let mut sorted_positions = vec![0u32; sorted.len()];
        for (at, (_, term)) in sorted.iter().enumerate() {
            sorted_positions[*term as usize] = at as u32;
        }
        Index {
            related_terms: related_terms::find_all(&self.terms, &sorted),
            words: self.words,
            sorted_positions,
            terms: self.terms,
            sorted,
            starts,
            tools,
            impacts,
            tool_terms: self.tool_terms,
            ..Index::default()
        }
    }
}

fn name_ranks(catalog: &Catalog) -> Vec<u32> {
    let mut order: Vec<ToolId> = catalog.ids().collect();
    order.sort_unstable_by_key(|id| catalog.tool(*id).name());
    let mut ranks = vec![0; order.len()];
    for (rank, id) in order.iter().enumerate() {
        ranks[id.index()] = rank as u32;
    }
    ranks
}
