//! Other systems' behaviour, as settings of this engine.
//!
//! A preset is only a value of [`Settings`]: it does nothing that settings cannot do. Each preset also reads the
//! configuration that users of the other system already have, in the same way as that system does. A bad value is
//! clamped or replaced as the other system documents it, and is reported in a [`Warning`].
//!
//! Only [`Preset::Default`] and [`Preset::Words`] exist without the feature `presets`.

#[cfg(feature = "presets")]
mod claude_code;
#[cfg(feature = "presets")]
mod config;
#[cfg(feature = "presets")]
mod everruns;
#[cfg(feature = "presets")]
mod everruns_050;
#[cfg(feature = "presets")]
mod hermes;
#[cfg(feature = "presets")]
mod opencode;
mod words;

#[cfg(feature = "presets")]
pub use config::{Configured, Warning};

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::settings::Settings;

/// A named set of settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Preset {
    /// Toolcrib's own defaults.
    #[default]
    Default,
    /// Toolcrib's own defaults, but tools are ranked by words alone, without vectors.
    Words,
    /// everruns' `tool_search` capability, as its documentation describes it.
    #[cfg(feature = "presets")]
    Everruns,
    /// everruns' `tool_search` capability as of release 0.50.
    #[cfg(feature = "presets")]
    #[serde(rename = "everruns@0.50")]
    Everruns050,
    /// Hermes' bridge.
    #[cfg(feature = "presets")]
    Hermes,
    /// The opencode-tool-search plugin.
    #[cfg(feature = "presets")]
    Opencode,
    /// Claude Code's `ToolSearch`.
    #[cfg(feature = "presets")]
    ClaudeCode,
}

impl Preset {
    /// All presets in this build.
    pub const ALL: &'static [Self] = &[
        Self::Default,
        Self::Words,
        #[cfg(feature = "presets")]
        Self::Everruns,
        #[cfg(feature = "presets")]
        Self::Everruns050,
        #[cfg(feature = "presets")]
        Self::Hermes,
        #[cfg(feature = "presets")]
        Self::Opencode,
        #[cfg(feature = "presets")]
        Self::ClaudeCode,
    ];

    /// The preset's name in configuration files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Words => "words",
            #[cfg(feature = "presets")]
            Self::Everruns => "everruns",
            #[cfg(feature = "presets")]
            Self::Everruns050 => "everruns@0.50",
            #[cfg(feature = "presets")]
            Self::Hermes => "hermes",
            #[cfg(feature = "presets")]
            Self::Opencode => "opencode",
            #[cfg(feature = "presets")]
            Self::ClaudeCode => "claude-code",
        }
    }

    /// The preset with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|preset| preset.name() == name)
    }

    /// The preset's settings.
    pub fn settings(self) -> Settings {
        match self {
            Self::Default => Settings::default(),
            Self::Words => words::settings(),
            #[cfg(feature = "presets")]
            Self::Everruns => everruns::settings(),
            #[cfg(feature = "presets")]
            Self::Everruns050 => everruns_050::settings(),
            #[cfg(feature = "presets")]
            Self::Hermes => hermes::settings(),
            #[cfg(feature = "presets")]
            Self::Opencode => opencode::settings(),
            #[cfg(feature = "presets")]
            Self::ClaudeCode => claude_code::settings(),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
