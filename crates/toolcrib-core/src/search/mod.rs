//! Answering a search: names, words, patterns, or a look around.
//!
//! Every answer teaches. A hit carries what is needed to call the tool; a miss says what there is,
//! what the words may have been meant to be, and which servers have yet to connect.

mod answer;
mod words;

use crate::catalog::{Catalog, ToolId};
use crate::conversation::{Conversation, LoopWarning};
use crate::crib::Crib;
use crate::pattern;
use crate::query::Query;
use crate::rank::{Correction, Fit, Hit};
use crate::reply::{MissingTool, Reply};
use crate::spelling::{self, ALIKE, Meaning};
use crate::turn_context::TurnContext;
use toolcrib_text::shorten;

/// What one call of a search tool asks for.
///
/// ```
/// use toolcrib_core::SearchRequest;
/// let request = SearchRequest::query("send a message").with_limit(3);
/// assert_eq!(request.limit, Some(3));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchRequest {
    /// Queries, in words or as `select:NAME`.
    pub queries: Vec<String>,
    /// Names of tools to load.
    pub names: Vec<String>,
    /// A regular expression, for the pattern search.
    pub pattern: Option<String>,
    /// Number of results; clamped to what the settings allow.
    pub limit: Option<usize>,
}

impl SearchRequest {
    /// Asks for the answer to one query.
    pub fn query(text: &str) -> Self {
        Self::queries([text])
    }

    /// Asks for the answers to several queries, interleaved.
    pub fn queries<S: Into<String>>(queries: impl IntoIterator<Item = S>) -> Self {
        Self { queries: queries.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Asks for the tools that match a regular expression.
    pub fn pattern(pattern: &str) -> Self {
        Self::default().with_pattern(pattern)
    }

    /// Also asks for the tools with these names.
    #[must_use]
    pub fn with_names<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// Also asks for the tools that match a regular expression.
    #[must_use]
    pub fn with_pattern(self, pattern: &str) -> Self {
        Self { pattern: Some(pattern.to_owned()), ..self }
    }

    /// Sets the number of results.
    #[must_use]
    pub fn with_limit(self, limit: impl Into<Option<usize>>) -> Self {
        Self { limit: limit.into(), ..self }
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
    picked: Vec<Hit>,
    /// The best fit of what was asked, where that can be said.
    fit: Option<Fit>,
    /// Whether these were asked for by name: then already-loaded ones are shown in full again.
    by_name: Vec<ToolId>,
    /// How many names were asked for.
    names: usize,
    missing: Vec<MissingTool>,
    /// Whether nothing was found or nearly found: then what there is is listed.
    lost: bool,
    omitted: Vec<String>,
    corrections: Vec<Correction>,
    notes: Vec<String>,
}

impl Finds {
    /// Takes a tool, or names it among those left out once this call has as many as one may load.
    fn pick(&mut self, catalog: &Catalog, hit: Hit) {
        if self.picked.iter().any(|known| known.id == hit.id) {
            return;
        }
        if self.picked.len() < self.most {
            self.picked.push(hit);
            return;
        }
        let name = catalog.tool(hit.id).name();
        if !self.omitted.iter().any(|known| known == name) {
            self.omitted.push(name.to_owned());
        }
    }
}

impl Crib {
    /// Answers a search and records what it showed.
    pub fn search(
        &self,
        turn: &TurnContext<'_>,
        conversation: &mut Conversation,
        ask: &SearchRequest,
    ) -> Reply {
        let turn = &self.checked_turn(turn);
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
        words::interleave(self.catalog(), &per_query, &mut finds);
        if !finds.omitted.is_empty() {
            let most = finds.most;
            finds
                .notes
                .push(format!("At most {most} tools are loaded at once; ask again for the rest."));
        }
        if finds.fit == Some(Fit::None) && !finds.picked.is_empty() {
            // No words fit, and a pattern found something: that is no judgement on either.
            finds.fit = None;
        }
        finds.lost |= finds.picked.is_empty() && finds.missing.is_empty();
        let query = shown_query(ask);
        let circling =
            if asks > 0 { conversation.guard.searched(&query) } else { LoopWarning::None };
        self.answer(turn, conversation, query, finds, circling)
    }

    fn select(&self, turn: &TurnContext<'_>, names: &[String], finds: &mut Finds) {
        let room = self.settings().limits.names.saturating_sub(finds.names);
        finds.names += names.len();
        if names.len() > room {
            let (all, kept) = (names.len(), room);
            finds.notes.push(format!("{all} names were asked for, the first {kept} are answered."));
        }
        let mut fit = Fit::None;
        for name in names.iter().take(room) {
            match self.spellings.resolve(self.catalog(), turn.scope, turn.unlisted, name) {
                Meaning::One(id, _) => {
                    fit = Fit::Strong;
                    finds.by_name.push(id);
                    finds.pick(self.catalog(), self.named(id));
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
                    finds.missing.push(MissingTool { name: shown(name), nearest: Vec::new() });
                }
            }
        }
        if self.rates() && !names.is_empty() {
            finds.fit = finds.fit.max(Some(fit));
        }
    }

    /// A tool that is asked for by its name, as a hit.
    fn named(&self, id: ToolId) -> Hit {
        Hit {
            id,
            score: 0.0,
            coverage_bonus: 0.0,
            exact: true,
            confidence: self.rates().then_some(1.0),
        }
    }

    /// Whether hits have a confidence and replies a fit.
    fn rates(&self) -> bool {
        self.has_confidence()
    }

    fn ambiguous(&self, name: &str, ids: &[ToolId]) -> MissingTool {
        let mut nearest: Vec<_> =
            ids.iter().map(|id| self.catalog().tool(*id).name().to_owned()).collect();
        nearest.sort_unstable();
        nearest.truncate(self.settings().search.max_limit);
        MissingTool { name: shown(name), nearest }
    }

    pub(crate) fn missing(&self, turn: &TurnContext<'_>, name: &str, alike: u32) -> MissingTool {
        let nearest = spelling::nearest(self.catalog(), turn.scope, name, alike);
        MissingTool { name: shown(name), nearest: nearest.into_iter().map(str::to_owned).collect() }
    }

    fn match_pattern(
        &self,
        turn: &TurnContext<'_>,
        text: &str,
        limit: Option<usize>,
        finds: &mut Finds,
    ) {
        let limits = &self.settings().limits;
        let regex = match pattern::compile(text, limits) {
            Ok(regex) => regex,
            Err(bad) => {
                finds.notes.push(format!(
                    "The pattern cannot be used: {}. Use plain words with {} instead.",
                    bad.message,
                    self.settings().own_names.search
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
                pattern::MatchedField::Name => 3.0,
                pattern::MatchedField::Description => 2.0,
                pattern::MatchedField::Parameters => 1.0,
            };
            let hit = Hit { id: *id, score, coverage_bonus: 0.0, exact: false, confidence: None };
            finds.pick(self.catalog(), hit);
        }
    }

    fn clamp(&self, limit: Option<usize>) -> usize {
        let search = &self.settings().search;
        limit.unwrap_or(search.limit).clamp(1, search.max_limit.max(1))
    }
}

/// A name as it was asked for, fit to be shown.
fn shown(name: &str) -> String {
    shorten(&toolcrib_text::clean::one_line(name), 128).into_owned()
}

/// What was asked, on one line.
fn shown_query(ask: &SearchRequest) -> String {
    let pattern = ask.pattern.iter().map(|pattern| format!("/{pattern}/"));
    let names = (!ask.names.is_empty()).then(|| format!("select:{}", ask.names.join(",")));
    let all: Vec<String> =
        names.into_iter().chain(pattern).chain(ask.queries.iter().cloned()).collect();
    shorten(&all.join(" | "), 500).into_owned()
}
