//! everruns' `tool_search`: stubs in place of schemas, ranking by keyword overlap, and found tools in full. `everruns_050` has
//! the current release, which differs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::config::{Config, brief};
use crate::disclosure::{DisclosureKind, DisclosureSetting, Guidance, Stub};
use crate::policy::{Activation, ActivationMode, Rules};
use crate::rank::{RankSettings, RankerKind};
use crate::reply::ReplyFormat;
use crate::settings::{SearchInput, SearchSettings, Settings};

/// Tools are deferred if there are at least this many.
const THRESHOLD: usize = 15;
/// Maximum number of tools that one search returns.
const CAP: usize = 8;

pub(super) fn settings() -> Settings {
    Settings {
        keeps_hot_tools: false,
        disclosure: DisclosureSetting::Reveal,
        stub: Stub::Hint,
        guidance: Guidance::Short,
        activation: Activation {
            tools: THRESHOLD,
            tokens: 0,
            context_percent: 0.0,
            always_below: false,
            only_if_saving: false,
            sticky: false,
            ..Activation::default()
        },
        rank: RankSettings { ranker: RankerKind::Overlap, cap: CAP, ..RankSettings::default() },
        search: SearchSettings {
            limit: CAP,
            max_limit: CAP,
            cutoff: 0.5,
            // In everruns only the cap limits a reply, and an answer without hits lists every name. Here both have limits,
            // which are far above what eight tools or a typical catalog need.
            reply_tokens: 100_000,
            names: 2_000,
            format: ReplyFormat::Tools,
            input: SearchInput::Query,
            known_last: false,
            ..SearchSettings::default()
        },
        ..Settings::default()
    }
}

pub(super) fn read(config: &mut Config<'_>) -> Settings {
    let mut settings = settings();
    let ids = ["tool_search", "auto_tool_search"];
    if let Some(own) = Capability::find(config, &ids, &mut settings) {
        own.set_auto(&mut settings);
        own.read(config, &["threshold", "never_defer"], &mut settings);
    }
    settings
}

/// A configured capability.
pub(super) struct Capability<'a> {
    /// The name of the capability.
    pub(super) id: &'static str,
    path: String,
    config: &'a Value,
}

impl<'a> Capability<'a> {
    /// The first of these capabilities that is configured. Without one, tool search is off.
    pub(super) fn find(
        config: &mut Config<'a>,
        ids: &[&'static str],
        settings: &mut Settings,
    ) -> Option<Self> {
        let root = config.root;
        let Some(capabilities) = root.get("capabilities") else {
            config.warn("capabilities", "missing, so tool search is off");
            settings.activation.mode = ActivationMode::Off;
            return None;
        };
        // A capability is a name, a name with its configuration, or a reference with a `config`.
        let of_item = |item: &'a Value, id: &str| match item.get("ref") {
            Some(name) if *name == *id => Some(item.get("config").unwrap_or(&Value::Null)),
            _ if *item == *id => Some(&Value::Null),
            _ => item.get(id),
        };
        let own = ids.iter().find_map(|id| {
            let config = match capabilities {
                Value::Array(items) => items.iter().find_map(|item| of_item(item, id)),
                Value::Object(map) => map.get(*id),
                _ => None,
            };
            Some(Self { id, path: format!("capabilities.{id}"), config: config? })
        });
        match own {
            Some(own) if *own.config == Value::Bool(false) => {
                settings.activation.mode = ActivationMode::Off;
                None
            }
            None => {
                config.warn("capabilities", "`tool_search` is not listed, so tool search is off");
                settings.activation.mode = ActivationMode::Off;
                None
            }
            own => own,
        }
    }

    /// Reads the keys that all editions have in common, and returns all configured keys with their values.
    pub(super) fn read(
        &self,
        config: &mut Config<'a>,
        known: &[&str],
        settings: &mut Settings,
    ) -> BTreeMap<&'a str, &'a Value> {
        let path = &self.path;
        let keys = match self.config {
            // The capability has no configuration.
            Value::Null | Value::Bool(true) => return BTreeMap::new(),
            own => config.object(path, own, known),
        };
        // Like everruns, this uses the default for anything but an integer, and does not clamp.
        settings.activation.tools = match keys.get("threshold").map(|v| (v, v.as_u64())) {
            None => THRESHOLD,
            // Zero means from the first tool on; in our settings it would mean never.
            Some((_, Some(threshold))) => (threshold as usize).max(1),
            Some((value, None)) => {
                let problem = format!(
                    "{} is not a whole number of 0 or more, {THRESHOLD} is used",
                    brief(value)
                );
                config.warn(&self.at("threshold"), problem);
                THRESHOLD
            }
        };
        let names = config.strings(&self.at("never_defer"), keys.get("never_defer").copied());
        settings.rules = Rules::default().never_defer(names);
        keys
    }

    /// Configures the automatic capability: the provider's hosted search if there is one, else stubs.
    pub(super) fn set_auto(&self, settings: &mut Settings) {
        if self.id == "auto_tool_search" {
            (settings.disclosure, settings.fallback) =
                (DisclosureSetting::Hosted, Some(DisclosureKind::Reveal));
        }
    }

    /// The path of one of its keys.
    pub(super) fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }
}
