//! The health of every server, for `toolcrib doctor`.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use toolcrib_core::Preset;
use toolcrib_core::disclosure::DisclosureSetting;
use toolcrib_core::policy::{Deferral, Glob};

use crate::config::SharePolicy;
use crate::gateway::Gateway;
use crate::snapshot::{SessionKind, disclosure_warnings, override_notes};
use crate::upstream::ServerStatus;

/// Maximum time for rebuilding the snapshot after the last server answered.
const REBUILD_TIMEOUT: Duration = Duration::from_secs(30);

/// The health of one server.
#[derive(Debug, Clone)]
pub struct ServerHealth {
    /// The server's name in the config.
    pub name: String,
    /// The server's status.
    pub status: ServerStatus,
    /// The transport, which is `stdio`, `http` or `sse`.
    pub transport: &'static str,
    /// The number of the server's tools that clients may use.
    pub tools: usize,
    /// The size of the definitions of the server's tools, in tokens.
    pub tokens: usize,
    /// The number of the server's prompts.
    pub prompts: usize,
    /// The number of the server's resources and resource templates.
    pub resources: usize,
    /// Which clients share a process of the server, and why.
    pub sharing: SharePolicy,
    /// Problems that are not errors.
    pub notes: Vec<String>,
}

impl Gateway {
    /// Waits until every server has answered or failed once, and reports each as soon as it has. Each server's start
    /// timeout limits how long this takes.
    pub async fn wait_until_settled(&self, mut settled: impl FnMut(&str, &ServerStatus)) {
        let upstreams = self.hub().upstreams();
        let mut waiting: FuturesUnordered<_> = upstreams
            .iter()
            .map(|upstream| async move {
                let mut status = upstream.subscribe_status();
                let _ = status.wait_for(|status| !status.is_first_attempt()).await;
                upstream
            })
            .collect();
        while let Some(upstream) = waiting.next().await {
            settled(&upstream.name, &upstream.status());
        }
        // The lists of the server that answered last may not be in the snapshot yet, so this also waits for the
        // snapshot.
        let mut snapshot = self.hub().subscribe();
        let rebuilt = snapshot.wait_for(|snapshot| snapshot.awaited_servers().next().is_none());
        let _ = tokio::time::timeout(REBUILD_TIMEOUT, rebuilt).await;
    }

    /// Returns the number of tokens in all tool definitions, and the number of tokens in what clients get instead of
    /// them: the tool list and the instructions. Returns `None` if the default profile is not in the config.
    pub fn token_cost(&self) -> Option<(usize, usize)> {
        let snapshot = self.hub().snapshot();
        let view = snapshot.view(None, SessionKind::Stateful)?;
        let sizes = snapshot.crib.definition_tokens();
        let full: usize = view.scope.ids().map(|id| sizes[id.index()]).sum();
        // The list is counted as it is sent, including the output schemas of our own tools.
        let count = |text: &str| snapshot.crib.counter().count(text);
        let list = view.list.get("tools").map_or(0, |tools| count(&tools.to_string()));
        Some((full, list + view.instruction.as_deref().map_or(0, count)))
    }

    /// Returns whether tools are deferred, the kind of disclosure, and the reason for deferring or not deferring.
    /// Returns `None` if the default profile is not in the config.
    pub fn deferral_decision(&self) -> Option<(bool, &'static str, String)> {
        let view = self.hub().snapshot().view(None, SessionKind::Stateful)?;
        let defers = view.decision.deferral != Deferral::Nothing;
        let kind = DisclosureSetting::from(view.crib.settings().disclosure_kind()).name();
        Some((defers, kind, view.decision.reason.to_string()))
    }

    /// Returns warnings about configured disclosures that the gateway replaces, and about patterns in the config that
    /// match no tool or server. Nothing else would reveal a typo in such a pattern.
    pub fn config_warnings(&self) -> Vec<String> {
        let (snapshot, config) = (self.hub().snapshot(), self.hub().config());
        let tools = snapshot.crib.catalog().tools();
        let names = || snapshot.crib.catalog().ids().map(|id| snapshot.tool_names(id));
        let allows_tool = |glob: &Glob| names().any(|names| names.are_allowed_by(glob));
        let denies_tool = |glob: &Glob| names().any(|names| names.are_denied_by(glob));
        let matches_rule = |glob: &Glob| tools.iter().any(|tool| glob.applies_to(tool));
        let matches_server =
            |glob: &Glob| config.servers.keys().any(|name| glob.matches_name(name));
        let mut warnings = disclosure_warnings(&config.settings);
        let mut warn = |key: String, glob: &Glob, matches: bool, what: &str| {
            if !matches {
                warnings.push(format!("`{key}` has `{glob}`, which matches no {what}"));
            }
        };
        for (name, profile) in &config.profiles {
            for glob in profile.allow.iter().map(|text| Glob::new(text)) {
                warn(format!("profiles.{name}.allow"), &glob, allows_tool(&glob), "tool");
            }
            for glob in profile.deny.iter().map(|text| Glob::new(text)) {
                warn(format!("profiles.{name}.deny"), &glob, denies_tool(&glob), "tool");
            }
            for glob in profile.servers.iter().map(|text| Glob::new(text)) {
                warn(format!("profiles.{name}.servers"), &glob, matches_server(&glob), "server");
            }
        }
        let rules = &snapshot.crib.settings().rules;
        // A preset contains patterns for tools that may not exist here, so a pattern that comes from a preset is not
        // reported if it matches nothing.
        let presets: Vec<Glob> =
            Preset::ALL.iter().flat_map(|preset| preset.settings().rules.never).collect();
        for (key, globs) in [("defer.never", &rules.never), ("defer.always", &rules.always)] {
            for glob in globs.iter().filter(|glob| !presets.contains(glob)) {
                warn(key.to_owned(), glob, matches_rule(glob), "tool");
            }
        }
        for (glob, _) in &rules.servers {
            warn("defer.servers".to_owned(), glob, matches_server(glob), "server");
        }
        warnings
    }

    /// Returns the health of every server, sorted by name.
    pub fn server_health(&self) -> Vec<ServerHealth> {
        let snapshot = self.hub().snapshot();
        let (catalog, sizes) = (snapshot.crib.catalog(), snapshot.crib.definition_tokens());
        let check = |upstream: &Arc<crate::upstream::Upstream>| {
            let entry = catalog.servers().iter().find(|(name, _)| **name == *upstream.name);
            let ids = entry.map(|(_, ids)| ids.as_slice()).unwrap_or_default();
            let lists = upstream.lists().unwrap_or_default();
            let (status, config) = (upstream.status(), upstream.config());
            let mut notes = status.notes.clone();
            notes.extend(snapshot.truncation_notes.get(&upstream.name).cloned());
            notes.extend(override_notes(&lists.tools, &config.tools));
            let connection = upstream.connection();
            if let Some(text) = connection.as_ref().and_then(|handle| handle.tap.stray_text()) {
                notes.push(format!(
                    "it writes text that is not MCP to standard output, which is ignored: `{text}`"
                ));
            }
            let names = lists.tools.names();
            let patterns = [
                ("allow", &config.allow),
                ("deny", &config.deny),
                ("always_load", &config.always_load),
            ];
            for (key, patterns) in patterns {
                for pattern in patterns.iter().filter(|_| !names.is_empty()) {
                    let glob = Glob::new(pattern);
                    let matches = |name: &String| {
                        glob.matches_name(name)
                            || glob.matches_name(&format!("{}/{name}", upstream.name))
                    };
                    // A pattern in `deny` can also match a name from the config.
                    let given = config.tools.values().filter_map(|change| change.name.as_ref());
                    let given = given.filter(|_| key == "deny");
                    if !names.iter().chain(given).any(matches) {
                        notes.push(format!(
                            "`{key}` has `{pattern}`, which matches none of its tools"
                        ));
                    }
                }
            }
            ServerHealth {
                name: upstream.name.to_string(),
                transport: upstream.transport_name(),
                tools: ids.len(),
                tokens: ids.iter().map(|id| sizes[id.index()]).sum(),
                prompts: lists.prompts.len(),
                resources: lists.resources.len() + lists.templates.len(),
                sharing: upstream.share_policy(),
                status,
                notes,
            }
        };
        self.hub().upstreams().iter().map(check).collect()
    }
}
