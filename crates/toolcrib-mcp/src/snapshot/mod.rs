//! Everything that clients can see at one moment.
//!
//! A snapshot is built from the lists of all servers and never changes. If a list changes, the hub replaces the
//! snapshot. A [`ClientView`] is computed once for each profile and session kind. So a list has the same bytes for all
//! clients that share a view and have found the same tools, however often they request it.

mod client_tool_search;
mod client_view;
mod entry_list;
mod list_warnings;
mod listed_definition;
mod mcp_disclosure;
mod name_prefixes;
mod own_tool;
#[cfg(test)]
mod properties;
mod resource_owner;
mod server_tools;
mod tool_definitions;
mod tool_names;
mod visibility;

pub(crate) use client_tool_search::{ClientToolSearch, ListDecision};
pub(crate) use client_view::{ClientView, ListHashes};
pub(crate) use entry_list::{EntryKind, EntryList};
pub(crate) use mcp_disclosure::{added_tools_hint, disclosure_warnings};
pub(crate) use name_prefixes::strip_uri_prefix;
pub(crate) use resource_owner::ResourceOwner;
pub(crate) use tool_definitions::override_notes;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use toolcrib_core::policy::Glob;
use toolcrib_core::{Catalog, Crib, IngestedTools, Scope, TokenCounter, ToolId, is_app_uri};

use crate::config::{GatewayConfig, Server, ToolOverride};
use crate::log_limit::LogLimit;
use crate::upstream::{Definitions, ServerLists, ServerPhase, ServerStatus};
use list_warnings::{ListWarnings, ListWarningsBuilder};
use name_prefixes::{Prefixes, prefix};
use server_tools::{fair_shares, ingest_tools, truncate_tools};
use tool_names::ToolNames;

/// One server, as input for a snapshot.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotServer {
    pub(crate) name: Arc<str>,
    pub(crate) config: Arc<Server>,
    /// The server's lists, or `None` if it has never answered.
    pub(crate) lists: Option<Arc<ServerLists>>,
    /// Whether the server has never answered and is being connected to.
    pub(crate) connecting: bool,
    /// Whether the server has never answered and has failed at least once.
    pub(crate) failed: bool,
}

impl SnapshotServer {
    /// Combines a server's lists and its status. The server's task stores the lists and then sets the status to up. The
    /// caller reads the lists and then the status, so it may see "up" without lists. Such a server counts as
    /// connecting, because its tools cannot be found yet.
    pub(crate) fn new(
        name: &Arc<str>,
        config: Arc<Server>,
        lists: Option<Arc<ServerLists>>,
        status: &ServerStatus,
    ) -> Self {
        let has_no_lists = lists.is_none();
        Self {
            name: Arc::clone(name),
            config,
            lists,
            connecting: has_no_lists
                && matches!(status.phase, ServerPhase::Connecting | ServerPhase::Up),
            failed: has_no_lists && status.reason.is_some(),
        }
    }

    /// Returns notes about changes to tools in the config that have no effect or cannot work.
    fn override_notes(&self) -> Vec<String> {
        let lists = self.lists.as_ref();
        lists.map(|lists| override_notes(&lists.tools, &self.config.tools)).unwrap_or_default()
    }
}

/// Whether requests belong to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SessionKind {
    /// The older protocol, in which a handshake begins a session. Tools can be revealed during a session.
    Stateful,
    /// The newer protocol, in which every request is independent.
    Stateless,
}

/// The profile and the session kind of a view.
type ViewKey = (Option<String>, SessionKind);

/// Everything that clients can see at one moment.
pub(crate) struct Snapshot {
    pub(crate) crib: Arc<Crib>,
    /// The crib for requests without a session. It is the same as `crib`, unless the disclosure of `crib` requires
    /// sessions.
    stateless_crib: Arc<Crib>,
    pub(crate) prompts: EntryList,
    pub(crate) resources: EntryList,
    pub(crate) templates: EntryList,
    /// For each address of a user interface, the tools that have that interface.
    app_uris: HashMap<String, Vec<ToolId>>,
    /// For each server that has more tools than its share, a note about how many of them are used.
    pub(crate) truncation_notes: HashMap<Arc<str>, String>,
    /// Warnings about the lists, for the log.
    pub(crate) warnings: ListWarnings,
    /// Limits the log lines about views, across all snapshots.
    log: Arc<LogLimit>,
    servers: Vec<SnapshotServer>,
    prefixes: Prefixes,
    config: Arc<GatewayConfig>,
    views: Mutex<HashMap<ViewKey, Arc<ClientView>>>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("tools", &self.crib.catalog().len())
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Builds a snapshot. Reuses the catalog, vectors and warnings of the previous snapshot, if there is one.
    pub(crate) fn build(
        before: Option<&Self>,
        config: &Arc<GatewayConfig>,
        servers: Vec<SnapshotServer>,
        counter: &Arc<dyn TokenCounter>,
    ) -> Self {
        let mut catalog =
            before.map_or_else(Catalog::builder, |before| before.crib.catalog().next());
        let prefixes = Prefixes::of(&servers);
        let mut truncation_notes = HashMap::new();
        let mut warnings = ListWarningsBuilder::after(before.map(|before| &before.warnings));
        let all: Vec<IngestedTools> =
            servers.iter().map(|server| ingest_tools(server, config)).collect();
        let counts: Vec<usize> = all.iter().map(|ingested| ingested.tools.len()).collect();
        let limit = config.gateway.limits.tools;
        for ((server, mut ingested), share) in
            servers.iter().zip(all).zip(fair_shares(&counts, limit))
        {
            if let Some(note) = truncate_tools(&mut ingested, share, limit) {
                warnings.add(&server.name, &note);
                truncation_notes.insert(Arc::clone(&server.name), note);
            }
            let ingested = prefixes.rename_tools(prefix(server), &server.config.tools, ingested);
            for finding in &ingested.findings {
                warnings.add(&server.name, &finding.to_string());
            }
            for note in server.override_notes() {
                warnings.add(&server.name, &note);
            }
            catalog.add(ingested);
        }
        let catalog = catalog.build();
        let settings = mcp_disclosure::settings(config);
        let without_sessions = mcp_disclosure::without_sessions(&settings);
        let mut entries = |pick: fn(&ServerLists) -> &Definitions, kind: EntryKind| {
            let with_lists =
                servers.iter().filter_map(|server| Some((server, pick(server.lists.as_deref()?))));
            EntryList::build(kind, &prefixes, with_lists, &mut warnings)
        };
        let crib = Arc::new(match before {
            Some(before) => before.crib.next(catalog, settings),
            None => Crib::new(catalog, settings).with_counter(Arc::clone(counter)),
        });
        let stateless_crib = without_sessions
            .map_or_else(|| Arc::clone(&crib), |settings| Arc::new(crib.with_settings(settings)));
        let prompts = entries(|lists| &lists.prompts, EntryKind::Prompts);
        let resources = entries(|lists| &lists.resources, EntryKind::Resources);
        let templates = entries(|lists| &lists.templates, EntryKind::Templates);
        Self {
            prompts,
            resources,
            templates,
            warnings: warnings.finish(),
            log: before.map(|before| Arc::clone(&before.log)).unwrap_or_default(),
            app_uris: app_uris(crib.catalog()),
            crib,
            stateless_crib,
            truncation_notes,
            servers,
            prefixes,
            config: Arc::clone(config),
            views: Mutex::default(),
        }
    }

    /// Whether this snapshot was built from this config and these servers, so that a new snapshot would be equal.
    pub(crate) fn is_built_from(
        &self,
        config: &Arc<GatewayConfig>,
        servers: &[SnapshotServer],
    ) -> bool {
        let same = |(a, b): (&SnapshotServer, &SnapshotServer)| {
            let same_lists = match (&a.lists, &b.lists) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (None, None) => true,
                _ => false,
            };
            let flags = |server: &SnapshotServer| (server.connecting, server.failed);
            same_lists && a.name == b.name && a.config == b.config && flags(a) == flags(b)
        };
        Arc::ptr_eq(&self.config, config)
            && self.servers.len() == servers.len()
            && self.servers.iter().zip(servers).all(same)
    }

    /// Whether each of the included servers has answered, now or in an earlier run.
    fn have_all_answered(&self, includes: impl Fn(&str) -> bool) -> bool {
        let mut included = self.servers.iter().filter(|server| includes(&server.name));
        included.all(|server| server.lists.is_some())
    }

    /// Whether each of the included servers has answered, now or in an earlier run, or has failed.
    fn have_all_settled(&self, includes: impl Fn(&str) -> bool) -> bool {
        let mut included = self.servers.iter().filter(|server| includes(&server.name));
        included.all(|server| server.lists.is_some() || server.failed)
    }

    /// Determines which of the servers that a client sees owns a URI that has no server's prefix.
    pub(crate) fn resource_owner(&self, uri: &str, view: &ClientView) -> ResourceOwner {
        let includes = |server: &str| view.can_see_server(server);
        let catalog = self.crib.catalog();
        let ids = self.app_uris.get(uri).into_iter().flatten();
        let visible = ids.filter(|id| view.scope.contains(**id));
        let with_tool =
            visible.filter_map(|id| catalog.tool(*id).server()).map(Arc::from).collect();
        let owner = resource_owner::resource_owner(
            uri,
            &with_tool,
            &self.resources,
            &self.templates,
            includes,
        );
        if owner != ResourceOwner::Unknown || is_app_uri(uri) || !self.have_all_answered(includes) {
            return owner;
        }
        // If only one included server has resources at all, the URI can only belong to that server.
        let all = self.resources.iter().chain(self.templates.iter());
        let mut servers: Vec<_> =
            all.map(|entry| &entry.server).filter(|server| includes(server)).collect();
        servers.dedup();
        match servers[..] {
            [only] => ResourceOwner::Server(Arc::clone(only)),
            _ => ResourceOwner::Unknown,
        }
    }

    /// Returns the names and prefixes of the included servers that have never answered.
    fn unlisted(&self, includes: impl Fn(&str) -> bool) -> Vec<String> {
        let unanswered = self.servers.iter().filter(|server| server.lists.is_none());
        let unanswered = unanswered.filter(|server| includes(&server.name));
        unanswered.flat_map(|server| [prefix(server), &server.name]).map(str::to_owned).collect()
    }

    fn server(&self, name: &str) -> Option<&SnapshotServer> {
        self.servers.iter().find(|server| *server.name == *name)
    }

    /// Returns what the config changes about a tool, given by the tool's own name.
    pub(crate) fn tool_override(&self, server: &str, own_name: &str) -> Option<&ToolOverride> {
        self.server(server)?.config.tools.get(own_name)
    }

    /// Returns the names by which patterns can match a tool.
    pub(crate) fn tool_names(&self, id: ToolId) -> ToolNames<'_> {
        let tool = self.crib.catalog().tool(id);
        let server = self.server(tool.server().unwrap_or_default());
        let original = server.filter(|server| !server.config.tools.is_empty()).map(|server| {
            self.prefixes.tool_name(prefix(server), &tool.declared_name()).into_owned()
        });
        let new_name = self
            .tool_override(tool.server().unwrap_or_default(), &tool.declared_name())
            .and_then(|change| change.name.as_deref());
        ToolNames::new(tool, original, new_name)
    }

    /// Whether a server has ever answered.
    pub(crate) fn has_answered(&self, name: &str) -> bool {
        self.server(name).is_some_and(|server| server.lists.is_some())
    }

    /// Returns the names of the servers that have never answered and have not failed either, in sorted order.
    pub(crate) fn awaited_servers(&self) -> impl Iterator<Item = &Arc<str>> {
        self.servers
            .iter()
            .filter(|server| server.connecting && !server.failed)
            .map(|server| &server.name)
    }

    /// Returns the names of all enabled servers.
    pub(crate) fn enabled_servers(&self) -> impl Iterator<Item = &Arc<str>> {
        self.servers.iter().filter(|server| server.config.enabled).map(|server| &server.name)
    }

    /// Returns what the clients of a profile see, or `None` if the profile is not in the config.
    pub(crate) fn view(
        &self,
        profile: Option<&str>,
        session_kind: SessionKind,
    ) -> Option<Arc<ClientView>> {
        let crib = match session_kind {
            SessionKind::Stateful => &self.crib,
            SessionKind::Stateless => &self.stateless_crib,
        };
        // If requests with and without a session use the same crib, they share a view.
        let is_shared = Arc::ptr_eq(crib, &self.crib);
        let session_kind = if is_shared { SessionKind::Stateful } else { session_kind };
        let profile_name = profile.or(self.config.gateway.profile.as_deref()).map(str::to_owned);
        let mut views = self.views.lock();
        // The map stays small, because it contains only profiles from the config.
        let key = (profile_name, session_kind);
        if let Some(view) = views.get(&key) {
            return Some(Arc::clone(view));
        }
        let profile = match &key.0 {
            Some(name) => Some(self.config.profiles.get(name)?),
            None => None,
        };
        let view = Arc::new(ClientView::build(self, crib, profile));
        views.insert(key, Arc::clone(&view));
        Some(view)
    }
}

/// Returns the addresses of the tools' user interfaces, each with the tools that have that interface.
fn app_uris(catalog: &Catalog) -> HashMap<String, Vec<ToolId>> {
    let mut app_uris: HashMap<String, Vec<ToolId>> = HashMap::new();
    for id in Scope::all(catalog).ids() {
        if let Some(uri) = catalog.tool(id).app_uri() {
            app_uris.entry(uri).or_default().push(id);
        }
    }
    app_uris
}

fn globs(patterns: &[String]) -> Vec<Glob> {
    patterns.iter().map(|text| Glob::new(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Transport;

    /// The caller of `SnapshotServer::new` reads the lists before the status. In between, the server's task may store
    /// the lists and set the status to up, so that the server is up but its lists are missing.
    #[test]
    fn a_server_without_lists_is_connecting() {
        let name = Arc::from("shop");
        let config = Arc::new(Server::new(Transport::Stdio {
            command: "shop".into(),
            args: Vec::new(),
            env: std::collections::BTreeMap::new(),
            cwd: None,
        }));
        let flags = |phase, why: Option<&str>| {
            let status =
                ServerStatus { reason: why.map(str::to_owned), ..ServerStatus::new(phase) };
            let server = SnapshotServer::new(&name, Arc::clone(&config), None, &status);
            (server.connecting, server.failed)
        };
        assert_eq!(flags(ServerPhase::Connecting, None), (true, false));
        assert_eq!(flags(ServerPhase::Up, None), (true, false));
        assert_eq!(flags(ServerPhase::Connecting, Some("it exited")), (true, true));
        assert_eq!(flags(ServerPhase::Down, Some("it exited")), (false, true));
    }
}
