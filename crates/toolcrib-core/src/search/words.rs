//! Answering a query in words: what is kept of a ranking, and when nothing is.

use super::Finds;
use crate::catalog::Catalog;
use crate::conversation::Conversation;
use crate::crib::Crib;
use crate::query::Words;
use crate::rank::{Fit, Hit, Ranking, is_confident_enough_to_show};
use crate::turn_context::TurnContext;
use toolcrib_text::json::data;
use toolcrib_text::shorten;

/// Characters of a query that a note repeats.
const REPEATED: usize = 80;
/// Tools that are named where none fits: a wrong refusal then costs one `select:`.
const NEAREST: usize = 3;

impl Crib {
    /// The hits of one query. Where none fits there are none, and a note says what comes nearest.
    pub(super) fn find(
        &self,
        turn: &TurnContext<'_>,
        conversation: &Conversation,
        query: &str,
        words: &Words,
        limit: Option<usize>,
        finds: &mut Finds,
    ) -> Vec<Hit> {
        let limit = self.clamp(limit);
        // More than asked for, so that what is cut off or moved back leaves no gap.
        let mut ranked = self.ranking(words, turn.scope, limit * 4);
        finds.corrections.append(&mut ranked.corrections);
        if words.cut || ranked.cut {
            finds.notes.push("The query is too long: only its beginning was read.".into());
        }
        let fit = self.decide_fit(&ranked.hits).map(|judgement| judgement.fit);
        finds.fit = finds.fit.max(fit);
        if ranked.hits.is_empty() || fit == Some(Fit::None) {
            finds.lost = true;
            finds.notes.push(self.refusal(query, &ranked));
            return Vec::new();
        }
        let mut hits = self.kept(words, ranked);
        // What the model has already is the last it needs.
        let known_last = self.settings().search.known_last;
        hits.sort_by_key(|hit| known_last && self.is_visible(conversation, hit.id));
        hits.truncate(limit);
        hits
    }

    /// What of a ranking is an answer: the first, and what is not far behind it.
    fn kept(&self, words: &Words, ranked: Ranking) -> Vec<Hit> {
        let search = &self.settings().search;
        // A name pasted alone asks for that tool alone. Words that happen to spell a name put it
        // first, and say nothing against the others.
        let pasted = !words.text.trim().contains(char::is_whitespace);
        let alone = pasted && ranked.hits.iter().any(|hit| hit.exact);
        // What the first has for its place says nothing about how far the others are behind.
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

    /// That nothing fits a query, and what the model may do about it.
    fn refusal(&self, query: &str, ranked: &Ranking) -> String {
        let query = data(&shorten(query, REPEATED));
        let name = |hit: &Hit| data(self.catalog().tool(hit.id).name());
        let nearest: Vec<String> = ranked.hits.iter().take(NEAREST).map(name).collect();
        if nearest.is_empty() {
            return format!("Nothing matches {query}. Try another word for it, or fewer words.");
        }
        format!(
            "No tool here fits {query}. Nearest: {}; load one with select:NAME if it serves, or answer without a tool.",
            nearest.join(", ")
        )
    }
}

/// The best of every query first, then the second best: no need is served last.
pub(super) fn interleave(catalog: &Catalog, per_query: &[Vec<Hit>], finds: &mut Finds) {
    let longest = per_query.iter().map(Vec::len).max().unwrap_or(0);
    for rank in 0..longest {
        for hits in per_query {
            if let Some(hit) = hits.get(rank) {
                finds.pick(catalog, *hit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    /// How many of two hits are kept, each with its score and what of it is for its place.
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
        let kept =
            crib.kept(&Words::default(), Ranking { hits: hits.clone(), ..Ranking::default() });
        assert_eq!(kept, hits[..kept.len()]);
        kept.len()
    }

    /// Whoever is first was judged to be an answer; that it is far from what others would have had does not
    /// take that back.
    #[test]
    fn the_first_is_kept_whatever_its_score() {
        assert_eq!(kept([(-0.1, 0.0), (-0.2, 0.0)]), 1);
    }

    #[test]
    fn what_the_first_has_for_its_place_cuts_nobody_off() {
        assert_eq!(kept([(0.95, 0.0), (0.3, 0.0)]), 1);
        assert_eq!(kept([(0.95, 0.4), (0.3, 0.0)]), 2);
    }
}
