//! Turns the words of a query into the index terms to look up.
//!
//! A word is matched by its own term, or with a lower factor by a related term: a synonym, a term with the same prefix,
//! or a term one edit away. For each word, only a tool's best matching term counts and not the sum of all, so that a
//! tool gains nothing by saying one thing in three ways.

use std::borrow::Cow;

use super::Correction;
use super::index::{Index, Term, idf};
use super::one_edit::is_one_edit;
use super::related_terms::are_relatives;
use crate::catalog::{Catalog, ToolId};
use crate::query::WordQuery;
use crate::scope::Scope;
use crate::text::{is_common, is_filler, is_stop, related, stem, words};

/// Factor for a synonym; the factor for the word itself is 1. All factors were chosen on ten datasets: see
/// docs/ranking.md.
const SYNONYM_FACTOR: f32 = 0.4;
/// Factor for a synonym if no tool in scope has the word itself.
const SYNONYM_OF_UNKNOWN_FACTOR: f32 = 0.7;
/// Factor for a term with the same prefix, such as `analyst` for `analysis`.
const RELATIVE_FACTOR: f32 = 0.4;
/// Factor for a completion, such as `repository` for `repo`, if the catalog does not have the word itself.
const COMPLETION_FACTOR: f32 = 0.6;
/// Factor for a term that is one edit away from the word.
const TYPO_FACTOR: f32 = 0.5;
/// Bonus for two words that are adjacent both in the query and in the tool, as a share of the sum of their inverse
/// document frequencies.
const PAIR_WEIGHT: f32 = 0.3;
/// Weight of common words and numbers. All other words have weight 1.
const COMMON_WORD_WEIGHT: f32 = 0.5;
/// Maximum number of related terms of each kind, except synonyms, for one word.
const MAX_RELATED_TERMS: usize = 12;
/// Maximum share of the tools in scope that may have a related term. If a tool in scope has the word itself, related
/// terms that a larger share of the tools has are ignored, because they do not distinguish tools and take time to look
/// up.
const MAX_RELATED_SHARE: f32 = 0.05;
/// A related term that at most this many tools have is never ignored, even if their share of the tools in scope exceeds
/// [`MAX_RELATED_SHARE`].
const MIN_RELATED_LIMIT: usize = 20;

/// How a term matches a word of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TermMatch {
    /// The term is the word itself, possibly in another inflection.
    Word,
    /// The term is a synonym of the word.
    Synonym,
    /// The term has the same prefix as the word.
    Prefix,
    /// The term is one edit away from the word.
    Typo,
}

/// A word of the query, and the terms that match it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueryWord {
    pub(super) word: String,
    /// The weight of the word in this query: the square root of how often it occurs, halved for common words and
    /// numbers.
    pub(super) weight: f32,
    pub(super) terms: Vec<MatchingTerm>,
}

/// A term that matches a word of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MatchingTerm {
    pub(super) term: Term,
    pub(super) via: TermMatch,
    /// The factor for the kind of match, from 0 to 1.
    pub(super) factor: f32,
    /// The term's inverse document frequency in the scope. If a tool in scope has the word itself, this value is at
    /// most the word's own inverse document frequency.
    pub(super) idf: f32,
}

/// A query that is ready to be looked up in the index.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct QueryPlan {
    pub(super) words: Vec<QueryWord>,
    /// The terms of two words that are adjacent in the query, and the bonus for tools in which the two words are also
    /// adjacent. Words that no tool in scope has are in no pair.
    pub(super) pairs: Vec<(Term, Term, f32)>,
    /// The total weight of the query. It is the sum, over all words, of the word's weight times its inverse document
    /// frequency. This includes words that occur in no tool in scope.
    pub(super) query_weight: f32,
    pub(super) corrections: Vec<Correction>,
    /// Whether words were dropped because the query has too many words.
    pub(super) cut: bool,
}

impl QueryPlan {
    pub(super) fn new(index: &Index, catalog: &Catalog, words: &WordQuery, scope: &Scope) -> Self {
        let mut plan = Self::default();
        let asked = DistinctWords::new(index, &words.text);
        plan.cut = asked.cut;
        // Filler words are skipped, unless the query has only filler words.
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

    /// Adds a pair for each two adjacent words of the query that both occur in tools in scope. `neighbours` has the
    /// term of each word, in the order of the query, or `None` for a word that no tool in scope has.
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

    /// Adds a word to the plan. Returns the word's own term, or `None` if no tool in scope has the word itself.
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
        // `highest` is the idf of the word itself if a tool in scope has it, because the idf of related terms is capped
        // at that value. A word without matching terms weighs as much as a word that a single tool has.
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
    /// The word's term, if the catalog has it.
    term: Option<Term>,
    count: u32,
    filler: bool,
}

/// The distinct words of a query. For each word of the query, in the order of the text, `order` has its index in
/// `words`.
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

/// Looks up terms within the scope of one caller.
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
        // A related term that many tools have does not distinguish them, so it is ignored if a tool in scope has the
        // word itself.
        if frequency == 0 || (via != TermMatch::Word && cap.is_some() && frequency > most) {
            return None;
        }
        let idf = idf(frequency, self.scope.len());
        let idf = cap.map_or(idf, |cap| idf.min(cap));
        Some(MatchingTerm { term, via, factor, idf })
    }

    /// Returns a spelling of a term to show instead of the term's stem. It is taken from the tool in scope that has the
    /// term and whose name sorts first. If that tool has several spellings of the term, the shortest is used.
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

    /// Adds synonyms and terms with the same prefix. They are also added for a word that only tools outside the scope
    /// have, so that the caller cannot detect hidden tools. If the word has no term, there is no precomputed list of
    /// related terms, so they are searched for.
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

    /// Adds terms that begin with a word that the catalog does not have.
    fn completions(&self, stemmed: &str, terms: &mut Vec<MatchingTerm>) {
        if stemmed.chars().count() < 3 {
            return;
        }
        // The limit is applied after the scope is checked. Otherwise the words of hidden tools would count towards the
        // limit.
        let mut found: Vec<MatchingTerm> = self
            .index
            .with_prefix(stemmed)
            .filter_map(|(_, term)| {
                self.matching_term(term, TermMatch::Prefix, COMPLETION_FACTOR, None)
            })
            .take(4 * MAX_RELATED_TERMS)
            .collect();
        // The most frequent terms are kept, because they are the most likely completions.
        let text = |term: &MatchingTerm| self.index.text(term.term);
        found.sort_by(|a, b| a.idf.total_cmp(&b.idf).then_with(|| text(a).cmp(text(b))));
        terms.extend(found.into_iter().take(MAX_RELATED_TERMS));
    }

    /// Adds terms that are one edit away from a word that the catalog does not have. The first letter is assumed to be
    /// right. It nearly always is, and this makes the vocabulary to search thirty times smaller.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn the_weight_of_a_query_includes_unknown_words() {
        let tools = r#"{"name":"send_mail","description":"x"}
{"name":"read_mail","description":"x"}
{"name":"ping","description":"x"}"#;
        let catalog = Catalog::from_json(tools.as_bytes()).unwrap();
        let index = Index::build(&catalog, &Limits::default());
        let asked = |text: &str| {
            let words = WordQuery::plain(text, &Limits::default());
            QueryPlan::new(&index, &catalog, &words, &Scope::all(&catalog)).query_weight
        };
        let (once, twice) = (idf(1, 3), idf(2, 3));
        for (text, weight) in [
            ("ping", once),
            ("mail", twice),
            ("please ping", once),
            ("ping mail", once + twice),
            ("ping ping", once * 2.0_f32.sqrt()),
            // No tool has `xylophone`. It weighs as much as a word that one tool has.
            ("ping xylophone", 2.0 * once),
            ("", 0.0),
        ] {
            assert!((asked(text) - weight).abs() < 1e-5, "{text}: {} is not {weight}", asked(text));
        }
        let nobody = Scope::none(&catalog);
        let words = WordQuery::plain("ping", &Limits::default());
        assert!(QueryPlan::new(&index, &catalog, &words, &nobody).query_weight >= 0.0);
    }
}
