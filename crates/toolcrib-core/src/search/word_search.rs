//! Answers a query in words. Decides which hits of a ranking are returned, and when none is.

use super::SearchResults;
use crate::catalog::{Catalog, ToolId};
use crate::conversation::Conversation;
use crate::crib::Crib;
use crate::query::WordQuery;
use crate::rank::{Fit, Hit, Ranking, is_confident_enough_to_show};
use crate::reply::NO_FIT;
use crate::turn_context::TurnContext;
use toolcrib_text::json::data;
use toolcrib_text::{first_sentence, shorten};

/// Maximum length of a query that is repeated in a note, in characters.
const MAX_NOTE_CHARS: usize = 80;
/// Number of tools that are named if none fits. If the decision that none fits is wrong, the model can load one of the
/// named tools with a single `select:`.
const NAMED_WITHOUT_FIT: usize = 3;
/// Maximum size of the note that no tool fits, in tokens. Only very long names can exceed it.
const NO_FIT_NOTE_TOKENS: usize = 120;
/// Maximum lengths of the first sentence of a named tool, in characters. The first length with which the note is small
/// enough is used.
const SENTENCE_CHARS: [usize; 3] = [100, 70, 40];
/// The note that a weak fit gets.
pub(super) const WEAK_FIT_NOTE: &str = "Weak fit: possibly none of these tools does what you need. Read a description before you \
                             call its tool; if none serves, search once in other words or answer without a tool.";

impl Crib {
    /// Returns the hits for one query. If no tool fits, it returns no hits and adds a note that names the nearest
    /// tools.
    pub(super) fn search_words(
        &self,
        turn: &TurnContext<'_>,
        conversation: &Conversation,
        query: &str,
        words: &WordQuery,
        limit: Option<usize>,
        results: &mut SearchResults,
    ) -> Vec<Hit> {
        let limit = self.clamp(limit);
        // More tools are ranked than requested, because some are dropped or moved back.
        let mut ranked = self.ranking(words, turn.scope, limit * 4);
        results.corrections.append(&mut ranked.corrections);
        if words.cut || ranked.cut {
            results.notes.push("The query is too long: only its beginning was read.".into());
        }
        let fit = self.decide_fit(&ranked.hits).map(|decision| decision.fit);
        results.fit = results.fit.max(fit);
        if ranked.hits.is_empty() || fit == Some(Fit::None) {
            results.named_nearest |= !ranked.hits.is_empty();
            results.notes.push(self.no_fit_note(query, &ranked));
            return Vec::new();
        }
        let mut hits = self.relevant_hits(words, ranked);
        // If so configured, tools whose schemas the model already has come last.
        let known_last = self.settings().search.known_last;
        hits.sort_by_key(|hit| known_last && self.is_visible(conversation, hit.id));
        hits.truncate(limit);
        hits
    }

    /// Selects the hits of a ranking that are returned: the first hit, and those whose score is not far below it.
    fn relevant_hits(&self, words: &WordQuery, ranked: Ranking) -> Vec<Hit> {
        let search = &self.settings().search;
        // If the query is a single word that is the name of a tool, only that tool was requested. If several words
        // happen to spell a name, that tool comes first, but other tools are returned as well.
        let pasted = !words.text.trim().contains(char::is_whitespace);
        let alone = pasted && ranked.hits.iter().any(|hit| hit.exact);
        // The coverage bonus is excluded from the best score. The first hit always gets the maximum bonus, so the bonus
        // does not show how well that hit matches.
        let best =
            ranked.hits.iter().filter(|hit| !hit.exact).map(|hit| hit.score - hit.coverage_bonus);
        let cutoff = best.fold(0.0, f32::max) * search.cutoff;
        let follows = |hit: &Hit| {
            let worth = !search.refuse || is_confident_enough_to_show(hit);
            hit.score >= cutoff && worth && !alone
        };
        let first = ranked.hits.first().map(|hit| hit.id);
        let keeps = |hit: &Hit| hit.exact || Some(hit.id) == first || follows(hit);
        ranked.hits.into_iter().filter(keeps).collect()
    }

    /// The note that no tool fits a query, and what the model can do next.
    fn no_fit_note(&self, query: &str, ranked: &Ranking) -> String {
        let query = data(&shorten(query, MAX_NOTE_CHARS));
        let nearest = &ranked.hits[..ranked.hits.len().min(NAMED_WITHOUT_FIT)];
        if nearest.is_empty() {
            return format!("Nothing matches {query}. Try another word for it, or fewer words.");
        }
        let note = |sentence_chars: usize| {
            let named: Vec<String> =
                nearest.iter().map(|hit| self.named(hit.id, sentence_chars)).collect();
            format!(
                "{NO_FIT}{query}. Nearest: {}. If one serves after all, load it with select:NAME; otherwise answer without a tool.",
                named.join("; ")
            )
        };
        let fits = |note: &String| self.counter().count(note) <= NO_FIT_NOTE_TOKENS;
        // If even the shortest sentences are too long, the tools are only named.
        SENTENCE_CHARS.into_iter().map(note).find(fits).unwrap_or_else(|| note(0))
    }

    /// The name of a tool and the first sentence of its description, of at most `sentence_chars` characters. If this is 0,
    /// only the name.
    fn named(&self, id: ToolId, sentence_chars: usize) -> String {
        let tool = self.catalog().tool(id);
        match first_sentence(tool.description(), sentence_chars) {
            sentence if sentence_chars == 0 || sentence.is_empty() => data(tool.name()),
            sentence => format!("{} ({})", data(tool.name()), data(&sentence)),
        }
    }
}

/// Takes the best hit of every query, then the second best of every query, and so on.
pub(super) fn interleave(catalog: &Catalog, per_query: &[Vec<Hit>], results: &mut SearchResults) {
    let longest = per_query.iter().map(Vec::len).max().unwrap_or(0);
    for rank in 0..longest {
        for hits in per_query {
            if let Some(hit) = hits.get(rank) {
                results.pick(catalog, *hit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    /// Returns how many of two hits are kept. Each hit is given as a score and a coverage bonus.
    fn kept(hits: [(f32, f32); 2]) -> usize {
        let tools = br#"[{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": {}}]"#;
        let crib = Crib::new(Catalog::from_json(tools).unwrap(), Settings::default());
        let hit = |(id, (score, cover))| Hit {
            id,
            score,
            coverage_bonus: cover,
            exact: false,
            confidence: Some(0.6),
        };
        let hits: Vec<Hit> = crib.catalog().ids().zip(hits).map(hit).collect();
        let kept = crib.relevant_hits(
            &WordQuery::default(),
            Ranking { hits: hits.clone(), ..Ranking::default() },
        );
        assert_eq!(kept, hits[..kept.len()]);
        kept.len()
    }

    /// `decide_fit` has already decided that the first hit fits, so a low score must not exclude it.
    #[test]
    fn the_first_hit_is_returned_whatever_its_score() {
        assert_eq!(kept([(-0.1, 0.0), (-0.2, 0.0)]), 1);
    }

    #[test]
    fn the_coverage_bonus_of_the_first_hit_excludes_no_other_hit() {
        assert_eq!(kept([(0.95, 0.0), (0.3, 0.0)]), 1);
        assert_eq!(kept([(0.95, 0.4), (0.3, 0.0)]), 2);
    }
}
