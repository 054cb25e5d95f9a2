//! Which disclosures MCP can do, and what stands for the others.
//!
//! | setting | sessions (with a handshake) | requests without a session |
//! |---|---|---|
//! | `auto`, `bridge` | bridge | bridge |
//! | `terse` | terse | terse |
//! | `reveal`, `append` | the same, with `list_changed` after a search | bridge |
//! | `reference` | append, or `fallback` | bridge |
//! | `hosted` | bridge, or `fallback` | bridge |

use toolcrib_core::Settings;
use toolcrib_core::disclose::{Kind, Setting};
use toolcrib_core::listing::Place;

use crate::config::Config;

/// The engine's settings as the gateway needs them.
pub(super) fn settings(config: &Config) -> Settings {
    let mut settings = config.settings.clone();
    settings.disclosure = settings.kind().into();
    // There is no message to put a listing in: it stands in the search tool's description.
    settings.listing.place = Place::Fresh;
    settings.listing.chars = settings.listing.chars.min(config.gateway.description_chars);
    // One connection may carry many conversations: what one has seen says nothing about another. Only where a
    // session has a list of its own does it keep it.
    settings.search.known_last = false;
    settings.activation.sticky &= has_session_lists(&settings);
    settings
}

/// The settings for requests without a session, unless they are the same: there a list cannot change
/// because of an earlier request.
pub(super) fn without_sessions(settings: &Settings) -> Option<Settings> {
    has_session_lists(settings)
        .then(|| Settings { disclosure: Setting::Bridge, ..settings.clone() })
}

/// Whether a session's list depends on what it has found.
fn has_session_lists(settings: &Settings) -> bool {
    matches!(settings.kind(), Kind::Reveal | Kind::Append)
}

/// What of a disclosure is not done as it is set, for the log and for `doctor`.
pub(crate) fn notices(settings: &Settings) -> Vec<String> {
    let (name, kind) = (settings.disclosure.name(), settings.kind());
    let instead = Setting::from(kind).name();
    let mut notices = Vec::new();
    if matches!(settings.disclosure, Setting::Reference | Setting::Hosted) {
        notices.push(format!(
            "`disclosure = \"{name}\"` requires a provider's API; the gateway uses `{instead}` instead"
        ));
    }
    if matches!(kind, Kind::Reveal | Kind::Append) {
        notices.push(format!(
            "`disclosure = \"{name}\"` needs sessions: clients of the protocol without them (2026-07-28) get the bridge"
        ));
    }
    notices
}
