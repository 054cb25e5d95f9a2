//! The preset for everruns' `tool_search` as of release 0.50. Its stubs have no hint, and a conversation keeps
//! deferring once it has begun. Two options are new. `reveal` sets whether the schema of a found tool is shown in the
//! array of tools. `bounded` shows no deferred tool before it is found, and limits how many are shown after that.

use serde_json::Value;

use super::config::{ConfigReader, brief};
use super::everruns::{self, EverrunsCapability};
use crate::disclosure::{DisclosureSetting, Stub};
use crate::listing::ListingForm;
use crate::policy::{Activation, ActivationMode, Rules};
use crate::rank::RankerKind;
use crate::settings::Settings;

/// Tools that are never deferred if the option `bounded` is set. They are built into everruns, so they belong to no
/// server.
const NEVER_DEFERRED: [&str; 12] = [
    "/bash",
    "/lua",
    "/tools",
    "/computer",
    "/browser",
    "/spawn_agent",
    "/ask_user",
    "/request_approval",
    "/record_approval",
    "/set_approval_mode",
    "/generate_image",
    "/edit_image",
];

/// All configuration keys of release 0.50.
const KNOWN: [&str; 7] = [
    "threshold",
    "never_defer",
    "reveal",
    "bounded",
    "max_active_tools",
    "max_active_bytes",
    "max_result_bytes",
];

/// Configuration keys that no earlier release has.
pub(super) const NEW_KEYS: [&str; 5] =
    ["reveal", "bounded", "max_active_tools", "max_active_bytes", "max_result_bytes"];

/// Capabilities that use a provider's hosted search. No earlier release has them.
pub(super) const HOSTED: [&str; 2] = ["openai_tool_search", "claude_tool_search"];

const ACTIVE_TOOLS: usize = 32;
const ACTIVE_BYTES: usize = 65_536;
const RESULT_BYTES: usize = 32_768;
/// Bytes per token, by everruns' estimate.
const BYTES_PER_TOKEN: usize = 4;

pub(super) fn settings() -> Settings {
    let earlier = everruns::settings();
    Settings {
        stub: Stub::Open,
        activation: Activation { sticky: true, ..earlier.activation },
        ..earlier
    }
}

pub(super) fn read(config: &mut ConfigReader<'_>) -> Settings {
    let mut settings = settings();
    let ids = ["tool_search", "auto_tool_search", HOSTED[0], HOSTED[1]];
    let Some(own) = EverrunsCapability::find(config, &ids, &mut settings) else { return settings };
    let keys = own.read(config, &KNOWN, &mut settings);
    if HOSTED.contains(&own.id) {
        // With these capabilities, the provider does the search if it supports that.
        settings.disclosure = DisclosureSetting::Hosted;
        return settings;
    }
    own.set_auto(&mut settings);
    let get = |key: &str| keys.get(key).copied();
    let bounded = config.flag(&own.at("bounded"), get("bounded"), false);
    match get("reveal").map(|value| (value, value.as_str())) {
        None | Some((_, Some("redefine"))) => {}
        Some((_, Some("in_result"))) if bounded => {
            let problem = "`in_result` cannot be combined with `bounded`; using `redefine`";
            config.warn(&own.at("reveal"), problem);
        }
        Some((_, Some("in_result"))) => settings.reveals = false,
        Some((value, _)) => {
            let value = brief(value);
            let problem =
                format!("{value} is neither `redefine` nor `in_result`; using `redefine`");
            config.warn(&own.at("reveal"), problem);
        }
    }
    if bounded {
        bound(config, &own, get, &mut settings);
    }
    settings
}

/// Applies the option `bounded`: no deferred tool is shown before it is found, regardless of the number of tools.
fn bound<'a>(
    config: &mut ConfigReader<'a>,
    own: &EverrunsCapability<'a>,
    get: impl Fn(&str) -> Option<&'a Value>,
    settings: &mut Settings,
) {
    let mut whole =
        |key: &str, default, range| config.whole(&own.at(key), get(key), default, range);
    settings.max_revealed = whole("max_active_tools", ACTIVE_TOOLS, 1..=128);
    settings.max_revealed_bytes = whole("max_active_bytes", ACTIVE_BYTES, 1_024..=1_048_576);
    let bytes = whole("max_result_bytes", RESULT_BYTES, 1_024..=65_536);
    settings.search.reply_tokens = bytes / BYTES_PER_TOKEN;
    settings.disclosure = DisclosureSetting::Append;
    settings.listing.form = ListingForm::None;
    settings.activation.mode = ActivationMode::On;
    settings.rules =
        std::mem::take(&mut settings.rules).merged(Rules::default().never_defer(NEVER_DEFERRED));
    // everruns ranks names, descriptions and parameters separately with BM25 and gives names four times the weight. A
    // query that is the name of a tool finds only that tool. Our ranker `words` comes closest to this behaviour.
    settings.rank.ranker = RankerKind::Words;
    settings.search.refuse = false;
    settings.search.cutoff = 0.0;
    // With a limit of 0 names, a reply without hits lists the servers, as in everruns.
    settings.search.names = 0;
}
