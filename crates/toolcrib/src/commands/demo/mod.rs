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
use script::{CONTEXT, DemoTurn, TASK, TurnResult, play};

#[derive(Serialize)]
struct DemoReport {
    preset: &'static str,
    tools: usize,
    servers: usize,
    counter: String,
    context: usize,
    task: &'static str,
    /// Tokens of all complete tool definitions, which every turn contains without tool search.
    tokens: usize,
    /// Tokens of the first turn with tool search.
    first_turn: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    listing: Option<String>,
    turns: Vec<DemoTurn>,
    without: Total,
    with: Total,
    saved_percent: f64,
}

/// The number of turns, and their tokens.
#[derive(Serialize)]
struct Total {
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
    // Without tool search, the model makes the same calls but does not search.
    let without =
        turns.iter().filter(|turn| !matches!(turn.got, TurnResult::Answer { .. })).count();
    let without = Total { turns: without, tokens: without * shown.tokens_before };
    let with = Total { turns: turns.len(), tokens: turns.iter().map(|turn| turn.tokens).sum() };
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
