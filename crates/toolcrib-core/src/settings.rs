//! What people can choose, as plain values.
//!
//! Each part of the engine declares its own settings; this module puts them together and checks their
//! ranges. A preset is nothing but another value of [`Settings`]. How they are written in a file is in
//! `settings_toml`.

mod fingerprint;

use serde::{Deserialize, Serialize};

use crate::context_window;
use crate::disclosure::{DisclosureKind, DisclosureSetting, Guidance, Stub};
use crate::error::Error;
use crate::limits::Limits;
use crate::listing::ListingSettings;
use crate::own_names::OwnNames;
use crate::policy::{Activation, Glob, Rules};
use crate::rank::{RankSettings, RankerKind, VectorTable};
use crate::reply::ReplyFormat;
use toolcrib_text::clean;

/// The settings of an engine.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// When deferral sets in.
    pub activation: Activation,
    /// The model's context window in tokens, for turns that do not say it.
    pub context_window: Option<usize>,
    /// The context windows of models, by patterns of their names, for turns that do not say theirs.
    pub context_windows: Vec<(Glob, usize)>,
    /// Which tools it spares.
    pub rules: Rules,
    /// Whether the proxy, which sees all of a client's tools, keeps a short list of frequently used ones in
    /// full: [`policy::hot_list`](crate::policy::hot_list).
    pub keeps_hot_tools: bool,
    /// How deferred tools are shown.
    pub disclosure: DisclosureSetting,
    /// Replaces a disclosure that needs a provider's API if the provider does not support it. If not set, the
    /// kind is [`DisclosureSetting::kind`].
    pub fallback: Option<DisclosureKind>,
    /// Whether a tool that was found is shown in full from the next turn on, where the disclosure
    /// shows tools one by one. Off, its schema is in the reply and nowhere else.
    pub reveals: bool,
    /// Maximum number of loaded tools that are shown in full at a time, the most recently loaded first;
    /// 0: as many as a conversation remembers.
    pub max_revealed: usize,
    /// Maximum size of their definitions together, in bytes; 0: any.
    pub max_revealed_bytes: usize,
    /// What stands for a schema that is not shown.
    pub stub: Stub,
    /// What stands for a description that is not shown.
    pub mark: String,
    /// How hard the model is told to search.
    pub guidance: Guidance,
    /// The table of contents.
    pub listing: ListingSettings,
    /// How tools are ranked.
    pub rank: RankSettings,
    /// Where vectors come from. No file says it: a table is loaded, and a file can only name it.
    pub vector_table: VectorTable,
    /// Searches and their replies.
    pub search: SearchSettings,
    /// Bounds on what comes in.
    pub limits: Limits,
    /// What our own tools are called. No file says it: it follows from the tools that a caller has.
    pub own_names: OwnNames,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            activation: Activation::default(),
            context_window: None,
            context_windows: Vec::new(),
            rules: Rules::default(),
            keeps_hot_tools: true,
            disclosure: DisclosureSetting::default(),
            fallback: None,
            reveals: true,
            max_revealed: 0,
            max_revealed_bytes: 0,
            stub: Stub::default(),
            mark: "[d]".into(),
            guidance: Guidance::default(),
            listing: ListingSettings::default(),
            rank: RankSettings::default(),
            vector_table: VectorTable::default(),
            search: SearchSettings::default(),
            limits: Limits::default(),
            own_names: OwnNames::default(),
        }
    }
}

impl Settings {
    /// How the engine shows deferred tools without a provider's help.
    pub fn disclosure_kind(&self) -> DisclosureKind {
        let needs_provider = matches!(
            self.disclosure,
            DisclosureSetting::Auto | DisclosureSetting::Reference | DisclosureSetting::Hosted
        );
        self.fallback.filter(|_| needs_provider).unwrap_or_else(|| self.disclosure.kind())
    }

    /// The context window for a turn that does not say it: what the settings say of this model, then of
    /// every model, then what is known of it.
    pub fn context_window_for(&self, model: Option<&str>) -> Option<usize> {
        let named = model.and_then(|model| {
            let windows = self.context_windows.iter().filter(|(glob, _)| glob.is(model));
            // The longest pattern says the most about the model.
            windows.max_by_key(|(glob, _)| glob.to_string().len()).map(|(_, size)| *size)
        });
        named.or(self.context_window).or_else(|| context_window::of_model(model?))
    }

    /// Whether a loaded tool is shown in full from the next turn on.
    pub(crate) fn shows_revealed(&self) -> bool {
        self.reveals
            && matches!(self.disclosure_kind(), DisclosureKind::Reveal | DisclosureKind::Append)
    }

    /// Whether the number or size of shown tools is limited. Then a tool that is loaded again becomes the newest.
    pub fn limits_revealed(&self) -> bool {
        self.max_revealed > 0 || self.max_revealed_bytes > 0
    }

    /// Whether hits carry their schemas. Without the bridge there is no `tool_describe` to get one.
    pub(crate) fn shows_schemas(&self) -> bool {
        self.search.schemas || self.disclosure_kind() != DisclosureKind::Bridge
    }
}

/// Searches and their replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the file")]
#[non_exhaustive]
pub struct SearchSettings {
    /// Results when the model names no number.
    pub limit: usize,
    /// Results at most.
    pub max_limit: usize,
    /// Results scoring below this share of the best are dropped.
    pub cutoff: f32,
    /// Whether a query that no tool fits is told so and given none. Off, it gets what is nearest.
    pub refuse: bool,
    /// Tokens of one reply. Schemas beyond it become signatures, tools beyond those become names.
    pub reply_tokens: usize,
    /// Names that a browse or a miss may list; beyond it servers and their sizes.
    pub names: usize,
    /// How replies are written.
    #[serde(rename = "form")]
    pub format: ReplyFormat,
    /// What the search tool takes.
    pub input: SearchInput,
    /// Whether `tool_search_regex` is offered too.
    pub regex: bool,
    /// Which tools are searched.
    #[serde(rename = "among")]
    pub searched: SearchedTools,
    /// Whether hits carry their schemas; off, under the bridge, `tool_describe` is the way to one.
    pub schemas: bool,
    /// Whether tools the model already has come last, and without their schemas.
    pub known_last: bool,
    /// Whether `+word` speaks of the name alone.
    pub must_in_name: bool,
}

/// What the search tool says it takes. It understands all of it, whatever it says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SearchInput {
    /// `query`, `queries`, `limit`, and what a query may hold.
    #[default]
    Full,
    /// `query` alone.
    Query,
    /// `query` and `limit`.
    Limit,
    /// `query` and `max_results`, with `select:` and `+word`.
    MaxResults,
}

/// Which tools are searched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SearchedTools {
    /// All in scope.
    #[default]
    All,
    /// Those that may be deferred. The others can still be asked for by name.
    Deferrable,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            limit: 5,
            max_limit: 20,
            cutoff: 0.4,
            refuse: true,
            reply_tokens: 6_000,
            names: 500,
            format: ReplyFormat::Json,
            input: SearchInput::Full,
            regex: false,
            searched: SearchedTools::All,
            schemas: true,
            known_last: true,
            must_in_name: false,
        }
    }
}

/// Characters of a mark: it stands in every tool.
pub(crate) const MARK: usize = 64;

/// Whether a text can stand for a description.
pub(crate) fn is_mark(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().nth(MARK).is_none() && clean::is_clean(text)
}

impl Settings {
    /// Whether every number is within its range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let percent = 0.0..=100.0;
        let search = &self.search;
        let checks = [
            (
                "activation.context_percent",
                percent.contains(&self.activation.context_percent),
                "0 to 100",
            ),
            (
                "listing.context_percent",
                percent.contains(&self.listing.context_percent),
                "0 to 100",
            ),
            ("context", self.context_window != Some(0), "1 or more"),
            (
                "context_windows",
                self.context_windows.iter().all(|(_, size)| *size > 0),
                "sizes of 1 token or more",
            ),
            ("mark", is_mark(&self.mark), "1 to 64 plain characters"),
            ("rank.bm25.k1", (0.0..=10.0).contains(&self.rank.bm25.k1), "0 to 10"),
            ("rank.bm25.b", (0.0..=1.0).contains(&self.rank.bm25.b), "0 to 1"),
            (
                "rank.cap",
                self.rank.cap == 0 || self.rank.cap >= search.max_limit,
                "0, or no less than `search.max_limit`",
            ),
            (
                "rank.embedding_model",
                self.rank.embedding_model.is_none() || self.rank.ranker == RankerKind::Hybrid,
                "set where `rank.by` is \"hybrid\"; no other ranker asks for vectors",
            ),
            ("search.cutoff", (0.0..=1.0).contains(&search.cutoff), "0 to 1"),
            ("search.max_limit", (1..=50).contains(&search.max_limit), "1 to 50"),
            (
                "search.limit",
                (1..=search.max_limit).contains(&search.limit),
                "1 to `search.max_limit`",
            ),
            ("search.reply_tokens", search.reply_tokens >= 200, "200 or more"),
            ("limits.schema_depth", (1..=100).contains(&self.limits.schema_depth), "1 to 100"),
            ("limits.query_words", self.limits.query_words > 0, "1 or more"),
        ];
        match checks.into_iter().find(|(_, ok, _)| !ok) {
            None => Ok(()),
            Some((key, _, range)) => Err(Error::Settings {
                problem: format!("`{key}` is out of range"),
                hint: format!("`{key}` may be {range}"),
            }),
        }
    }
}
