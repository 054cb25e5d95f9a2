//! A client's tools, and what becomes of them.
//!
//! All of it is a pure function of the tools, the settings and the way they are deferred: the same
//! client gets the same bytes each time, on any replica, with nothing kept. So a [`Toolset`] is made
//! once and shared by every request that carries the same tools.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use toolcrib_core::conversation::DEFAULT_MAX_REVEALS;
use toolcrib_core::disclosure::{OwnNames, OwnTool};
use toolcrib_core::listing::DEFAULT_TOKENS as LISTING_TOKENS;
use toolcrib_core::policy::{self, Verdict, VerdictReason};
use toolcrib_core::{
    Catalog, Conversation, Crib, Ledger, Limits, Scope, Settings, TokenCounter,
    TurnContext as CoreTurn, ingest_with_own_names,
};
use toolcrib_text::json;

use crate::api::Api;
use crate::hidden_rounds::newest;
use crate::mode::{Mode, REFERENCES};
use crate::passthrough::{
    DeferralReason, PassthroughReason, RequestFacts, TokenCounts, decide_passthrough,
};
use crate::tool_list::{self, ToolEdit, ToolListEdit, WriteTools};

/// The listing's share of the tools' tokens, at most.
const LISTING_PERCENT: usize = 7;
/// Tokens of a hit in an answer, beside its definition. Measured.
const HIT: usize = 45;
/// Tokens a listing may have, however small the tools are.
const LEAST_LISTING: usize = 120;

/// What a toolset is made from, beside the tools.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ToolsetPlan {
    /// The API it is written for.
    pub api: Api,
    /// How tools are deferred, if they are.
    pub mode: Mode,
    /// The engine's settings; the disclosure is the mode's.
    pub settings: Arc<Settings>,
    /// How tokens are counted.
    pub counter: Arc<dyn TokenCounter>,
    /// The model, as the client calls it.
    pub model: String,
    /// Its context window in tokens, where it is known.
    pub context: Option<usize>,
    /// Whether the conversation has deferred before.
    pub sticky: bool,
    /// Whether the conversation knows our tools by their second names.
    pub second_names: bool,
    /// Whether the request is one that only counts tokens.
    pub counts: bool,
    /// Whether nothing is to be deferred: the tools are only needed to check calls.
    pub passes: bool,
    /// Tools that must be sent in full: forced, or called with nothing left to know them by.
    pub loaded: Vec<String>,
}

impl ToolsetPlan {
    /// A hash of everything that a toolset depends on but the settings: the key to keep it under, in a program
    /// whose settings do not change.
    pub fn cache_key(&self, tools: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let rest = (
            (self.api, self.mode, &self.model, self.context),
            (self.sticky, self.second_names, self.counts, self.passes, &self.loaded),
        );
        hasher.update(format!("{rest:?}").as_bytes()).update(&[0]).update(tools.as_bytes());
        *hasher.finalize().as_bytes()
    }
}

/// A client's tools, ready to go up.
#[derive(Debug)]
pub struct Toolset {
    plan: ToolsetPlan,
    write_tools: WriteTools,
    input: String,
    /// The same on one line, where it is not; made when it is first asked for.
    compact: OnceLock<Option<String>>,
    crib: Crib,
    scope: Scope,
    /// Every name the client declares.
    declared: HashSet<String>,
    /// Those whose definitions the model does not see.
    deferred: HashSet<String>,
    own: Vec<OwnTool>,
    /// The listing as a message, if it is not part of `tools`.
    announcement: Option<String>,
    /// `tools` before anything was found.
    text: String,
    why: DeferralReason,
    tokens: (usize, usize),
}

impl Toolset {
    /// Makes a toolset of a request's `tools`; `write` puts them into the words of the plan's API.
    pub(crate) fn written_by(write: WriteTools, plan: ToolsetPlan, input: &str) -> Self {
        let declared: HashSet<String> = tool_list::names(input).into_iter().collect();
        let mut settings = Settings::clone(&plan.settings);
        settings.disclosure = plan.mode.kind().into();
        settings.own_names = OwnNames::default();
        if plan.passes {
            settings.activation.mode = policy::ActivationMode::Off;
        }
        let taken = settings.own_names.all().iter().any(|name| declared.contains(*name));
        if taken || plan.second_names {
            settings.own_names = OwnNames::alternative();
        }
        if matches!(plan.mode, Mode::Reference(_)) {
            // What an answer cannot load it must not count as loaded.
            settings.search.max_limit = settings.search.max_limit.min(REFERENCES);
            settings.search.limit = settings.search.limit.min(REFERENCES);
        }
        let catalog = catalog(input, &settings);
        let crib = Crib::new(catalog, settings.clone()).with_counter(Arc::clone(&plan.counter));
        let hot = if settings.keeps_hot_tools {
            policy::hot_list(crib.catalog(), crib.definition_tokens(), &crib.settings().rules)
        } else {
            Vec::new()
        };
        let names = hot.iter().map(|id| crib.catalog().tool(*id).name());
        let loaded = plan.loaded.iter().map(String::as_str);
        // A tool whose name had to be changed is unknown to the client under the new one, so the model has
        // to see it as the client wrote it.
        let all = crib.catalog().ids().map(|id| crib.catalog().tool(id).name());
        let renamed = all.filter(|name| !declared.contains(*name));
        let bridges = tool_list::bridges(declared.iter());
        settings.rules = settings.rules.keep_hot(names).keep_full(loaded).keep_full(renamed);
        settings.rules = settings.rules.keep_full(bridges);
        let window = plan.context.or_else(|| settings.context_window_for(Some(&plan.model)));
        settings.listing.tokens.get_or_insert_with(|| listing_tokens(&crib, window));
        let crib = crib.with_settings(settings);
        let scope = Scope::all(crib.catalog());
        let turn = CoreTurn::new(&scope).with_context_window(plan.context).with_model(&*plan.model);
        let mut conversation = if plan.sticky {
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
            answer: answer_tokens(&crib, deferred.len()),
            margin: plan.mode.hides_tools() && crib.settings().activation.only_if_saving,
        };
        let (passes, why) = match decide_passthrough(RequestFacts::TokensCounted(numbers)) {
            Some(PassthroughReason::NotDeferred(why)) => (true, why),
            _ => (false, DeferralReason::Engine(shown.decision.reason)),
        };
        // Hosted search is the provider's, which has the names itself.
        let has_search = !matches!(plan.mode, Mode::Hosted(_));
        let mut own = shown.own_tools.clone();
        if let (Some(search), Some(instruction)) = (own.first_mut(), &shown.instruction) {
            // One place for all that is ours: a client's system prompt stays its own.
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
            announcement: shown.announcement.clone().filter(|_| !passes && has_search),
            text: String::new(),
            why,
            tokens: (before, if passes { before } else { after }),
        };
        toolset.text = if passes { input.to_owned() } else { toolset.write(&[]) };
        toolset
    }

    /// Whether the tools pass as they came.
    pub fn passes_through(&self) -> bool {
        self.deferred.is_empty()
    }

    /// Why they are deferred or not.
    pub fn why(&self) -> DeferralReason {
        self.why
    }

    /// How tools are deferred, if they are.
    pub fn mode(&self) -> Mode {
        self.plan.mode
    }

    /// How many tools the client declares.
    pub fn len(&self) -> usize {
        self.declared.len()
    }

    /// Whether it declares none.
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// How many are deferred.
    pub fn deferred(&self) -> usize {
        self.deferred.len()
    }

    /// Tokens of the tools as they came, and of what goes up instead.
    pub fn tokens(&self) -> (usize, usize) {
        self.tokens
    }

    /// Bytes it takes, roughly: for who keeps many.
    pub fn bytes(&self) -> usize {
        // The input twice, the catalog's own copy, the index, and what is written.
        4 * self.input.len() + self.text.len() + self.crib.index_bytes()
    }

    /// The tools as they came.
    pub fn input(&self) -> &str {
        &self.input
    }

    /// The tools as they came, on one line.
    pub(crate) fn compact(&self) -> &str {
        let made = self.compact.get_or_init(|| match json::compact(&self.input) {
            Cow::Owned(text) => Some(text),
            Cow::Borrowed(_) => None,
        });
        made.as_deref().unwrap_or(&self.input)
    }

    /// The listing as a message for the beginning of the conversation, if the settings put it there.
    pub(crate) fn announcement(&self) -> Option<&str> {
        self.announcement.as_deref()
    }

    pub(crate) fn crib(&self) -> &Crib {
        &self.crib
    }

    pub(crate) fn turn(&self) -> CoreTurn<'_> {
        CoreTurn::new(&self.scope)
            .with_context_window(self.plan.context)
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
        &self.plan.loaded
    }

    /// A tool's definition, as the client wrote it.
    pub(crate) fn definition(&self, name: &str) -> Option<&str> {
        let id = self.crib.catalog().find(name)?;
        Some(self.crib.catalog().tool(id).definition())
    }

    /// Whether loading a tool again may change which tools are sent in full, because with this many loaded
    /// tools not all of them may fit.
    pub(crate) fn renews(&self, loaded: usize) -> bool {
        let bounded = self.crib.settings().limits_revealed() || loaded > DEFAULT_MAX_REVEALS;
        self.plan.mode.grows() && bounded
    }

    /// The `tools` of a request after these tools were found, in order. A name may occur twice: a tool that
    /// was found again counts as found last.
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
        // Stubs and marks are the engine's to write, and which found tools are sent in full is its decision:
        // none without `reveals`, else the last ones that find room.
        let fresh =
            (!mode.grows() && mode != Mode::Terse) || (mode == Mode::Append && found.is_empty());
        let found = newest(found.iter().filter(|name| self.is_deferred(name)));
        let ledger = Ledger::from_names(found.iter().map(String::as_str), DEFAULT_MAX_REVEALS);
        let mut conversation = Conversation::with_ledger(ledger);
        let shown = (!fresh).then(|| self.crib.disclose(&self.turn(), &mut conversation));
        let stub = |name: &str| {
            let shown = shown.as_ref()?;
            let id = catalog.find(name)?;
            let shown = shown.tools.iter().find(|shown| shown.id == id)?;
            shown.definition.as_deref().filter(|_| !is_revealed(&shown.verdict))
        };
        let keep = |name: &str| {
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
        let last: Vec<&str> = match (mode, &shown) {
            (Mode::Append, Some(shown)) => {
                let loaded = shown.tools.iter().filter(|shown| is_revealed(&shown.verdict));
                loaded.map(|shown| catalog.tool(shown.id).definition()).collect()
            }
            _ => Vec::new(),
        };
        let group = |name: &str| catalog.tool(catalog.find(name)?).server();
        let counts = self.plan.counts;
        let edit =
            ToolListEdit { mode, counts, keep: &keep, group: &group, own: &self.own, found: &last };
        (self.write_tools)(&self.input, &edit)
    }
}

fn is_revealed(verdict: &Verdict) -> bool {
    *verdict == Verdict::Full(VerdictReason::Revealed)
}

/// The catalog of a client's tools. What the engine holds back is not in it, and so is never deferred.
fn catalog(input: &str, settings: &Settings) -> Catalog {
    let mut builder = Catalog::builder();
    let limits: &Limits = &settings.limits;
    if let Ok(came) = ingest_with_own_names(settings.own_names, input.as_bytes(), None, limits) {
        builder.add(came);
    }
    builder.build()
}

/// Maximum size of the listing if the settings name none: a small share of what it stands for, and no more
/// than its share of the context window. A full listing of small tools would eat the saving, and what it leaves
/// out is found by searching.
fn listing_tokens(crib: &Crib, window: Option<usize>) -> usize {
    let share = crib.definition_tokens().iter().sum::<usize>() * LISTING_PERCENT / 100;
    let most = share.clamp(LEAST_LISTING, LISTING_TOKENS);
    let percent = crib.settings().listing.context_percent;
    let of_window = window.map(|window| (window as f64 * percent / 100.0) as usize);
    of_window.map_or(most, |of_window| most.min(of_window))
}

/// Tokens of one answer of the search, if it shows tools of the usual size.
fn answer_tokens(crib: &Crib, deferred: usize) -> usize {
    let search = &crib.settings().search;
    let sizes = crib.definition_tokens();
    let mean = sizes.iter().sum::<usize>() / sizes.len().max(1);
    ((mean + HIT) * search.limit.min(deferred)).min(search.reply_tokens)
}
