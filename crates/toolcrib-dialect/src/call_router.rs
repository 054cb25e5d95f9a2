//! What becomes of one call.
//!
//! The model calls by name. A tool that it sees in full is the client's affair, and its call is
//! forwarded as it comes. Every other call is held until it is whole: ours are answered here; a
//! deferred tool's is unwrapped, checked against the real schema, and forwarded under the real name; one that
//! cannot be run is answered with what the model needs to do better. The answers wait on the router until
//! the round is over.

use std::sync::Arc;

use toolcrib_core::conversation::DEFAULT_MAX_REVEALS;
use toolcrib_core::{CallOutcome, Conversation, Ledger, Reply};

use crate::budget::ResponseBudget;
use crate::call_ids::{CallIdGenerator, GeneratedId};
use crate::fingerprint::{Fingerprint, FingerprintBuilder};
use crate::hidden_rounds::{HiddenAnswer, ReferencedTool};
use crate::limits::{PART_BYTES, ResponseLimits};
use crate::mode::{Mode, REFERENCES, ReferenceKind};
use crate::toolset::Toolset;

/// How a call is to be treated from its first event on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallRoute {
    /// Forwarded as it comes.
    Forward,
    /// Held until it is whole.
    Hold,
}

/// What becomes of a call that was held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResolvedCall {
    /// The client gets it, in these words.
    Forward {
        /// The tool's real name.
        name: String,
        /// Its own arguments, as JSON text.
        arguments: String,
    },
    /// The client never learns of it.
    Hidden,
}

/// The state of one model's turn, over all its rounds.
#[derive(Debug)]
pub(crate) struct CallRouter {
    toolset: Arc<Toolset>,
    conversation: Conversation,
    /// Tools shown before this turn, and in it.
    known: Vec<String>,
    revealed: Vec<String>,
    /// Tools the client got calls of that nothing had shown.
    blind: Vec<String>,
    /// Answers of this round.
    answers: Vec<HiddenAnswer>,
    /// What the client saw.
    fingerprint: Box<FingerprintBuilder>,
    /// Calls of this round so far.
    calls: usize,
    /// The ids of the calls the client got, and those made for the ones among them that have none.
    forwarded: Vec<Option<String>>,
    made: Vec<Option<String>>,
    /// Makes ids for calls without one; `None` if the API needs none.
    ids: Option<CallIdGenerator>,
    /// Whether what the client saw is not what the upstream said.
    altered: bool,
    searches: usize,
    /// What is held of the turn.
    pub(crate) budget: ResponseBudget,
}

impl CallRouter {
    pub(crate) fn new(
        toolset: Arc<Toolset>,
        revealed: &[String],
        ids: Option<CallIdGenerator>,
        limits: ResponseLimits,
    ) -> Self {
        let names = revealed.iter().map(String::as_str);
        let conversation =
            Conversation::with_ledger(Ledger::from_names(names, DEFAULT_MAX_REVEALS));
        Self {
            toolset,
            conversation,
            known: revealed.to_vec(),
            revealed: Vec::new(),
            blind: Vec::new(),
            answers: Vec::new(),
            fingerprint: Box::default(),
            calls: 0,
            forwarded: Vec::new(),
            made: Vec::new(),
            ids,
            altered: false,
            searches: 0,
            budget: ResponseBudget::new(limits),
        }
    }

    /// Goes on where another left off, as far as the client is concerned.
    pub(crate) fn resume(&mut self, other: &Self) {
        self.fingerprint.clone_from(&other.fingerprint);
        self.forwarded.clone_from(&other.forwarded);
        self.made.clone_from(&other.made);
        self.altered = other.altered;
        self.searches = other.searches;
        self.budget = other.budget.clone();
    }

    pub(crate) fn toolset(&self) -> &Toolset {
        &self.toolset
    }

    /// How a call of this name is to be treated.
    pub(crate) fn route(&self, name: &str) -> CallRoute {
        let tools = &self.toolset;
        if tools.is_deferred(name) {
            let native = matches!(tools.mode(), Mode::Hosted(_));
            let shown = tools.mode() != Mode::Bridge && self.conversation.ledger().has_name(name);
            return if native || shown { CallRoute::Forward } else { CallRoute::Hold };
        }
        if tools.is_declared(name) { CallRoute::Forward } else { CallRoute::Hold }
    }

    /// Notes a call that was forwarded as it came.
    pub(crate) fn note_forwarded_call(&mut self, id: Option<&str>, name: &str, arguments: &str) {
        self.calls += 1;
        self.budget.call();
        let id = given(id);
        let made = self.make_id(id, name);
        self.forward(id, made, name, arguments);
    }

    /// The id of a call that has none; `None` if it needs none.
    fn make_id(&mut self, given: Option<&str>, name: &str) -> Option<String> {
        let ids = self.ids.as_mut().filter(|_| given.is_none())?;
        Some(ids.generate(name))
    }

    fn forward(&mut self, id: Option<&str>, made: Option<String>, name: &str, arguments: &str) {
        self.budget.hold(PART_BYTES + id.map_or(0, str::len));
        self.forwarded.push(id.map(str::to_owned));
        self.made.push(made);
        self.fingerprint.call(id, name, arguments);
        self.note_blind(name);
    }

    /// Notes a call of a tool that nothing had shown. Without a note its next request would look like one
    /// whose records are lost, and the tool would be loaded at the price of a changed prefix.
    fn note_blind(&mut self, name: &str) {
        let native = matches!(self.toolset.mode(), Mode::Reference(_) | Mode::Hosted(_));
        let shown = [&self.known, &self.revealed, &self.blind].into_iter().flatten();
        if native && self.toolset.is_deferred(name) && !shown.into_iter().any(|other| other == name)
        {
            self.blind.push(name.to_owned());
            self.altered = true;
        }
    }

    /// Notes text that the client got.
    pub(crate) fn note_text(&mut self, text: &str) {
        self.fingerprint.text(text);
    }

    /// Notes that something of the upstream's was kept from the client, and needs no answer of ours.
    pub(crate) fn note_hidden_output(&mut self) {
        self.altered = true;
    }

    /// Notes tools that a search showed, ours or the provider's, or a refusal.
    pub(crate) fn note_found_tools(&mut self, names: Vec<String>) {
        for name in names {
            let loaded = self.known.len() + self.revealed.len();
            let known = self.known.contains(&name) || self.revealed.contains(&name);
            if !known || self.toolset.renews(loaded) {
                self.revealed.push(name);
            }
        }
    }

    /// Whether the provider searches.
    pub(crate) fn is_hosted_search(&self) -> bool {
        matches!(self.toolset.mode(), Mode::Hosted(_))
    }

    /// Decides about a call that is whole.
    pub(crate) fn resolve(
        &mut self,
        id: Option<&str>,
        name: &str,
        arguments: &str,
    ) -> ResolvedCall {
        self.altered = true;
        let at = self.calls;
        self.calls += 1;
        self.budget.call();
        let id = given(id);
        let made = self.make_id(id, name);
        let input = if arguments.trim().is_empty() { "{}" } else { arguments };
        let toolset = Arc::clone(&self.toolset);
        let outcome = toolset.crib().handle(&toolset.turn(), &mut self.conversation, name, input);
        let answer = match outcome {
            CallOutcome::Run(call) => {
                let (name, arguments) = (call.name, call.arguments.get().to_owned());
                self.forward(id, made, &name, &arguments);
                return ResolvedCall::Forward { name, arguments };
            }
            CallOutcome::Answer(reply) => {
                self.searches += 1;
                let id = made.as_deref().or(id);
                let answer = HiddenAnswer { at, ..self.answer(id, name, &reply) };
                let mut loaded = reply.loaded;
                if toolset.crib().settings().limits_revealed() {
                    // What was loaded last stays longest, and the best hit before the others.
                    loaded.reverse();
                }
                self.note_found_tools(loaded);
                answer
            }
            CallOutcome::Refused(refusal) => {
                let answer = HiddenAnswer {
                    id: made.or_else(|| id.map(str::to_owned)),
                    at,
                    name: name.to_owned(),
                    text: refusal.text(),
                    refused: true,
                    references: Vec::new(),
                };
                // The refusal shows the schema, so the next list has it, too.
                let shows = refusal.input_schema.is_some() && toolset.mode().grows();
                self.note_found_tools(refusal.tool.filter(|_| shows).into_iter().collect());
                answer
            }
        };
        let loaded = answer.references.iter().map(|tool| tool.definition.len()).sum::<usize>();
        self.budget.hold(PART_BYTES + answer.text.len() + loaded);
        self.answers.push(answer);
        ResolvedCall::Hidden
    }

    fn answer(&self, id: Option<&str>, name: &str, reply: &Reply) -> HiddenAnswer {
        let mut references = Vec::new();
        if let Mode::Reference(primitive) = self.toolset.mode() {
            let known = |name: &String| {
                let definition = self.toolset.definition(name)?.to_owned();
                self.toolset
                    .is_deferred(name)
                    .then(|| ReferencedTool { name: name.clone(), definition })
            };
            // Where a reference is a declaration, a second one is refused.
            let fresh = |name: &&String| {
                primitive != ReferenceKind::AdditionalTools
                    || !self.known.contains(name) && !self.revealed.contains(name)
            };
            references.extend(reply.loaded.iter().filter(fresh).filter_map(known).take(REFERENCES));
        }
        // A definition that is loaded need not be told.
        let text = if references.is_empty() { reply.for_model() } else { reply.notes.join(" ") };
        HiddenAnswer {
            id: id.map(str::to_owned),
            at: 0,
            name: name.to_owned(),
            text,
            refused: false,
            references,
        }
    }

    /// The answers of the round that is over.
    pub(crate) fn take_answers(&mut self) -> Vec<HiddenAnswer> {
        self.calls = 0;
        std::mem::take(&mut self.answers)
    }

    /// The ids that were made in the round that is over.
    pub(crate) fn take_made_ids(&mut self) -> Vec<GeneratedId> {
        self.ids.as_mut().map(CallIdGenerator::take_round).unwrap_or_default()
    }

    /// The ids of the calls the client got in this turn.
    pub(crate) fn forwarded_ids(&self) -> &[Option<String>] {
        &self.forwarded
    }

    /// For each of these calls, the id that was made for it; empty if all have their own.
    pub(crate) fn made_ids(&self) -> &[Option<String>] {
        if self.made.iter().any(Option::is_some) { &self.made } else { &[] }
    }

    pub(crate) fn is_altered(&self) -> bool {
        self.altered
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint.finish()
    }

    pub(crate) fn revealed_tools(&self) -> &[String] {
        &self.revealed
    }

    pub(crate) fn unseen_calls(&self) -> &[String] {
        &self.blind
    }

    pub(crate) fn searches(&self) -> usize {
        self.searches
    }
}

/// The id that the upstream gave a call. Some servers send an empty one.
fn given(id: Option<&str>) -> Option<&str> {
    id.filter(|id| !id.is_empty())
}
