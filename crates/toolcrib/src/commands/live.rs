//! `toolcrib stats --live`: shows how many tokens a proxy has saved so far, by model and client.

use std::io::IsTerminal as _;
use std::time::Duration;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use toolcrib_proxy::fetch_totals::fetch_totals;
use toolcrib_proxy::totals::{Totals, TotalsRow};
use toolcrib_server::Secret;

use crate::output::{Failure, Output};

/// Interval at which the totals are refreshed on a terminal.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);

/// Prints the totals. On a terminal they are printed repeatedly until interrupted, otherwise once.
pub(crate) fn run(url: &str, output: &mut Output) -> Result<bool, Failure> {
    let key = std::env::var("TOOLCRIB_KEY").ok().map(Secret::from);
    let repeats = !output.is_json() && std::io::stdout().is_terminal();
    super::gateway::block_on(async {
        loop {
            let total = fetch_totals(url, key.as_ref()).await;
            let total =
                total.map_err(|error| Failure::input(format!("`{url}`"), &error, error.hint()))?;
            if output.is_json() {
                output.document(&total)?;
            } else {
                if repeats {
                    output.clear()?;
                }
                output.line(&text(&total))?;
            }
            if !repeats {
                return Ok(true);
            }
            output.finish()?;
            tokio::time::sleep(REFRESH_INTERVAL).await;
        }
    })
}

fn text(total: &Totals) -> String {
    let minutes = total.seconds / 60;
    if total.rows.is_empty() {
        return format!("No request with tools since the proxy started {minutes} min ago.");
    }
    let mut table = Table::new();
    table.load_style(NOTHING).set_header([
        "model",
        "client",
        "requests",
        "deferred",
        "rounds",
        "searches",
        "tools before",
        "after",
        "saved",
    ]);
    for row in total.rows.iter().chain((total.rows.len() > 1).then(|| sum(total)).as_ref()) {
        table.add_row([
            row.model.clone(),
            row.client.clone(),
            row.requests.to_string(),
            row.deferred.to_string(),
            row.rounds.to_string(),
            row.searches.to_string(),
            row.tokens_before.to_string(),
            row.tokens_after.to_string(),
            row.saved.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{table}\n\nTokens since the proxy started {minutes} min ago. `saved` takes the cost of hidden rounds into account."
    )
}

fn sum(total: &Totals) -> TotalsRow {
    let mut all = TotalsRow { model: "all".into(), ..TotalsRow::default() };
    for row in &total.rows {
        all.requests += row.requests;
        all.deferred += row.deferred;
        all.rounds += row.rounds;
        all.searches += row.searches;
        all.tokens_before += row.tokens_before;
        all.tokens_after += row.tokens_after;
        all.saved += row.saved;
    }
    all
}
