//! The options of `toolcrib mcp`, as a client sends them to the background gateway.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_core::Preset;
use toolcrib_core::rank::TierSetting;
use toolcrib_mcp::os_text;
use toolcrib_proxy::RequestedMode;

use crate::args::{McpArgs, Overrides, VectorArgs};

/// The options of the command line that affect what a gateway shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClientOptions {
    preset: Option<String>,
    mode: Option<String>,
    context: Option<usize>,
    /// An absolute path.
    #[serde(with = "os_text::option")]
    embedding_model: Option<PathBuf>,
    tier: Option<TierSetting>,
}

impl ClientOptions {
    /// Returns the options of a command line.
    pub(super) fn new(args: &McpArgs) -> Self {
        let Overrides { preset, mode, context } = &args.overrides;
        let mode = mode.map(|mode| match mode {
            RequestedMode::Off => "off",
            RequestedMode::Defer(disclosure) => disclosure.name(),
        });
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Self {
            preset: preset.map(|preset| preset.name().to_owned()),
            mode: mode.map(str::to_owned),
            context: *context,
            embedding_model: args.vectors.embedding_model.as_ref().map(absolute),
            tier: args.vectors.tier,
        }
    }

    /// Reads the options that a client of the same build has sent.
    pub(super) fn read(value: &Value) -> Self {
        serde_json::from_value(value.clone()).unwrap_or_default()
    }

    /// Returns the options in the form in which they are sent.
    pub(super) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns the options that override the config.
    pub(super) fn overrides(&self) -> Overrides {
        Overrides {
            preset: self.preset.as_deref().and_then(Preset::named),
            mode: self.mode.as_deref().and_then(RequestedMode::from_name),
            context: self.context,
        }
    }

    /// Returns the options that choose the vectors.
    pub(super) fn vectors(&self) -> VectorArgs {
        VectorArgs { embedding_model: self.embedding_model.clone(), tier: self.tier }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn options_are_the_same_after_they_were_sent() {
        let line = [
            "toolcrib",
            "mcp",
            "--preset",
            "hermes",
            "--mode",
            "append",
            "--context",
            "9",
            "--embedding-model",
            "/m",
            "--tier",
            "table",
        ];
        let Command::Mcp(args) = Args::try_parse_from(line).unwrap().command else { panic!() };
        let options = ClientOptions::read(&ClientOptions::new(&args).to_value());
        let Overrides { preset, mode, context } = options.overrides();
        assert_eq!((preset, context), (Some(Preset::Hermes), Some(9)));
        assert_eq!(mode, args.overrides.mode);
        let vectors = options.vectors();
        assert_eq!(vectors.embedding_model, Some(PathBuf::from("/m")));
        assert_eq!(vectors.tier, Some(TierSetting::Table));
        let off = ClientOptions { mode: Some("off".into()), ..ClientOptions::default() };
        assert_eq!(off.overrides().mode, Some(RequestedMode::Off));
    }
}
