//! Computes a disclosure: verdicts, replacements for deferred tools, and announcements.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashSet, FxHasher};

use super::own_tools;
use crate::catalog::ToolId;
use crate::conversation::{Conversation, FrozenListing, Ledger, ListingMessage};
use crate::crib::Crib;
use crate::disclosure::{DisclosedTool, Disclosure, DisclosureKind, OwnTool};
use crate::listing::{Listing, ListingPlacement};
use crate::policy::{
    ActivationInputs, ActivationReason, Decision, Deferral, Verdict, VerdictInputs, VerdictReason,
    verdict,
};
use crate::tool::{DeferPolicy, DefinitionFormat};
use crate::turn_context::TurnContext;
use toolcrib_text::json::{compact, data};

/// Maximum number of names in one announcement.
const MAX_ANNOUNCED: usize = 50;

impl Crib {
    /// Our own tools without a listing, for callers that must show these tools before it is known which tools are
    /// deferred.
    pub fn own_tools(&self) -> Vec<OwnTool> {
        own_tools::tools(self.settings(), None)
    }

    /// The instruction for the tools that [`own_tools`](Self::own_tools) returns. Its wording is correct whether or not
    /// any tool turns out to be deferred.
    pub fn own_instruction(&self) -> String {
        let instruction = own_tools::instruction(self.settings(), None, None);
        format!("If you have the tool `{}`: {instruction}", self.settings().own_names.search)
    }

    /// Computes what the model sees in this turn.
    pub fn disclose(
        &self,
        turn: &TurnContext<'_>,
        conversation: &mut Conversation,
    ) -> Arc<Disclosure> {
        let turn = &self.checked_turn(turn);
        let key = self.key(turn, conversation);
        if let Some((same, last)) = &conversation.last
            && *same == key
        {
            return Arc::clone(last);
        }
        let disclosure = Arc::new(self.compose(turn, conversation));
        // Once this flag is set, later turns may go on deferring every tool that may be deferred. So the flag is not
        // set if only tools with the policy `always` are deferred: otherwise, the other tools could be deferred later
        // without need.
        if disclosure.decision.deferral == Deferral::Everything {
            conversation.ledger.set_deferred();
        }
        // An announcement is sent only once, so the disclosure is stored for later turns without it.
        let repeat = if disclosure.announcement.is_some() {
            Arc::new(Disclosure { announcement: None, ..(*disclosure).clone() })
        } else {
            Arc::clone(&disclosure)
        };
        conversation.last = Some((self.key(turn, conversation), repeat));
        disclosure
    }

    /// A hash of everything that a disclosure depends on.
    fn key(&self, turn: &TurnContext<'_>, conversation: &Conversation) -> u64 {
        let mut hasher = FxHasher::default();
        (self.fingerprint(), turn.scope, turn.context_window, turn.model).hash(&mut hasher);
        (turn.connecting.is_empty(), turn.incomplete, turn.search_allowed).hash(&mut hasher);
        conversation.ledger.deferred().hash(&mut hasher);
        // Unless the settings show revealed tools in full, a disclosure does not depend on which tools were revealed.
        let shows_revealed = self.settings().shows_revealed();
        for reveal in conversation.ledger.reveals().filter(|_| shows_revealed) {
            (&reveal.name, reveal.fingerprint).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn compose(&self, turn: &TurnContext<'_>, conversation: &mut Conversation) -> Disclosure {
        let kind = self.settings().disclosure_kind();
        let policies: Vec<(ToolId, DeferPolicy)> =
            turn.scope.ids().map(|id| (id, self.policy(id))).collect();
        let deferrable = || policies.iter().filter(|(_, defer)| *defer != DeferPolicy::Never);
        let sizes = self.definition_tokens();
        let tokens_before = policies.iter().map(|(id, _)| sizes[id.index()]).sum();
        let mut inputs = ActivationInputs {
            tools: policies.len(),
            deferrable: deferrable().count(),
            always: policies.iter().filter(|(_, defer)| *defer == DeferPolicy::Always).count(),
            deferrable_tokens: deferrable().map(|(id, _)| sizes[id.index()]).sum(),
            replacement_tokens: 0,
            context_window: turn.context_window,
            connecting: !turn.connecting.is_empty(),
            incomplete: turn.incomplete,
            search_allowed: turn.search_allowed,
            deferred_before: conversation.ledger.deferred(),
        };
        let activation = &self.settings().activation;
        // Computing what would replace the deferred tools is expensive. So a first decision ignores its cost, and the
        // cost is computed only if it can change that decision.
        let mut decision = activation.decide(&inputs);
        if matches!(
            decision.reason,
            ActivationReason::Count { .. } | ActivationReason::Tokens { .. }
        ) {
            let fresh = self.replace(turn, kind, decision, &Ledger::new(0), None);
            inputs.replacement_tokens = self.count(&fresh);
            decision = activation.decide(&inputs);
        }
        if decision.deferral == Deferral::Nothing {
            let was_sent = conversation.listing_message == ListingMessage::Sent;
            let announcement = was_sent.then(|| own_tools::WITHDRAWN.to_owned());
            if was_sent {
                (conversation.listing_message, conversation.frozen) =
                    (ListingMessage::Withdrawn, None);
            }
            let disclosure = self.pass_through(turn, decision, tokens_before);
            return Disclosure { announcement, ..disclosure };
        }
        let is_current = |frozen: &FrozenListing| {
            self.settings().listing.placement != ListingPlacement::Fresh
                && frozen.deferral == decision.deferral
                && self.lists_only_visible_tools(frozen, turn)
        };
        conversation.frozen = conversation.frozen.take().filter(is_current);
        let frozen = conversation.frozen.as_ref();
        let mut parts = self.replace(turn, kind, decision, &conversation.ledger, frozen);
        let announcement = self.freeze(&parts, decision.deferral, conversation);
        let replaced = self.count(&parts);
        let full: usize = parts.full().map(|id| sizes[id.index()]).sum();
        Disclosure {
            decision,
            kind,
            tokens_after: replaced + full,
            tools: std::mem::take(&mut parts.tools),
            own_tools: parts.own_tools,
            instruction: Some(parts.instruction),
            listing: parts.listing,
            announcement,
            tokens_before,
        }
    }

    fn pass_through(
        &self,
        turn: &TurnContext<'_>,
        decision: Decision,
        tokens: usize,
    ) -> Disclosure {
        let tools = turn.scope.ids().map(|id| {
            let tool = self.catalog().tool(id);
            let inputs = VerdictInputs { in_scope: true, decision, revealed: false };
            let verdict = verdict(tool, &self.settings().rules, inputs);
            DisclosedTool { id, definition: Some(tool.shown_definition().into_owned()), verdict }
        });
        Disclosure {
            decision,
            kind: self.settings().disclosure_kind(),
            tools: tools.collect(),
            own_tools: Vec::new(),
            instruction: None,
            listing: None,
            announcement: None,
            tokens_before: tokens,
            tokens_after: tokens,
        }
    }

    /// Computes what is sent in place of the deferred tools.
    fn replace(
        &self,
        turn: &TurnContext<'_>,
        kind: DisclosureKind,
        decision: Decision,
        ledger: &Ledger,
        frozen: Option<&FrozenListing>,
    ) -> DisclosureParts {
        let catalog = self.catalog();
        let revealed: Vec<ToolId> = ledger
            .reveals()
            .filter(|_| self.settings().shows_revealed())
            .filter_map(|reveal| catalog.find(&reveal.name))
            .filter(|id| ledger.has(catalog.tool(*id)))
            .collect();
        let revealed = self.within_bounds(revealed);
        let is_revealed: FxHashSet<ToolId> = revealed.iter().copied().collect();
        let mut shown = Vec::with_capacity(turn.scope.len());
        let mut listed = Vec::new();
        for id in turn.scope.ids() {
            let tool = catalog.tool(id);
            let inputs =
                VerdictInputs { in_scope: true, decision, revealed: is_revealed.contains(&id) };
            let verdict = verdict(tool, &self.settings().rules, inputs);
            let definition = match (&verdict, kind) {
                // Unreachable, because the loop visits only tools in scope.
                (Verdict::Hidden, _) => continue,
                (Verdict::Full(_), _) => Some(tool.shown_definition().into_owned()),
                (Verdict::Deferred(_), DisclosureKind::Reveal) => {
                    let stub = self.settings().stub.schema(tool, self.settings().own_names);
                    Some(tool.definition_with(Some(&stub), None))
                }
                (Verdict::Deferred(_), DisclosureKind::Terse) => {
                    Some(tool.definition_with(None, Some(&self.settings().mark)))
                }
                (Verdict::Deferred(_), DisclosureKind::Bridge | DisclosureKind::Append) => None,
            };
            // A loaded tool stays in the listing, because its schema can disappear from the conversation and its name
            // must remain known.
            let loaded = verdict == Verdict::Full(VerdictReason::Revealed);
            if definition.is_none() || (kind == DisclosureKind::Append && loaded) {
                listed.push(id);
            }
            shown.push(DisclosedTool { id, definition, verdict });
        }
        if kind == DisclosureKind::Append {
            let place = |shown: &DisclosedTool| {
                let loaded = shown.verdict == Verdict::Full(VerdictReason::Revealed);
                let at = revealed.iter().position(|known| *known == shown.id);
                at.filter(|_| loaded).map_or(0, |at| at + 1)
            };
            shown.sort_by_key(place);
        }
        let lists = matches!(kind, DisclosureKind::Bridge | DisclosureKind::Append);
        let listing = match frozen {
            _ if !lists => None,
            Some(frozen) => Some(frozen.listing.clone()),
            None => self.list(&listed, turn.context_window),
        };
        let described = self.settings().listing.placement != ListingPlacement::Message;
        DisclosureParts {
            own_tools: own_tools::tools(self.settings(), listing.as_ref().filter(|_| described)),
            instruction: own_tools::instruction(
                self.settings(),
                listing.as_ref().map(|listing| listing.form),
                turn.model,
            ),
            tools: shown,
            listing,
            names: listed.iter().map(|id| catalog.tool(*id).name().to_owned()).collect(),
        }
    }

    /// The loaded tools that are shown in full: the newest ones that fit within the limits. If a tool does not fit, it
    /// is skipped, but an older and smaller one may still be included.
    fn within_bounds(&self, revealed: Vec<ToolId>) -> Vec<ToolId> {
        let settings = self.settings();
        if !settings.limits_revealed() {
            return revealed;
        }
        let bound = |most: usize| if most == 0 { usize::MAX } else { most };
        let (mut tools, mut bytes) =
            (bound(settings.max_revealed), bound(settings.max_revealed_bytes));
        let fits = |id: &ToolId| {
            // Tools that are never deferred do not count towards the limits.
            if self.policy(*id) == DeferPolicy::Never {
                return true;
            }
            let size = compact(self.catalog().tool(*id).definition()).len();
            let (Some(fewer), Some(less)) = (tools.checked_sub(1), bytes.checked_sub(size)) else {
                return false;
            };
            (tools, bytes) = (fewer, less);
            true
        };
        let mut kept: Vec<ToolId> = revealed.into_iter().rev().filter(fits).collect();
        kept.reverse();
        kept
    }

    fn list(&self, ids: &[ToolId], context: Option<usize>) -> Option<Listing> {
        // The limit on characters applies to the whole description of the search tool. The tool's own text precedes the
        // listing, so its length is subtracted.
        let mut settings = self.settings().listing.clone();
        settings.chars = settings.chars.saturating_sub(own_tools::PREFACE_CHARS);
        Listing::fit(self.catalog(), ids.iter().copied(), &settings, context, self.counter())
    }

    fn message(&self, listing: &Listing) -> String {
        own_tools::message(listing, self.settings().own_names)
    }

    fn count(&self, parts: &DisclosureParts) -> usize {
        let counter = self.counter();
        let format = DefinitionFormat::Own;
        let own: usize =
            parts.own_tools.iter().map(|own| counter.count(&own.definition(format))).sum();
        let stubs: usize = parts.stubs().map(|text| counter.count(&compact(text))).sum();
        let message = if self.settings().listing.placement == ListingPlacement::Message {
            parts.listing.as_ref().map_or(0, |listing| counter.count(&self.message(listing)))
        } else {
            0
        };
        own + stubs + message + counter.count(&parts.instruction)
    }

    /// Whether every tool that was listed or announced is still in this caller's scope and is not exempt from deferral.
    /// If not, the listing is written again: a changed prompt costs tokens, but naming a tool outside the scope would
    /// be a leak.
    fn lists_only_visible_tools(&self, frozen: &FrozenListing, turn: &TurnContext<'_>) -> bool {
        let catalog = self.catalog();
        frozen.known.iter().all(|name| {
            catalog
                .find(name)
                .is_some_and(|id| turn.scope.contains(id) && self.policy(id) != DeferPolicy::Never)
        })
    }

    /// If the conversation has no frozen listing yet, freezes the current one, and returns the message that contains it
    /// if the settings place the listing in a message. In later turns, returns an announcement of the tools that were
    /// neither listed nor announced before, or `None` if there are no such tools.
    fn freeze(
        &self,
        parts: &DisclosureParts,
        deferral: Deferral,
        conversation: &mut Conversation,
    ) -> Option<String> {
        let placement = self.settings().listing.placement;
        let listing = parts.listing.as_ref().filter(|_| placement != ListingPlacement::Fresh)?;
        let Some(frozen) = &mut conversation.frozen else {
            let (listing, known) = (listing.clone(), parts.names.clone());
            let message = (placement == ListingPlacement::Message).then(|| self.message(&listing));
            if message.is_some() {
                conversation.listing_message = ListingMessage::Sent;
            }
            let frozen =
                FrozenListing { listing, deferral, listed: known.clone(), known, placement };
            conversation.frozen = Some(frozen);
            return message;
        };
        let added: Vec<&String> = parts.names.difference(&frozen.known).collect();
        let shown: Vec<String> = added.iter().take(MAX_ANNOUNCED).map(|name| data(name)).collect();
        let more = match added.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more, to be found by searching"),
        };
        let announcement = (!added.is_empty())
            .then(|| format!("Deferred tools now available too: {}{more}.", shown.join(", ")));
        // Names are only added here. A tool that is no longer deferred stays in `known`, because the model has seen its
        // name and `lists_only_visible_tools` must check that name every turn.
        frozen.known.extend(parts.names.iter().cloned());
        announcement
    }
}

/// The parts of a disclosure that defers tools.
struct DisclosureParts {
    tools: Vec<DisclosedTool>,
    own_tools: Vec<OwnTool>,
    instruction: String,
    listing: Option<Listing>,
    /// The names of the tools in the listing.
    names: BTreeSet<String>,
}

impl DisclosureParts {
    fn full(&self) -> impl Iterator<Item = ToolId> + '_ {
        let full = |shown: &&DisclosedTool| matches!(shown.verdict, Verdict::Full(_));
        self.tools.iter().filter(full).map(|shown| shown.id)
    }

    fn stubs(&self) -> impl Iterator<Item = &str> {
        let deferred = |shown: &&DisclosedTool| matches!(shown.verdict, Verdict::Deferred(_));
        self.tools.iter().filter(deferred).filter_map(|shown| shown.definition.as_deref())
    }
}
