//! Which disclosures MCP can do, and what stands for the others.
//!
//! | setting | sessions (with a handshake) | requests without a session |
//! |---|---|---|
//! | `auto`, `bridge` | bridge | bridge |
//! | `terse` | terse | terse |
//! | `reveal`, `append` | the same, with `list_changed` after a search | bridge |
//! | `reference` | append, or `fallback` | bridge |
//! | `hosted` | bridge, or `fallback` | bridge |

use toolcrib_core::disclosure::{DisclosureKind, DisclosureSetting};
use toolcrib_core::listing::ListingPlacement;
use toolcrib_core::{Crib, Settings};

use crate::config::Config;

/// The engine's settings as the gateway needs them.
pub(super) fn settings(config: &Config) -> Settings {
    let mut settings = config.settings.clone();
    settings.disclosure = settings.disclosure_kind().into();
    // There is no message to put a listing in: it stands in the search tool's description.
    settings.listing.placement = ListingPlacement::Fresh;
    settings.listing.chars = settings.listing.chars.min(config.gateway.description_chars);
    // One connection may carry many conversations: what one has seen says nothing about another. Only a
    // session with a list of its own remembers that it deferred.
    settings.search.known_last = false;
    settings.activation.sticky &= has_session_lists(&settings);
    settings
}

/// The settings for requests without a session, unless they are the same: there a list cannot change
/// because of an earlier request.
pub(super) fn without_sessions(settings: &Settings) -> Option<Settings> {
    has_session_lists(settings)
        .then(|| Settings { disclosure: DisclosureSetting::Bridge, ..settings.clone() })
}

/// Whether a session's list depends on what it has found.
fn has_session_lists(settings: &Settings) -> bool {
    matches!(settings.disclosure_kind(), DisclosureKind::Reveal | DisclosureKind::Append)
}

/// The instruction for the model. It depends on the settings alone, not on which servers have answered, so a
/// client is greeted the same in the first session ever and in every later one.
pub(super) fn instruction(crib: &Crib) -> String {
    let mut instruction = crib.own_instruction();
    let settings = crib.settings();
    if adds_to_list(settings) {
        instruction.push_str(
            " If the names of added tools have a prefix in your tool list, call them with it.",
        );
    } else if matches!(settings.disclosure_kind(), DisclosureKind::Reveal | DisclosureKind::Terse) {
        // They are in the list from the start, and a search still names them without the prefix.
        instruction
            .push_str(" If the names of tools have a prefix in your tool list, call them with it.");
    }
    instruction
}

/// For the model, with a reply that adds tools to its list. Clients put a prefix of their own before the names of
/// a server's tools, which the gateway does not know: a model that calls a tool by the name in the reply may
/// call one that its client does not have.
pub(crate) fn added_tools_hint(settings: &Settings) -> Option<&'static str> {
    adds_to_list(settings).then_some(
        "These tools are in your tool list from now on. If their names have a prefix there, call them with it.",
    )
}

/// Whether found tools are added to the list, to be called from there.
fn adds_to_list(settings: &Settings) -> bool {
    settings.disclosure_kind() == DisclosureKind::Append && settings.reveals
}

/// Notes about what `disclosure` asks for and the gateway does otherwise, for the log and `doctor`.
pub(crate) fn disclosure_warnings(settings: &Settings) -> Vec<String> {
    let (name, kind) = (settings.disclosure.name(), settings.disclosure_kind());
    let instead = DisclosureSetting::from(kind).name();
    let mut disclosure_warnings = Vec::new();
    if matches!(settings.disclosure, DisclosureSetting::Reference | DisclosureSetting::Hosted) {
        disclosure_warnings.push(format!(
            "`disclosure = \"{name}\"` requires a provider's API; the gateway uses `{instead}` instead"
        ));
    }
    if matches!(kind, DisclosureKind::Reveal | DisclosureKind::Append) {
        disclosure_warnings.push(format!(
            "`disclosure = \"{name}\"` requires sessions; clients of the protocol without sessions (2026-07-28) get `bridge` instead"
        ));
    }
    disclosure_warnings
}
