//! The engine: an indexed catalog with its settings.
//!
//! A crib is immutable and can be shared between threads and callers. What differs between callers is passed to
//! each method: the [`TurnContext`](crate::TurnContext) with the scope, and the
//! [`Conversation`](crate::Conversation).

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHasher;

use crate::access::ToolAccess;
use crate::argument_validation::Validator;
use crate::catalog::{Catalog, ToolId};
use crate::conversation::{Conversation, Ledger};
use crate::disclosure::DisclosureKind;
use crate::query::Query;
use crate::query::WordQuery;
use crate::rank::{
    self, CheckedRanker, CustomRanker, DeepVectors, EmbeddingWork, Explanation, FitDecision, Hit,
    RankInputs, Ranker, RankerKind, Ranking, TierSetting, ToolText, Vectors,
};
use crate::scope::Scope;
use crate::settings::{SearchedTools, Settings};
use crate::spelling::Spellings;
use crate::tokens::{FourCharsPerToken, TokenCounter};
use crate::tool::{DeferPolicy, Tool};
use crate::turn_context::TurnContext;
use toolcrib_text::json::compact;

/// An indexed catalog with its settings: the engine that discloses, searches and checks calls.
#[derive(Debug)]
pub struct Crib {
    catalog: Arc<Catalog>,
    settings: Settings,
    plugins: Plugins,
    ranker: Arc<dyn Ranker>,
    vectors: Arc<Vectors>,
    pub(crate) spellings: Arc<Spellings>,
    /// The empty scope, used instead of a scope that belongs to another catalog.
    empty_scope: Scope,
    policies: Vec<DeferPolicy>,
    /// The argument validator of each tool, compiled when the tool is first called.
    validators: Vec<OnceLock<Validator>>,
    /// The number of tokens in each definition, counted on first use.
    definition_tokens: OnceLock<Vec<usize>>,
    fingerprint: u64,
}

/// The token counter and the ranker that the user of the library provides. They are kept when a crib is built for
/// another catalog or with other settings.
#[derive(Debug, Clone)]
struct Plugins {
    counter: Arc<dyn TokenCounter>,
    ranker: Option<Arc<dyn CustomRanker>>,
}

/// The indices over a catalog. Cribs with different settings can share them.
struct Indices {
    ranker: Arc<dyn Ranker>,
    vectors: Arc<Vectors>,
    spellings: Arc<Spellings>,
}

impl Crib {
    /// Indexes a catalog. Token counts are estimates; [`with_counter`](Self::with_counter) sets an exact counter.
    pub fn new(catalog: Catalog, settings: Settings) -> Self {
        let vectors = vectors_for(&settings);
        let plugins = Plugins { counter: Arc::new(FourCharsPerToken), ranker: None };
        Self::index(catalog, vectors, settings, plugins)
    }

    /// Returns the crib that replaces this one when the catalog changes. The token counter and the custom ranker stay the
    /// same, and tools that did not change keep their vectors.
    #[must_use]
    pub fn next(&self, catalog: Catalog, settings: Settings) -> Self {
        let vectors = if self.vectors.are_of(&settings.vector_table, deep_vectors(&settings)) {
            self.vectors.next(&self.catalog, &catalog, &settings.limits)
        } else {
            vectors_for(&settings)
        };
        Self::index(catalog, vectors, settings, self.plugins.clone())
    }

    fn index(catalog: Catalog, vectors: Vectors, settings: Settings, plugins: Plugins) -> Self {
        let indices = Indices {
            ranker: build_ranker(&catalog, &settings, &plugins),
            vectors: Arc::new(vectors),
            spellings: Arc::new(Spellings::of(&catalog)),
        };
        Self::assemble(Arc::new(catalog), indices, settings, plugins)
    }

    /// A crib with the same catalog and other settings. The catalog is indexed and embedded again only if the ranker,
    /// the vector table or the limits differ.
    #[must_use]
    pub fn with_settings(&self, settings: Settings) -> Self {
        let same_limits = settings.limits == self.settings.limits;
        let same_index = settings.rank.same_index(&self.settings.rank)
            && settings.vector_table.is_available() == self.settings.vector_table.is_available();
        let ranker = if same_limits && same_index {
            Arc::clone(&self.ranker)
        } else {
            build_ranker(&self.catalog, &settings, &self.plugins)
        };
        let same_vectors = self.vectors.are_of(&settings.vector_table, deep_vectors(&settings));
        let vectors = if same_limits && same_vectors {
            Arc::clone(&self.vectors)
        } else {
            Arc::new(vectors_for(&settings))
        };
        let indices = Indices { ranker, vectors, spellings: Arc::clone(&self.spellings) };
        let catalog = Arc::clone(&self.catalog);
        let crib = Self::assemble(catalog, indices, settings, self.plugins.clone());
        // The token counts are copied, because they do not depend on the settings and counting is slow.
        Self { definition_tokens: self.definition_tokens.clone(), ..crib }
    }

    fn assemble(
        catalog: Arc<Catalog>,
        indices: Indices,
        settings: Settings,
        plugins: Plugins,
    ) -> Self {
        let mut hasher = FxHasher::default();
        for tool in catalog.tools() {
            (tool.name(), tool.definition()).hash(&mut hasher);
        }
        catalog.generation().hash(&mut hasher);
        settings.hash_into(&mut hasher);
        Self {
            policies: catalog.tools().iter().map(|tool| settings.rules.policy(tool).0).collect(),
            validators: catalog.ids().map(|_| OnceLock::new()).collect(),
            definition_tokens: OnceLock::new(),
            empty_scope: Scope::none(&catalog),
            fingerprint: hasher.finish(),
            catalog,
            settings,
            plugins,
            ranker: indices.ranker,
            vectors: indices.vectors,
            spellings: indices.spellings,
        }
    }

    /// This crib, but with another token counter.
    #[must_use]
    pub fn with_counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.plugins.counter = counter;
        self.definition_tokens = OnceLock::new();
        self
    }

    /// This crib, but with a ranker that you provide instead of the one that the settings choose.
    #[must_use]
    pub fn with_ranker(mut self, ranker: Arc<dyn CustomRanker>) -> Self {
        self.ranker = Arc::new(CheckedRanker(Arc::clone(&ranker)));
        self.plugins.ranker = Some(ranker);
        self
    }

    /// Embeds the tools now instead of in the first search, and returns how much work that was. There is no work if the
    /// tools are already embedded or the ranker uses no vectors.
    pub fn prepare(&self) -> EmbeddingWork {
        if self.uses_vectors() {
            self.vectors.prepare(&self.catalog, &self.settings.limits)
        } else {
            EmbeddingWork::default()
        }
    }

    /// Requests the deep vectors of tools that have none, as [`prepare`](Self::prepare) does, but computes nothing. Each
    /// crib requests them at most once.
    pub fn request_deep_vectors(&self) {
        if self.uses_vectors() {
            self.vectors.request_deep(&self.catalog);
        }
    }

    /// The texts of the tools that have no deep vector yet. The caller may embed them and insert the vectors into
    /// [`Settings::deep_vectors`]. Empty if the ranker uses no deep vectors.
    pub fn missing_deep_vectors(&self) -> Vec<ToolText> {
        if self.uses_vectors() { self.vectors.missing_deep(&self.catalog) } else { Vec::new() }
    }

    fn uses_vectors(&self) -> bool {
        self.plugins.ranker.is_none()
            && self.settings.rank.ranker == RankerKind::Hybrid
            && self.settings.vector_table.is_available()
    }

    /// The catalog.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The name of our own tool through which a tool is called, if the calls are split into those that read and those
    /// that may write.
    pub fn call_tool(&self, tool: &Tool) -> Option<&'static str> {
        let is_bridge = self.settings.disclosure_kind() == DisclosureKind::Bridge;
        self.call_tool_by_access(tool).filter(|_| is_bridge)
    }

    /// Like [`Self::call_tool`], with any disclosure: a caller may offer the bridge although the settings choose another
    /// disclosure.
    pub(crate) fn call_tool_by_access(&self, tool: &Tool) -> Option<&'static str> {
        let settings = &self.settings;
        settings.split_calls.then(|| match tool.access() {
            ToolAccess::ReadOnly(_) => settings.own_names.read,
            ToolAccess::MayWrite(_) => settings.own_names.write,
        })
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Records that a tool's schema was shown to the model.
    pub(crate) fn record(&self, conversation: &mut Conversation, tool: &Tool) {
        self.reveal(&mut conversation.ledger, &[tool.name()]);
    }

    /// Records in `ledger` that one reply loaded these tools, best first. This is for callers that keep their own
    /// ledger. Names that are not in the catalog are ignored.
    pub fn reveal<N: AsRef<str>>(&self, ledger: &mut Ledger, names: &[N]) {
        let ids = names.iter().filter_map(|name| self.catalog.find(name.as_ref()));
        let mut tools: Vec<&Tool> = ids.map(|id| self.catalog.tool(id)).collect();
        if !self.settings.limits_revealed() {
            return tools.into_iter().for_each(|tool| ledger.reveal(tool));
        }
        // If the number of shown tools is limited, the newest ones are shown, so the best tool is recorded last.
        tools.reverse();
        for tool in tools {
            ledger.renew(tool);
        }
    }

    /// The token counter.
    pub fn counter(&self) -> &dyn TokenCounter {
        &*self.plugins.counter
    }

    /// The number of tokens in each tool's definition, by position in the catalog. White space between JSON values does
    /// not count, because clients do not send it.
    pub fn definition_tokens(&self) -> &[usize] {
        let count = |tool: &Tool| self.counter().count(&compact(tool.definition()));
        self.definition_tokens.get_or_init(|| self.catalog.tools().iter().map(count).collect())
    }

    /// Parses a query for this crib's ranker. A word is taken as the name of a server only if that server has tools in
    /// scope.
    pub fn parse(&self, text: &str, scope: &Scope) -> Query {
        let limits = &self.settings.limits;
        if !self.knows_operators() {
            return Query::plain(text, limits);
        }
        let scope = self.checked_scope(scope);
        Query::parse(text, limits, |name| {
            self.catalog.servers().iter().any(|(server, ids)| {
                server.eq_ignore_ascii_case(name) && ids.iter().any(|id| scope.contains(*id))
            })
        })
    }

    fn knows_operators(&self) -> bool {
        match &self.plugins.ranker {
            Some(ranker) => ranker.knows_operators(),
            None => self.settings.rank.ranker.knows_operators(),
        }
    }

    /// Whether the ranker provides a confidence for each hit. The fit of a reply, that is, how well its hits answer the
    /// query, is decided from these confidences.
    pub(crate) fn has_confidence(&self) -> bool {
        match &self.plugins.ranker {
            Some(ranker) => ranker.has_confidence(),
            None => self.settings.rank.ranker.has_confidence(),
        }
    }

    /// The tools that match the words best. Every search by words starts from this list and may then drop tools from
    /// it. The `eval` command measures the complete list.
    pub fn rank(&self, words: &WordQuery, scope: &Scope, limit: usize) -> Vec<Hit> {
        self.ranking(words, scope, limit).hits
    }

    pub(crate) fn ranking(&self, words: &WordQuery, scope: &Scope, limit: usize) -> Ranking {
        let limit = match self.settings.rank.cap {
            0 => limit,
            cap => limit.min(cap),
        };
        let scope = self.searched(self.checked_scope(scope));
        self.ranker.search(&self.rank_inputs(), words, &scope, limit)
    }

    fn rank_inputs(&self) -> RankInputs<'_> {
        RankInputs {
            catalog: &self.catalog,
            spellings: &self.spellings,
            vectors: &self.vectors,
            settings: &self.settings.rank,
            limits: &self.settings.limits,
            must_in_name: self.settings.search.must_in_name,
        }
    }

    /// Decides whether these hits, sorted as [`rank`](Self::rank) returns them, answer the query, and gives the reason.
    /// Returns `None` if the ranker provides no confidence. Of the built-in rankers, those that imitate other systems
    /// provide none, because their scores have not been calibrated.
    pub fn decide_fit(&self, ranked: &[Hit]) -> Option<FitDecision> {
        self.has_confidence().then(|| rank::decide_fit(ranked, self.settings.search.refuse))
    }

    /// Every number from which a tool's rank is computed, or `None` if searches do not cover the tool.
    pub fn explain(&self, words: &WordQuery, scope: &Scope, id: ToolId) -> Option<Explanation> {
        let scope = self.searched(self.checked_scope(scope));
        scope.contains(id).then(|| {
            let explanation = self.ranker.explain(&self.rank_inputs(), words, &scope, id);
            let wants_vectors = self.settings.rank.ranker == RankerKind::Hybrid;
            let vectors_missing =
                wants_vectors && self.plugins.ranker.is_none() && !self.uses_vectors();
            Explanation { vectors_missing, ..explanation }
        })
    }

    /// The tools in scope that a search covers.
    pub(crate) fn searched<'a>(&self, scope: &'a Scope) -> Cow<'a, Scope> {
        match self.settings.search.searched {
            SearchedTools::All => Cow::Borrowed(scope),
            SearchedTools::Deferrable => {
                let ids = scope.ids().filter(|id| self.policy(*id) != DeferPolicy::Never);
                Cow::Owned(Scope::of(&self.catalog, ids))
            }
        }
    }

    /// Size of the index in bytes, without the catalog itself.
    pub fn index_bytes(&self) -> usize {
        self.ranker.bytes() + self.vectors.bytes()
    }

    /// Returns the scope if it belongs to this catalog, and otherwise the empty scope, because the ids of another
    /// catalog refer to different tools.
    pub(crate) fn checked_scope<'a>(&'a self, scope: &'a Scope) -> &'a Scope {
        if scope.is_of(&self.catalog) { scope } else { &self.empty_scope }
    }

    /// The turn with two changes: a scope of another catalog is replaced by the empty scope, and a missing context
    /// window is taken from the settings or derived from the model's name, if possible.
    pub(crate) fn checked_turn<'a>(&'a self, turn: &TurnContext<'a>) -> TurnContext<'a> {
        let context_window =
            turn.context_window.or_else(|| self.settings.context_window_for(turn.model));
        TurnContext { scope: self.checked_scope(turn.scope), context_window, ..turn.clone() }
    }

    pub(crate) fn policy(&self, id: ToolId) -> DeferPolicy {
        self.policies[id.index()]
    }

    pub(crate) fn validator(&self, id: ToolId) -> &Validator {
        self.validators[id.index()].get_or_init(|| {
            let tool = self.catalog.tool(id);
            Validator::new(tool.schema_value(), tool.format())
        })
    }

    /// A value that changes whenever the catalog, the settings or the counter change, because each can affect what the
    /// model sees.
    pub(crate) fn fingerprint(&self) -> (u64, &str) {
        (self.fingerprint, self.counter().label())
    }
}

fn vectors_for(settings: &Settings) -> Vectors {
    Vectors::of(&settings.vector_table, deep_vectors(settings))
}

/// The deep vectors that the settings allow.
fn deep_vectors(settings: &Settings) -> &DeepVectors {
    static NONE: DeepVectors = DeepVectors::NONE;
    if settings.rank.tier == TierSetting::Table { &NONE } else { &settings.deep_vectors }
}

fn build_ranker(catalog: &Catalog, settings: &Settings, plugins: &Plugins) -> Arc<dyn Ranker> {
    if let Some(ranker) = &plugins.ranker {
        return Arc::new(CheckedRanker(Arc::clone(ranker)));
    }
    let has_table = settings.vector_table.is_available();
    rank::build(catalog, &settings.rank, &settings.limits, has_table)
}
