//! The preset for everruns' `tool_search` as everruns' documentation describes it. Deferred tools are shown with stubs
//! in place of schemas, tools are ranked by keyword overlap, and found tools are shown in full. Release 0.50 differs
//! from the documentation; its preset is in `everruns_050`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::config::{ConfigReader, brief};
use crate::disclosure::{DisclosureKind, DisclosureSetting, Guidance, Stub};
use crate::policy::{Activation, ActivationMode, Rules};
use crate::rank::{RankSettings, RankerKind};
use crate::reply::ReplyFormat;
use crate::settings::{SearchInput, SearchSettings, Settings};

/// Tools are deferred if there are at least this many of them.
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
            // everruns limits neither the size of a reply nor the number of names in a reply without hits. Our settings
            // require both limits, so they are set far above what eight tools or a typical catalog need.
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

pub(super) fn read(config: &mut ConfigReader<'_>) -> Settings {
    let mut settings = settings();
    let ids = ["tool_search", "auto_tool_search"];
    if let Some(own) = EverrunsCapability::find(config, &ids, &mut settings) {
        own.set_auto(&mut settings);
        own.read(config, &["threshold", "never_defer"], &mut settings);
    }
    settings
}

/// An everruns capability that a configuration enables.
pub(super) struct EverrunsCapability<'a> {
    pub(super) id: &'static str,
    path: String,
    config: &'a Value,
}

impl<'a> EverrunsCapability<'a> {
    /// Finds the first of these capabilities that is configured. If there is none, or if it is set to `false`, returns
    /// `None` and turns tool search off in `settings`.
    pub(super) fn find(
        config: &mut ConfigReader<'a>,
        ids: &[&'static str],
        settings: &mut Settings,
    ) -> Option<Self> {
        let root = config.root;
        let Some(capabilities) = root.get("capabilities") else {
            config.warn("capabilities", "missing, so tool search is off");
            settings.activation.mode = ActivationMode::Off;
            return None;
        };
        // A capability is written as its name, as an object with the name as a key, or as an object with `ref` and
        // `config`.
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

    /// Reads the keys that all everruns releases have, and returns all configured keys with their values.
    pub(super) fn read(
        &self,
        config: &mut ConfigReader<'a>,
        known: &[&str],
        settings: &mut Settings,
    ) -> BTreeMap<&'a str, &'a Value> {
        let path = &self.path;
        let keys = match self.config {
            // The capability is enabled without any configuration.
            Value::Null | Value::Bool(true) => return BTreeMap::new(),
            own => config.object(path, own, known),
        };
        // As in everruns, any value that is not an integer is replaced by the default, and integers are not clamped.
        settings.activation.tools = match keys.get("threshold").map(|v| (v, v.as_u64())) {
            None => THRESHOLD,
            // In everruns, zero means to defer from the first tool on. In our settings, zero would disable the
            // threshold.
            Some((_, Some(threshold))) => (threshold as usize).max(1),
            Some((value, None)) => {
                let problem = format!(
                    "{} is not a whole number of 0 or more; using {THRESHOLD}",
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

    /// If this capability is `auto_tool_search`, sets the disclosure in `settings`: the provider's hosted search if
    /// there is one, else stubs.
    pub(super) fn set_auto(&self, settings: &mut Settings) {
        if self.id == "auto_tool_search" {
            (settings.disclosure, settings.fallback) =
                (DisclosureSetting::Hosted, Some(DisclosureKind::Reveal));
        }
    }

    /// The dotted path of one of the capability's keys.
    pub(super) fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }
}
