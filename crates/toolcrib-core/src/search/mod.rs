//! Answers a search. A search can be by name, by words or by pattern. An empty one lists what is available.
//!
//! A reply contains what the model needs next. Each hit contains what is needed to call the tool. A reply without hits
//! has a list of what is available, possible corrections, and the servers that are still connecting.

mod build_reply;
mod word_search;

use crate::catalog::{Catalog, ToolId};
use crate::conversation::{Conversation, LoopWarning};
use crate::crib::Crib;
use crate::pattern;
use crate::query::Query;
use crate::rank::{Correction, Fit, Hit};
use crate::reply::{MissingTool, Reply};
use crate::spelling::{self, Resolution, SUGGESTION_SIMILARITY};
use crate::turn_context::TurnContext;
use toolcrib_text::shorten;

/// The input of one call to a search tool.
///
/// ```
/// use toolcrib_core::SearchRequest;
/// let request = SearchRequest::query("send a message").with_limit(3);
/// assert_eq!(request.limit, Some(3));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchRequest {
    /// Queries, each in words or of the form `select:NAME`.
    pub queries: Vec<String>,
    /// Names of tools to load.
    pub names: Vec<String>,
    /// A regular expression, if this is a search by pattern.
    pub pattern: Option<String>,
    /// Maximum number of results. It is clamped to the range that the settings allow.
    pub limit: Option<usize>,
}

impl SearchRequest {
    /// A request with one query.
    pub fn query(text: &str) -> Self {
        Self::queries([text])
    }

    /// A request with several queries. Their results are interleaved.
    pub fn queries<S: Into<String>>(queries: impl IntoIterator<Item = S>) -> Self {
        Self { queries: queries.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// A request for the tools that match a regular expression.
    pub fn pattern(pattern: &str) -> Self {
        Self::default().with_pattern(pattern)
    }

    /// Also requests the tools with these names.
    #[must_use]
    pub fn with_names<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// Also requests the tools that match a regular expression.
    #[must_use]
    pub fn with_pattern(self, pattern: &str) -> Self {
        Self { pattern: Some(pattern.to_owned()), ..self }
    }

    /// Sets the maximum number of results.
    #[must_use]
    pub fn with_limit(self, limit: impl Into<Option<usize>>) -> Self {
        Self { limit: limit.into(), ..self }
    }
}

/// Minimum similarity, from 0 to 100, of a suggested name if no name reaches [`SUGGESTION_SIMILARITY`]. A few letters
/// in common are enough. The model can see that the suggestion is a guess, because the requested name is reported as
/// missing.
const GUESS_SIMILARITY: u32 = 1;
/// Maximum number of missing names for which similar names are suggested. It is limited, because each missing name must
/// be compared with all names.
const MAX_GUESSES: usize = 8;
/// What a search found, before it is fitted into a reply.
#[derive(Debug, Default)]
struct SearchResults {
    /// Maximum number of tools that one search may load.
    max_tools: usize,
    picked: Vec<Hit>,
    /// The best fit among all queries, if the ranker provides confidence.
    fit: Option<Fit>,
    /// The tools that were requested by name. They are shown in full even if they are already loaded.
    by_name: Vec<ToolId>,
    /// How many names were requested so far.
    names: usize,
    missing: Vec<MissingTool>,
    /// Whether a query found nothing, or a requested name was not even similar to an existing one. If so, and if the
    /// reply has no hits, the reply lists what is available.
    found_nothing: bool,
    /// Whether a note names the nearest tools of a query that no tool fits. If so, the list of what is available is left
    /// out, so that a wrong refusal costs little.
    named_nearest: bool,
    omitted: Vec<String>,
    corrections: Vec<Correction>,
    notes: Vec<String>,
}

impl SearchResults {
    /// Adds a tool to the results. If the maximum is reached, the tool is listed as omitted instead.
    fn pick(&mut self, catalog: &Catalog, hit: Hit) {
        if self.picked.iter().any(|known| known.id == hit.id) {
            return;
        }
        if self.picked.len() < self.max_tools {
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
    /// Answers a search and records the tools that the reply shows.
    pub fn search(
        &self,
        turn: &TurnContext<'_>,
        conversation: &mut Conversation,
        ask: &SearchRequest,
    ) -> Reply {
        let turn = &self.checked_turn(turn);
        let mut results = SearchResults {
            max_tools: self.settings().search.max_limit,
            ..SearchResults::default()
        };
        let mut asks = 0;
        let most = self.settings().limits.asks;
        self.select(turn, &ask.names, &mut results);
        if let Some(pattern) = &ask.pattern {
            self.match_pattern(turn, pattern, ask.limit, &mut results);
            asks += 1;
        }
        let mut per_query = Vec::new();
        for query in ask.queries.iter().take(most) {
            match self.parse(query, turn.scope) {
                Query::Select(names) => self.select(turn, &names, &mut results),
                Query::Browse => {}
                Query::Words(words) => {
                    asks += 1;
                    per_query.push(self.search_words(
                        turn,
                        conversation,
                        query,
                        &words,
                        ask.limit,
                        &mut results,
                    ));
                }
            }
        }
        if ask.queries.len() > most {
            let (all, kept) = (ask.queries.len(), most);
            results
                .notes
                .push(format!("{all} queries were sent; only the first {kept} are answered."));
        }
        word_search::interleave(self.catalog(), &per_query, &mut results);
        if !results.omitted.is_empty() {
            let most = results.max_tools;
            results
                .notes
                .push(format!("At most {most} tools are loaded at once; ask again for the rest."));
        }
        if results.fit == Some(Fit::None) && !results.picked.is_empty() {
            // No tool fits the words, but the pattern found some tools, so the reply must not say that nothing fits.
            results.fit = None;
        }
        if results.fit == Some(Fit::Weak)
            && self.settings().search.refuse
            && !results.picked.is_empty()
        {
            results.notes.push(word_search::WEAK_FIT_NOTE.into());
        }
        results.found_nothing |=
            results.picked.is_empty() && results.missing.is_empty() && !results.named_nearest;
        let query = displayed_query(ask);
        let circling =
            if asks > 0 { conversation.guard.searched(&query) } else { LoopWarning::None };
        self.build_reply(turn, conversation, query, results, circling)
    }

    fn select(&self, turn: &TurnContext<'_>, names: &[String], results: &mut SearchResults) {
        let room = self.settings().limits.names.saturating_sub(results.names);
        results.names += names.len();
        if names.len() > room {
            let (all, kept) = (names.len(), room);
            results
                .notes
                .push(format!("{all} names were requested; only the first {kept} are answered."));
        }
        let mut fit = Fit::None;
        for name in names.iter().take(room) {
            match self.spellings.resolve(self.catalog(), turn.scope, turn.unlisted, name) {
                Resolution::One(id, _) => {
                    fit = Fit::Strong;
                    results.by_name.push(id);
                    results.pick(self.catalog(), self.hit_by_name(id));
                }
                Resolution::Several(ids) => results.missing.push(self.ambiguous(name, &ids)),
                Resolution::Nothing if results.missing.len() < MAX_GUESSES => {
                    let mut missing = self.missing_tool(turn, name, SUGGESTION_SIMILARITY);
                    if missing.nearest.is_empty() {
                        results.found_nothing = true;
                        missing = self.missing_tool(turn, name, GUESS_SIMILARITY);
                    }
                    results.missing.push(missing);
                }
                Resolution::Nothing => {
                    results
                        .missing
                        .push(MissingTool { name: displayed_name(name), nearest: Vec::new() });
                }
            }
        }
        if self.has_confidence() && !names.is_empty() {
            results.fit = results.fit.max(Some(fit));
        }
    }

    fn hit_by_name(&self, id: ToolId) -> Hit {
        Hit {
            id,
            score: 0.0,
            coverage_bonus: 0.0,
            exact: true,
            confidence: self.has_confidence().then_some(1.0),
        }
    }

    fn ambiguous(&self, name: &str, ids: &[ToolId]) -> MissingTool {
        let mut nearest: Vec<_> =
            ids.iter().map(|id| self.catalog().tool(*id).name().to_owned()).collect();
        nearest.sort_unstable();
        nearest.truncate(self.settings().search.max_limit);
        MissingTool { name: displayed_name(name), nearest }
    }

    pub(crate) fn missing_tool(
        &self,
        turn: &TurnContext<'_>,
        name: &str,
        min_similarity: u32,
    ) -> MissingTool {
        let nearest = spelling::similar_names(self.catalog(), turn.scope, name, min_similarity);
        MissingTool {
            name: displayed_name(name),
            nearest: nearest.into_iter().map(str::to_owned).collect(),
        }
    }

    fn match_pattern(
        &self,
        turn: &TurnContext<'_>,
        text: &str,
        limit: Option<usize>,
        results: &mut SearchResults,
    ) {
        let limits = &self.settings().limits;
        let regex = match pattern::compile(text, limits) {
            Ok(regex) => regex,
            Err(bad) => {
                results.notes.push(format!(
                    "The pattern cannot be used: {}. Use plain words with {} instead.",
                    bad.message,
                    self.settings().own_names.search
                ));
                return;
            }
        };
        let found = pattern::matches(&regex, self.catalog(), &self.searched(turn.scope), limits);
        if found.partial {
            results
                .notes
                .push("The catalog is too large for one pattern: the answer is partial.".into());
        }
        if found.tools.is_empty() {
            results.notes.push("No tool matches the pattern.".into());
        }
        for (id, place) in found.tools.iter().take(self.clamp(limit)) {
            let score = match place {
                pattern::MatchedField::Name => 3.0,
                pattern::MatchedField::Description => 2.0,
                pattern::MatchedField::Parameters => 1.0,
            };
            let hit = Hit { id: *id, score, coverage_bonus: 0.0, exact: false, confidence: None };
            results.pick(self.catalog(), hit);
        }
    }

    fn clamp(&self, limit: Option<usize>) -> usize {
        let search = &self.settings().search;
        limit.unwrap_or(search.limit).clamp(1, search.max_limit.max(1))
    }
}

/// A requested name, shortened and on one line, as it is shown in a reply.
fn displayed_name(name: &str) -> String {
    shorten(&toolcrib_text::clean::one_line(name), 128).into_owned()
}

/// The request on one line, as it is shown in a reply.
fn displayed_query(ask: &SearchRequest) -> String {
    let pattern = ask.pattern.iter().map(|pattern| format!("/{pattern}/"));
    let names = (!ask.names.is_empty()).then(|| format!("select:{}", ask.names.join(",")));
    let all: Vec<String> =
        names.into_iter().chain(pattern).chain(ask.queries.iter().cloned()).collect();
    shorten(&all.join(" | "), 500).into_owned()
}
