//! `toolcrib demo`: the whole idea in one conversation over the sample catalog.
//!
//! Every number is computed while it plays; only the task and the model's part are written down.

mod play;
mod print;

use serde::Serialize;
use toolcrib_core::{Conversation, Scope, TokenCounter as _, TurnContext};
use toolcrib_tokens::{Counter, Vocabulary};

use crate::args::DemoArgs;
use crate::load;
use crate::output::{Failure, Output};
use play::{CONTEXT, Got, Played, TASK, play};

#[derive(Serialize)]
struct Answer {
    preset: &'static str,
    tools: usize,
    servers: usize,
    counter: String,
    context: usize,
    task: &'static str,
    /// Tokens of the tools as they are, on every turn.
    tokens: usize,
    /// Tokens of the first turn with Toolcrib.
    first_turn: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    listing: Option<String>,
    turns: Vec<Played>,
    without: Total,
    with: Total,
    saved_percent: f64,
}

/// All turns together.
#[derive(Serialize)]
struct Total {
    turns: usize,
    tokens: usize,
}

pub(crate) fn run(args: &DemoArgs, output: &mut Output) -> Result<bool, Failure> {
    let counter = Counter::exact(Vocabulary::O200k);
    let label = counter.label().to_owned();
    let crib = load::sample(args.preset.settings())?.with_counter(counter.shared());
    let scope = Scope::all(crib.catalog());
    let turn = TurnContext { context_window: Some(CONTEXT), ..TurnContext::new(&scope) };
    let shown = crib.disclose(&turn, &mut Conversation::new());
    let turns = play(&crib);
    // Without tool search the model calls the very same tools, and searches for none.
    let without = turns.iter().filter(|turn| !matches!(turn.got, Got::Answer { .. })).count();
    let without = Total { turns: without, tokens: without * shown.tokens_before };
    let with = Total { turns: turns.len(), tokens: turns.iter().map(|turn| turn.tokens).sum() };
    let answer = Answer {
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
        output.document(&answer)?;
    } else {
        print::print(&answer, &crib, &shown, output)?;
    }
    Ok(true)
}

fn saved(before: usize, after: usize) -> f64 {
    100.0 * (before as f64 - after as f64) / before.max(1) as f64
}
