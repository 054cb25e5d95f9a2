//! Which disclosures are possible over MCP, and what replaces those that are not.
//!
//! | setting | sessions (with a handshake) | requests without a session |
//! |---|---|---|
//! | `auto`, `bridge` | bridge | bridge |
//! | `terse` | terse | terse |
//! | `reveal`, `append` | as configured, with `list_changed` after a search | bridge |
//! | `reference` | append, or `fallback` | bridge |
//! | `hosted` | bridge, or `fallback` | bridge |

use toolcrib_core::disclosure::{DisclosureKind, DisclosureSetting};
use toolcrib_core::listing::ListingPlacement;
use toolcrib_core::{Crib, Settings};

use crate::config::GatewayConfig;

/// Returns the engine's settings, adapted to the gateway.
pub(super) fn settings(config: &GatewayConfig) -> Settings {
    let mut settings = config.settings.clone();
    settings.disclosure = settings.disclosure_kind().into();
    // The gateway cannot insert messages, so the listing goes into the description of the search tool.
    settings.listing.placement = ListingPlacement::Fresh;
    settings.listing.chars = settings.listing.chars.min(config.gateway.description_chars);
    // One connection may carry many conversations, and a tool that one of them has seen may be new to another, so known
    // tools are not ranked last. `sticky` requires that sessions have lists of their own, because only such a session
    // remembers that it deferred tools.
    settings.search.known_last = false;
    settings.activation.sticky &= has_session_lists(&settings);
    settings
}

/// Returns the settings for requests without a session, or `None` if they are the same as for sessions. Without a
/// session, a list cannot depend on earlier requests.
pub(super) fn without_sessions(settings: &Settings) -> Option<Settings> {
    has_session_lists(settings).then(|| {
        let mut settings = settings.clone();
        settings.disclosure = DisclosureSetting::Bridge;
        settings
    })
}

/// Whether a session's list depends on the tools that the session has found.
fn has_session_lists(settings: &Settings) -> bool {
    matches!(settings.disclosure_kind(), DisclosureKind::Reveal | DisclosureKind::Append)
}

/// Returns the instructions for the model. They depend only on the settings, not on which servers have answered, so the
/// instructions are the same in every session.
pub(super) fn instruction(crib: &Crib) -> String {
    let mut instruction = crib.own_instruction();
    let settings = crib.settings();
    if adds_to_list(settings) {
        instruction.push_str(
            " If the names of added tools have a prefix in your tool list, call them with it.",
        );
    } else if matches!(settings.disclosure_kind(), DisclosureKind::Reveal | DisclosureKind::Terse) {
        // With these disclosures, deferred tools are in the tool list from the start. The client adds a prefix to their
        // names in its list, but a search returns the names without it.
        instruction
            .push_str(" If the names of tools have a prefix in your tool list, call them with it.");
    }
    instruction
}

/// Returns a hint for replies that add tools to the model's tool list, or `None` if replies do not add tools. Clients
/// put a prefix of their own before the names of tools. The gateway does not know that prefix, so a call by the name in
/// the reply may not match any of the client's tools.
pub(crate) fn added_tools_hint(settings: &Settings) -> Option<&'static str> {
    adds_to_list(settings).then_some(
        "These tools are in your tool list from now on. If their names have a prefix there, call them with it.",
    )
}

/// Whether found tools are added to the list and called from there.
fn adds_to_list(settings: &Settings) -> bool {
    settings.disclosure_kind() == DisclosureKind::Append && settings.reveals
}

/// Returns warnings about a configured `disclosure` that the gateway replaces with another one, for the log and
/// `doctor`.
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
