//! Reads another system's configuration leniently. Every value is used, clamped or replaced by the default. A value
//! that was not used as written is reported.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::Value;

use super::{Preset, claude_code, everruns, everruns_050, hermes, opencode};
use crate::error::Error;
use crate::settings::Settings;
use toolcrib_text::shorten;

impl Preset {
    /// Returns the preset's settings, changed by the other system's own configuration, and warnings about values that
    /// were not used as written. `config` is that configuration, parsed from its own file format. It is an error if the
    /// preset belongs to no other system.
    ///
    /// ```
    /// use toolcrib_core::Preset;
    /// let config = serde_json::json!({"tools": {"tool_search": {"threshold_pct": 150}}});
    /// let configured = Preset::Hermes.configured(&config)?;
    /// assert_eq!(configured.settings.activation.context_percent, 100.0);
    /// assert_eq!(
    ///     configured.warnings[0].to_string(),
    ///     "`tools.tool_search.threshold_pct`: 150 is not within 0 to 100; using 100"
    /// );
    /// # Ok::<(), toolcrib_core::Error>(())
    /// ```
    pub fn configured(self, config: &Value) -> Result<Configured, Error> {
        let mut config = ConfigReader::new(config);
        let settings = match self {
            Self::Default | Self::Words => {
                return Err(Error::Settings {
                    problem: format!("the preset `{self}` has no configuration of its own"),
                    hint: "write the settings as TOML; `toolcrib docs settings` lists the keys"
                        .into(),
                });
            }
            Self::Everruns => everruns::read(&mut config),
            Self::Everruns050 => everruns_050::read(&mut config),
            Self::Hermes => hermes::read(&mut config),
            Self::Opencode => opencode::read(&mut config),
            Self::ClaudeCode => claude_code::read(&mut config),
        };
        Ok(Configured { settings, warnings: config.warnings })
    }

    /// Recognises by the keys of a configuration which system it belongs to, and returns the preset for that system.
    /// Returns `None` if the keys belong to no known system.
    pub fn of_config(config: &Value) -> Option<Self> {
        let has = |paths: &[&str]| paths.iter().any(|path| config.pointer(path).is_some());
        // An opencode configuration may also have a map called `tools`, so the keys that only opencode has are checked
        // first.
        if has(&["/plugin", "/toolSearch"]) || config.is_array() {
            Some(Self::Opencode)
        } else if let Some(capabilities) = config.get("capabilities") {
            // The configuration is for release 0.50 if it has, at any depth, a key or a capability that this release
            // added.
            let text = capabilities.to_string();
            let has_key = |key: &&str| text.contains(&format!("\"{key}\":"));
            let has_capability = |id: &&str| text.contains(&format!("\"{id}\""));
            let is_new = everruns_050::NEW_KEYS.iter().any(has_key)
                || everruns_050::HOSTED.iter().any(has_capability);
            Some(if is_new { Self::Everruns050 } else { Self::Everruns })
        } else if has(&["/tools/tool_search"]) {
            Some(Self::Hermes)
        } else if has(&["/env/ENABLE_TOOL_SEARCH", "/mcpServers", "/permissions"]) {
            Some(Self::ClaudeCode)
        } else {
            None
        }
    }
}

/// Settings that were read from another system's configuration.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Configured {
    /// The settings.
    pub settings: Settings,
    /// Warnings about values that were not used as written.
    pub warnings: Vec<Warning>,
}

/// Reports a value that was not used as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The dotted path of the value.
    pub key: String,
    /// What is wrong with the value, and what is used instead.
    pub problem: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.key, self.problem)
    }
}

/// Another system's configuration, and the warnings so far.
pub(super) struct ConfigReader<'a> {
    pub(super) root: &'a Value,
    /// Whether numbers may be written in quotes.
    pub(super) quoted: bool,
    pub(super) warnings: Vec<Warning>,
}

impl<'a> ConfigReader<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root, quoted: false, warnings: Vec::new() }
    }

    pub(super) fn warn(&mut self, key: &str, problem: impl Into<String>) {
        let key = if key.is_empty() { "(whole file)" } else { key };
        self.warnings.push(Warning { key: key.to_owned(), problem: problem.into() });
    }

    /// Returns the fields of `value`, which is the object at `path`. Warns about unknown keys. If `value` is not an
    /// object, warns about that and returns no fields.
    pub(super) fn object(
        &mut self,
        path: &str,
        value: &'a Value,
        known: &[&str],
    ) -> BTreeMap<&'a str, &'a Value> {
        let Some(map) = value.as_object() else {
            self.warn(path, format!("{} is not an object; using the defaults", brief(value)));
            return BTreeMap::new();
        };
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let known = known.join("`, `");
            self.warn(
                &join(path, key),
                format!("unknown and ignored; the known keys are `{known}`"),
            );
        }
        map.iter().map(|(key, value)| (key.as_str(), value)).collect()
    }

    /// Reads a number and clamps it to the range. Returns `default` if the value is missing or not a number. Numbers in
    /// quotes are accepted if the other system accepts them.
    pub(super) fn number(
        &mut self,
        path: &str,
        value: Option<&Value>,
        default: f64,
        range: RangeInclusive<f64>,
    ) -> f64 {
        let Some(value) = value else { return default };
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) if self.quoted => text.trim().parse().ok(),
            _ => None,
        };
        let Some(number) = number.filter(|number: &f64| number.is_finite()) else {
            self.warn(path, format!("{} is not a number; using {default}", brief(value)));
            return default;
        };
        let used = number.clamp(*range.start(), *range.end());
        if (used - number).abs() > 0.0 {
            let (from, to) = (range.start(), range.end());
            let value = brief(value);
            self.warn(path, format!("{value} is not within {from} to {to}; using {used}"));
        }
        used
    }

    /// Reads an integer in the same way as [`number`](Self::number). A fraction is truncated, with a warning.
    pub(super) fn whole(
        &mut self,
        path: &str,
        value: Option<&Value>,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> usize {
        let range = *range.start() as f64..=*range.end() as f64;
        let number = self.number(path, value, default as f64, range);
        if number.fract() > 0.0 {
            self.warn(path, format!("{number} is not a whole number; using {}", number.trunc()));
        }
        number as usize
    }

    /// Reads a boolean. Returns `default` if the value is missing or not a boolean.
    pub(super) fn flag(&mut self, path: &str, value: Option<&Value>, default: bool) -> bool {
        match value {
            None => default,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                let value = brief(other);
                self.warn(path, format!("{value} is neither true nor false; using {default}"));
                default
            }
        }
    }

    /// Reads a list of strings. Values of any other type are ignored, with a warning.
    pub(super) fn strings(&mut self, path: &str, value: Option<&'a Value>) -> Vec<&'a str> {
        let Some(value) = value else { return Vec::new() };
        let Some(items) = value.as_array() else {
            self.warn(path, format!("{} is not a list of names; ignored", brief(value)));
            return Vec::new();
        };
        let mut strings = Vec::new();
        for (at, item) in items.iter().enumerate() {
            if let Some(text) = item.as_str() {
                strings.push(text);
            } else {
                let item = brief(item);
                self.warn(&join(path, &at.to_string()), format!("{item} is not a name; ignored"));
            }
        }
        strings
    }
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A value, shortened for a warning.
pub(super) fn brief(value: &Value) -> String {
    shorten(&value.to_string(), 60).into_owned()
}
