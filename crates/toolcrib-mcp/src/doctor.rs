//! What became of every server, for people.

use std::sync::Arc;
use std::time::Duration;

use toolcrib_core::policy::Glob;

use crate::config::Transport;
use crate::gateway::Gateway;
use crate::upstream::{Phase, Status};

/// One server's state of health.
#[derive(Debug, Clone)]
pub struct Checkup {
    /// Its name in the config.
    pub name: String,
    /// What became of it.
    pub status: Status,
    /// Whether it is a child process or reached over HTTP.
    pub over: &'static str,
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
    pub async fn settled(&self) {
        for upstream in self.hub().all() {
            let mut news = upstream.watch();
            let _ = news.wait_for(|status| status.phase != Phase::Connecting).await;
        }
        // The last answer may not be on the shelf yet.
        let mut shelf = self.hub().watch();
        let stocked = shelf.wait_for(|shelf| shelf.is_complete());
        let _ = tokio::time::timeout(Duration::from_secs(5), stocked).await;
    }

    /// What became of every server, in the order of their names.
    pub fn checkup(&self) -> Vec<Checkup> {
        let shelf = self.hub().shelf();
        let (catalog, sizes) = (shelf.crib.catalog(), shelf.crib.sizes());
        let check = |upstream: &Arc<crate::upstream::Upstream>| {
            let of = catalog.servers().iter().find(|(name, _)| **name == *upstream.name);
            let ids = of.map(|(_, ids)| ids.as_slice()).unwrap_or_default();
            let known = upstream.known().unwrap_or_default();
            let status = upstream.status();
            let mut notes = status.notes.clone();
            let names = known.tools.names();
            let patterns = [
                ("allow", &upstream.config.allow),
                ("deny", &upstream.config.deny),
                ("always_load", &upstream.config.always_load),
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
            Checkup {
                name: upstream.name.to_string(),
                over: match upstream.config.transport {
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
        self.hub().all().iter().map(check).collect()
    }
}
