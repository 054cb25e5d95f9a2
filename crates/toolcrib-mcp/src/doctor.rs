//! What became of every server, for people.

use std::sync::Arc;
use std::time::Duration;

use toolcrib_core::Preset;
use toolcrib_core::disclosure::DisclosureSetting;
use toolcrib_core::policy::{Deferral, Glob};

use crate::config::Transport;
use crate::gateway::Gateway;
use crate::snapshot::{SessionKind, disclosure_warnings};
use crate::upstream::ServerStatus;

/// How long the index may take to be rebuilt after the last server answered.
const REBUILT: Duration = Duration::from_secs(30);

/// One server's state of health.
#[derive(Debug, Clone)]
pub struct ServerHealth {
    /// Its name in the config.
    pub name: String,
    /// What became of it.
    pub status: ServerStatus,
    /// Whether it is a child process or reached over HTTP.
    pub transport: &'static str,
    /// Its tools that clients may use.
    pub tools: usize,
    /// What those cost in a prompt, in tokens.
    pub tokens: usize,
    /// Its prompts.
    pub prompts: usize,
    /// Its resources and templates of resources.
    pub resources: usize,
    /// What is odd about it, without being an error.
    pub notes: Vec<String>,
}

impl Gateway {
    /// Waits until every server has answered or failed once; each has its own limit for that.
    pub async fn wait_until_settled(&self) {
        for upstream in self.hub().upstreams() {
            let mut news = upstream.watch();
            let _ = news.wait_for(|status| !status.is_first_attempt()).await;
        }
        // The last answer may not be on the snapshot yet.
        let mut snapshot = self.hub().subscribe();
        let stocked = snapshot.wait_for(|snapshot| snapshot.awaited_servers().next().is_none());
        let _ = tokio::time::timeout(REBUILT, stocked).await;
    }

    /// Tokens of all tools in full, and of what clients see in their place.
    pub fn token_cost(&self) -> Option<(usize, usize)> {
        let snapshot = self.hub().snapshot();
        let view = snapshot.view(None, SessionKind::Stateful)?;
        let sizes = snapshot.crib.definition_tokens();
        let full: usize = view.scope.ids().map(|id| sizes[id.index()]).sum();
        // As it is sent, the schemas of our answers included.
        let count = |text: &str| snapshot.crib.counter().count(text);
        let list = view.list.get("tools").map_or(0, |tools| count(&tools.to_string()));
        Some((full, list + view.instruction.as_deref().map_or(0, count)))
    }

    /// Whether tools are deferred, how, and why.
    pub fn deferral_decision(&self) -> Option<(bool, &'static str, String)> {
        let view = self.hub().snapshot().view(None, SessionKind::Stateful)?;
        let defers = view.decision.deferral != Deferral::Nothing;
        let kind = DisclosureSetting::from(view.crib.settings().disclosure_kind()).name();
        Some((defers, kind, view.decision.reason.to_string()))
    }

    /// What the config says about tools and servers that are not there: a typo hides nothing and defers
    /// nothing, and says so nowhere else.
    pub fn config_warnings(&self) -> Vec<String> {
        let (snapshot, config) = (self.hub().snapshot(), self.hub().config());
        let tools = snapshot.crib.catalog().tools();
        let fits_tool = |glob: &Glob| {
            tools.iter().any(|tool| glob.matches(tool) || glob.is(&tool.declared_name()))
        };
        let fits_rule = |glob: &Glob| tools.iter().any(|tool| glob.applies_to(tool));
        let fits_server = |glob: &Glob| config.servers.keys().any(|name| glob.is(name));
        let mut remarks = disclosure_warnings(&config.settings);
        let mut remark = |key: String, glob: &Glob, fits: bool, what: &str| {
            if !fits {
                remarks.push(format!("`{key}` has `{glob}`, which fits no {what}"));
            }
        };
        for (name, profile) in &config.profiles {
            for (key, patterns) in [("allow", &profile.allow), ("deny", &profile.deny)] {
                for glob in patterns.iter().map(|text| Glob::new(text)) {
                    remark(format!("profiles.{name}.{key}"), &glob, fits_tool(&glob), "tool");
                }
            }
            for glob in profile.servers.iter().map(|text| Glob::new(text)) {
                remark(format!("profiles.{name}.servers"), &glob, fits_server(&glob), "server");
            }
        }
        let rules = &snapshot.crib.settings().rules;
        // A preset names tools that its system may have; nobody mistyped those.
        let presets: Vec<Glob> =
            Preset::ALL.iter().flat_map(|preset| preset.settings().rules.never).collect();
        for (key, globs) in [("defer.never", &rules.never), ("defer.always", &rules.always)] {
            for glob in globs.iter().filter(|glob| !presets.contains(glob)) {
                remark(key.to_owned(), glob, fits_rule(glob), "tool");
            }
        }
        for (glob, _) in &rules.servers {
            remark("defer.servers".to_owned(), glob, fits_server(glob), "server");
        }
        remarks
    }

    /// What became of every server, in the order of their names.
    pub fn server_health(&self) -> Vec<ServerHealth> {
        let snapshot = self.hub().snapshot();
        let (catalog, sizes) = (snapshot.crib.catalog(), snapshot.crib.definition_tokens());
        let check = |upstream: &Arc<crate::upstream::Upstream>| {
            let of = catalog.servers().iter().find(|(name, _)| **name == *upstream.name);
            let ids = of.map(|(_, ids)| ids.as_slice()).unwrap_or_default();
            let known = upstream.lists().unwrap_or_default();
            let (mut status, config) = (upstream.status(), upstream.config());
            // One that failed may be tried again by now.
            status.phase = status.last_result();
            let mut notes = status.notes.clone();
            notes.extend(snapshot.truncation_notes.get(&upstream.name).cloned());
            let names = known.tools.names();
            let patterns = [
                ("allow", &config.allow),
                ("deny", &config.deny),
                ("always_load", &config.always_load),
            ];
            for (key, patterns) in patterns {
                for pattern in patterns.iter().filter(|_| !names.is_empty()) {
                    let glob = Glob::new(pattern);
                    let named = |name: &String| {
                        glob.is(name) || glob.is(&format!("{}/{name}", upstream.name))
                    };
                    if !names.iter().any(named) {
                        notes
                            .push(format!("`{key}` has `{pattern}`, which fits none of its tools"));
                    }
                }
            }
            ServerHealth {
                name: upstream.name.to_string(),
                transport: match config.transport {
                    Transport::Stdio { .. } => "stdio",
                    Transport::Http { .. } => "http",
                },
                tools: ids.len(),
                tokens: ids.iter().map(|id| sizes[id.index()]).sum(),
                prompts: known.prompts.len(),
                resources: known.resources.len() + known.templates.len(),
                status,
                notes,
            }
        };
        self.hub().upstreams().iter().map(check).collect()
    }
}
