//! Reads settings from TOML.
//!
//! The text may name a preset. It then contains only the differences from that preset. It is read strictly: an unknown
//! key or a value out of range is an error with a hint, never a silent default. Other programs may read the same file;
//! their top-level keys are ignored if the caller lists them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use toml::de::DeTable;
use toolcrib_text::did_you_mean;

use crate::disclosure::{DisclosureKind, DisclosureSetting, Guidance, Stub};
use crate::error::Error;
use crate::limits::Limits;
use crate::listing::ListingSettings;
use crate::own_names::OwnNames;
use crate::policy::{Activation, Glob, Rules};
use crate::preset::Preset;
use crate::rank::{DeepVectors, RankSettings, VectorTable};
use crate::settings::{SearchSettings, Settings};
use crate::tool::DeferPolicy;

impl Settings {
    /// Reads settings from TOML. They are based on the preset that the text names, or else on our defaults.
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
        SettingsReader::new().read(text)
    }
}

impl Preset {
    /// Reads settings from TOML. They are based on this preset, even if the text names another one.
    pub fn with_toml(self, text: &str) -> Result<Settings, Error> {
        SettingsReader::new().over(self).read(text)
    }
}

/// Reads settings from a TOML file with options that [`Settings::from_toml`] does not have.
///
/// ```
/// use toolcrib_core::{Settings, SettingsReader};
/// let text = "mark = '…'\n[window]\nwidth = 80";
/// assert_eq!(SettingsReader::new().ignoring(&["window"]).read(text)?.mark, "…");
/// assert!(Settings::from_toml(text).is_err());
/// # Ok::<(), toolcrib_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SettingsReader<'a> {
    preset: Option<Preset>,
    other_keys: &'a [&'a str],
    loads_vector_tables: bool,
}

impl<'a> SettingsReader<'a> {
    /// A reader for a file that contains only settings of this engine.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bases the settings on this preset, even if the file names another one.
    #[must_use]
    pub fn over(self, preset: impl Into<Option<Preset>>) -> Self {
        Self { preset: preset.into(), ..self }
    }

    /// Ignores these top-level keys and their values, because they belong to other readers of the same file. Any other
    /// unknown key is an error.
    #[must_use]
    pub fn ignoring(self, other_keys: &'a [&'a str]) -> Self {
        Self { other_keys, ..self }
    }

    /// Accepts the key `rank.embedding_model`, which is otherwise an error. The caller must then load the table from
    /// that folder into [`Settings::vector_table`], because this crate does no I/O.
    #[must_use]
    pub fn loading_vector_tables(self) -> Self {
        Self { loads_vector_tables: true, ..self }
    }

    /// Reads the settings from the text of a file.
    pub fn read(&self, text: &str) -> Result<Settings, Error> {
        let settings = read(self.preset, text, self.other_keys)?;
        match &settings.rank.embedding_model {
            Some(_) if !self.loads_vector_tables => Err(Error::Settings {
                problem: "`rank.embedding_model` is set, but this program loads no vector tables"
                    .into(),
                hint: "remove the key; in a program that uses the library, load the table and set \
                       `Settings::vector_table`, and read the file with \
                       `SettingsReader::loading_vector_tables`"
                    .into(),
            }),
            _ => Ok(settings),
        }
    }
}

/// The settings as they are written in a file.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct SettingsFile {
    /// The preset that the other settings are based on.
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<Preset>,
    /// The model's context window in tokens. Default: looked up by the model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<usize>,
    /// Context windows in tokens, by patterns of model names.
    context_windows: BTreeMap<String, usize>,
    /// How deferred tools are shown to the model, and how it calls them.
    disclosure: DisclosureSetting,
    /// How deferred tools are shown if `disclosure` needs a provider's API and the provider does not support it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<DisclosureKind>,
    /// Whether the bridge has `tool_read` and `tool_write` in place of `tool_call`, so that a client can allow one of
    /// them and ask its user about the other.
    split_calls: bool,
    /// Whether a tool that was found is shown in full from the next turn on. If not, its schema is only in the reply.
    /// This applies only to the disclosures `reveal` and `append`.
    reveals: bool,
    /// Maximum number of loaded tools that are shown in full at a time. 0 means as many as a conversation remembers.
    max_revealed: usize,
    /// Maximum total size, in bytes, of the definitions of loaded tools that are shown in full. 0 means no maximum.
    max_revealed_bytes: usize,
    /// The kind of schema that is shown in place of a deferred tool's real schema.
    stub: Stub,
    /// The text that is shown in place of a deferred tool's description.
    mark: String,
    /// How strongly the model is told to search.
    guidance: Guidance,
    /// When a conversation begins to defer tools.
    activation: Activation,
    /// Which tools are never or always deferred.
    defer: RulesSection,
    /// How deferred tools are listed.
    listing: ListingSettings,
    /// How tools are ranked.
    rank: RankSettings,
    /// The settings of searches and their replies.
    search: SearchSettings,
    /// Limits on untrusted input.
    limits: Limits,
}

/// Returns the schema of a file with only the engine's settings. Types that it refers to are added to the generator.
#[cfg(feature = "schema")]
pub fn settings_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    <SettingsFile as schemars::JsonSchema>::json_schema(generator)
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "Which tools are never or always deferred.")
)]
#[serde(deny_unknown_fields, default)]
struct RulesSection {
    /// Whether the proxy shows a short list of frequently used tools in full.
    hot: bool,
    /// Patterns for the tools that are never deferred.
    never: Vec<String>,
    /// Patterns for the tools that are always deferred.
    always: Vec<String>,
    /// When the tools of a server are deferred, by patterns of server names.
    servers: BTreeMap<String, DeferPolicy>,
}

impl Default for RulesSection {
    fn default() -> Self {
        Self { hot: true, never: Vec::new(), always: Vec::new(), servers: BTreeMap::new() }
    }
}

impl Default for SettingsFile {
    fn default() -> Self {
        Self::of(Settings::default())
    }
}

impl SettingsFile {
    fn of(settings: Settings) -> Self {
        let texts = |globs: &[Glob]| globs.iter().map(Glob::to_string).collect();
        let servers = settings.rules.servers.iter().map(|(glob, defer)| (glob.to_string(), *defer));
        let windows = settings.context_windows.iter();
        let windows = windows.map(|(glob, size)| (glob.to_string(), *size));
        Self {
            preset: None,
            context: settings.context_window,
            context_windows: windows.collect(),
            disclosure: settings.disclosure,
            fallback: settings.fallback,
            split_calls: settings.split_calls,
            reveals: settings.reveals,
            max_revealed: settings.max_revealed,
            max_revealed_bytes: settings.max_revealed_bytes,
            stub: settings.stub,
            mark: settings.mark,
            guidance: settings.guidance,
            activation: settings.activation,
            defer: RulesSection {
                hot: settings.keeps_hot_tools,
                never: texts(&settings.rules.never),
                always: texts(&settings.rules.always),
                servers: servers.collect(),
            },
            listing: settings.listing,
            rank: settings.rank,
            search: settings.search,
            limits: settings.limits,
        }
    }

    fn settings(self) -> Settings {
        let globs = |patterns: &[String]| patterns.iter().map(|text| Glob::new(text)).collect();
        let servers = self.defer.servers.iter();
        let windows = self.context_windows.iter();
        let windows = windows.map(|(model, size)| (Glob::new(model), *size));
        Settings {
            rules: Rules {
                never: globs(&self.defer.never),
                always: globs(&self.defer.always),
                servers: servers.map(|(server, defer)| (Glob::new(server), *defer)).collect(),
                ..Rules::default()
            },
            keeps_hot_tools: self.defer.hot,
            activation: self.activation,
            context_window: self.context,
            context_windows: windows.collect(),
            disclosure: self.disclosure,
            fallback: self.fallback,
            split_calls: self.split_calls,
            reveals: self.reveals,
            max_revealed: self.max_revealed,
            max_revealed_bytes: self.max_revealed_bytes,
            stub: self.stub,
            mark: self.mark,
            guidance: self.guidance,
            listing: self.listing,
            rank: self.rank,
            vector_table: VectorTable::default(),
            deep_vectors: DeepVectors::default(),
            search: self.search,
            limits: self.limits,
            own_names: OwnNames::default(),
        }
    }
}

/// Reads a text based on this preset, or else on the preset that the text names. Values in the text replace those of
/// the preset, and rules in the text are added to those of the preset.
fn read(preset: Option<Preset>, text: &str, other_keys: &[&str]) -> Result<Settings, Error> {
    let failed = |error: toml::de::Error| unreadable(text, &error, &[]);
    let mut root = DeTable::parse(text).map_err(failed)?;
    for key in other_keys {
        root.get_mut().remove(*key);
    }
    // The text is first read without the preset, because errors have line numbers only then.
    let written =
        SettingsFile::deserialize(toml::Deserializer::from(root.clone())).map_err(|error| {
            // An unknown top-level key may be a misspelled key of another reader, so the error also lists the keys of
            // other readers.
            let is_top_level = root.get_ref().keys().any(|key| error.span() == Some(key.span()));
            unreadable(text, &error, if is_top_level { other_keys } else { &[] })
        })?;
    let preset = preset.or(written.preset).unwrap_or_default().settings();
    let rules = preset.rules.clone().merged(written.settings().rules);
    let mut table = toml::Table::try_from(SettingsFile::of(preset)).map_err(|error| {
        // This cannot happen, because a test serialises every preset.
        Error::Settings { problem: error.to_string(), hint: "this is a bug; report it".into() }
    })?;
    let own = toml::Table::deserialize(toml::Deserializer::from(root)).map_err(failed)?;
    overlay(&mut table, own);
    let merged: SettingsFile = table.try_into().map_err(failed)?;
    let settings = Settings { rules, ..merged.settings() };
    settings.check()?;
    Ok(settings)
}

/// Returns an error with the problem and its position. The error leaves out the line of text that the parser quotes,
/// because the line may be meant for another program that reads the same file, and may contain a secret token.
/// `more_keys` are added to the list of known keys in the message.
fn unreadable(text: &str, error: &toml::de::Error, more_keys: &[&str]) -> Error {
    let mut problem = error.message().to_owned();
    for key in more_keys {
        let _ = write!(problem, ", `{key}`");
    }
    let suggestion = did_you_mean(&problem).map(str::to_owned);
    if let Some(span) = error.span() {
        let before = text.get(..span.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let _ = write!(problem, " at line {line}, column {column}");
    }
    let hint = "`toolcrib docs settings` lists the keys and their defaults";
    let hint = match suggestion {
        Some(key) => format!("did you mean `{key}`? {hint}"),
        None => hint.to_owned(),
    };
    Error::Settings { problem, hint }
}

/// Writes the values of `over` into `under`. Nested tables are merged.
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

#[cfg(test)]
mod tests {
    use super::*;

    const OTHERS: [&str; 2] = ["window", "theme"];

    #[test]
    fn keys_of_other_readers_are_ignored_whatever_their_values() {
        let text = "theme = 'dark'\nmark = '…'\n[window]\nmark = 7\n[[window.tab]]\nlimit = -1";
        let expected = Settings { mark: "…".into(), ..Settings::default() };
        assert_eq!(SettingsReader::new().ignoring(&OTHERS).read(text).unwrap(), expected);
        let expected = Settings { mark: "…".into(), ..Preset::Words.settings() };
        assert_eq!(
            SettingsReader::new().ignoring(&OTHERS).over(Preset::Words).read(text).unwrap(),
            expected
        );
        assert!(Settings::from_toml(text).is_err(), "without `ignoring` they are unknown keys");
        let nested =
            SettingsReader::new().ignoring(&OTHERS).read("[search]\nwindow = 1").unwrap_err();
        assert!(nested.to_string().ends_with("at line 2, column 1"), "{nested}");
    }

    #[test]
    fn an_embedding_model_is_an_error_unless_the_caller_loads_it() {
        let text = "[rank]\nembedding_model = 'models/potion'";
        for read in [Settings::from_toml(text), Preset::Default.with_toml(text)] {
            let error = read.unwrap_err();
            assert_eq!(
                error.to_string(),
                "`rank.embedding_model` is set, but this program loads no vector tables"
            );
            assert!(error.hint().contains("`Settings::vector_table`"), "{}", error.hint());
        }
        let settings = SettingsReader::new().loading_vector_tables().read(text).unwrap();
        assert_eq!(settings.rank.embedding_model.unwrap().to_str(), Some("models/potion"));
    }

    #[test]
    fn an_error_names_the_line_of_the_whole_file_and_the_keys_of_all_readers() {
        let error =
            |text| SettingsReader::new().ignoring(&OTHERS).read(text).unwrap_err().to_string();
        assert_eq!(
            error("theme = 1\n[window]\nx = 1\n[activation]\n tools = 'many'"),
            "invalid type: string \"many\", expected usize at line 5, column 10"
        );
        let unknown = error("[window]\nx = 1\n[widnow]");
        let (problem, keys) = unknown.split_once(", expected one of `preset`, ").unwrap();
        assert_eq!(problem, "unknown field `widnow`");
        assert!(keys.ends_with(", `limits`, `window`, `theme` at line 3, column 2"), "{keys}");
    }
}
