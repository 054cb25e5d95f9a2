//! `toolcrib demo`: shows tool search in one conversation over the sample catalog.
//!
//! Only the task and the model's calls are scripted. All numbers are computed.

mod print;
mod script;

use serde::Serialize;
use toolcrib_core::{Conversation, Scope, TokenCounter as _, TurnContext};
use toolcrib_tokens::{Vocabulary, VocabularyCounter};

use crate::args::DemoArgs;
use crate::load;
use crate::output::{Failure, Output};
use script::{CONTEXT, DemoResult, DemoTurn, TASK, play};

#[derive(Serialize)]
struct DemoReport {
    preset: &'static str,
    tools: usize,
    servers: usize,
    counter: String,
    context: usize,
    task: &'static str,
    /// Tokens of all tool definitions in full. Without tool search, every turn contains them.
    tokens: usize,
    /// Tokens of what the model sees of the tools in the first turn, with tool search.
    first_turn: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    listing: Option<String>,
    turns: Vec<DemoTurn>,
    without: TokenTotal,
    with: TokenTotal,
    saved_percent: f64,
}

#[derive(Serialize)]
struct TokenTotal {
    turns: usize,
    tokens: usize,
}

pub(crate) fn run(args: &DemoArgs, output: &mut Output) -> Result<bool, Failure> {
    let counter = VocabularyCounter::exact(Vocabulary::O200k);
    let label = counter.label().to_owned();
    let crib = load::sample(args.preset.settings())?.with_counter(counter.shared());
    let scope = Scope::all(crib.catalog());
    let turn = TurnContext::new(&scope).with_context_window(CONTEXT);
    let shown = crib.disclose(&turn, &mut Conversation::new());
    let turns = play(&crib);
    // Without tool search, the model would make the same calls, but would neither search nor ask for descriptions. The
    // turns that do so have an `Answer` as their result, and are not counted here.
    let without =
        turns.iter().filter(|turn| !matches!(turn.got, DemoResult::Answer { .. })).count();
    let without = TokenTotal { turns: without, tokens: without * shown.tokens_before };
    let with =
        TokenTotal { turns: turns.len(), tokens: turns.iter().map(|turn| turn.tokens).sum() };
    let report = DemoReport {
        preset: args.preset.name(),
        tools: crib.catalog().len(),
        servers: crib.catalog().servers().len(),
        counter: label,
        context: CONTEXT,
        task: TASK,
        tokens: shown.tokens_before,
        first_turn: shown.tokens_after,
        listing: shown.listing.as_ref().map(|listing| listing.text.clone()),
        turns,
        saved_percent: saved(without.tokens, with.tokens),
        without,
        with,
    };
    if output.is_json() {
        output.document(&report)?;
    } else {
        print::print(&report, &crib, &shown, output)?;
    }
    Ok(true)
}

fn saved(before: usize, after: usize) -> f64 {
    100.0 * (before as f64 - after as f64) / before.max(1) as f64
}
