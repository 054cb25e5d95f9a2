//! A conversation, played: what a model with a task would call, and what really becomes of it.
//!
//! The model is a script, everything else is the engine. The script only knows what every model
//! would: search, load by name, call, and try again when told what was wrong.

use serde::Serialize;
use serde_json::{Value, json};
use toolcrib_core::disclosure::{CALL, DESCRIBE, DisclosureKind, SEARCH};
use toolcrib_core::rank::Explanation;
use toolcrib_core::{
    CallOutcome, Conversation, Crib, Query, Refusal, Reply, Scope, Settings, TurnContext,
};

/// The model's context window, in tokens.
pub(super) const CONTEXT: usize = 200_000;

/// What the user wants.
pub(super) const TASK: &str =
    "Checkout crashes on empty carts. Open an issue in acme/shop and tell #releases on Slack.";

const QUERY: &str = "create github issue";
pub(super) const ISSUE: &str = "github__create_issue";
/// What a model would guess; the tool is called otherwise.
const GUESS: &str = "slack__send_message";
const MESSAGE: &str = "slack__post_message";

/// One turn: what the model had before it, what it did, what it got.
#[derive(Serialize)]
pub(super) struct Played {
    /// Tokens of tools before the model: definitions, instruction, and the searches so far.
    pub(super) tokens: usize,
    /// The tool it called; empty for the last turn.
    pub(super) tool: String,
    /// With this.
    pub(super) input: Value,
    #[serde(flatten)]
    pub(super) got: Got,
}

/// What became of a call.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Got {
    /// A search or a description, with the numbers behind the first hit of a search.
    Answer { reply: Box<Reply>, why: Option<Box<Explanation>> },
    /// The real tool runs.
    Run { name: String, arguments: Value },
    /// It called wrongly, and is told what would be right.
    Refused(Box<Refusal>),
    /// It has what it needs and answers the user.
    Done,
}

/// Plays the whole conversation.
pub(super) fn play(crib: &Crib) -> Vec<Played> {
    let scope = Scope::all(crib.catalog());
    let mut player =
        Player { crib, scope, conversation: Conversation::new(), said: 0, played: Vec::new() };
    let found = player.search(QUERY);
    player.get_schema(ISSUE, &found);
    let crash = "Checkout crashes on empty carts";
    player.call(ISSUE, &json!({"owner": "acme", "repo": "shop", "titel": crash}));
    player.call(ISSUE, &json!({"owner": "acme", "repo": "shop", "title": crash}));
    let mut found = player.load(GUESS);
    if !found.iter().any(|name| name == MESSAGE) {
        found = player.load(MESSAGE);
    }
    player.get_schema(MESSAGE, &found);
    let text = "Filed: checkout crashes on empty carts.";
    player.call(MESSAGE, &json!({"channel": "#releases", "text": text}));
    player.done();
    player.played
}

struct Player<'a> {
    crib: &'a Crib,
    scope: Scope,
    conversation: Conversation,
    /// Tokens of our answers and the calls that asked for them: they stay in the conversation.
    said: usize,
    played: Vec<Played>,
}

impl Player<'_> {
    fn settings(&self) -> &Settings {
        self.crib.settings()
    }

    fn search(&mut self, query: &str) -> Vec<String> {
        self.turn(SEARCH, json!({ "query": query }))
    }

    /// Asks for a name the way this search tool says to.
    fn load(&mut self, name: &str) -> Vec<String> {
        if self.settings().rank.ranker.knows_operators() {
            self.search(&format!("select:{name}"))
        } else {
            self.search(name)
        }
    }

    /// Goes for a schema that the search did not show.
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

    /// One call of the model; returns the tools whose names it now knows.
    fn turn(&mut self, tool: &str, input: Value) -> Vec<String> {
        let (crib, tokens) = (self.crib, self.tokens());
        let turn = TurnContext { context_window: Some(CONTEXT), ..TurnContext::new(&self.scope) };
        let written = input.to_string();
        let count = |text: &str| crib.counter().count(text);
        let asked = count(&written);
        let mut names = Vec::new();
        let got = match crib.handle(&turn, &mut self.conversation, tool, &written) {
            CallOutcome::Answer(reply) => {
                self.said += asked + count(&reply.for_model());
                names.extend(reply.hits.iter().map(|hit| hit.name.clone()));
                let why = self.why(&reply).map(Box::new);
                Got::Answer { reply: Box::new(reply), why }
            }
            CallOutcome::Run(call) => {
                // What the bridge puts around a call is ours too.
                self.said += asked.saturating_sub(count(call.arguments.get()));
                let arguments = serde_json::from_str(call.arguments.get()).unwrap_or_default();
                Got::Run { name: call.name, arguments }
            }
            CallOutcome::Refused(refusal) => {
                self.said += asked + count(&refusal.text());
                Got::Refused(Box::new(refusal))
            }
        };
        self.played.push(Played { tokens, tool: tool.to_owned(), input, got });
        names
    }

    /// The last turn, in which nothing is called.
    fn done(&mut self) {
        let (tokens, tool) = (self.tokens(), String::new());
        self.played.push(Played { tokens, tool, input: Value::Null, got: Got::Done });
    }

    /// Tokens of tools before the model now.
    fn tokens(&mut self) -> usize {
        let turn = TurnContext { context_window: Some(CONTEXT), ..TurnContext::new(&self.scope) };
        self.crib.disclose(&turn, &mut self.conversation).tokens_after + self.said
    }

    /// The numbers behind the first hit, where words found it.
    fn why(&self, reply: &Reply) -> Option<Explanation> {
        let first = reply.hits.first().filter(|hit| hit.score > 0.0)?;
        let Query::Words(words) = self.crib.parse(&reply.query, &self.scope) else { return None };
        self.crib.explain(&words, &self.scope, self.crib.catalog().find(&first.name)?)
    }
}
