//! What people can choose.
//!
//! Written as TOML, checked once, and then meant: a typo in a key or a value out of range is an
//! error with a hint, never a silent default. A preset is nothing but another value of [`Settings`].

use serde::Deserialize;

use crate::disclose::{Guidance, Kind, Stub};
use crate::error::Error;
use crate::limits::Limits;
use crate::listing::ListingSettings;
use crate::policy::{Activation, Glob, Rules};
use crate::reply::Form;
use crate::tool::Defer;

/// The settings of an engine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// When deferral sets in.
    pub activation: Activation,
    /// Which tools it spares.
    pub rules: Rules,
    /// How deferred tools are shown.
    pub disclosure: Kind,
    /// What stands for a schema that is not shown.
    pub stub: Stub,
    /// How hard the model is told to search.
    pub guidance: Guidance,
    /// The table of contents.
    pub listing: ListingSettings,
    /// Searches and their replies.
    pub search: SearchSettings,
    /// Bounds on what comes in.
    pub limits: Limits,
}

/// Searches and their replies.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchSettings {
    /// Results when the model names no number.
    pub limit: usize,
    /// Results at most.
    pub max_limit: usize,
    /// Results scoring below this share of the best are dropped.
    pub cutoff: f32,
    /// Tokens of one reply. Schemas beyond it become signatures, tools beyond those become names.
    pub reply_tokens: usize,
    /// Names that a browse or a miss may list; beyond it servers and their sizes.
    pub names: usize,
    /// How replies are written.
    pub form: Form,
    /// Whether `tool_search_regex` is offered too.
    pub regex: bool,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            limit: 5,
            max_limit: 20,
            cutoff: 0.4,
            reply_tokens: 6_000,
            names: 200,
            form: Form::Json,
            regex: false,
        }
    }
}

/// The file, as people write it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    disclosure: Kind,
    stub: Stub,
    guidance: Guidance,
    activation: Activation,
    defer: WrittenRules,
    listing: ListingSettings,
    search: SearchSettings,
    limits: Limits,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenRules {
    never: Vec<String>,
    always: Vec<String>,
    servers: std::collections::BTreeMap<String, Defer>,
}

impl Settings {
    /// Reads settings from TOML.
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
        let written: Written = toml::from_str(text).map_err(|error| Error::Settings {
            problem: error.to_string().trim_end().to_owned(),
            hint: "the keys and their defaults are in docs/settings.md".into(),
        })?;
        let globs = |patterns: &[String]| patterns.iter().map(|text| Glob::new(text)).collect();
        let settings = Self {
            rules: Rules {
                never: globs(&written.defer.never),
                always: globs(&written.defer.always),
                servers: written
                    .defer
                    .servers
                    .iter()
                    .map(|(server, defer)| (Glob::new(server), *defer))
                    .collect(),
            },
            activation: written.activation,
            disclosure: written.disclosure,
            stub: written.stub,
            guidance: written.guidance,
            listing: written.listing,
            search: written.search,
            limits: written.limits,
        };
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
