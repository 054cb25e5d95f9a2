//! A snapshot as the clients of one profile see it: their list of tools, and what depends on the list.
//!
//! `visibility.rs` decides which tools and servers the clients may see.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use toolcrib_core::disclosure::{
    DisclosedTool, Disclosure, DisclosureKind, DisclosureSetting, OwnTool,
};
use toolcrib_core::policy::{
    ActivationMode, ActivationReason, Decision, Deferral, Verdict, VerdictReason,
};
use toolcrib_core::{Conversation, Crib, Ledger, Scope, ToolId, TurnContext};

use super::client_tool_search::{ClientToolSearch, ListDecision};
use super::listed_definition::listed_definition;
use super::mcp_disclosure::instruction;
use super::own_tool::own_tool_definition;
use super::visibility::Visibility;
use super::{SessionKind, Snapshot};
use crate::config::{DeferToClients, Profile};
use crate::json_hash::json_hash;

/// A snapshot as the clients of one profile see it.
#[derive(Debug)]
pub(crate) struct ClientView {
    /// Answers the clients' searches and calls.
    pub(crate) crib: Arc<Crib>,
    /// The tools that the clients may see.
    pub(crate) scope: Scope,
    /// The servers that the clients may see.
    servers: BTreeSet<Arc<str>>,
    /// The result of `tools/list` for a session that has found no tools yet.
    pub(crate) list: Value,
    /// Whether some of the visible servers have never answered.
    is_incomplete: bool,
    /// The names and prefixes of the visible servers that have never answered.
    pub(crate) unlisted: Vec<String>,
    /// Which clients that have their own tool search get all definitions in full.
    defer_to_clients: DeferToClients,
    /// The hash of the list with all definitions in full, computed on first use.
    full_list_hash: OnceLock<u64>,
    /// The tools whose full definition is in the list, by name.
    listed_tools: HashMap<String, ToolId>,
    /// The visible tools that have a user interface.
    app_tools: Vec<ToolId>,
    /// Instructions for the model about our tools, or `None` if nothing is deferred.
    pub(crate) instruction: Option<String>,
    /// Whether tools are deferred, and why.
    pub(crate) decision: Decision,
    /// How many tokens fewer the list has than all definitions in full.
    pub(crate) saved_tokens: usize,
    /// The hashes of the lists. Each hash changes if and only if its list changes.
    pub(crate) list_hashes: ListHashes,
}

/// The hashes of a view's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListHashes {
    pub(crate) tools: u64,
    pub(crate) prompts: u64,
    pub(crate) resources: u64,
}

fn list_hash(list: &impl serde::Serialize) -> u64 {
    // Serializing a JSON value cannot fail.
    let Ok(hash) = json_hash(list) else { return 0 };
    hash.as_bytes()[..8].iter().fold(0, |acc, byte| acc << 8 | u64::from(*byte))
}

impl ClientView {
    pub(super) fn build(snapshot: &Snapshot, crib: &Arc<Crib>, profile: Option<&Profile>) -> Self {
        let catalog = snapshot.crib.catalog();
        let Visibility { tools: scope, servers } = Visibility::of_profile(snapshot, profile);
        // Servers that the clients cannot see are ignored, because clients must not learn about them, not even from the
        // length of the tool list.
        let is_complete = snapshot.have_all_settled(|name| servers.contains(name));
        // Whether deferring is worthwhile is known only when all servers have answered. Until then, tools are deferred.
        // Servers that have failed and never worked are the exception: they may never work, and the other servers may
        // have only a few tools.
        let turn = TurnContext::new(&scope).with_incomplete(!is_complete);
        let disclosure = crib.disclose(&turn, &mut Conversation::new());
        let disclosure = without_search_loss(crib, &turn, &disclosure).unwrap_or(disclosure);
        let awaits_servers = awaits_servers(crib, &disclosure, !is_complete);
        let listed = list_definitions(crib, &disclosure, awaits_servers);
        let listed_tools = disclosure
            .tools
            .iter()
            .filter(|tool| matches!(tool.verdict, Verdict::Full(_)))
            .map(|tool| (catalog.tool(tool.id).name().to_owned(), tool.id))
            .collect();
        if is_complete && let Some(left_out) = snapshot.log.admit() {
            let (tools, reason) = (disclosure.tools.len(), disclosure.decision.reason);
            let defers = !disclosure.passes_through();
            tracing::info!(
                tools,
                defers,
                disclosure = DisclosureSetting::from(disclosure.kind).name(),
                left_out = (left_out > 0).then_some(left_out),
                "{reason}"
            );
        }
        let can_see = |server: &str| servers.contains(server);
        let list_hashes = ListHashes {
            tools: list_hash(&listed),
            prompts: list_hash(&snapshot.prompts.list(can_see)),
            resources: list_hash(&(
                snapshot.resources.list(can_see),
                snapshot.templates.list(can_see),
            )),
        };
        let app_tools = scope.ids().filter(|id| catalog.tool(*id).app_uri().is_some()).collect();
        Self {
            app_tools,
            list_hashes,
            listed_tools,
            list: json!({ "tools": listed }),
            instruction: (awaits_servers || !disclosure.passes_through())
                .then(|| instruction(crib)),
            decision: disclosure.decision,
            is_incomplete: !is_complete,
            unlisted: snapshot.unlisted(|name| servers.contains(name)),
            defer_to_clients: snapshot.config.gateway.defer_to_clients,
            full_list_hash: OnceLock::new(),
            crib: Arc::clone(crib),
            saved_tokens: disclosure.tokens_before.saturating_sub(disclosure.tokens_after),
            scope,
            servers,
        }
    }

    /// Creates the context of a turn of a client that has this view.
    pub(crate) fn turn(&self) -> TurnContext<'_> {
        TurnContext::new(&self.scope).with_unlisted(&self.unlisted)
    }

    /// Decides whether a client gets all definitions in full.
    pub(crate) fn list_decision(
        &self,
        search: ClientToolSearch,
        session: SessionKind,
    ) -> ListDecision {
        ListDecision::of(self.defer_to_clients, search, session)
    }

    /// Builds the list with all definitions in full. The list is not stored, because few clients request it and it is
    /// as large as the catalog.
    pub(crate) fn full_list(&self) -> Value {
        let catalog = self.crib.catalog();
        let value = |id| listed_definition(&catalog.tool(id).shown_definition());
        let tools: Vec<Value> = self.scope.ids().filter_map(value).collect();
        json!({ "tools": tools })
    }

    /// Returns the hash of the list with all definitions in full.
    pub(crate) fn full_list_hash(&self) -> u64 {
        *self.full_list_hash.get_or_init(|| list_hash(&self.full_list()["tools"]))
    }

    /// Whether a session that was sent this list keeps deferring tools even if there are fewer tools later.
    pub(crate) fn keeps_deferring(&self) -> bool {
        self.crib.settings().activation.sticky
            && self.decision.deferral == Deferral::Everything
            && self.decision.reason != ActivationReason::Incomplete
    }

    /// Whether a session with this ledger gets the same list as a session that has found no tools.
    fn has_default_list(&self, found: &Ledger) -> bool {
        found.is_empty() && (!found.deferred() || self.decision.deferral == Deferral::Everything)
    }

    /// Whether the tools that a session finds are added to its list. The bridge disclosure works without adding them,
    /// so there the setting `add_found` decides.
    pub(crate) fn adds_found_tools(&self, add_found: bool) -> bool {
        let settings = self.crib.settings();
        match settings.disclosure_kind() {
            DisclosureKind::Bridge => add_found,
            DisclosureKind::Reveal | DisclosureKind::Append => settings.reveals,
            DisclosureKind::Terse => false,
        }
    }

    /// Returns the list of a session that has found these tools. `shows_apps` is whether its client shows the user
    /// interfaces of tools. The list depends on nothing else, so sessions that found the same tools have the same list.
    pub(crate) fn list_with(&self, found: &Ledger, shows_apps: bool) -> Value {
        let mut list = self.list_with_found(found);
        if shows_apps {
            self.add_app_tools(&mut list);
        }
        list
    }

    /// Adds the tools that have a user interface and are not in the list. A host looks there for the interface of a
    /// tool, and for the tools that an interface calls.
    fn add_app_tools(&self, list: &mut Value) {
        let Some(tools) = list.get_mut("tools").and_then(Value::as_array_mut) else { return };
        let catalog = self.crib.catalog();
        let listed: BTreeSet<String> =
            tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
        let missing = self.app_tools.iter().map(|id| catalog.tool(*id));
        let missing = missing.filter(|tool| !listed.contains(tool.name()));
        tools.extend(missing.filter_map(|tool| listed_definition(&tool.shown_definition())));
    }

    fn list_with_found(&self, found: &Ledger) -> Value {
        if self.has_default_list(found) {
            return self.list.clone();
        }
        let (crib, catalog) = (&self.crib, self.crib.catalog());
        if crib.settings().disclosure_kind() != DisclosureKind::Bridge {
            let turn = TurnContext::new(&self.scope).with_incomplete(self.is_incomplete);
            let disclosure = crib.disclose(&turn, &mut Conversation::with_ledger(found.clone()));
            let awaits_servers = awaits_servers(crib, &disclosure, self.is_incomplete);
            return json!({ "tools": list_definitions(crib, &disclosure, awaits_servers) });
        }
        let mut list = self.list.clone();
        if let Some(tools) = list.get_mut("tools").and_then(Value::as_array_mut) {
            let names = found.reveals().map(|reveal| &*reveal.name);
            let added = names.filter(|name| self.listed_tool(name).is_none());
            let added = added.filter_map(|name| catalog.find(name));
            let added = added.filter(|id| self.scope.contains(*id));
            tools.extend(
                added.filter_map(|id| listed_definition(&catalog.tool(id).shown_definition())),
            );
        }
        list
    }

    /// Returns the hash of the list of a session that has found these tools.
    pub(crate) fn list_hash_with(&self, found: &Ledger, shows_apps: bool) -> u64 {
        let adds_apps = shows_apps && !self.app_tools.is_empty();
        if self.has_default_list(found) && !adds_apps {
            self.list_hashes.tools
        } else {
            list_hash(&self.list_with(found, shows_apps)["tools"])
        }
    }

    /// Whether the clients may see a server.
    pub(crate) fn can_see_server(&self, server: &str) -> bool {
        self.servers.contains(server)
    }

    /// Returns the tool with this name, if its full definition is in the list.
    pub(crate) fn listed_tool(&self, name: &str) -> Option<ToolId> {
        self.listed_tools.get(name).copied()
    }
}

/// Returns the disclosure in which nothing is deferred, if a turn with one search would not take fewer tokens. The
/// proxy decides in the same way.
fn without_search_loss(
    crib: &Crib,
    turn: &TurnContext<'_>,
    disclosure: &Disclosure,
) -> Option<Arc<Disclosure>> {
    let decision = crib.decide_with_search(disclosure);
    if decision == disclosure.decision {
        return None;
    }
    let mut settings = crib.settings().clone();
    settings.activation.mode = ActivationMode::Off;
    let off = crib.with_settings(settings).disclose(turn, &mut Conversation::new());
    let mut passed_through = (*off).clone();
    passed_through.decision = decision;
    Some(Arc::new(passed_through))
}

/// Whether nothing is deferred yet, but some servers have not answered, and their tools may have to be deferred.
fn awaits_servers(crib: &Crib, disclosure: &Disclosure, is_incomplete: bool) -> bool {
    is_incomplete
        && disclosure.passes_through()
        && crib.settings().activation.mode != ActivationMode::Off
}

/// Returns the tools of a disclosure as MCP lists them: the servers' tools, then our own, then the tools that were
/// added. If `awaits_servers` is set, our own tools are listed although nothing is deferred yet, because they may be
/// needed once all servers have answered.
fn list_definitions(crib: &Crib, disclosure: &Disclosure, awaits_servers: bool) -> Vec<Value> {
    let (kind, format) = (disclosure.kind, crib.settings().search.format);
    let own_tools: Cow<'_, [OwnTool]> = if awaits_servers {
        crib.own_tools().into()
    } else {
        disclosure.own_tools.as_slice().into()
    };
    let is_added = |tool: &&DisclosedTool| {
        kind == DisclosureKind::Append && tool.verdict == Verdict::Full(VerdictReason::Revealed)
    };
    let value = |tool: &DisclosedTool| listed_definition(tool.definition.as_deref()?);
    let unadded = disclosure.tools.iter().filter(|tool| !is_added(tool)).filter_map(value);
    let added = disclosure.tools.iter().filter(is_added).filter_map(value);
    unadded
        .chain(own_tools.iter().filter_map(|tool| own_tool_definition(tool, format)))
        .chain(added)
        .collect()
}
