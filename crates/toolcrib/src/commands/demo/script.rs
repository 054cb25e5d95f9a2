//! The conversation of the demo: a scripted model calls tools, and the engine answers.
//!
//! The script does only what any model would: search, load a tool by name, call it, and try again after a refusal.

use serde::Serialize;
use serde_json::{Value, json};
use toolcrib_core::disclosure::{CALL, DESCRIBE, DisclosureKind, SEARCH};
use toolcrib_core::rank::Explanation;
use toolcrib_core::{
    CallOutcome, Conversation, Crib, Query, Refusal, Reply, Scope, Settings, TurnContext,
};

/// The model's context window, in tokens.
pub(super) const CONTEXT: usize = 200_000;

/// The user's request.
pub(super) const TASK: &str =
    "Checkout crashes on empty carts. Open an issue in acme/shop and tell #releases on Slack.";

const QUERY: &str = "create github issue";
pub(super) const ISSUE: &str = "github__create_issue";
/// The name that the model guesses for the Slack tool. The name is plausible, but no tool has it.
const GUESS: &str = "slack__send_message";
const MESSAGE: &str = "slack__post_message";

/// One turn: the tokens that the tools take up in the context, the model's call, and the result.
#[derive(Serialize)]
pub(super) struct DemoTurn {
    /// Tokens that the tools take up in the context: definitions, instructions, and the searches so far.
    pub(super) tokens: usize,
    /// The tool that the model called; empty for the last turn.
    pub(super) tool: String,
    /// The arguments of the call.
    pub(super) input: Value,
    #[serde(flatten)]
    pub(super) got: DemoResult,
}

/// The result of a call.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DemoResult {
    /// The engine answered the call: it was a search, or a request for a tool's description. `why` explains the score
    /// of a search's first hit.
    Answer { reply: Box<Reply>, why: Option<Box<Explanation>> },
    /// The called tool is run.
    Run { name: String, arguments: Value },
    /// The call was wrong, and the model is told how to correct it.
    Refused(Box<Refusal>),
    /// The model calls nothing and answers the user.
    Done,
}

/// Plays the whole conversation and returns its turns.
pub(super) fn play(crib: &Crib) -> Vec<DemoTurn> {
    let scope = Scope::all(crib.catalog());
    let mut model = ScriptedModel {
        crib,
        scope,
        conversation: Conversation::new(),
        search_tokens: 0,
        turns: Vec::new(),
    };
    let found = model.search(QUERY);
    model.get_schema(ISSUE, &found);
    let crash = "Checkout crashes on empty carts";
    model.call(ISSUE, &json!({"owner": "acme", "repo": "shop", "titel": crash}));
    model.call(ISSUE, &json!({"owner": "acme", "repo": "shop", "title": crash}));
    let mut found = model.load(GUESS);
    if !found.iter().any(|name| name == MESSAGE) {
        found = model.load(MESSAGE);
    }
    model.get_schema(MESSAGE, &found);
    let text = "Filed: checkout crashes on empty carts.";
    model.call(MESSAGE, &json!({"channel": "#releases", "text": text}));
    model.done();
    model.turns
}

struct ScriptedModel<'a> {
    crib: &'a Crib,
    scope: Scope,
    conversation: Conversation,
    /// Tokens that tool search has added to the conversation so far: searches, refused calls, the replies to both, and
    /// the wrappers of calls in bridge mode.
    search_tokens: usize,
    turns: Vec<DemoTurn>,
}

impl ScriptedModel<'_> {
    fn settings(&self) -> &Settings {
        self.crib.settings()
    }

    fn search(&mut self, query: &str) -> Vec<String> {
        self.turn(SEARCH, json!({ "query": query }))
    }

    /// Loads a tool by name, as the description of the search tool tells the model to. Returns the names of the tools
    /// in the reply.
    fn load(&mut self, name: &str) -> Vec<String> {
        if self.settings().rank.ranker.knows_operators() {
            self.search(&format!("select:{name}"))
        } else {
            self.search(name)
        }
    }

    /// Gets the schema of the tool `name`, unless a search has already returned it. `found` contains the names of the
    /// tools that the search found.
    fn get_schema(&mut self, name: &str, found: &[String]) {
        if !self.settings().search.schemas {
            self.turn(DESCRIBE, json!({ "name": name }));
        } else if !found.iter().any(|known| known == name) {
            self.load(name);
        }
    }

    fn call(&mut self, name: &str, arguments: &Value) {
        if self.settings().disclosure_kind() == DisclosureKind::Bridge {
            self.turn(CALL, json!({ "name": name, "arguments": arguments }));
        } else {
            self.turn(name, arguments.clone());
        }
    }

    /// Makes one call. Returns the names of the tools in the reply.
    fn turn(&mut self, tool: &str, input: Value) -> Vec<String> {
        let (crib, tokens) = (self.crib, self.tokens());
        let turn = TurnContext::new(&self.scope).with_context_window(CONTEXT);
        let arguments = input.to_string();
        let count = |text: &str| crib.counter().count(text);
        let call_tokens = count(&arguments);
        let mut names = Vec::new();
        let got = match crib.handle(&turn, &mut self.conversation, tool, &arguments) {
            CallOutcome::Answer(reply) => {
                self.search_tokens += call_tokens + count(&reply.for_model());
                names.extend(reply.hits.iter().map(|hit| hit.name.clone()));
                let why = self.explain_first_hit(&reply).map(Box::new);
                DemoResult::Answer { reply: Box::new(reply), why }
            }
            CallOutcome::Run(call) => {
                // In bridge mode, the model sends the call inside a `tool_call`. The tokens of this wrapper are a cost
                // of tool search, so they are counted.
                self.search_tokens += call_tokens.saturating_sub(count(call.arguments.get()));
                let arguments = serde_json::from_str(call.arguments.get()).unwrap_or_default();
                DemoResult::Run { name: call.name, arguments }
            }
            CallOutcome::Refused(refusal) => {
                self.search_tokens += call_tokens + count(&refusal.text());
                DemoResult::Refused(Box::new(refusal))
            }
        };
        self.turns.push(DemoTurn { tokens, tool: tool.to_owned(), input, got });
        names
    }

    /// Adds the last turn, in which the model calls nothing.
    fn done(&mut self) {
        let (tokens, tool) = (self.tokens(), String::new());
        self.turns.push(DemoTurn { tokens, tool, input: Value::Null, got: DemoResult::Done });
    }

    /// Returns the number of tokens that the tools take up in the context now.
    fn tokens(&mut self) -> usize {
        let turn = TurnContext::new(&self.scope).with_context_window(CONTEXT);
        self.crib.disclose(&turn, &mut self.conversation).tokens_after + self.search_tokens
    }

    /// Explains the score of a search's first hit. Returns `None` if there is no hit with a score, as when tools are
    /// loaded by name.
    fn explain_first_hit(&self, reply: &Reply) -> Option<Explanation> {
        let first = reply.hits.first().filter(|hit| hit.score > 0.0)?;
        let Query::Words(words) = self.crib.parse(&reply.query, &self.scope) else { return None };
        self.crib.explain(&words, &self.scope, self.crib.catalog().find(&first.name)?)
    }
}
