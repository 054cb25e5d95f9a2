//! everruns' `tool_search`: stubs in place of schemas, keyword overlap, reveals.

use serde_json::Value;

use super::config::{Config, brief};
use crate::disclosure::{Guidance, Setting, Stub};
use crate::policy::{Activation, Mode, Rules};
use crate::rank::{By, RankSettings};
use crate::reply::Form;
use crate::settings::{Input, SearchSettings, Settings};

/// Tools from which on it defers.
const THRESHOLD: usize = 15;
/// Tools that one search returns.
const CAP: usize = 8;

pub(super) fn settings() -> Settings {
    Settings {
        hot: false,
        disclosure: Setting::Reveal,
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
        rank: RankSettings { by: By::Overlap, cap: CAP, ..RankSettings::default() },
        search: SearchSettings {
            limit: CAP,
            max_limit: CAP,
            cutoff: 0.5,
            // There the cap alone bounds a reply and a miss lists every name; both are bounded here,
            // far from what eight tools or a catalog for a count of fifteen need.
            reply_tokens: 100_000,
            names: 2_000,
            form: Form::Tools,
            input: Input::Query,
            known_last: false,
            ..SearchSettings::default()
        },
        ..Settings::default()
    }
}

pub(super) fn read(config: &mut Config<'_>) -> Settings {
    let mut settings = settings();
    let root = config.root;
    let Some(capabilities) = root.get("capabilities") else {
        config.warn("capabilities", "not there: tool search is off");
        settings.activation.mode = Mode::Off;
        return settings;
    };
    // The automatic capability is hosted search where there is one and this very thing elsewhere.
    let ids = ["tool_search", "auto_tool_search"];
    let own = match capabilities {
        // By name alone, or by name with what is configured.
        Value::Array(items) => items.iter().find_map(|item| {
            let id = ids.iter().find(|id| *item == **id || item.get(**id).is_some())?;
            Some((*id, item.get(*id).unwrap_or(&Value::Null)))
        }),
        Value::Object(map) => ids.iter().find_map(|id| Some((*id, map.get(*id)?))),
        _ => None,
    };
    let Some((id, own)) = own else {
        config.warn("capabilities", "`tool_search` is not among them: tool search is off");
        settings.activation.mode = Mode::Off;
        return settings;
    };
    let path = format!("capabilities.{id}");
    let keys = match own {
        Value::Bool(false) => {
            settings.activation.mode = Mode::Off;
            return settings;
        }
        // Named, and nothing set.
        Value::Null | Value::Bool(true) => return settings,
        own => config.object(&path, own, &["threshold", "never_defer"]),
    };
    let threshold = keys.get("threshold").copied();
    let at = format!("{path}.threshold");
    // There a threshold is a whole number or it is the default: nothing is clamped.
    settings.activation.tools = match threshold.map(|value| (value, value.as_u64())) {
        None => THRESHOLD,
        // Zero means from the first tool on; to us it would mean never.
        Some((_, Some(threshold))) => (threshold as usize).max(1),
        Some((value, None)) => {
            let value = brief(value);
            config
                .warn(&at, format!("{value} is not a whole number from 0 on, {THRESHOLD} is used"));
            THRESHOLD
        }
    };
    let names = config.strings(&format!("{path}.never_defer"), keys.get("never_defer").copied());
    settings.rules = Rules::default().never_defer(names);
    settings
}
