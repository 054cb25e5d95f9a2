//! Decides what happens to each call of the model.
//!
//! A call of a tool that the model sees in full is forwarded to the client as it arrives. Every other call is held
//! until it is complete. Then:
//!
//! - A call of one of Toolcrib's own tools is answered here.
//! - A call of a deferred tool is unwrapped, checked against the real schema, and forwarded under the real name.
//! - A call that cannot be run is answered with what the model needs to correct it.
//!
//! The answers are collected until the round ends.

use std::sync::Arc;

use toolcrib_core::conversation::DEFAULT_MAX_REVEALS;
use toolcrib_core::{CallOutcome, Conversation, Ledger, Reply};

use crate::budget::ResponseBudget;
use crate::call_ids::{CallIdGenerator, GeneratedId};
use crate::fingerprint::{FingerprintBuilder, SegmentFingerprint};
use crate::hidden_rounds::{HiddenAnswer, ReferencedTool};
use crate::limits::{PART_BYTES, ResponseLimits};
use crate::mode::{MAX_REFERENCES, Mode, ReferenceKind};
use crate::toolset::Toolset;

/// How the events of a call are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallRoute {
    /// The events are forwarded as they arrive.
    Forward,
    /// The events are held until the call is complete.
    Hold,
}

/// The decision about a call that was held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResolvedCall {
    /// The call is forwarded to the client with this name and these arguments.
    Forward {
        /// The tool's real name.
        name: String,
        /// The tool's own arguments, as JSON text.
        arguments: String,
    },
    /// The call is answered here, and the client does not see it.
    Hidden,
}

/// Routes the calls of one turn, over all its rounds.
#[derive(Debug)]
pub(crate) struct CallRouter {
    toolset: Arc<Toolset>,
    conversation: Conversation,
    /// Tools whose definitions the model was shown before this turn.
    revealed_before: Vec<String>,
    /// Tools whose definitions the model was shown in this turn.
    revealed: Vec<String>,
    /// Tools whose calls were forwarded although their schemas had not been shown.
    unseen_calls: Vec<String>,
    /// Answers to the hidden calls of this round.
    answers: Vec<HiddenAnswer>,
    /// The fingerprint of the text and calls that the client received in this turn.
    fingerprint: Box<FingerprintBuilder>,
    /// The number of calls in this round so far.
    calls: usize,
    /// The ids of the calls that were forwarded. `None` for a call that arrived without an id.
    forwarded_ids: Vec<Option<String>>,
    /// For each call in `forwarded_ids`, the id that was generated for it, if it needed one.
    generated_ids: Vec<Option<String>>,
    /// Generates ids for calls that have none. `None` if the API does not require ids.
    id_generator: Option<CallIdGenerator>,
    /// Whether what the client saw differs from what the upstream sent.
    is_altered: bool,
    searches: usize,
    pub(crate) budget: ResponseBudget,
}

impl CallRouter {
    pub(crate) fn new(
        toolset: Arc<Toolset>,
        revealed: &[String],
        id_generator: Option<CallIdGenerator>,
        limits: ResponseLimits,
    ) -> Self {
        let names = revealed.iter().map(String::as_str);
        let conversation =
            Conversation::with_ledger(Ledger::from_names(names, DEFAULT_MAX_REVEALS));
        Self {
            toolset,
            conversation,
            revealed_before: revealed.to_vec(),
            revealed: Vec::new(),
            unseen_calls: Vec::new(),
            answers: Vec::new(),
            fingerprint: Box::default(),
            calls: 0,
            forwarded_ids: Vec::new(),
            generated_ids: Vec::new(),
            id_generator,
            is_altered: false,
            searches: 0,
            budget: ResponseBudget::new(limits),
        }
    }

    /// Copies from another router everything that describes what the client has seen so far.
    pub(crate) fn resume_from(&mut self, other: &Self) {
        self.fingerprint.clone_from(&other.fingerprint);
        self.forwarded_ids.clone_from(&other.forwarded_ids);
        self.generated_ids.clone_from(&other.generated_ids);
        self.is_altered = other.is_altered;
        self.searches = other.searches;
        self.budget = other.budget.clone();
    }

    pub(crate) fn toolset(&self) -> &Toolset {
        &self.toolset
    }

    /// Decides how the events of a call with this name are treated.
    pub(crate) fn route(&self, name: &str) -> CallRoute {
        let tools = &self.toolset;
        if tools.is_deferred(name) {
            let is_hosted = matches!(tools.mode(), Mode::Hosted(_));
            let was_shown =
                tools.mode() != Mode::Bridge && self.conversation.ledger().has_name(name);
            return if is_hosted || was_shown { CallRoute::Forward } else { CallRoute::Hold };
        }
        if tools.is_declared(name) { CallRoute::Forward } else { CallRoute::Hold }
    }

    /// Records a call that was forwarded unchanged.
    pub(crate) fn note_forwarded_call(&mut self, id: Option<&str>, name: &str, arguments: &str) {
        self.calls += 1;
        self.budget.call();
        let id = non_empty(id);
        let generated = self.generate_id(id, name);
        self.forward(id, generated, name, arguments);
    }

    /// Generates an id for a call whose own id is `given`. Returns `None` if the call has an id or the API does not
    /// require ids.
    fn generate_id(&mut self, given: Option<&str>, name: &str) -> Option<String> {
        let generator = self.id_generator.as_mut().filter(|_| given.is_none())?;
        Some(generator.generate(name))
    }

    fn forward(
        &mut self,
        id: Option<&str>,
        generated: Option<String>,
        name: &str,
        arguments: &str,
    ) {
        self.budget.hold(PART_BYTES + id.map_or(0, str::len));
        self.forwarded_ids.push(id.map(str::to_owned));
        self.generated_ids.push(generated);
        self.fingerprint.call(id, name, arguments);
        self.note_unseen_call(name);
    }

    /// Remembers a deferred tool that was called although the model had not been shown its schema. Otherwise the next
    /// request would treat the call as evidence of a lost record and load the tool again, which would change the prefix
    /// of the prompt.
    fn note_unseen_call(&mut self, name: &str) {
        let native = matches!(self.toolset.mode(), Mode::Reference(_) | Mode::Hosted(_));
        let shown =
            [&self.revealed_before, &self.revealed, &self.unseen_calls].into_iter().flatten();
        if native && self.toolset.is_deferred(name) && !shown.into_iter().any(|other| other == name)
        {
            self.unseen_calls.push(name.to_owned());
            self.is_altered = true;
        }
    }

    /// Adds text that was forwarded to the client to the fingerprint.
    pub(crate) fn note_text(&mut self, text: &str) {
        self.fingerprint.text(text);
    }

    /// Records that output of the upstream was hidden from the client and needs no answer.
    pub(crate) fn note_hidden_output(&mut self) {
        self.is_altered = true;
    }

    /// Records tools whose definitions the model was shown by Toolcrib's search, by the provider's search, or in a
    /// refusal.
    pub(crate) fn note_found_tools(&mut self, names: Vec<String>) {
        for name in names {
            let loaded = self.revealed_before.len() + self.revealed.len();
            if !self.was_revealed(&name) || self.toolset.order_matters(loaded) {
                self.revealed.push(name);
            }
        }
    }

    fn was_revealed(&self, name: &String) -> bool {
        self.revealed_before.contains(name) || self.revealed.contains(name)
    }

    /// Whether the provider runs the searches, instead of Toolcrib.
    pub(crate) fn is_hosted_search(&self) -> bool {
        matches!(self.toolset.mode(), Mode::Hosted(_))
    }

    /// Decides what happens to a complete call that was held.
    pub(crate) fn resolve(
        &mut self,
        id: Option<&str>,
        name: &str,
        arguments: &str,
    ) -> ResolvedCall {
        self.is_altered = true;
        let at = self.calls;
        self.calls += 1;
        self.budget.call();
        let id = non_empty(id);
        let generated = self.generate_id(id, name);
        let input = if arguments.trim().is_empty() { "{}" } else { arguments };
        let toolset = Arc::clone(&self.toolset);
        let outcome = toolset.crib().handle(&toolset.turn(), &mut self.conversation, name, input);
        let answer = match outcome {
            CallOutcome::Run(call) => {
                let (name, arguments) = (call.name, call.arguments.get().to_owned());
                self.forward(id, generated, &name, &arguments);
                return ResolvedCall::Forward { name, arguments };
            }
            CallOutcome::Answer(reply) => {
                self.searches += 1;
                let id = generated.as_deref().or(id);
                let answer = HiddenAnswer { at, ..self.answer(id, name, &reply) };
                let mut loaded = reply.loaded;
                if toolset.crib().settings().limits_revealed() {
                    // Only the most recently found tools are shown, up to a limit. So the best hit must come last.
                    loaded.reverse();
                }
                self.note_found_tools(loaded);
                answer
            }
            CallOutcome::Refused(refusal) => {
                let answer = HiddenAnswer {
                    id: generated.or_else(|| id.map(str::to_owned)),
                    at,
                    name: name.to_owned(),
                    text: refusal.text(),
                    refused: true,
                    references: Vec::new(),
                };
                // The refusal shows the model the tool's schema, so the `tools` of the next request must include this
                // tool.
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
        if let Mode::Reference(kind) = self.toolset.mode() {
            let known = |name: &String| {
                let definition = self.toolset.definition(name)?.to_owned();
                self.toolset
                    .is_deferred(name)
                    .then(|| ReferencedTool { name: name.clone(), definition })
            };
            // The provider rejects an `additional_tools` item with a tool that was already loaded.
            let fresh =
                |name: &&String| kind != ReferenceKind::AdditionalTools || !self.was_revealed(name);
            references
                .extend(reply.loaded.iter().filter(fresh).filter_map(known).take(MAX_REFERENCES));
        }
        // Definitions that the answer loads by reference need not be repeated in its text.
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

    /// Removes and returns the answers to the hidden calls of the round that has ended.
    pub(crate) fn take_answers(&mut self) -> Vec<HiddenAnswer> {
        self.calls = 0;
        std::mem::take(&mut self.answers)
    }

    /// Removes and returns the ids that were generated in the round that has ended.
    pub(crate) fn take_generated_ids(&mut self) -> Vec<GeneratedId> {
        self.id_generator.as_mut().map(CallIdGenerator::take_round).unwrap_or_default()
    }

    /// Returns the ids of the calls that were forwarded in this turn. `None` for a call that arrived without an id.
    pub(crate) fn forwarded_ids(&self) -> &[Option<String>] {
        &self.forwarded_ids
    }

    /// Returns, for each call in `forwarded_ids`, the id that was generated for it, if any. The list is empty if no id
    /// was generated at all.
    pub(crate) fn generated_ids(&self) -> &[Option<String>] {
        if self.generated_ids.iter().any(Option::is_some) { &self.generated_ids } else { &[] }
    }

    pub(crate) fn is_altered(&self) -> bool {
        self.is_altered
    }

    pub(crate) fn fingerprint(&self) -> SegmentFingerprint {
        self.fingerprint.finish()
    }

    pub(crate) fn revealed_tools(&self) -> &[String] {
        &self.revealed
    }

    pub(crate) fn unseen_calls(&self) -> &[String] {
        &self.unseen_calls
    }

    pub(crate) fn searches(&self) -> usize {
        self.searches
    }
}

/// Returns the id, or `None` if it is empty, because some servers send an empty id for a call without one.
fn non_empty(id: Option<&str>) -> Option<&str> {
    id.filter(|id| !id.is_empty())
}
