//! Putting a disclosure together.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashSet, FxHasher};

use super::own;
use crate::catalog::ToolId;
use crate::conversation::{Conversation, Frozen, Ledger, Said};
use crate::crib::Crib;
use crate::disclosure::{Disclosure, Kind, OwnTool, Shown};
use crate::listing::{Listing, Place};
use crate::policy::{Because, Decision, Defers, Facts, Grounds, Reason, Verdict, verdict};
use crate::tool::{Defer, Shape};
use crate::turn::Turn;
use toolcrib_text::json::{compact, data};

/// Names in one announcement.
const ANNOUNCED: usize = 50;

impl Crib {
    /// Our own tools as they are before anything is known to be deferred, for whoever must show them
    /// at once.
    pub fn own_tools(&self) -> Vec<OwnTool> {
        own::tools(self.settings(), None)
    }

    /// The instruction that goes with [`own_tools`](Self::own_tools). It holds whether or not anything turns
    /// out to be deferred.
    pub fn own_instruction(&self) -> String {
        let instruction = own::instruction(self.settings(), None, None);
        format!("If you have the tool `{}`: {instruction}", self.settings().names.search)
    }

    /// What the model sees this turn.
    pub fn disclose(&self, turn: &Turn<'_>, conversation: &mut Conversation) -> Arc<Disclosure> {
        let turn = &self.own_turn(turn);
        let key = self.key(turn, conversation);
        if let Some((same, last)) = &conversation.last
            && *same == key
        {
            return Arc::clone(last);
        }
        let disclosure = Arc::new(self.compose(turn, conversation));
        // Deferring what must always be deferred decides nothing about the rest.
        if disclosure.decision.defers == Defers::Everything {
            conversation.ledger.set_deferred();
        }
        // An announcement is said once; the same disclosure without it is what to repeat.
        let repeat = if disclosure.announcement.is_some() {
            Arc::new(Disclosure { announcement: None, ..(*disclosure).clone() })
        } else {
            Arc::clone(&disclosure)
        };
        conversation.last = Some((self.key(turn, conversation), repeat));
        disclosure
    }

    /// Everything a disclosure depends on, in one number.
    fn key(&self, turn: &Turn<'_>, conversation: &Conversation) -> u64 {
        let mut hasher = FxHasher::default();
        (self.fingerprint(), turn.scope, turn.context, turn.model).hash(&mut hasher);
        (turn.connecting.is_empty(), turn.incomplete, turn.search_allowed).hash(&mut hasher);
        conversation.ledger.deferred().hash(&mut hasher);
        // A stable disclosure does not change with what was revealed.
        let shows = self.settings().shows_revealed();
        for reveal in conversation.ledger.reveals().filter(|_| shows) {
            (&reveal.name, reveal.fingerprint).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn compose(&self, turn: &Turn<'_>, conversation: &mut Conversation) -> Disclosure {
        let kind = self.settings().kind();
        let policies: Vec<(ToolId, Defer)> =
            turn.scope.ids().map(|id| (id, self.policy(id))).collect();
        let deferrable = || policies.iter().filter(|(_, defer)| *defer != Defer::Never);
        let sizes = self.sizes();
        let tokens_before = policies.iter().map(|(id, _)| sizes[id.index()]).sum();
        let mut facts = Facts {
            tools: policies.len(),
            deferrable: deferrable().count(),
            always: policies.iter().filter(|(_, defer)| *defer == Defer::Always).count(),
            deferrable_tokens: deferrable().map(|(id, _)| sizes[id.index()]).sum(),
            replacement_tokens: 0,
            context: turn.context,
            filling: !turn.connecting.is_empty(),
            incomplete: turn.incomplete,
            search_allowed: turn.search_allowed,
            deferred_before: conversation.ledger.deferred(),
        };
        let activation = &self.settings().activation;
        // What would stand in the tools' place is worked out only where its cost decides.
        let mut decision = activation.decide(&facts);
        if matches!(decision.reason, Reason::Count { .. } | Reason::Tokens { .. }) {
            let fresh = self.replace(turn, kind, decision, &Ledger::new(0), None);
            facts.replacement_tokens = self.count(&fresh);
            decision = activation.decide(&facts);
        }
        if decision.defers == Defers::Nothing {
            let stands = conversation.said == Said::Yes;
            let announcement = stands.then(|| own::WITHDRAWN.to_owned());
            if stands {
                (conversation.said, conversation.frozen) = (Said::Withdrawn, None);
            }
            let disclosure = self.pass_through(turn, decision, tokens_before);
            return Disclosure { announcement, ..disclosure };
        }
        let kept = |frozen: &Frozen| {
            self.settings().listing.place != Place::Fresh
                && frozen.defers == decision.defers
                && self.still_true(frozen, turn)
        };
        conversation.frozen = conversation.frozen.take().filter(kept);
        let frozen = conversation.frozen.as_ref();
        let mut parts = self.replace(turn, kind, decision, &conversation.ledger, frozen);
        let announcement = self.freeze(&parts, decision.defers, conversation);
        let replaced = self.count(&parts);
        let full: usize = parts.full().map(|id| sizes[id.index()]).sum();
        Disclosure {
            decision,
            kind,
            tokens_after: replaced + full,
            shown: std::mem::take(&mut parts.shown),
            own: parts.own,
            instruction: Some(parts.instruction),
            listing: parts.listing,
            announcement,
            tokens_before,
        }
    }

    fn pass_through(&self, turn: &Turn<'_>, decision: Decision, tokens: usize) -> Disclosure {
        let shown = turn.scope.ids().map(|id| {
            let tool = self.catalog().tool(id);
            let grounds = Grounds { in_scope: true, decision, revealed: false };
            let verdict = verdict(tool, &self.settings().rules, grounds);
            Shown { id, definition: Some(tool.definition_here().into_owned()), verdict }
        });
        Disclosure {
            decision,
            kind: self.settings().kind(),
            shown: shown.collect(),
            own: Vec::new(),
            instruction: None,
            listing: None,
            announcement: None,
            tokens_before: tokens,
            tokens_after: tokens,
        }
    }

    /// What stands for the deferred tools.
    fn replace(
        &self,
        turn: &Turn<'_>,
        kind: Kind,
        decision: Decision,
        ledger: &Ledger,
        frozen: Option<&Frozen>,
    ) -> Parts {
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
            let grounds = Grounds { in_scope: true, decision, revealed: is_revealed.contains(&id) };
            let verdict = verdict(tool, &self.settings().rules, grounds);
            let definition = match (&verdict, kind) {
                // Only tools in scope are asked about.
                (Verdict::Hidden, _) => continue,
                (Verdict::Full(_), _) => Some(tool.definition_here().into_owned()),
                (Verdict::Deferred(_), Kind::Reveal) => {
                    let stub = self.settings().stub.schema(tool, self.settings().names);
                    Some(tool.definition_with(Some(&stub), None))
                }
                (Verdict::Deferred(_), Kind::Terse) => {
                    Some(tool.definition_with(None, Some(&self.settings().mark)))
                }
                (Verdict::Deferred(_), Kind::Bridge | Kind::Append) => None,
            };
            // A loaded tool keeps its line in the table of contents: the model forgets schemas,
            // never names.
            let loaded = verdict == Verdict::Full(Because::Revealed);
            if definition.is_none() || (kind == Kind::Append && loaded) {
                listed.push(id);
            }
            shown.push(Shown { id, definition, verdict });
        }
        if kind == Kind::Append {
            let place = |shown: &Shown| {
                let loaded = shown.verdict == Verdict::Full(Because::Revealed);
                let at = revealed.iter().position(|known| *known == shown.id);
                at.filter(|_| loaded).map_or(0, |at| at + 1)
            };
            shown.sort_by_key(place);
        }
        let lists = matches!(kind, Kind::Bridge | Kind::Append);
        let listing = match frozen {
            _ if !lists => None,
            Some(frozen) => Some(frozen.listing.clone()),
            None => self.list(&listed, turn.context),
        };
        let described = self.settings().listing.place != Place::Message;
        Parts {
            own: own::tools(self.settings(), listing.as_ref().filter(|_| described)),
            instruction: own::instruction(
                self.settings(),
                listing.as_ref().map(|listing| listing.form),
                turn.model,
            ),
            shown,
            listing,
            names: listed.iter().map(|id| catalog.tool(*id).name().to_owned()).collect(),
        }
    }

    /// The loaded tools that are shown in full: the newest ones that fit within the limits. A tool that does
    /// not fit is skipped, and an older one may still fit.
    fn within_bounds(&self, revealed: Vec<ToolId>) -> Vec<ToolId> {
        let settings = self.settings();
        if !settings.bounds_revealed() {
            return revealed;
        }
        let bound = |most: usize| if most == 0 { usize::MAX } else { most };
        let (mut tools, mut bytes) =
            (bound(settings.max_revealed), bound(settings.max_revealed_bytes));
        let fits = |id: &ToolId| {
            // Tools that are never deferred take no room from those that were found.
            if self.policy(*id) == Defer::Never {
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
        // The search tool's own words stand before the listing, in the same description.
        let mut settings = self.settings().listing.clone();
        settings.chars = settings.chars.saturating_sub(own::PREFACE_CHARS);
        Listing::fit(self.catalog(), ids.iter().copied(), &settings, context, self.counter())
    }

    /// The listing as a message of its own.
    fn message(&self, listing: &Listing) -> String {
        own::message(listing, self.settings().names)
    }

    fn count(&self, parts: &Parts) -> usize {
        let counter = self.counter();
        let shape = Shape::Own;
        let own: usize = parts.own.iter().map(|own| counter.count(&own.definition(shape))).sum();
        let stubs: usize = parts.stubs().map(|text| counter.count(&compact(text))).sum();
        let message = if self.settings().listing.place == Place::Message {
            parts.listing.as_ref().map_or(0, |listing| counter.count(&self.message(listing)))
        } else {
            0
        };
        own + stubs + message + counter.count(&parts.instruction)
    }

    /// Whether a frozen listing still speaks only of tools that are there for this caller. One that
    /// does not is made anew: a changed prompt costs money, a name out of scope costs trust.
    fn still_true(&self, frozen: &Frozen, turn: &Turn<'_>) -> bool {
        let catalog = self.catalog();
        frozen.known.iter().all(|name| {
            catalog
                .find(name)
                .is_some_and(|id| turn.scope.contains(id) && self.policy(id) != Defer::Never)
        })
    }

    /// Freezes the first listing; later says what came since.
    fn freeze(
        &self,
        parts: &Parts,
        defers: Defers,
        conversation: &mut Conversation,
    ) -> Option<String> {
        let place = self.settings().listing.place;
        let listing = parts.listing.as_ref().filter(|_| place != Place::Fresh)?;
        let Some(frozen) = &mut conversation.frozen else {
            let (listing, known) = (listing.clone(), parts.names.clone());
            let said = (place == Place::Message).then(|| self.message(&listing));
            if said.is_some() {
                conversation.said = Said::Yes;
            }
            let frozen = Frozen { listing, defers, listed: known.clone(), known, place };
            conversation.frozen = Some(frozen);
            return said;
        };
        let added: Vec<&String> = parts.names.difference(&frozen.known).collect();
        let shown: Vec<String> = added.iter().take(ANNOUNCED).map(|name| data(name)).collect();
        let more = match added.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more, to be found by searching"),
        };
        let announcement = (!added.is_empty())
            .then(|| format!("Deferred tools now available too: {}{more}.", shown.join(", ")));
        // Never fewer than the listing names: what it says must stay checked.
        frozen.known.extend(parts.names.iter().cloned());
        announcement
    }
}

/// The pieces of a disclosure that defers.
struct Parts {
    shown: Vec<Shown>,
    own: Vec<OwnTool>,
    instruction: String,
    listing: Option<Listing>,
    /// Every name the model is to know without its definition.
    names: BTreeSet<String>,
}

impl Parts {
    fn full(&self) -> impl Iterator<Item = ToolId> + '_ {
        let full = |shown: &&Shown| matches!(shown.verdict, Verdict::Full(_));
        self.shown.iter().filter(full).map(|shown| shown.id)
    }

    fn stubs(&self) -> impl Iterator<Item = &str> {
        let deferred = |shown: &&Shown| matches!(shown.verdict, Verdict::Deferred(_));
        self.shown.iter().filter(deferred).filter_map(|shown| shown.definition.as_deref())
    }
}
