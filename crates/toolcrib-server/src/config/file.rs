//! The text of `toolcrib.toml`, parsed once and read section by section.
//!
//! Each crate knows only the keys of its own sections. All crates read from the same parsed text, so that errors have
//! the line numbers of the file. Rejected: splitting the text into sections, which would change line numbers.

use std::fmt;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::{ConfigError, InvalidSetting};

/// Maximum size in bytes of a config file, either Toolcrib's or that of a client. The largest known files are those of
/// Claude Code. They contain its history of projects and have a few hundred kilobytes.
pub const MAX_CONFIG_BYTES: usize = 4 << 20;

/// The topic of `toolcrib docs` that describes the config file.
pub(super) const DOCS: &str = "gateway-config";

/// A parsed config file.
pub struct ConfigFile<'t> {
    text: &'t str,
    root: DeTable<'t>,
}

/// The debug output leaves out the text, which may contain secrets.
impl fmt::Debug for ConfigFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigFile").finish_non_exhaustive()
    }
}

impl<'t> ConfigFile<'t> {
    /// Parses the text of a config file.
    pub fn parse(text: &'t str) -> Result<Self, ConfigError> {
        if text.len() > MAX_CONFIG_BYTES {
            return Err(ConfigError::new(
                "the file is larger than 4 MiB",
                "check that it is a Toolcrib config",
            ));
        }
        let root = DeTable::parse(text)
            .map_err(|error| ConfigError::from_toml(text, &error, &keys_are_in(DOCS)))?;
        Ok(Self { text, root: root.into_inner() })
    }

    /// Returns the text of the file.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Reads the section `name`, or returns the default if the file has no such section. `docs` is the
    /// topic of `toolcrib docs` that describes the keys of the section.
    pub fn section<T>(&self, name: &str, docs: &str) -> Result<T, ConfigError>
    where
        T: DeserializeOwned + Default,
    {
        let Some(value) = self.root.get(name) else { return Ok(T::default()) };
        T::deserialize(ValueDeserializer::from(value.clone()))
            .map_err(|error| ConfigError::from_toml(self.text, &error, &keys_are_in(docs)))
    }

    /// Converts an invalid setting to an error with the position of its key, or of the enclosing table if the key is
    /// missing.
    pub fn locate(&self, setting: InvalidSetting) -> ConfigError {
        let error = ConfigError::new(
            format!("`{}` {}", setting.path.join("."), setting.problem),
            setting.hint,
        );
        let mut table = &self.root;
        let mut found = None;
        for name in &setting.path {
            let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else {
                break;
            };
            found = Some(key.span().start);
            let DeValue::Table(inner) = value.get_ref() else { break };
            table = inner;
        }
        match found {
            Some(byte) => error.at_byte(self.text, byte),
            None => error,
        }
    }
}

fn keys_are_in(docs: &str) -> String {
    format!("`toolcrib docs {docs}` lists the keys and their defaults")
}
