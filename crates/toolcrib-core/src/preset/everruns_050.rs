//! everruns' `tool_search` as of 0.50: plain stubs, conversations that keep deferring once they have begun, and two new
//! options. `reveal` sets whether a found tool gets its schema in the list of tools. `bounded` shows no deferred tool before it
//! is found, and limits how many are shown after that.

use serde_json::Value;

use super::config::{Config, brief};
use super::everruns::{self, Capability};
use crate::disclosure::{DisclosureSetting, Stub};
use crate::listing::ListingForm;
use crate::policy::{Activation, ActivationMode, Rules};
use crate::rank::RankerKind;
use crate::settings::Settings;

/// Tools that `bounded` never defers. They are built in, so they belong to no server.
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

/// The known keys.
const KNOWN: [&str; 7] = [
    "threshold",
    "never_defer",
    "reveal",
    "bounded",
    "max_active_tools",
    "max_active_bytes",
    "max_result_bytes",
];

/// Keys that no earlier edition has.
pub(super) const NEW_KEYS: [&str; 5] =
    ["reveal", "bounded", "max_active_tools", "max_active_bytes", "max_result_bytes"];

/// Capabilities that use a provider's hosted search. No earlier edition has them.
pub(super) const HOSTED: [&str; 2] = ["openai_tool_search", "claude_tool_search"];

const ACTIVE_TOOLS: usize = 32;
const ACTIVE_BYTES: usize = 65_536;
const RESULT_BYTES: usize = 32_768;
/// Bytes per token, as everruns estimates it.
const BYTES_PER_TOKEN: usize = 4;

pub(super) fn settings() -> Settings {
    let earlier = everruns::settings();
    Settings {
        stub: Stub::Open,
        activation: Activation { sticky: true, ..earlier.activation },
        ..earlier
    }
}

pub(super) fn read(config: &mut Config<'_>) -> Settings {
    let mut settings = settings();
    let ids = ["tool_search", "auto_tool_search", HOSTED[0], HOSTED[1]];
    let Some(own) = Capability::find(config, &ids, &mut settings) else { return settings };
    let keys = own.read(config, &KNOWN, &mut settings);
    if HOSTED.contains(&own.id) {
        // The provider searches if it can.
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

/// Applies `bounded`: no deferred tool is shown before it is found, whatever the number of tools.
fn bound<'a>(
    config: &mut Config<'a>,
    own: &Capability<'a>,
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
    // everruns ranks names, descriptions and parameters separately with BM25, gives names four times the weight, and a query
    // that is a name finds only that tool. Our ranker `words` comes closest to that.
    settings.rank.ranker = RankerKind::Words;
    settings.search.refuse = false;
    settings.search.cutoff = 0.0;
    // An answer without hits lists sources.
    settings.search.names = 0;
}
