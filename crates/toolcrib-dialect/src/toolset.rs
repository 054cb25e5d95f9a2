//! A client's tools, and the tools that are sent to the upstream instead.
//!
//! A [`Toolset`] is a pure function of the tools, the settings and the mode. The same input gives the same bytes every
//! time and on every replica, without stored state. So a toolset is created once and shared by all requests with the
//! same tools.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use toolcrib_core::conversation::DEFAULT_MAX_REVEALS;
use toolcrib_core::disclosure::{OwnNames, OwnTool};
use toolcrib_core::listing::DEFAULT_TOKENS as LISTING_TOKENS;
use toolcrib_core::policy::{self, ActivationReason, Verdict, VerdictReason};
use toolcrib_core::{
    Catalog, Conversation, Crib, Ledger, Limits, Scope, Settings, TurnContext as CoreTurn,
    ingest_with_own_names,
};
use toolcrib_text::json;

use crate::hidden_rounds::unique_keeping_last;
use crate::mode::{MAX_REFERENCES, Mode};
use crate::passthrough::{PassthroughReason, RequestFacts, TokenCounts, decide_passthrough};
use crate::tool_list::{self, ToolEdit, ToolListEdit, WriteTools};
pub use crate::toolset_plan::ToolsetPlan;

/// Maximum size of the listing, in percent of the tokens of all tools.
const MAX_LISTING_PERCENT: usize = 7;
/// The number of tokens that a listing may always have, even if the tools are small.
const MIN_LISTING_TOKENS: usize = 120;

/// A client's tools, and the tools that are sent instead of them.
#[derive(Debug)]
pub struct Toolset {
    plan: ToolsetPlan,
    write_tools: WriteTools,
    input: String,
    /// `input` on one line, or `None` if `input` is already on one line. Computed when it is first needed.
    compact: OnceLock<Option<String>>,
    crib: Crib,
    scope: Scope,
    /// The names of all tools that the client declares.
    declared: HashSet<String>,
    /// The names of the deferred tools.
    deferred: HashSet<String>,
    own: Vec<OwnTool>,
    /// The listing as a message, if the listing is not part of `tools`.
    announcement: Option<String>,
    /// The `tools` to send before any tool is found.
    text: String,
    deferral_reason: ActivationReason,
    tokens: (usize, usize),
}

impl Toolset {
    /// Creates a toolset from a request's `tools`. `write` writes tools in the format of the plan's API.
    pub(crate) fn with_writer(write: WriteTools, plan: ToolsetPlan, input: &str) -> Self {
        let declared: HashSet<String> = tool_list::names(input).into_iter().collect();
        let mut settings = Settings::clone(&plan.settings);
        settings.disclosure = plan.mode.kind().into();
        settings.own_names = OwnNames::default();
        // The client of the proxy gets calls under the tools' own names, and can ask its user about each of them.
        settings.split_calls = false;
        if plan.only_checks_calls {
            settings.activation.mode = policy::ActivationMode::Off;
        }
        let taken = settings.own_names.all().iter().any(|name| declared.contains(*name));
        if taken || plan.uses_second_names {
            settings.own_names = OwnNames::alternative();
        }
        if matches!(plan.mode, Mode::Reference(_)) {
            // One answer can load at most `MAX_REFERENCES` tools, so a search must not return more hits than that.
            settings.search.max_limit = settings.search.max_limit.min(MAX_REFERENCES);
            settings.search.limit = settings.search.limit.min(MAX_REFERENCES);
        }
        let catalog = catalog(input, &settings);
        let crib = Crib::new(catalog, settings.clone()).with_counter(Arc::clone(&plan.counter));
        let hot = if settings.keeps_hot_tools {
            policy::hot_list(crib.catalog(), crib.definition_tokens(), &crib.settings().rules)
        } else {
            Vec::new()
        };
        let names = hot.iter().map(|id| crib.catalog().tool(*id).name());
        let loaded = plan.send_in_full.iter().map(String::as_str);
        // If the engine had to change a tool's name, the client does not know the new name. So the tool is sent in
        // full, as the client wrote it.
        let all = crib.catalog().ids().map(|id| crib.catalog().tool(id).name());
        let renamed = all.filter(|name| !declared.contains(*name));
        let bridges = tool_list::server_bridge_tools(declared.iter());
        settings.rules = settings.rules.keep_hot(names).keep_full(loaded).keep_full(renamed);
        settings.rules = settings.rules.keep_full(bridges);
        let window = plan.context_window.or_else(|| settings.context_window_for(Some(&plan.model)));
        settings.listing.tokens.get_or_insert_with(|| max_listing_tokens(&crib, window));
        let crib = crib.with_settings(settings);
        let scope = Scope::all(crib.catalog());
        let turn =
            CoreTurn::new(&scope).with_context_window(plan.context_window).with_model(&*plan.model);
        let mut conversation = if plan.has_deferred_before {
            Conversation::with_ledger(Ledger::from_names([], DEFAULT_MAX_REVEALS))
        } else {
            Conversation::new()
        };
        let shown = crib.disclose(&turn, &mut conversation);

        let deferred: HashSet<String> = shown
            .tools
            .iter()
            .filter(|shown| matches!(shown.verdict, Verdict::Deferred(_)))
            .map(|shown| crib.catalog().tool(shown.id).name().to_owned())
            .collect();
        let (before, after) = (shown.tokens_before, shown.tokens_after);
        let numbers = TokenCounts {
            decision: shown.decision,
            deferred: deferred.len(),
            before,
            after,
            answer: crib.search_answer_tokens(&shown),
            must_save_with_search: plan.mode.hides_tools()
                && crib.settings().activation.only_if_saving,
        };
        let (passes, deferral_reason) =
            match decide_passthrough(RequestFacts::TokensCounted(numbers)) {
                Some(PassthroughReason::NotDeferred(why)) => (true, why),
                _ => (false, shown.decision.reason),
            };
        // The provider's hosted search has the names of all tools, so the model needs no listing.
        let needs_listing = !matches!(plan.mode, Mode::Hosted(_));
        if !passes && needs_listing {
            // The model's first search comes only after its first answer, so there is time to embed tools.
            crib.request_deep_vectors();
        }
        let mut own = shown.own_tools.clone();
        if let (Some(search), Some(instruction)) = (own.first_mut(), &shown.instruction) {
            // The client's system prompt must stay unchanged, so the instruction is added to the search tool's
            // description.
            search.description = format!("{instruction} {}", search.description);
        }
        let mut toolset = Self {
            write_tools: write,
            plan,
            input: input.to_owned(),
            compact: OnceLock::new(),
            crib,
            scope,
            declared,
            deferred: if passes { HashSet::new() } else { deferred },
            own,
            announcement: shown.announcement.clone().filter(|_| !passes && needs_listing),
            text: String::new(),
            deferral_reason,
            tokens: (before, if passes { before } else { after }),
        };
        toolset.text = if passes { input.to_owned() } else { toolset.write(&[]) };
        toolset
    }

    /// Whether nothing is deferred, so that the tools are sent unchanged.
    pub fn passes_through(&self) -> bool {
        self.deferred.is_empty()
    }

    /// Returns why the tools are deferred or not.
    pub fn deferral_reason(&self) -> ActivationReason {
        self.deferral_reason
    }

    /// Returns the mode in which tools are deferred. It has no effect if nothing is deferred.
    pub fn mode(&self) -> Mode {
        self.plan.mode
    }

    /// Returns the number of tools that the client declares.
    pub fn len(&self) -> usize {
        self.declared.len()
    }

    /// Whether the client declares no tools.
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// Returns the number of deferred tools.
    pub fn deferred(&self) -> usize {
        self.deferred.len()
    }

    /// Returns two token counts: that of the tools as the client sent them, and that of the tools that are sent
    /// instead.
    pub fn tokens(&self) -> (usize, usize) {
        self.tokens
    }

    /// Returns the approximate memory of the toolset in bytes, for a cache.
    pub fn memory_bytes(&self) -> usize {
        // The toolset contains the input, its compact form, the catalog's copies, the index, and the text to send.
        4 * self.input.len() + self.text.len() + self.crib.index_bytes()
    }

    /// Returns the tools as the client sent them.
    pub fn input(&self) -> &str {
        &self.input
    }

    /// Returns the tools as the client sent them, on one line.
    pub(crate) fn compact(&self) -> &str {
        let made = self.compact.get_or_init(|| match json::compact(&self.input) {
            Cow::Owned(text) => Some(text),
            Cow::Borrowed(_) => None,
        });
        made.as_deref().unwrap_or(&self.input)
    }

    /// Returns the listing as a message for the beginning of the conversation, or `None` if it is not sent as a
    /// message.
    pub(crate) fn announcement(&self) -> Option<&str> {
        self.announcement.as_deref()
    }

    pub(crate) fn crib(&self) -> &Crib {
        &self.crib
    }

    pub(crate) fn turn(&self) -> CoreTurn<'_> {
        CoreTurn::new(&self.scope)
            .with_context_window(self.plan.context_window)
            .with_model(&*self.plan.model)
    }

    pub(crate) fn names(&self) -> OwnNames {
        self.crib.settings().own_names
    }

    pub(crate) fn has_second_names(&self) -> bool {
        self.names() != OwnNames::default()
    }

    pub(crate) fn is_deferred(&self, name: &str) -> bool {
        self.deferred.contains(name)
    }

    pub(crate) fn is_declared(&self, name: &str) -> bool {
        self.declared.contains(name)
    }

    pub(crate) fn loaded(&self) -> &[String] {
        &self.plan.send_in_full
    }

    /// Returns the definition of a tool, as the client wrote it.
    pub(crate) fn definition(&self, name: &str) -> Option<&str> {
        let id = self.crib.catalog().find(name)?;
        Some(self.crib.catalog().tool(id).definition())
    }

    /// Whether loading a tool again can change which tools are sent in full. This is possible if the limits may be too
    /// low for `loaded` tools, because in that case only the tools that were loaded last are sent in full.
    pub(crate) fn order_matters(&self, loaded: usize) -> bool {
        let bounded = self.crib.settings().limits_revealed() || loaded > DEFAULT_MAX_REVEALS;
        self.plan.mode.grows() && bounded
    }

    /// Returns the `tools` of a request after a search found the tools in `found`, in this order. If a name occurs
    /// twice, the last occurrence counts.
    pub(crate) fn tools(&self, found: &[String]) -> Cow<'_, str> {
        if self.plan.mode.grows() && found.iter().any(|name| self.is_deferred(name)) {
            Cow::Owned(self.write(found))
        } else {
            Cow::Borrowed(&self.text)
        }
    }

    fn write(&self, found: &[String]) -> String {
        let catalog = self.crib.catalog();
        let mode = self.plan.mode;
        // The engine writes the stubs, and decides which found tools are sent in full: none if `reveals` is off,
        // otherwise as many of the last found tools as the limits allow. In the following cases there is nothing to
        // write or decide.
        let fresh =
            (!mode.grows() && mode != Mode::Terse) || (mode == Mode::Append && found.is_empty());
        let found = unique_keeping_last(found.iter().filter(|name| self.is_deferred(name)));
        let ledger = Ledger::from_names(found.iter().map(String::as_str), DEFAULT_MAX_REVEALS);
        let mut conversation = Conversation::with_ledger(ledger);
        let shown = (!fresh).then(|| self.crib.disclose(&self.turn(), &mut conversation));
        let stub = |name: &str| {
            let shown = shown.as_ref()?;
            let id = catalog.find(name)?;
            let shown = shown.tools.iter().find(|shown| shown.id == id)?;
            shown.definition.as_deref().filter(|_| !is_revealed(&shown.verdict))
        };
        let tool_edit = |name: &str| {
            if !self.is_deferred(name) {
                return ToolEdit::Keep;
            }
            match mode {
                Mode::Reference(crate::mode::ReferenceKind::ToolReference) | Mode::Hosted(_) => {
                    ToolEdit::MarkDeferred
                }
                Mode::Bridge | Mode::Append | Mode::Reference(_) => ToolEdit::Remove,
                Mode::Reveal | Mode::Terse => stub(name).map_or(ToolEdit::Keep, ToolEdit::Replace),
            }
        };
        let appended: Vec<&str> = match (mode, &shown) {
            (Mode::Append, Some(shown)) => {
                let loaded = shown.tools.iter().filter(|shown| is_revealed(&shown.verdict));
                loaded.map(|shown| catalog.tool(shown.id).definition()).collect()
            }
            _ => Vec::new(),
        };
        let group = |name: &str| catalog.tool(catalog.find(name)?).server();
        let counts_tokens = self.plan.counts_tokens;
        let edit = ToolListEdit {
            mode,
            counts_tokens,
            tool_edit: &tool_edit,
            group: &group,
            own: &self.own,
            appended: &appended,
        };
        (self.write_tools)(&self.input, &edit)
    }
}

fn is_revealed(verdict: &Verdict) -> bool {
    *verdict == Verdict::Full(VerdictReason::Revealed)
}

/// Creates a catalog of the client's tools. Tools that the engine withholds are not in the catalog, so they are never
/// deferred.
fn catalog(input: &str, settings: &Settings) -> Catalog {
    let mut builder = Catalog::builder();
    let limits: &Limits = &settings.limits;
    if let Ok(came) = ingest_with_own_names(settings.own_names, input.as_bytes(), None, limits) {
        builder.add(came);
    }
    builder.build()
}

/// Returns the maximum size of the listing, for settings that do not set one. It is a small share of the tools' tokens,
/// and is also limited to a share of the context window. A full listing of small tools would use up the saving, and
/// tools that are not listed are still found by searching.
fn max_listing_tokens(crib: &Crib, window: Option<usize>) -> usize {
    let share = crib.definition_tokens().iter().sum::<usize>() * MAX_LISTING_PERCENT / 100;
    let most = share.clamp(MIN_LISTING_TOKENS, LISTING_TOKENS);
    let percent = crib.settings().listing.context_percent;
    let of_window = window.map(|window| (window as f64 * percent / 100.0) as usize);
    of_window.map_or(most, |of_window| most.min(of_window))
}
