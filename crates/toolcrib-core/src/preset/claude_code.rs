//! The preset for Claude Code's `ToolSearch`. A message lists the names, the model searches by keywords or with
//! `select:`, and schemas are loaded on demand.

use serde_json::Value;

use super::config::{ConfigReader, brief};
use crate::disclosure::{DisclosureSetting, Guidance};
use crate::listing::{ListingForm, ListingPlacement, ListingSettings};
use crate::policy::{Activation, ActivationMode, Glob};
use crate::rank::{RankSettings, RankerKind};
use crate::reply::ReplyFormat;
use crate::settings::{SearchInput, SearchSettings, Settings};
use crate::tool::DeferPolicy;

/// Claude Code's default threshold for the mode `auto`, in percent of the context window.
const PERCENT: f64 = 10.0;

/// The context window of most models in Claude Code, in tokens.
const USUAL_WINDOW: f64 = 200_000.0;

fn share_of_usual_window(percent: f64) -> usize {
    (USUAL_WINDOW * percent / 100.0) as usize
}

pub(super) fn settings() -> Settings {
    Settings {
        keeps_hot_tools: false,
        disclosure: DisclosureSetting::Reference,
        guidance: Guidance::Short,
        activation: Activation {
            mode: ActivationMode::On,
            tools: 0,
            // Claude Code always knows the window. If it is unknown here, the usual window is assumed.
            tokens: share_of_usual_window(PERCENT),
            context_percent: PERCENT,
            tokens_if_unknown: true,
            ..Activation::default()
        },
        listing: ListingSettings {
            form: ListingForm::Names,
            placement: ListingPlacement::Message,
            // Every name must be listed, and messages, unlike tool descriptions, are not truncated by clients. So the
            // limits are large.
            tokens: Some(20_000),
            chars: 80_000,
            ..ListingSettings::default()
        },
        rank: RankSettings { ranker: RankerKind::Words, ..RankSettings::default() },
        search: SearchSettings {
            limit: 5,
            format: ReplyFormat::Functions,
            input: SearchInput::MaxResults,
            must_in_name: true,
            refuse: false,
            ..SearchSettings::default()
        },
        ..Settings::default()
    }
}

/// Reads `settings.json` and `.mcp.json`. In the first, `env` may set `ENABLE_TOOL_SEARCH`; in the second, servers may
/// set `alwaysLoad`.
pub(super) fn read(config: &mut ConfigReader<'_>) -> Settings {
    let mut settings = settings();
    // Environment variables are strings, so a number may be written in quotes.
    config.quoted = true;
    let root = config.root;
    let at = "env.ENABLE_TOOL_SEARCH";
    if !root.is_object() || root.get("env").is_some_and(|env| !env.is_object()) {
        config.warn(
            "env",
            "there is no object that could contain `ENABLE_TOOL_SEARCH`; tool search is on",
        );
    }
    if let Some(value) = root.pointer("/env/ENABLE_TOOL_SEARCH") {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_ascii_lowercase);
        let activation = &mut settings.activation;
        match text.trim() {
            "" | "true" | "1" => {}
            "false" | "0" => activation.mode = ActivationMode::Off,
            "auto" => activation.mode = ActivationMode::Auto,
            other => {
                if let Some(percent) = other.strip_prefix("auto:") {
                    let percent = Value::from(percent);
                    let percent = config.number(at, Some(&percent), PERCENT, 0.0..=100.0);
                    activation.context_percent = percent;
                    activation.tokens = share_of_usual_window(percent);
                    // A threshold of zero means that tools are always deferred.
                    activation.mode =
                        if percent > 0.0 { ActivationMode::Auto } else { ActivationMode::On };
                } else {
                    let value = brief(value);
                    let problem = format!(
                        "{value} is not one of `true`, `false`, `auto`, `auto:N`; tool search is on"
                    );
                    config.warn(at, problem);
                }
            }
        }
    }
    settings.rules.servers = always_loaded(config);
    settings
}

/// Returns a rule for each server that has `alwaysLoad` set: the tools of that server are never deferred.
fn always_loaded(config: &mut ConfigReader<'_>) -> Vec<(Glob, DeferPolicy)> {
    let Some(value) = config.root.get("mcpServers") else { return Vec::new() };
    let Some(servers) = value.as_object() else {
        config.warn("mcpServers", format!("{} is not an object; ignored", brief(value)));
        return Vec::new();
    };
    let mut rules = Vec::new();
    for (name, server) in servers {
        match server.get("alwaysLoad") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => rules.push((Glob::new(name), DeferPolicy::Never)),
            Some(other) => {
                let at = format!("mcpServers.{name}.alwaysLoad");
                config.warn(&at, format!("{} is not a boolean; ignored", brief(other)));
            }
        }
    }
    rules
}
