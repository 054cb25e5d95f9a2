//! Other systems' behaviour, as plain settings of this engine.
//!
//! "Behave like that one" is a value of [`Settings`] and nothing else: no code runs under a preset
//! that no setting could reach. Beside its settings each preset knows the configuration its own
//! users have already written, and reads it the way that system does: a bad value is clamped or
//! falls back as documented there, and said so in a [`Warning`].

mod claude_code;
mod config;
mod everruns;
mod everruns_050;
mod hermes;
mod opencode;
mod words;

pub use config::{Configured, Warning};

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::settings::Settings;
use config::Config;

/// A named set of settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Ours.
    #[default]
    Default,
    /// Ours, ranking by words alone.
    Words,
    /// everruns' `tool_search` capability, as its documentation describes it.
    Everruns,
    /// The same as of release 0.50.
    #[serde(rename = "everruns@0.50")]
    Everruns050,
    /// Hermes' bridge.
    Hermes,
    /// The opencode-tool-search plugin.
    Opencode,
    /// Claude Code's `ToolSearch`.
    ClaudeCode,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Default,
        Self::Words,
        Self::Everruns,
        Self::Everruns050,
        Self::Hermes,
        Self::Opencode,
        Self::ClaudeCode,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Words => "words",
            Self::Everruns => "everruns",
            Self::Everruns050 => "everruns@0.50",
            Self::Hermes => "hermes",
            Self::Opencode => "opencode",
            Self::ClaudeCode => "claude-code",
        }
    }

    /// The preset of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Its settings.
    pub fn settings(self) -> Settings {
        match self {
            Self::Default => Settings::default(),
            Self::Words => words::settings(),
            Self::Everruns => everruns::settings(),
            Self::Everruns050 => everruns_050::settings(),
            Self::Hermes => hermes::settings(),
            Self::Opencode => opencode::settings(),
            Self::ClaudeCode => claude_code::settings(),
        }
    }

    /// Its settings under that system's own configuration, parsed from whatever it is written in.
    ///
    /// ```
    /// use toolcrib_core::Preset;
    /// let config = serde_json::json!({"tools": {"tool_search": {"threshold_pct": 150}}});
    /// let configured = Preset::Hermes.configured(&config)?;
    /// assert_eq!(configured.settings.activation.context_percent, 100.0);
    /// assert_eq!(
    ///     configured.warnings[0].to_string(),
    ///     "`tools.tool_search.threshold_pct`: 150 is not within 0 to 100, 100 is used"
    /// );
    /// # Ok::<(), toolcrib_core::Error>(())
    /// ```
    pub fn configured(self, config: &Value) -> Result<Configured, Error> {
        let mut config = Config::new(config);
        let settings = match self {
            Self::Default | Self::Words => {
                return Err(Error::Settings {
                    problem: format!("the preset `{self}` has no configuration of its own"),
                    hint: "write settings of ours as TOML: docs/settings.md".into(),
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

    /// Whose configuration this is, by what it says.
    pub fn of_config(config: &Value) -> Option<Self> {
        let has = |paths: &[&str]| paths.iter().any(|path| config.pointer(path).is_some());
        // opencode has a map called `tools` too, so its own keys are looked for first.
        if has(&["/plugin", "/toolSearch"]) || config.is_array() {
            Some(Self::Opencode)
        } else if let Some(capabilities) = config.get("capabilities") {
            // A key or a capability that came with the release, however deep it is.
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

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
