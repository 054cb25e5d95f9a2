//! The engine: one catalog, indexed, with the settings it is served under.
//!
//! A crib is immutable and shared. What differs between callers comes in with each call: the scope
//! and the rest of the [`TurnContext`](crate::Turn), and the [`Conversation`](crate::Conversation).

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHasher;

use crate::argument_validation::Validator;
use crate::catalog::{Catalog, ToolId};
use crate::conversation::{Conversation, Ledger};
use crate::query::Query;
use crate::query::Words;
use crate::rank::{
    self, EmbeddingWork, Explanation, FitDecision, Hit, RankInputs, Ranker, RankerKind, Ranking,
    Vectors,
};
use crate::scope::Scope;
use crate::settings::{SearchedTools, Settings};
use crate::spelling::Spellings;
use crate::tokens::{FourCharsPerToken, TokenCounter};
use crate::tool::{DeferPolicy, Tool};
use crate::turn_context::TurnContext;
use toolcrib_text::json::compact;

/// A catalog ready to be served.
#[derive(Debug)]
pub struct Crib {
    catalog: Arc<Catalog>,
    settings: Settings,
    counter: Arc<dyn TokenCounter>,
    ranker: Arc<dyn Ranker>,
    vectors: Arc<Vectors>,
    pub(crate) spellings: Arc<Spellings>,
    /// What a caller with another catalog's scope may know of.
    nothing: Scope,
    policies: Vec<DeferPolicy>,
    /// Compiled when a tool is first called.
    validators: Vec<OnceLock<Validator>>,
    /// Tokens of each definition, counted when they are first asked for.
    sizes: OnceLock<Vec<usize>>,
    fingerprint: u64,
}

/// What of a crib depends on the catalog alone, and is shared between settings.
struct Ready {
    ranker: Arc<dyn Ranker>,
    vectors: Arc<Vectors>,
    spellings: Arc<Spellings>,
}

impl Crib {
    /// Indexes a catalog. Tokens are estimated until [`with_counter`](Self::with_counter) says how.
    pub fn new(catalog: Catalog, settings: Settings) -> Self {
        let vectors = Vectors::of(&settings.vector_table);
        Self::over(catalog, vectors, settings, Arc::new(FourCharsPerToken))
    }

    /// The crib of the catalog that takes this one's place, with the same counter. Of the tools that
    /// stayed as they were, the vectors are kept.
    #[must_use]
    pub fn next(&self, catalog: Catalog, settings: Settings) -> Self {
        let vectors = if self.vectors.are_of(&settings.vector_table) {
            self.vectors.next(&self.catalog, &catalog, &settings.limits)
        } else {
            Vectors::of(&settings.vector_table)
        };
        Self::over(catalog, vectors, settings, Arc::clone(&self.counter))
    }

    fn over(
        catalog: Catalog,
        vectors: Vectors,
        settings: Settings,
        counter: Arc<dyn TokenCounter>,
    ) -> Self {
        let ready = Ready {
            ranker: rank::build(&catalog, &settings.rank, &settings.limits),
            vectors: Arc::new(vectors),
            spellings: Arc::new(Spellings::of(&catalog)),
        };
        Self::assemble(Arc::new(catalog), ready, settings, counter)
    }

    /// The same catalog under other settings. It is indexed and embedded anew only where they rank another
    /// way or have other limits.
    #[must_use]
    pub fn with_settings(&self, settings: Settings) -> Self {
        let same_limits = settings.limits == self.settings.limits;
        let ranker = if same_limits && settings.rank.same_index(&self.settings.rank) {
            Arc::clone(&self.ranker)
        } else {
            rank::build(&self.catalog, &settings.rank, &settings.limits)
        };
        let (catalog, counter) = (Arc::clone(&self.catalog), Arc::clone(&self.counter));
        let vectors = if same_limits && self.vectors.are_of(&settings.vector_table) {
            Arc::clone(&self.vectors)
        } else {
            Arc::new(Vectors::of(&settings.vector_table))
        };
        let ready = Ready { ranker, vectors, spellings: Arc::clone(&self.spellings) };
        let crib = Self::assemble(catalog, ready, settings, counter);
        // Settings do not change what a definition weighs, and counting is slow.
        Self { sizes: self.sizes.clone(), ..crib }
    }

    fn assemble(
        catalog: Arc<Catalog>,
        ready: Ready,
        settings: Settings,
        counter: Arc<dyn TokenCounter>,
    ) -> Self {
        let mut hasher = FxHasher::default();
        for tool in catalog.tools() {
            (tool.name(), tool.definition()).hash(&mut hasher);
        }
        catalog.generation().hash(&mut hasher);
        // Settings hold floats, which do not hash; their text does, and it is made once.
        format!("{settings:?}").hash(&mut hasher);
        Self {
            policies: catalog.tools().iter().map(|tool| settings.rules.policy(tool).0).collect(),
            validators: catalog.ids().map(|_| OnceLock::new()).collect(),
            sizes: OnceLock::new(),
            nothing: Scope::none(&catalog),
            fingerprint: hasher.finish(),
            catalog,
            settings,
            counter,
            ranker: ready.ranker,
            vectors: ready.vectors,
            spellings: ready.spellings,
        }
    }

    /// The same crib, counting tokens another way.
    #[must_use]
    pub fn with_counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.counter = counter;
        self.sizes = OnceLock::new();
        self
    }

    /// Makes the vectors that the first search would make, unless they are made, and says what work that
    /// was; none where the ranker asks for none.
    pub fn prepare(&self) -> EmbeddingWork {
        match self.settings.rank.ranker {
            RankerKind::Hybrid => self.vectors.prepare(&self.catalog, &self.settings.limits),
            RankerKind::Words | RankerKind::Bm25 | RankerKind::Overlap => EmbeddingWork::default(),
        }
    }

    /// The tools.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Records that a tool was loaded.
    pub(crate) fn record(&self, conversation: &mut Conversation, tool: &Tool) {
        self.reveal(&mut conversation.ledger, &[tool.name()]);
    }

    /// Records that one reply loaded these tools, best first, for a caller that keeps a ledger of its own.
    /// Names that the catalog does not have are ignored.
    pub fn reveal<N: AsRef<str>>(&self, ledger: &mut Ledger, names: &[N]) {
        let ids = names.iter().filter_map(|name| self.catalog.find(name.as_ref()));
        let mut tools: Vec<&Tool> = ids.map(|id| self.catalog.tool(id)).collect();
        if !self.settings.limits_revealed() {
            return tools.into_iter().for_each(|tool| ledger.reveal(tool));
        }
        // Where room is short, the best is to be the newest.
        tools.reverse();
        for tool in tools {
            ledger.renew(tool);
        }
    }

    /// How tokens are counted.
    pub fn counter(&self) -> &dyn TokenCounter {
        &*self.counter
    }

    /// Tokens of each tool's definition, by position in the catalog. How a file is indented costs
    /// nothing: no client sends that.
    pub fn definition_tokens(&self) -> &[usize] {
        let count = |tool: &crate::Tool| self.counter.count(&compact(tool.definition()));
        self.sizes.get_or_init(|| self.catalog.tools().iter().map(count).collect())
    }

    /// What a query means to this ranker and this caller.
    pub fn parse(&self, text: &str, scope: &Scope) -> Query {
        let limits = &self.settings.limits;
        if !self.settings.rank.ranker.knows_operators() {
            return Query::plain(text, limits);
        }
        let scope = self.checked_scope(scope);
        Query::parse(text, limits, |name| {
            self.catalog.servers().iter().any(|(server, ids)| {
                server.eq_ignore_ascii_case(name) && ids.iter().any(|id| scope.contains(*id))
            })
        })
    }

    /// The tools that fit the words best, with nothing cut off but the count: what `eval` measures
    /// and every search starts from.
    pub fn rank(&self, words: &Words, scope: &Scope, limit: usize) -> Vec<Hit> {
        self.ranking(words, scope, limit).hits
    }

    pub(crate) fn ranking(&self, words: &Words, scope: &Scope, limit: usize) -> Ranking {
        let limit = match self.settings.rank.cap {
            0 => limit,
            cap => limit.min(cap),
        };
        self.ranker.search(&self.inputs(), words, &self.searched(self.checked_scope(scope)), limit)
    }

    /// What the ranker reads of this crib.
    fn inputs(&self) -> RankInputs<'_> {
        RankInputs {
            catalog: &self.catalog,
            spellings: &self.spellings,
            vectors: &self.vectors,
            settings: &self.settings.rank,
            limits: &self.settings.limits,
            must_in_name: self.settings.search.must_in_name,
        }
    }

    /// Whether these hits, best first as [`rank`](Self::rank) gives them, are an answer, and why. `None`
    /// where another system's ranker ranks: what its scores mean has not been measured.
    pub fn decide_fit(&self, ranked: &[Hit]) -> Option<FitDecision> {
        let rates = self.settings.rank.ranker.has_confidence();
        rates.then(|| rank::decide_fit(ranked, self.settings.search.refuse))
    }

    /// Every number behind a tool's rank; `None` for a tool that is not searched.
    pub fn explain(&self, words: &Words, scope: &Scope, id: ToolId) -> Option<Explanation> {
        let scope = self.searched(self.checked_scope(scope));
        scope.contains(id).then(|| self.ranker.explain(&self.inputs(), words, &scope, id))
    }

    /// The tools of a scope that a search looks at.
    pub(crate) fn searched<'a>(&self, scope: &'a Scope) -> Cow<'a, Scope> {
        match self.settings.search.searched {
            SearchedTools::All => Cow::Borrowed(scope),
            SearchedTools::Deferrable => {
                let ids = scope.ids().filter(|id| self.policy(*id) != DeferPolicy::Never);
                Cow::Owned(Scope::of(&self.catalog, ids))
            }
        }
    }

    /// Bytes the index takes, beside the catalog itself.
    pub fn index_bytes(&self) -> usize {
        self.ranker.bytes() + self.vectors.bytes()
    }

    /// The scope, if it is one of this catalog: ids of another mean other tools, or none.
    pub(crate) fn checked_scope<'a>(&'a self, scope: &'a Scope) -> &'a Scope {
        if scope.is_of(&self.catalog) { scope } else { &self.nothing }
    }

    /// The turn, with a scope that is one of this catalog and with the context window as far as it is known.
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

    /// Changes with anything that could change what the model sees: catalog, settings, counter.
    pub(crate) fn fingerprint(&self) -> (u64, &str) {
        (self.fingerprint, self.counter.label())
    }
}
