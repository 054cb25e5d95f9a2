//! Decides what the clients of a profile may see: which tools, and which servers.
//!
//! No other file decides this. What is not visible does not exist for a client: it is in no list, no search result, no
//! count and no error, and it cannot be called.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolcrib_core::Scope;
use toolcrib_core::policy::Glob;

use super::{Snapshot, globs};
use crate::config::Profile;

/// The tools and servers that the clients of a profile may see.
pub(super) struct Visibility {
    pub(super) tools: Scope,
    pub(super) servers: BTreeSet<Arc<str>>,
}

impl Visibility {
    pub(super) fn of_profile(snapshot: &Snapshot, profile: Option<&Profile>) -> Self {
        let included = profile.map(|profile| globs(&profile.servers)).unwrap_or_default();
        let is_included = |server: &str| {
            included.is_empty() || included.iter().any(|glob| glob.matches_name(server))
        };
        let tools = visible_tools(snapshot, profile, is_included);
        let is_visible = |server: &str| {
            is_included(server) && is_server_visible(snapshot, profile, &tools, server)
        };
        let servers = snapshot.enabled_servers().filter(|server| is_visible(server));
        let servers = servers.map(Arc::clone).collect();
        Self { tools, servers }
    }
}

/// Returns the tools of included servers that match `allow` and do not match `deny`. An empty `allow` matches all
/// tools. `tool_names.rs` has the names that a pattern can match.
fn visible_tools(
    snapshot: &Snapshot,
    profile: Option<&Profile>,
    is_included: impl Fn(&str) -> bool,
) -> Scope {
    let (allow, deny) = match profile {
        Some(profile) => (globs(&profile.allow), globs(&profile.deny)),
        None => Default::default(),
    };
    let catalog = snapshot.crib.catalog();
    let ids = catalog.ids().filter(|id| {
        let names = snapshot.tool_names(*id);
        is_included(catalog.tool(*id).server().unwrap_or_default())
            && (allow.is_empty() || allow.iter().any(|glob| names.are_allowed_by(glob)))
            && !deny.iter().any(|glob| names.are_denied_by(glob))
    });
    Scope::of(catalog, ids)
}

/// Whether an included server is visible. If a profile allows only some tools, a server without a visible tool is
/// hidden. The tools of a server that has never answered are not known, so that server is visible if a pattern in
/// `allow` names it.
fn is_server_visible(
    snapshot: &Snapshot,
    profile: Option<&Profile>,
    tools: &Scope,
    server: &str,
) -> bool {
    let Some(profile) = profile else { return true };
    let names_server = |part: &str| part != "*" && Glob::new(part).matches_name(server);
    let denies_server = |pattern: &String| pattern.strip_suffix("/*").is_some_and(names_server);
    if profile.deny.iter().any(denies_server) {
        return false;
    }
    if profile.allow.is_empty() {
        return true;
    }
    let catalog = snapshot.crib.catalog();
    if snapshot.has_answered(server) {
        return tools.ids().any(|id| catalog.tool(id).server() == Some(server));
    }
    let allows_tools = |pattern: &String| {
        pattern.split_once('/').is_some_and(|(server_part, _)| names_server(server_part))
    };
    profile.allow.iter().any(allows_tools)
}
