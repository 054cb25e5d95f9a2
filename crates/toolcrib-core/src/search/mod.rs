//! Answering a search: names, words, patterns, or a look around.
//!
//! Every answer teaches. A hit carries what is needed to call the tool; a miss says what there is,
//! what the words may have been meant to be, and which servers have yet to connect.

mod answer;

use crate::catalog::{Catalog, ToolId};
use crate::conversation::{Circling, Conversation};
use crate::crib::Crib;
use crate::disclose::Turn;
use crate::listing::data;
use crate::pattern;
use crate::query::{Query, Words};
use crate::rank::Hit;
use crate::reply::{Correction, Missing, Reply};
use crate::spelling::{self, ALIKE, Meaning};
use crate::text::shorten;

/// What one call of a search tool asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// Queries, in words or `select:`.
    pub queries: Vec<String>,
    /// Names to load.
    pub names: Vec<String>,
    /// A pattern, where that is asked for.
    pub pattern: Option<String>,
    /// How many results; clamped to what is allowed.
    pub limit: Option<usize>,
}

impl Ask {
    /// One query.
    pub fn query(text: &str) -> Self {
        Self { queries: vec![text.to_owned()], ..Self::default() }
    }
}

/// How alike a name must be to be offered when nothing is like it: a letter or two, since whoever asked for the
/// missing one sees that it is a guess.
const GUESS: u32 = 1;
/// Missing names that are guessed at: each guess reads every name there is.
const GUESSES: usize = 8;
/// What a search found, before it is fitted into a reply.
#[derive(Debug, Default)]
struct Finds {
    /// Tools that one call may load, however it asks for them.
    most: usize,
    picked: Vec<(ToolId, f32)>,
    /// Whether these were asked for by name: then already-loaded ones are shown in full again.
    by_name: Vec<ToolId>,
    /// How many names were asked for.
    names: usize,
    missing: Vec<Missing>,
    /// Whether nothing was found or nearly found: then what there is is listed.
    lost: bool,
    omitted: Vec<String>,
    corrections: Vec<Correction>,
    notes: Vec<String>,
}

impl Finds {
    /// Takes a tool, or names it among those left out once this call has as many as one may load.
    fn pick(&mut self, catalog: &Catalog, id: ToolId, score: f32) {
        if self.picked.iter().any(|(known, _)| *known == id) {
            return;
        }
        if self.picked.len() < self.most {
            self.picked.push((id, score));
            return;
        }
        let name = catalog.tool(id).name();
        if !self.omitted.iter().any(|known| known == name) {
            self.omitted.push(name.to_owned());
        }
    }
}

impl Crib {
    /// Answers a search and records what it showed.
    pub fn search(&self, turn: &Turn<'_>, conversation: &mut Conversation, ask: &Ask) -> Reply {
        let turn = &self.own_turn(turn);
        let mut finds = Finds { most: self.settings().search.max_limit, ..Finds::default() };
        let mut asks = 0;
        let most = self.settings().limits.asks;
        self.select(turn, &ask.names, &mut finds);
        if let Some(pattern) = &ask.pattern {
            self.match_pattern(turn, pattern, ask.limit, &mut finds);
            asks += 1;
        }
        let mut per_query = Vec::new();
        for query in ask.queries.iter().take(most) {
            match self.parse(query, turn.scope) {
                Query::Select(names) => self.select(turn, &names, &mut finds),
                Query::Browse => {}
                Query::Words(words) => {
                    asks += 1;
                    per_query.push(self.find(
                        turn,
                        conversation,
                        query,
                        &words,
                        ask.limit,
                        &mut finds,
                    ));
                }
            }
        }
        if ask.queries.len() > most {
            let (all, kept) = (ask.queries.len(), most);
            finds.notes.push(format!("{all} queries were asked, the first {kept} are answered."));
        }
        interleave(self.catalog(), &per_query, &mut finds);
        if !finds.omitted.is_empty() {
            let most = finds.most;
            finds
                .notes
                .push(format!("At most {most} tools are loaded at once; ask again for the rest."));
        }
        finds.lost |= finds.picked.is_empty() && finds.missing.is_empty();
        let query = shown_query(ask);
        let circling = if asks > 0 { conversation.guard.searched(&query) } else { Circling::No };
        self.answer(turn, conversation, query, finds, circling)
    }

    fn select(&self, turn: &Turn<'_>, names: &[String], finds: &mut Finds) {
        let room = self.settings().limits.names.saturating_sub(finds.names);
        finds.names += names.len();
        if names.len() > room {
            let (all, kept) = (names.len(), room);
            finds.notes.push(format!("{all} names were asked for, the first {kept} are answered."));
        }
        for name in names.iter().take(room) {
            match self.spellings.resolve(self.catalog(), turn.scope, name) {
                Meaning::One(id, _) => {
                    finds.by_name.push(id);
                    finds.pick(self.catalog(), id, 0.0);
                }
                Meaning::Several(ids) => finds.missing.push(self.ambiguous(name, &ids)),
                Meaning::Nothing if finds.missing.len() < GUESSES => {
                    let mut missing = self.missing(turn, name, ALIKE);
                    if missing.nearest.is_empty() {
                        finds.lost = true;
                        missing = self.missing(turn, name, GUESS);
                    }
                    finds.missing.push(missing);
                }
                Meaning::Nothing => {
                    finds.missing.push(Missing { name: shown(name), nearest: Vec::new() });
                }
            }
        }
    }

    fn ambiguous(&self, name: &str, ids: &[ToolId]) -> Missing {
        let mut nearest: Vec<_> =
            ids.iter().map(|id| self.catalog().tool(*id).name().to_owned()).collect();
        nearest.sort_unstable();
        nearest.truncate(self.settings().search.max_limit);
        Missing { name: shown(name), nearest }
    }

    pub(crate) fn missing(&self, turn: &Turn<'_>, name: &str, alike: u32) -> Missing {
        let nearest = spelling::nearest(self.catalog(), turn.scope, name, alike);
        Missing { name: shown(name), nearest: nearest.into_iter().map(str::to_owned).collect() }
    }

    fn find(
        &self,
        turn: &Turn<'_>,
        conversation: &Conversation,
        query: &str,
        words: &Words,
        limit: Option<usize>,
        finds: &mut Finds,
    ) -> Vec<Hit> {
        let limit = self.clamp(limit);
        let search = &self.settings().search;
        // More than asked for, so that what is cut off or moved back leaves no gap.
        let ranked = self.ranking(words, turn.scope, limit * 4);
        finds.corrections.extend(ranked.corrections);
        if words.cut || ranked.cut {
            finds.notes.push("The query is too long: only its beginning was read.".into());
        }
        // A name pasted alone asks for that tool alone. Words that happen to spell a name put it
        // first, and say nothing against the others.
        let pasted = !words.text.trim().contains(char::is_whitespace);
        let named = ranked.hits.iter().any(|hit| hit.exact);
        let best = ranked.hits.iter().filter(|hit| !hit.exact).map(|hit| hit.score);
        let cutoff = best.fold(0.0, f32::max) * search.cutoff;
        let keeps = |hit: &Hit| hit.exact || (hit.score >= cutoff && !(pasted && named));
        let mut hits: Vec<Hit> = ranked.hits.into_iter().filter(keeps).collect();
        // What the model has already is the last it needs.
        hits.sort_by_key(|hit| search.known_last && self.is_visible(conversation, hit.id));
        hits.truncate(limit);
        if hits.is_empty() {
            finds.lost = true;
            finds.notes.push(format!(
                "Nothing matches {}. Try another word for it, or fewer words.",
                data(&shorten(query, 80))
            ));
        }
        hits
    }

    fn match_pattern(&self, turn: &Turn<'_>, text: &str, limit: Option<usize>, finds: &mut Finds) {
        let limits = &self.settings().limits;
        let regex = match pattern::compile(text, limits) {
            Ok(regex) => regex,
            Err(bad) => {
                finds.notes.push(format!(
                    "The pattern cannot be used: {}. Use plain words with {} instead.",
                    bad.message,
                    self.settings().names.search
                ));
                return;
            }
        };
        let found = pattern::matches(&regex, self.catalog(), &self.searched(turn.scope), limits);
        if found.partial {
            finds
                .notes
                .push("The catalog is too large for one pattern: the answer is partial.".into());
        }
        if found.tools.is_empty() {
            finds.notes.push("No tool matches the pattern.".into());
        }
        for (id, place) in found.tools.iter().take(self.clamp(limit)) {
            let score = match place {
                pattern::Place::Name => 3.0,
                pattern::Place::Description => 2.0,
                pattern::Place::Parameters => 1.0,
            };
            finds.pick(self.catalog(), *id, score);
        }
    }

    fn clamp(&self, limit: Option<usize>) -> usize {
        let search = &self.settings().search;
        limit.unwrap_or(search.limit).clamp(1, search.max_limit.max(1))
    }
}

/// The best of every query first, then the second best: no need is served last.
fn interleave(catalog: &Catalog, per_query: &[Vec<Hit>], finds: &mut Finds) {
    let longest = per_query.iter().map(Vec::len).max().unwrap_or(0);
    for rank in 0..longest {
        for hits in per_query {
            if let Some(hit) = hits.get(rank) {
                finds.pick(catalog, hit.id, hit.score);
            }
        }
    }
}

/// A name as it was asked for, fit to be shown.
fn shown(name: &str) -> String {
    shorten(&crate::clean::one_line(name), 128).into_owned()
}

/// What was asked, on one line.
fn shown_query(ask: &Ask) -> String {
    let pattern = ask.pattern.iter().map(|pattern| format!("/{pattern}/"));
    let names = (!ask.names.is_empty()).then(|| format!("select:{}", ask.names.join(",")));
    let all: Vec<String> =
        names.into_iter().chain(pattern).chain(ask.queries.iter().cloned()).collect();
    shorten(&all.join(" | "), 500).into_owned()
}
