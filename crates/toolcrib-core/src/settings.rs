//! Everything that can be configured, as plain values.
//!
//! Each part of the engine declares its own settings; this module combines them and checks their ranges. A preset is a
//! value of [`Settings`]. `settings_toml` reads settings from a file.

mod fingerprint;

use serde::{Deserialize, Serialize};

use crate::context_window;
use crate::disclosure::{DisclosureKind, DisclosureSetting, Guidance, Stub};
use crate::error::Error;
use crate::limits::Limits;
use crate::listing::ListingSettings;
use crate::own_names::OwnNames;
use crate::policy::{Activation, Glob, Rules};
use crate::rank::{DeepVectors, RankSettings, RankerKind, VectorTable};
use crate::reply::ReplyFormat;
use toolcrib_text::clean;

/// The settings of an engine.
///
/// ```
/// use toolcrib_core::Settings;
/// let mut settings = Settings::default();
/// settings.search.limit = 8;
/// settings.rules = settings.rules.never_defer(["read_*"]);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// When a conversation begins to defer tools.
    pub activation: Activation,
    /// The model's context window in tokens. It applies to turns that do not set a window.
    pub context_window: Option<usize>,
    /// Context windows in tokens, by patterns of model names. They apply to turns that do not set a window.
    pub context_windows: Vec<(Glob, usize)>,
    /// Which tools are never or always deferred.
    pub rules: Rules,
    /// Whether the proxy, which sees all of a client's tools, shows a short list of frequently used tools in full: see
    /// [`policy::hot_list`](crate::policy::hot_list).
    pub keeps_hot_tools: bool,
    /// How deferred tools are shown to the model, and how it calls them.
    pub disclosure: DisclosureSetting,
    /// The kind to use if `disclosure` needs a provider's API and the provider does not support it. If not set, the
    /// kind is [`DisclosureSetting::kind`].
    pub fallback: Option<DisclosureKind>,
    /// Whether the bridge has `tool_read` and `tool_write` in place of `tool_call`, so that a client can allow one of
    /// them and ask its user about the other.
    pub split_calls: bool,
    /// Whether a tool that was found is shown in full from the next turn on. If not, its schema is only in the reply.
    /// This applies only to the disclosures `reveal` and `append`.
    pub reveals: bool,
    /// Maximum number of loaded tools that are shown in full at a time. The most recently loaded tools take precedence.
    /// 0 means as many as a conversation remembers.
    pub max_revealed: usize,
    /// Maximum total size, in bytes, of the definitions of loaded tools that are shown in full. 0 means no maximum.
    pub max_revealed_bytes: usize,
    /// The kind of schema that is shown in place of a deferred tool's real schema.
    pub stub: Stub,
    /// The text that is shown in place of a deferred tool's description.
    pub mark: String,
    /// How strongly the model is told to search.
    pub guidance: Guidance,
    /// How deferred tools are listed.
    pub listing: ListingSettings,
    /// How tools are ranked.
    pub rank: RankSettings,
    /// The table with which vectors are computed. It is not part of the configuration file: the file can only name a
    /// table, and the program must load it.
    pub vector_table: VectorTable,
    /// The encoder of the deep vectors and the vectors computed so far. It is not part of the configuration file.
    pub deep_vectors: DeepVectors,
    /// The settings of searches and their replies.
    pub search: SearchSettings,
    /// Limits on untrusted input.
    pub limits: Limits,
    /// The names of our own tools. They are not part of the configuration file, because they depend on the names of the
    /// caller's tools.
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
            split_calls: false,
            reveals: true,
            max_revealed: 0,
            max_revealed_bytes: 0,
            stub: Stub::default(),
            mark: "[d]".into(),
            guidance: Guidance::default(),
            listing: ListingSettings::default(),
            rank: RankSettings::default(),
            vector_table: VectorTable::default(),
            deep_vectors: DeepVectors::default(),
            search: SearchSettings::default(),
            limits: Limits::default(),
            own_names: OwnNames::default(),
        }
    }
}

impl Settings {
    /// How the engine shows deferred tools if no provider feature is used.
    pub fn disclosure_kind(&self) -> DisclosureKind {
        let needs_provider = matches!(
            self.disclosure,
            DisclosureSetting::Auto | DisclosureSetting::Reference | DisclosureSetting::Hosted
        );
        self.fallback.filter(|_| needs_provider).unwrap_or_else(|| self.disclosure.kind())
    }

    /// The context window for a turn that does not set one. It is the configured window for this model, or else the
    /// configured window for all models, or else the known window of this model.
    pub fn context_window_for(&self, model: Option<&str>) -> Option<usize> {
        let named = model.and_then(|model| {
            let windows = self.context_windows.iter().filter(|(glob, _)| glob.matches_name(model));
            // If several patterns match, the longest one is used, because it is the most specific.
            windows.max_by_key(|(glob, _)| glob.to_string().len()).map(|(_, size)| *size)
        });
        named.or(self.context_window).or_else(|| context_window::of_model(model?))
    }

    /// Whether a loaded tool is shown in full from the next turn on.
    pub(crate) fn shows_revealed(&self) -> bool {
        self.reveals
            && matches!(self.disclosure_kind(), DisclosureKind::Reveal | DisclosureKind::Append)
    }

    /// Whether the number or the total size of the loaded tools that are shown in full is limited. If so, a tool that
    /// is loaded again counts as the newest.
    pub fn limits_revealed(&self) -> bool {
        self.max_revealed > 0 || self.max_revealed_bytes > 0
    }

    /// Whether hits include their schemas. Only with the bridge can they be left out, because only the bridge has
    /// `tool_describe`, with which the model can get a schema later.
    pub(crate) fn shows_schemas(&self) -> bool {
        self.search.schemas || self.disclosure_kind() != DisclosureKind::Bridge
    }
}

/// The settings of searches and their replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent key in the file")]
#[non_exhaustive]
pub struct SearchSettings {
    /// Number of results if the model does not request a number.
    pub limit: usize,
    /// Maximum number of results.
    pub max_limit: usize,
    /// Results whose score is below this fraction of the best score are dropped.
    pub cutoff: f32,
    /// Whether a search for which no tool fits returns no tools and says so. If not, it returns the nearest tools.
    pub refuse: bool,
    /// Maximum size of one reply, in tokens. Schemas that do not fit are replaced with signatures. Tools whose
    /// signatures do not fit are only named.
    pub reply_tokens: usize,
    /// Maximum number of names in the reply to a query that is empty or finds nothing. If there are more tools, the
    /// servers and their sizes are listed instead.
    pub names: usize,
    /// The format of replies.
    #[serde(rename = "form")]
    pub format: ReplyFormat,
    /// Which parameters the search tool declares.
    pub input: SearchInput,
    /// Whether `tool_search_regex` is also offered to the model.
    pub regex: bool,
    /// Which tools are searched.
    #[serde(rename = "among")]
    pub searched: SearchedTools,
    /// Whether hits include their schemas. If not, the model gets schemas with `tool_describe`, which only the bridge
    /// has.
    pub schemas: bool,
    /// Whether tools whose schemas the model already has come last in a reply, without their schemas.
    pub known_last: bool,
    /// Whether a `+word` must be in the tool's name.
    pub must_in_name: bool,
}

/// The parameters that the search tool declares. The tool always accepts all parameters, even if they are not declared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SearchInput {
    /// Declares `query`, `queries` and `limit`, and describes all operators of a query.
    #[default]
    Full,
    /// Declares only `query`.
    Query,
    /// Declares `query` and `limit`.
    Limit,
    /// Declares `query` and `max_results`, and describes `select:` and `+word`.
    MaxResults,
}

/// Which tools are searched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SearchedTools {
    /// All tools in scope.
    #[default]
    All,
    /// Only tools that may be deferred. Other tools can still be requested by name.
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

/// Maximum length of a mark, in characters. It is limited because the mark is repeated in every deferred tool.
pub(crate) const MAX_MARK_CHARS: usize = 64;

/// Whether a text can be used as the mark that replaces descriptions.
pub(crate) fn is_mark(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().nth(MAX_MARK_CHARS).is_none() && clean::is_clean(text)
}

impl Settings {
    /// Checks that every value is within its range.
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
                "set only if `rank.by` is \"hybrid\"; no other ranker uses vectors",
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
