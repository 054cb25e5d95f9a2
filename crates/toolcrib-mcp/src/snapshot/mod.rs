//! Everything clients can see, at one moment.
//!
//! A snapshot is made from what is known of all servers and never changes; another one takes its place.
//! What differs between clients is their profile, and for each profile a [`ClientView`] is worked out once.
//! So a list has the same bytes for everybody, however often it is asked for.

mod client_view;
mod disclosure;
mod entry_list;
mod list_warnings;
mod name_prefixes;
mod own_tool;
#[cfg(test)]
mod properties;
mod resource_owner;

pub(crate) use client_view::{ClientView, ListHashes};
pub(crate) use disclosure::{added_tools_hint, disclosure_warnings};
pub(crate) use entry_list::{EntryKind, EntryList};
pub(crate) use name_prefixes::strip_uri_prefix;
pub(crate) use resource_owner::ResourceOwner;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_core::policy::Glob;
use toolcrib_core::{Catalog, Crib, DeferPolicy, IngestedTools, Origin, TokenCounter, ingest};

use crate::config::{Config, Server};
use crate::log_limit::LogLimit;
use crate::upstream::{Definitions, ServerLists, ServerPhase, ServerStatus};
use list_warnings::{ListWarnings, ListWarningsBuilder};
use name_prefixes::{Prefixes, prefix};

/// One server, as far as the snapshot is concerned.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotServer {
    pub(crate) name: Arc<str>,
    pub(crate) config: Arc<Server>,
    /// What is known of it; `None` as long as it never answered.
    pub(crate) known: Option<Arc<ServerLists>>,
    /// Whether it never answered and is being connected to.
    pub(crate) connecting: bool,
    /// Whether it never answered and failed at least once.
    pub(crate) failed: bool,
}

impl SnapshotServer {
    /// A server with what is known of it. The server's task stores its lists and then sets its status to up;
    /// the caller reads the lists and then the status, so it may see "up" without lists. Such a server counts
    /// as connecting, since its tools cannot be found yet.
    pub(crate) fn new(
        name: &Arc<str>,
        config: Arc<Server>,
        known: Option<Arc<ServerLists>>,
        status: &ServerStatus,
    ) -> Self {
        let unknown = known.is_none();
        Self {
            name: Arc::clone(name),
            config,
            known,
            connecting: unknown
                && matches!(status.phase, ServerPhase::Connecting | ServerPhase::Up),
            failed: unknown && status.reason.is_some(),
        }
    }
}

/// Whether a request belongs to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SessionKind {
    /// With a handshake: a session, in which tools can be revealed.
    Stateful,
    /// Every request stands alone.
    Stateless,
}

/// A profile, and the protocol of the requests that name it.
type ViewKey = (Option<String>, SessionKind);

/// Everything clients can see.
pub(crate) struct Snapshot {
    pub(crate) crib: Arc<Crib>,
    /// What requests without a session are answered with; the same crib unless that one needs sessions.
    stateless: Arc<Crib>,
    pub(crate) prompts: EntryList,
    pub(crate) resources: EntryList,
    pub(crate) templates: EntryList,
    /// What of a server's tools was left out for want of room.
    pub(crate) notes: HashMap<Arc<str>, String>,
    /// What is to be logged about the lists.
    pub(crate) findings: ListWarnings,
    /// Limits the log lines about views, across all shelves.
    log: Arc<LogLimit>,
    servers: Vec<SnapshotServer>,
    config: Arc<Config>,
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
    /// A snapshot of what is known now.
    pub(crate) fn build(
        before: Option<&Self>,
        config: &Arc<Config>,
        servers: Vec<SnapshotServer>,
        counter: &Arc<dyn TokenCounter>,
    ) -> Self {
        let mut catalog =
            before.map_or_else(Catalog::builder, |before| before.crib.catalog().next());
        let prefixes = Prefixes::of(&servers);
        let mut notes = HashMap::new();
        let mut findings = ListWarningsBuilder::after(before.map(|before| &before.findings));
        let all: Vec<IngestedTools> = servers.iter().map(|server| tools(server, config)).collect();
        let counts: Vec<usize> = all.iter().map(|ingested| ingested.tools.len()).collect();
        let limit = config.gateway.limits.tools;
        for ((server, mut ingested), share) in servers.iter().zip(all).zip(shares(&counts, limit)) {
            if let Some(note) = truncate(&mut ingested, share, limit) {
                findings.add(&server.name, &note);
                notes.insert(Arc::clone(&server.name), note);
            }
            let ingested = prefixes.rename_tools(prefix(server), ingested);
            for finding in &ingested.findings {
                findings.add(&server.name, &finding.to_string());
            }
            catalog.add(ingested);
        }
        let settings = disclosure::settings(config);
        let without_sessions = disclosure::without_sessions(&settings);
        let mut entries = |pick: fn(&ServerLists) -> &Definitions, kind: EntryKind| {
            let lists =
                servers.iter().filter_map(|server| Some((server, pick(server.known.as_deref()?))));
            EntryList::of(kind, &prefixes, lists, &mut findings)
        };
        let crib = Arc::new(match before {
            Some(before) => before.crib.next(catalog.build(), settings),
            None => Crib::new(catalog.build(), settings).with_counter(Arc::clone(counter)),
        });
        let stateless = without_sessions
            .map_or_else(|| Arc::clone(&crib), |settings| Arc::new(crib.with_settings(settings)));
        let prompts = entries(|known| &known.prompts, EntryKind::Prompts);
        let resources = entries(|known| &known.resources, EntryKind::Resources);
        let templates = entries(|known| &known.templates, EntryKind::Templates);
        Self {
            prompts,
            resources,
            templates,
            findings: findings.finish(),
            log: before.map(|before| Arc::clone(&before.log)).unwrap_or_default(),
            crib,
            stateless,
            notes,
            servers,
            config: Arc::clone(config),
            views: Mutex::default(),
        }
    }

    /// Whether another snapshot would show the same.
    pub(crate) fn is_built_from(&self, config: &Arc<Config>, servers: &[SnapshotServer]) -> bool {
        let same = |(a, b): (&SnapshotServer, &SnapshotServer)| {
            let known = match (&a.known, &b.known) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (None, None) => true,
                _ => false,
            };
            let stands = |server: &SnapshotServer| (server.connecting, server.failed);
            known && a.name == b.name && a.config == b.config && stands(a) == stands(b)
        };
        Arc::ptr_eq(&self.config, config)
            && self.servers.len() == servers.len()
            && self.servers.iter().zip(servers).all(same)
    }

    /// Whether every one of these servers that is to be used has answered, now or in an earlier run.
    fn is_complete_of(&self, of: impl Fn(&str) -> bool) -> bool {
        let mut of = self.servers.iter().filter(|server| of(&server.name));
        of.all(|server| server.known.is_some())
    }

    /// Which of some servers an address belongs to that does not name its server.
    pub(crate) fn resource_owner(&self, uri: &str, of: impl Fn(&str) -> bool) -> ResourceOwner {
        let owner = resource_owner::resource_owner(uri, &self.resources, &self.templates, &of);
        if owner != ResourceOwner::Nobody || !self.is_complete_of(&of) {
            return owner;
        }
        // Only one of them has resources at all, and so it can only be an address of that one.
        let all = self.resources.iter().chain(self.templates.iter());
        let mut servers: Vec<_> =
            all.map(|entry| &entry.server).filter(|server| of(server)).collect();
        servers.dedup();
        match servers[..] {
            [only] => ResourceOwner::One(Arc::clone(only)),
            _ => ResourceOwner::Nobody,
        }
    }

    /// The names and prefixes of those of these servers that never answered.
    fn unlisted(&self, of: impl Fn(&str) -> bool) -> Vec<String> {
        let silent = self.servers.iter().filter(|server| server.known.is_none());
        let silent = silent.filter(|server| of(&server.name));
        silent.flat_map(|server| [prefix(server), &server.name]).map(str::to_owned).collect()
    }

    /// Whether a server has ever answered.
    pub(crate) fn has_answered(&self, name: &str) -> bool {
        self.servers.iter().any(|server| *server.name == *name && server.known.is_some())
    }

    /// The servers that never answered so far and still may, in the order of their names.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = &Arc<str>> {
        self.servers
            .iter()
            .filter(|server| server.connecting && !server.failed)
            .map(|server| &server.name)
    }

    /// The names of all servers that are used.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Arc<str>> {
        self.servers.iter().filter(|server| server.config.enabled).map(|server| &server.name)
    }

    /// What clients of a profile see; `None` for a profile that is not in the config.
    pub(crate) fn view(
        &self,
        profile: Option<&str>,
        protocol: SessionKind,
    ) -> Option<Arc<ClientView>> {
        let crib = match protocol {
            SessionKind::Stateful => &self.crib,
            SessionKind::Stateless => &self.stateless,
        };
        // One view serves both where they are answered alike.
        let alike = Arc::ptr_eq(crib, &self.crib);
        let protocol = if alike { SessionKind::Stateful } else { protocol };
        let profile = profile.or(self.config.gateway.profile.as_deref()).map(str::to_owned);
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        // Profiles come from the config, so there are few; names that are not there are not kept.
        let key = (profile, protocol);
        if let Some(view) = views.get(&key) {
            return Some(Arc::clone(view));
        }
        let narrowed = match &key.0 {
            Some(name) => Some(self.config.profiles.get(name)?),
            None => None,
        };
        let view = Arc::new(ClientView::build(self, crib, narrowed));
        views.insert(key, Arc::clone(&view));
        Some(view)
    }
}

/// The tools of one server, as far as its config lets them in.
fn tools(server: &SnapshotServer, config: &Config) -> IngestedTools {
    let Some(known) = &server.known else { return IngestedTools::default() };
    let list = format!("{{\"tools\":{}}}", known.tools.json());
    let origin = Origin::Server(&server.name);
    let Ok(mut ingested) = ingest(list.as_bytes(), origin, &config.settings.limits) else {
        return IngestedTools::default();
    };
    let server = &server.config;
    let (allow, deny, load) =
        (globs(&server.allow), globs(&server.deny), globs(&server.always_load));
    ingested.tools.retain(|tool| {
        let among = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(tool));
        (allow.is_empty() || among(&allow)) && !among(&deny)
    });
    ingested.tools = ingested
        .tools
        .into_iter()
        .map(|tool| {
            let always = load.iter().any(|glob| glob.matches(&tool));
            match if always { Some(DeferPolicy::Never) } else { server.defer } {
                Some(defer) => tool.with_defer(defer),
                None => tool,
            }
        })
        .collect();
    ingested
}

/// How many tools each server may have, of those it lists: all of them if there is room, else at least an equal
/// share, so that no server can crowd out another.
fn shares(counts: &[usize], limit: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    // What the division leaves over goes to those with the most tools, and among equals to the first in order.
    order.sort_by_key(|at| (counts[*at], std::cmp::Reverse(*at)));
    let (mut room, mut shares) = (limit, vec![0; counts.len()]);
    for (before, at) in order.into_iter().enumerate() {
        shares[at] = counts[at].min(room / (counts.len() - before));
        room -= shares[at];
    }
    shares
}

/// Keeps so many tools, and says so if some are left out.
fn truncate(ingested: &mut IngestedTools, share: usize, limit: usize) -> Option<String> {
    let all = ingested.tools.len();
    ingested.tools.truncate(share);
    (all > share).then(|| {
        format!("{share} of its {all} tools are used: all servers together may have {limit}")
    })
}

fn globs(patterns: &[String]) -> Vec<Glob> {
    patterns.iter().map(|text| Glob::new(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Transport;

    #[test]
    fn no_server_crowds_out_another() {
        assert_eq!(shares(&[2, 3], 5), [2, 3]);
        assert_eq!(shares(&[7, 7], 13), [7, 6]);
        assert_eq!(shares(&[1_000, 3, 2_000], 10), [3, 3, 4]);
        assert_eq!(shares(&[5, 1, 1], 1), [1, 0, 0]);
        assert_eq!(shares(&[], 3), [0; 0]);
    }

    /// Its task may store the lists and set the status to up between the two reads that `SnapshotServer::new` is
    /// given.
    #[test]
    fn a_server_whose_lists_are_not_known_yet_is_connecting() {
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
