//! What people can choose.
//!
//! Written as TOML, checked once, and then meant: a typo in a key or a value out of range is an
//! error with a hint, never a silent default. A preset is nothing but another value of [`Settings`],
//! and a file that names one says only what it wants otherwise.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::clean;
use crate::disclosure::{Guidance, Kind, Stub};
use crate::error::Error;
use crate::limits::Limits;
use crate::listing::ListingSettings;
use crate::own_names::OwnNames;
use crate::policy::{Activation, Glob, Rules};
use crate::preset::Preset;
use crate::rank::{By, RankSettings, Table};
use crate::reply::Form;
use crate::tool::Defer;

/// The settings of an engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// When deferral sets in.
    pub activation: Activation,
    /// Which tools it spares.
    pub rules: Rules,
    /// How deferred tools are shown.
    pub disclosure: Kind,
    /// Whether a tool that was found is shown in full from the next turn on, where the disclosure
    /// shows tools one by one. Off, its schema is in the reply and nowhere else.
    pub reveals: bool,
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
    pub table: Table,
    /// Searches and their replies.
    pub search: SearchSettings,
    /// Bounds on what comes in.
    pub limits: Limits,
    /// What our own tools are called. No file says it: it follows from the tools that a caller has.
    pub names: OwnNames,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            activation: Activation::default(),
            rules: Rules::default(),
            disclosure: Kind::default(),
            reveals: true,
            stub: Stub::default(),
            mark: "[d]".into(),
            guidance: Guidance::default(),
            listing: ListingSettings::default(),
            rank: RankSettings::default(),
            table: Table::default(),
            search: SearchSettings::default(),
            limits: Limits::default(),
            names: OwnNames::default(),
        }
    }
}

impl Settings {
    /// Whether a loaded tool is shown in full from the next turn on.
    pub(crate) fn shows_revealed(&self) -> bool {
        self.reveals && matches!(self.disclosure, Kind::Reveal | Kind::Append)
    }

    /// Whether hits carry their schemas. Without the bridge there is no `tool_describe` to get one.
    pub(crate) fn shows_schemas(&self) -> bool {
        self.search.schemas || self.disclosure != Kind::Bridge
    }
}

/// Searches and their replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the file")]
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
    pub form: Form,
    /// What the search tool takes.
    pub input: Input,
    /// Whether `tool_search_regex` is offered too.
    pub regex: bool,
    /// Which tools are searched.
    pub among: Among,
    /// Whether hits carry their schemas; off, under the bridge, `tool_describe` is the way to one.
    pub schemas: bool,
    /// Whether tools the model already has come last, and without their schemas.
    pub known_last: bool,
    /// Whether `+word` speaks of the name alone.
    pub must_in_name: bool,
}

/// What the search tool says it takes. It understands all of it, whatever it says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Among {
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
            form: Form::Json,
            input: Input::Full,
            regex: false,
            among: Among::All,
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

/// The file, as people write it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<Preset>,
    disclosure: Kind,
    reveals: bool,
    stub: Stub,
    mark: String,
    guidance: Guidance,
    activation: Activation,
    defer: WrittenRules,
    listing: ListingSettings,
    rank: RankSettings,
    search: SearchSettings,
    limits: Limits,
    // Tables of the other doors, in the same file: whoever opens those reads them.
    #[serde(skip_serializing)]
    servers: Option<IgnoredAny>,
    #[serde(skip_serializing)]
    profiles: Option<IgnoredAny>,
    #[serde(skip_serializing)]
    gateway: Option<IgnoredAny>,
    #[serde(skip_serializing)]
    http: Option<IgnoredAny>,
    #[serde(skip_serializing)]
    proxy: Option<IgnoredAny>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenRules {
    never: Vec<String>,
    always: Vec<String>,
    servers: std::collections::BTreeMap<String, Defer>,
}

impl Default for Written {
    fn default() -> Self {
        Self::of(Settings::default())
    }
}

impl Written {
    fn of(settings: Settings) -> Self {
        let texts = |globs: &[Glob]| globs.iter().map(Glob::to_string).collect();
        let servers = settings.rules.servers.iter().map(|(glob, defer)| (glob.to_string(), *defer));
        Self {
            preset: None,
            disclosure: settings.disclosure,
            reveals: settings.reveals,
            stub: settings.stub,
            mark: settings.mark,
            guidance: settings.guidance,
            activation: settings.activation,
            defer: WrittenRules {
                never: texts(&settings.rules.never),
                always: texts(&settings.rules.always),
                servers: servers.collect(),
            },
            listing: settings.listing,
            rank: settings.rank,
            search: settings.search,
            limits: settings.limits,
            servers: None,
            profiles: None,
            gateway: None,
            http: None,
            proxy: None,
        }
    }

    fn settings(self) -> Settings {
        let globs = |patterns: &[String]| patterns.iter().map(|text| Glob::new(text)).collect();
        let servers = self.defer.servers.iter();
        Settings {
            rules: Rules {
                never: globs(&self.defer.never),
                always: globs(&self.defer.always),
                servers: servers.map(|(server, defer)| (Glob::new(server), *defer)).collect(),
                hot: Vec::new(),
            },
            activation: self.activation,
            disclosure: self.disclosure,
            reveals: self.reveals,
            stub: self.stub,
            mark: self.mark,
            guidance: self.guidance,
            listing: self.listing,
            rank: self.rank,
            table: Table::default(),
            search: self.search,
            limits: self.limits,
            names: OwnNames::default(),
        }
    }
}

impl Settings {
    /// Reads settings from TOML: over the preset that the text names, or over our own.
    ///
    /// ```
    /// use toolcrib_core::Settings;
    /// let settings = Settings::from_toml("[activation]\ntools = 20\n[defer]\nnever = ['read_*']")?;
    /// assert_eq!(settings.activation.tools, 20);
    /// let error = Settings::from_toml("[activation]\ntool = 20").unwrap_err();
    /// assert!(error.to_string().contains("unknown field `tool`"));
    /// # Ok::<(), toolcrib_core::Error>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Self::from_toml_over(None, text)
    }

    /// Reads settings from TOML over a preset, whichever the text names. What it says of a key
    /// replaces what the preset says; its rules are added to the preset's.
    pub(crate) fn from_toml_over(preset: Option<Preset>, text: &str) -> Result<Self, Error> {
        let unreadable = |error: toml::de::Error| Error::Settings {
            problem: told(text, &error),
            hint: "the keys and their defaults are in docs/settings.md".into(),
        };
        // First alone: then an error tells its line.
        let written: Written = toml::from_str(text).map_err(unreadable)?;
        let preset = preset.or(written.preset).unwrap_or_default().settings();
        let rules = preset.rules.clone().merged(written.settings().rules);
        let mut table = toml::Table::try_from(Written::of(preset)).map_err(|error| {
            // Every preset is written out in a test.
            Error::Settings { problem: error.to_string(), hint: "this is a bug; report it".into() }
        })?;
        let own: toml::Table = toml::from_str(text).map_err(unreadable)?;
        overlay(&mut table, own);
        let merged: Written = table.try_into().map_err(unreadable)?;
        let settings = Self { rules, ..merged.settings() };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), Error> {
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
                self.rank.embedding_model.is_none() || self.rank.by == By::Hybrid,
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

/// What is wrong with a text, and where. The parser's own picture of the line is left out: the line
/// may be a server's, with a token in it.
fn told(text: &str, error: &toml::de::Error) -> String {
    let Some(span) = error.span() else { return error.message().to_owned() };
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{} at line {line}, column {column}", error.message())
}

/// Puts `over` on top of `under`, table by table.
fn overlay(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => overlay(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}
