//! What clients of one profile see.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use toolcrib_core::disclosure::{
    DisclosedTool, Disclosure, DisclosureKind, DisclosureSetting, OwnTool,
};
use toolcrib_core::policy::{
    ActivationMode, ActivationReason, Decision, Deferral, Glob, Verdict, VerdictReason,
};
use toolcrib_core::{Conversation, Crib, Ledger, Scope, ToolId, TurnContext};

use super::disclosure::instruction;
use super::own_tool::own_tool;
use super::{Snapshot, globs};
use crate::config::Profile;
use crate::json_hash::json_hash;

/// What clients of one profile see.
#[derive(Debug)]
pub(crate) struct ClientView {
    /// What answers them.
    pub(crate) crib: Arc<Crib>,
    /// The tools they may know of.
    pub(crate) scope: Scope,
    /// The servers they may know of.
    servers: BTreeSet<Arc<str>>,
    /// The list of tools for a session that has found none.
    pub(crate) list: Value,
    /// Whether some of their servers never answered.
    incomplete: bool,
    /// The names and prefixes of those.
    pub(crate) unlisted: Vec<String>,
    /// Whether clients that search tools themselves get everything in full.
    defers_to_clients: bool,
    /// The list_hash of the list with everything in full, once it is needed.
    full_list_hash: OnceLock<u64>,
    /// The tools that stand in the list by their own names.
    listed_tool: HashMap<String, ToolId>,
    /// For the model, about our tools; `None` where nothing is deferred.
    pub(crate) instruction: Option<String>,
    /// Whether tools are deferred, and why.
    pub(crate) decision: Decision,
    /// Tokens that the list is shorter than everything in full.
    pub(crate) saved: usize,
    /// Changes with what is listed, and only then.
    pub(crate) list_hashes: ListHashes,
}

/// One number for each list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListHashes {
    pub(crate) tools: u64,
    pub(crate) prompts: u64,
    pub(crate) resources: u64,
}

fn list_hash(list: &impl serde::Serialize) -> u64 {
    // Serializing a value cannot fail.
    let Ok(hash) = json_hash(list) else { return 0 };
    hash.as_bytes()[..8].iter().fold(0, |acc, byte| acc << 8 | u64::from(*byte))
}

impl ClientView {
    pub(super) fn build(snapshot: &Snapshot, crib: &Arc<Crib>, profile: Option<&Profile>) -> Self {
        let catalog = snapshot.crib.catalog();
        let (servers, allow, deny) = match profile {
            Some(profile) => (globs(&profile.servers), globs(&profile.allow), globs(&profile.deny)),
            None => Default::default(),
        };
        let has_server =
            |name: &str| servers.is_empty() || servers.iter().any(|glob| glob.is(name));
        let ids = catalog.ids().filter(|id| {
            let tool = catalog.tool(*id);
            // By the name clients use, by `server/tool`, and by the server's own name for it.
            let own = tool.declared_name();
            let among =
                |globs: &[Glob]| globs.iter().any(|glob| glob.matches(tool) || glob.is(&own));
            has_server(tool.server().unwrap_or_default())
                && (allow.is_empty() || among(&allow))
                && !among(&deny)
        });
        let scope = Scope::of(catalog, ids);
        let servers: BTreeSet<Arc<str>> = snapshot
            .servers()
            .filter(|name| has_server(name) && is_server_visible(snapshot, profile, &scope, name))
            .map(Arc::clone)
            .collect();
        // What other servers do says nothing here, not even by the length of the list.
        let complete = snapshot.is_complete_of(|name| servers.contains(name));
        // Whether deferring is worth it shows when all is known; until then the short list stands.
        let turn = TurnContext { incomplete: !complete, ..TurnContext::new(&scope) };
        let shown = crib.disclose(&turn, &mut Conversation::new());
        let waits = awaits_servers(crib, &shown, !complete);
        let listed = listed(crib, &shown, waits);
        let listed_tool = shown
            .tools
            .iter()
            .filter(|tool| matches!(tool.verdict, Verdict::Full(_)))
            .map(|tool| (catalog.tool(tool.id).name().to_owned(), tool.id))
            .collect();
        if complete && let Some(left_out) = snapshot.log.admit() {
            let (tools, reason) = (shown.tools.len(), shown.decision.reason);
            let defers = !shown.passes_through();
            tracing::info!(
                tools,
                defers,
                disclosure = DisclosureSetting::from(shown.kind).name(),
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
        Self {
            list_hashes,
            listed_tool,
            list: json!({ "tools": listed }),
            instruction: (waits || !shown.passes_through()).then(|| instruction(crib)),
            decision: shown.decision,
            incomplete: !complete,
            unlisted: snapshot.unlisted(|name| servers.contains(name)),
            defers_to_clients: snapshot.config.gateway.defer_to_clients,
            full_list_hash: OnceLock::new(),
            crib: Arc::clone(crib),
            saved: shown.tokens_before.saturating_sub(shown.tokens_after),
            scope,
            servers,
        }
    }

    /// A turn of its clients.
    pub(crate) fn turn(&self) -> TurnContext<'_> {
        TurnContext { unlisted: &self.unlisted, ..TurnContext::new(&self.scope) }
    }

    /// Whether a session gets everything in full. `searches` says whether its client searches tools itself.
    pub(crate) fn gets_full_list(&self, searches: bool) -> bool {
        searches && self.defers_to_clients
    }

    /// The list with everything in full. It is made when it is requested: few clients do, and it is as large as
    /// the catalog.
    pub(crate) fn full_list(&self) -> Value {
        let catalog = self.crib.catalog();
        let value = |id| serde_json::from_str(&catalog.tool(id).shown_definition()).ok();
        let tools: Vec<Value> = self.scope.ids().filter_map(value).collect();
        json!({ "tools": tools })
    }

    /// Changes with the list with everything in full, and only then.
    pub(crate) fn full_list_hash(&self) -> u64 {
        *self.full_list_hash.get_or_init(|| list_hash(&self.full_list()["tools"]))
    }

    /// Whether a session that was sent this list goes on deferring when its tools become fewer.
    pub(crate) fn keeps_deferring(&self) -> bool {
        self.crib.settings().activation.sticky
            && self.decision.deferral == Deferral::Everything
            && self.decision.reason != ActivationReason::Incomplete
    }

    /// Whether a session with this ledger gets the same list as one that has found nothing.
    fn is_plain(&self, found: &Ledger) -> bool {
        found.is_empty() && (!found.deferred() || self.decision.deferral == Deferral::Everything)
    }

    /// Whether the tools that a session finds are added to its list. The bridge works without that, so for it
    /// the config decides, with `add_found`.
    pub(crate) fn adds_found(&self, add_found: bool) -> bool {
        let settings = self.crib.settings();
        match settings.disclosure_kind() {
            DisclosureKind::Bridge => add_found,
            DisclosureKind::Reveal | DisclosureKind::Append => settings.reveals,
            DisclosureKind::Terse => false,
        }
    }

    /// The list of a session that has found some tools. It depends on nothing else, so sessions that found the
    /// same have the same list.
    pub(crate) fn list_with(&self, found: &Ledger) -> Value {
        if self.is_plain(found) {
            return self.list.clone();
        }
        let (crib, catalog) = (&self.crib, self.crib.catalog());
        if crib.settings().disclosure_kind() != DisclosureKind::Bridge {
            let turn = TurnContext { incomplete: self.incomplete, ..TurnContext::new(&self.scope) };
            let shown = crib.disclose(&turn, &mut Conversation::with_ledger(found.clone()));
            let waits = awaits_servers(crib, &shown, self.incomplete);
            return json!({ "tools": listed(crib, &shown, waits) });
        }
        let mut list = self.list.clone();
        if let Some(tools) = list.get_mut("tools").and_then(Value::as_array_mut) {
            let names = found.reveals().map(|reveal| &*reveal.name);
            let added = names.filter(|name| self.listed_tool(name).is_none());
            let added = added.filter_map(|name| catalog.find(name));
            let added = added.filter(|id| self.scope.contains(*id));
            tools.extend(
                added.filter_map(|id| {
                    serde_json::from_str(&catalog.tool(id).shown_definition()).ok()
                }),
            );
        }
        list
    }

    /// Changes with the list of a session that has found these tools, and only then.
    pub(crate) fn list_hash_with(&self, found: &Ledger) -> u64 {
        if self.is_plain(found) {
            self.list_hashes.tools
        } else {
            list_hash(&self.list_with(found)["tools"])
        }
    }

    /// Whether its clients may know of a server.
    pub(crate) fn can_see_server(&self, server: &str) -> bool {
        self.servers.contains(server)
    }

    /// A tool that stands in the list by its own name.
    pub(crate) fn listed_tool(&self, name: &str) -> Option<ToolId> {
        self.listed_tool.get(name).copied()
    }
}

/// Whether nothing is deferred only because the servers that may have tools to defer have yet to answer.
fn awaits_servers(crib: &Crib, shown: &Disclosure, incomplete: bool) -> bool {
    incomplete && shown.passes_through() && crib.settings().activation.mode != ActivationMode::Off
}

/// The tools of a disclosure as MCP lists them: ours after the servers', and tools that were added last. While
/// servers are waited for, ours are listed already: they will be once the servers have answered.
fn listed(crib: &Crib, shown: &Disclosure, waits: bool) -> Vec<Value> {
    let (kind, form) = (shown.kind, crib.settings().search.format);
    let own: Cow<'_, [OwnTool]> =
        if waits { crib.own_tools().into() } else { shown.own_tools.as_slice().into() };
    let added = |tool: &&DisclosedTool| {
        kind == DisclosureKind::Append && tool.verdict == Verdict::Full(VerdictReason::Revealed)
    };
    let value = |tool: &DisclosedTool| serde_json::from_str(tool.definition.as_deref()?).ok();
    let first = shown.tools.iter().filter(|tool| !added(tool)).filter_map(value);
    let last = shown.tools.iter().filter(added).filter_map(value);
    first.chain(own.iter().filter_map(|own| own_tool(own, form))).chain(last).collect()
}

/// Whether a server that a profile does not leave out by name has anything in it. Where tools are picked
/// one by one, a server of which none was picked is not to be known of; of one that never answered, what
/// is said of it by name decides.
fn is_server_visible(
    snapshot: &Snapshot,
    profile: Option<&Profile>,
    scope: &Scope,
    server: &str,
) -> bool {
    let Some(profile) = profile else { return true };
    let names = |part: &str| part != "*" && Glob::new(part).is(server);
    let shut = |pattern: &String| pattern.strip_suffix("/*").is_some_and(names);
    if profile.deny.iter().any(shut) {
        return false;
    }
    if profile.allow.is_empty() {
        return true;
    }
    let catalog = snapshot.crib.catalog();
    if snapshot.has_answered(server) {
        return scope.ids().any(|id| catalog.tool(id).server() == Some(server));
    }
    profile.allow.iter().any(|pattern| pattern.split_once('/').is_some_and(|(part, _)| names(part)))
}
