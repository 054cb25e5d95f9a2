//! A query's words, turned into the terms to look for.
//!
//! Each word is one slot. A slot is served by the word's own term, or by what stands for it: a
//! synonym, a relative by prefix, a typo's neighbour, each at a discount. A tool gets the best of a
//! slot and not the sum, so that saying one thing in three ways counts once.

use std::borrow::Cow;

use super::Correction;
use super::index::{Index, Term, idf};
use super::related_terms::are_relatives;
use crate::catalog::{Catalog, ToolId};
use crate::query::Words;
use crate::scope::Scope;
use crate::text::{is_common, is_filler, is_stop, related, stem, words};

/// What a synonym is worth, against the word itself.
const SYNONYM_FACTOR: f32 = 0.4;
/// What it is worth when the catalog does not know the word at all.
const SYNONYM_OF_UNKNOWN_FACTOR: f32 = 0.7;
/// What a relative by prefix is worth: `analyst` for `analysis`.
const RELATIVE_FACTOR: f32 = 0.4;
/// What a completion is worth: `repository` for `repo`, where `repo` is unknown.
const COMPLETION_FACTOR: f32 = 0.6;
/// What the neighbour of a typo is worth.
const TYPO_FACTOR: f32 = 0.5;
/// What two neighbours found side by side are worth beyond each, of their idf.
const PAIR_WEIGHT: f32 = 0.3;
/// Everyday words and numbers count half.
const COMMON_WORD_WEIGHT: f32 = 0.5;
/// Terms that may stand for one word, of each kind.
const MAX_RELATED_TERMS: usize = 12;
/// A stand-in that is in more than this factor of the tools tells nothing and costs time.
const MAX_RELATED_SHARE: f32 = 0.05;
/// In a catalog this small nothing is too common.
const MIN_RELATED_LIMIT: usize = 20;

/// How a term came to serve a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TermMatch {
    /// It is the word, up to inflection.
    Word,
    /// It means the same.
    Synonym,
    /// It begins the same.
    Prefix,
    /// It is one letter away.
    Typo,
}

/// One word of the query and the terms that serve it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueryWord {
    pub(super) word: String,
    /// What the word is worth in this query.
    pub(super) weight: f32,
    pub(super) terms: Vec<MatchingTerm>,
}

/// A term that serves a slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MatchingTerm {
    pub(super) term: Term,
    pub(super) via: TermMatch,
    /// The discount of its kind.
    pub(super) factor: f32,
    /// Its idf, capped by the word's own.
    pub(super) idf: f32,
}

/// A query, ready to run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct QueryPlan {
    pub(super) words: Vec<QueryWord>,
    /// Neighbouring words of the query that the catalog knows, with what finding them side by side
    /// is worth.
    pub(super) pairs: Vec<(Term, Term, f32)>,
    /// What the query weighs: the weight of each of its words times its idf, also of those that
    /// nothing in scope has.
    pub(super) query_weight: f32,
    pub(super) corrections: Vec<Correction>,
    /// Whether words were left out for their number.
    pub(super) cut: bool,
}

impl QueryPlan {
    pub(super) fn new(index: &Index, catalog: &Catalog, words: &Words, scope: &Scope) -> Self {
        let mut plan = Self::default();
        let asked = DistinctWords::new(index, &words.text);
        plan.cut = asked.cut;
        // Only what is left when the filler is gone says something, unless nothing is left.
        let has_content_words = asked.words.iter().any(|word| !word.filler);
        let lookup = TermLookup { index, catalog, scope };
        let mut own: Vec<Option<MatchingTerm>> = Vec::with_capacity(asked.words.len());
        for word in &asked.words {
            let is_skipped = has_content_words && word.filler;
            own.push(if is_skipped { None } else { plan.add_word(&lookup, word) });
        }
        let content_words =
            asked.order.iter().filter(|at| !(has_content_words && asked.words[**at].filler));
        let neighbours: Vec<Option<MatchingTerm>> = content_words.map(|at| own[*at]).collect();
        plan.add_pairs(&neighbours);
        plan
    }

    /// Notes the neighbours among words that the catalog has.
    fn add_pairs(&mut self, neighbours: &[Option<MatchingTerm>]) {
        for pair in neighbours.windows(2) {
            if let [Some(a), Some(b)] = pair
                && a.term != b.term
                && !self.pairs.iter().any(|(x, y, _)| (*x, *y) == (a.term, b.term))
            {
                self.pairs.push((a.term, b.term, PAIR_WEIGHT * (a.idf + b.idf)));
            }
        }
    }

    /// Adds the slot of one word; returns the member that is the word itself.
    fn add_word(
        &mut self,
        lookup: &TermLookup<'_>,
        asked: &DistinctWord<'_>,
    ) -> Option<MatchingTerm> {
        let DistinctWord { word, stemmed, term, count, .. } = asked;
        let own = term.and_then(|term| lookup.matching_term(term, TermMatch::Word, 1.0, None));
        let mut terms: Vec<MatchingTerm> = own.into_iter().collect();
        lookup.related_terms(*term, stemmed, own.map(|own| own.idf), &mut terms);
        if terms.is_empty() {
            lookup.completions(stemmed, &mut terms);
        }
        if terms.is_empty() {
            lookup.typos(word, stemmed, &mut terms);
            if let Some(best) = terms.iter().min_by(|a, b| a.idf.total_cmp(&b.idf)) {
                let read_as = lookup.surface_form(best);
                self.corrections.push(Correction { word: word.clone(), read_as });
            }
        }
        let mut weight = (*count as f32).sqrt();
        if is_common(word) || word.bytes().all(|b| b.is_ascii_digit()) {
            weight *= COMMON_WORD_WEIGHT;
        }
        // The word's own idf comes first, and caps that of its stand-ins. A word that nobody has is
        // as has_content_words as one that a single tool has.
        let highest = terms.iter().map(|term| term.idf).reduce(f32::max);
        self.query_weight += weight * highest.unwrap_or_else(|| idf(1, lookup.scope.len().max(1)));
        if terms.is_empty() {
            return None;
        }
        self.words.push(QueryWord { word: word.clone(), weight, terms });
        own
    }
}

/// A distinct word of a query.
struct DistinctWord<'a> {
    word: String,
    stemmed: Cow<'a, str>,
    /// The term, where the catalog has it.
    term: Option<Term>,
    count: u32,
    filler: bool,
}

/// The words of a query, each once, and the order they were said in.
#[derive(Default)]
struct DistinctWords<'a> {
    words: Vec<DistinctWord<'a>>,
    order: Vec<usize>,
    cut: bool,
}

impl<'a> DistinctWords<'a> {
    fn new(index: &'a Index, text: &str) -> Self {
        let mut asked = Self::default();
        words::each(text, &mut |word| {
            if is_stop(word) {
                return;
            }
            let known = index.term_of_word(word);
            let stemmed = known.map_or_else(
                || Cow::Owned(stem(word).into_owned()),
                |term| Cow::Borrowed(index.text(term)),
            );
            let before = asked.words.iter().position(|before| before.stemmed == stemmed);
            let at = match before {
                Some(at) => {
                    asked.words[at].count += 1;
                    at
                }
                None if asked.words.len() == index.limits.query_words => {
                    asked.cut = true;
                    return;
                }
                None => {
                    let term = known.or_else(|| index.term_of_stem(&stemmed));
                    let filler = is_filler(&stemmed);
                    asked.words.push(DistinctWord {
                        word: word.to_owned(),
                        stemmed,
                        term,
                        count: 1,
                        filler,
                    });
                    asked.words.len() - 1
                }
            };
            asked.order.push(at);
        });
        asked
    }
}

/// Looks up terms for one caller.
struct TermLookup<'a> {
    index: &'a Index,
    catalog: &'a Catalog,
    scope: &'a Scope,
}

impl TermLookup<'_> {
    fn matching_term(
        &self,
        term: Term,
        via: TermMatch,
        factor: f32,
        cap: Option<f32>,
    ) -> Option<MatchingTerm> {
        let frequency = self.index.document_frequency(term, self.scope);
        let most = ((self.scope.len() as f32 * MAX_RELATED_SHARE) as usize).max(MIN_RELATED_LIMIT);
        // Too common to tell tools apart, unless nothing else serves the word.
        if frequency == 0 || (via != TermMatch::Word && cap.is_some() && frequency > most) {
            return None;
        }
        let idf = idf(frequency, self.scope.len());
        let idf = cap.map_or(idf, |cap| idf.min(cap));
        Some(MatchingTerm { term, via, factor, idf })
    }

    /// A term as it is written in a tool in scope: a stem is nothing to show.
    fn surface_form(&self, member: &MatchingTerm) -> String {
        let text = self.index.text(member.term);
        let (tools, _) = self.index.postings(member.term);
        let ids = tools.iter().map(|tool| ToolId::at(*tool as usize));
        let first =
            ids.filter(|id| self.scope.contains(*id)).min_by_key(|id| self.index.name_rank(*id));
        let mut shortest: Option<String> = None;
        if let Some(id) = first {
            self.index.each_word(self.catalog, id, &mut |_, word| {
                let shorter = shortest
                    .as_ref()
                    .is_none_or(|known| (word.len(), word) < (known.len(), known.as_str()));
                if shorter && stem(word) == text {
                    shortest = Some(word.to_owned());
                }
            });
        }
        shortest.unwrap_or_else(|| text.to_owned())
    }

    /// Synonyms and relatives. A term that is there for other callers only has them too, so that
    /// this one cannot tell: for a word without a term they are looked up in the lists themselves.
    fn related_terms(
        &self,
        term: Option<Term>,
        stemmed: &str,
        cap: Option<f32>,
        terms: &mut Vec<MatchingTerm>,
    ) {
        let synonym = if cap.is_some() { SYNONYM_FACTOR } else { SYNONYM_OF_UNKNOWN_FACTOR };
        let mut relatives = 0;
        let mut add = |term: Term, via: TermMatch| {
            let factor = if via == TermMatch::Synonym { synonym } else { RELATIVE_FACTOR };
            if via == TermMatch::Prefix && relatives == MAX_RELATED_TERMS {
                return;
            }
            if let Some(member) = self.matching_term(term, via, factor, cap) {
                relatives += usize::from(via == TermMatch::Prefix);
                terms.push(member);
            }
        };
        if let Some(term) = term {
            for (other, via) in self.index.related_terms(term) {
                add(*other, *via);
            }
            return;
        }
        let synonyms: Vec<Term> =
            related(stemmed).iter().filter_map(|s| self.index.term_of_stem(s)).collect();
        for other in &synonyms {
            add(*other, TermMatch::Synonym);
        }
        if let Some(root) = stemmed.get(..5) {
            for (text, other) in self.index.with_prefix(root) {
                if are_relatives(stemmed, text) && !synonyms.contains(&other) {
                    add(other, TermMatch::Prefix);
                }
            }
        }
    }

    /// Terms that an unknown word begins.
    fn completions(&self, stemmed: &str, terms: &mut Vec<MatchingTerm>) {
        if stemmed.chars().count() < 3 {
            return;
        }
        // Counted after the scope has been asked, or a hidden tool's words would take up sorted_positions.
        let mut found: Vec<MatchingTerm> = self
            .index
            .with_prefix(stemmed)
            .filter_map(|(_, term)| {
                self.matching_term(term, TermMatch::Prefix, COMPLETION_FACTOR, None)
            })
            .take(4 * MAX_RELATED_TERMS)
            .collect();
        // The commonest are the likeliest to be meant.
        let text = |member: &MatchingTerm| self.index.text(member.term);
        found.sort_by(|a, b| a.idf.total_cmp(&b.idf).then_with(|| text(a).cmp(text(b))));
        terms.extend(found.into_iter().take(MAX_RELATED_TERMS));
    }

    /// Terms one edit away from an unknown word. The first letter is taken as right: it nearly
    /// always is, and it makes the vocabulary thirty times smaller.
    fn typos(&self, word: &str, stemmed: &str, terms: &mut Vec<MatchingTerm>) {
        let Some(first) = stemmed.get(..1).filter(|_| word.len() >= 4) else { return };
        for (text, term) in self.index.with_prefix(first).filter(|(text, _)| text.len() >= 4) {
            if text.len().abs_diff(stemmed.len()) <= 1
                && is_one_edit(stemmed.as_bytes(), text.as_bytes())
                && let Some(member) = self.matching_term(term, TermMatch::Typo, TYPO_FACTOR, None)
            {
                terms.push(member);
                if terms.len() == MAX_RELATED_TERMS {
                    return;
                }
            }
        }
    }
}

/// Whether one insertion, deletion, substitution or swap of neighbours leads from `a` to `b`.
fn is_one_edit(a: &[u8], b: &[u8]) -> bool {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[same..], &b[same..]);
    match (a, b) {
        ([], []) => false,
        _ if a.len() == b.len() => {
            a[1..] == b[1..] || (a.len() > 1 && a[0] == b[1] && a[1] == b[0] && a[2..] == b[2..])
        }
        _ if a.len() + 1 == b.len() => *a == b[1..],
        _ if a.len() == b.len() + 1 => a[1..] == *b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn a_query_weighs_what_its_words_do_known_or_not() {
        let tools = r#"{"name":"send_mail","description":"x"}
{"name":"read_mail","description":"x"}
{"name":"ping","description":"x"}"#;
        let catalog = Catalog::from_json(tools.as_bytes()).unwrap();
        let index = Index::build(&catalog, &Limits::default());
        let asked = |text: &str| {
            let words = Words::plain(text, &Limits::default());
            QueryPlan::new(&index, &catalog, &words, &Scope::all(&catalog)).query_weight
        };
        let (once, twice) = (idf(1, 3), idf(2, 3));
        for (text, weight) in [
            ("ping", once),
            ("mail", twice),
            ("please ping", once),
            ("ping mail", once + twice),
            ("ping ping", once * 2.0_f32.sqrt()),
            // Nobody has it, and it weighs as if one tool had.
            ("ping xylophone", 2.0 * once),
            ("", 0.0),
        ] {
            assert!((asked(text) - weight).abs() < 1e-5, "{text}: {} is not {weight}", asked(text));
        }
        let nobody = Scope::none(&catalog);
        let words = Words::plain("ping", &Limits::default());
        assert!(QueryPlan::new(&index, &catalog, &words, &nobody).query_weight >= 0.0);
    }

    #[test]
    fn one_edit_and_no_more() {
        for (a, b, near) in [
            ("issue", "isue", true),
            ("isue", "issue", true),
            ("issue", "isseu", true),
            ("issue", "issux", true),
            ("issue", "issue", false),
            ("issue", "isxux", false),
            ("a", "abc", false),
        ] {
            assert_eq!(is_one_edit(a.as_bytes(), b.as_bytes()), near, "{a} {b}");
        }
    }
}
