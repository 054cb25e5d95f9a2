//! The tools that the clients of a config see, for commands that list, search or count them.
//!
//! The tools come from the saved lists, without starting a server, or from a running gateway. In both cases the
//! gateway's snapshot type is used, so names, profiles and the config's changes to tools are the same as for clients.

use std::sync::Arc;

use toolcrib_core::{Crib, Scope, TokenCounter};

use crate::ClientEnvironment;
use crate::config::GatewayConfig;
use crate::gateway::Gateway;
use crate::saved_lists::SavedLists;
use crate::snapshot::{SessionKind, Snapshot, SnapshotServer};
use crate::upstream::HostEnvironment;

/// The tools that the clients of a profile see.
#[derive(Debug, Clone)]
pub struct ConfiguredTools {
    /// The engine over the tools of all servers.
    pub crib: Arc<Crib>,
    /// The tools that the clients may see.
    pub scope: Scope,
    /// The names of the servers that the clients may see and whose tools are known.
    pub listed_servers: Vec<String>,
    /// The names of the servers that the clients may see and that have never answered, so that their tools are missing.
    pub unlisted_servers: Vec<String>,
}

impl ConfiguredTools {
    /// Builds the tools from the lists that were saved when each server last answered. Returns `None` if the profile, or
    /// the default profile, is not in the config.
    pub fn from_saved_lists(
        config: GatewayConfig,
        environment: &HostEnvironment,
        profile: Option<&str>,
        counter: &Arc<dyn TokenCounter>,
    ) -> Option<Self> {
        let saved = SavedLists::new(environment.state_folder.as_ref());
        let client = ClientEnvironment::of_this_process();
        let enabled = config.servers.iter().filter(|(_, server)| server.enabled);
        let servers = enabled.map(|(name, server)| {
            let lists = saved.load(name, server, &client).map(|(lists, _)| Arc::new(lists));
            SnapshotServer {
                name: Arc::from(&**name),
                config: Arc::new(server.clone()),
                // A server without lists counts as failed, so that the other servers' tools can be used now.
                failed: lists.is_none(),
                connecting: false,
                lists,
            }
        });
        let servers = servers.collect();
        Self::of_snapshot(&Snapshot::build(None, &Arc::new(config), servers, counter), profile)
    }

    fn of_snapshot(snapshot: &Snapshot, profile: Option<&str>) -> Option<Self> {
        let view = snapshot.view(profile, SessionKind::Stateful)?;
        let visible = snapshot.enabled_servers().filter(|name| view.can_see_server(name));
        let (listed, unlisted): (Vec<_>, Vec<_>) =
            visible.map(ToString::to_string).partition(|name| snapshot.has_answered(name));
        Some(Self {
            crib: Arc::clone(&view.crib),
            scope: view.scope.clone(),
            listed_servers: listed,
            unlisted_servers: unlisted,
        })
    }
}

impl Gateway {
    /// Returns the tools that the clients of a profile see now, or `None` if the profile, or the default profile, is not
    /// in the config.
    pub fn configured_tools(&self, profile: Option<&str>) -> Option<ConfiguredTools> {
        ConfiguredTools::of_snapshot(&self.hub().snapshot(), profile)
    }
}
