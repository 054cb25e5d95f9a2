//! The tokens saved so far, by model and client.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use toolcrib_dialect::TurnSummary;
use toolcrib_server::GatewayTotals;

use crate::caller::StatsView;

/// Maximum number of rows. Without a limit a client could create any number of rows, because clients choose their own
/// names. Further entries are added to extra rows: one for each configured caller, and one for all other clients.
const MAX_ROWS: usize = 256;

/// The totals since the proxy started.
#[derive(Debug)]
pub(crate) struct RunningTotals {
    since: Instant,
    rows: Mutex<BTreeMap<RowKey, TotalsRow>>,
}

/// The key of a row: the name of the authenticated caller (if any), the model, and the client's name. The caller has a
/// field of its own, so that a client that reports the name of a caller is not counted in that caller's rows.
type RowKey = (Option<String>, String, String);

impl Default for RunningTotals {
    fn default() -> Self {
        Self { since: Instant::now(), rows: Mutex::default() }
    }
}

/// The tokens saved, as `stats --live` reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Seconds since the proxy started.
    pub seconds: u64,
    /// One row for each model and client.
    pub rows: Vec<TotalsRow>,
    /// What the gateway in the same process has done. Missing if the statistics are those of one caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayTotals>,
}

/// The tokens saved for one model and client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TotalsRow {
    /// The model.
    pub model: String,
    /// The client: the caller's name, or the client's product name.
    pub client: String,
    /// Number of requests with tools.
    pub requests: u64,
    /// Number of requests whose tools were deferred.
    pub deferred: u64,
    /// Number of requests to the upstream, including hidden rounds.
    pub rounds: u64,
    /// Number of searches answered.
    pub searches: u64,
    /// Tokens of the tools as clients sent them.
    pub tokens_before: u64,
    /// Tokens of the tools as sent to the upstream, counted once for each request of a client.
    pub tokens_after: u64,
    /// The net number of input tokens saved, after subtracting the tokens of all rounds. Negative if deferring cost
    /// more than it saved.
    pub saved: i64,
}

impl TotalsRow {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.deferred += other.deferred;
        self.rounds += other.rounds;
        self.searches += other.searches;
        self.tokens_before += other.tokens_before;
        self.tokens_after += other.tokens_after;
        self.saved += other.saved;
    }
}

/// One request to be added to the totals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TotalsEntry<'a> {
    pub(crate) caller: Option<&'a str>,
    pub(crate) model: &'a str,
    pub(crate) client: &'a str,
    pub(crate) deferred: bool,
    pub(crate) tokens: (usize, usize),
    pub(crate) summary: TurnSummary,
}

impl RunningTotals {
    pub(crate) fn add(&self, entry: &TotalsEntry<'_>) {
        let mut rows = self.rows.lock();
        let caller = entry.caller.map(str::to_owned);
        let mut key = (caller, printable_name(entry.model), printable_name(entry.client));
        if rows.len() >= MAX_ROWS && !rows.contains_key(&key) {
            // The table is full, so the entry is added to a row for other models and clients. Each caller may have such
            // a row of its own, because there are only as many callers as the config lists.
            let client = key.0.as_ref().map_or_else(|| "other".into(), |_| key.2);
            key = (key.0, "other".into(), client);
        }
        let row = rows.entry(key).or_default();
        row.requests += 1;
        row.deferred += u64::from(entry.deferred);
        row.rounds += entry.summary.rounds as u64;
        row.searches += entry.summary.searches as u64;
        row.tokens_before += entry.tokens.0 as u64;
        row.tokens_after += entry.tokens.1 as u64;
        // A request without any round used no tokens, so it saved none.
        if entry.deferred && entry.summary.rounds > 0 {
            row.saved += saved(entry.tokens, &entry.summary);
        }
    }

    /// Returns the current totals that `view` includes.
    pub(crate) fn totals(&self, view: &StatsView) -> Totals {
        let rows = self.rows.lock();
        let mut seen: BTreeMap<(&str, &str), TotalsRow> = BTreeMap::new();
        for ((caller, model, client), row) in rows.iter() {
            let is_visible = match view {
                StatsView::All => true,
                StatsView::OneCaller(name) => caller.as_ref() == Some(name),
            };
            if is_visible {
                seen.entry((model, client)).or_default().add(row);
            }
        }
        let rows = seen.into_iter().map(|((model, client), row)| TotalsRow {
            model: model.to_owned(),
            client: client.to_owned(),
            ..row
        });
        Totals { seconds: self.since.elapsed().as_secs(), rows: rows.collect(), gateway: None }
    }
}

/// Returns the input tokens saved: the tokens of one request with all tools, minus the tokens of all rounds. If the
/// upstream reports no usage, only the tokens of the tools are compared.
pub(crate) fn saved((before, after): (usize, usize), summary: &TurnSummary) -> i64 {
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let (before, after) = (signed(before as u64), signed(after as u64));
    if summary.first.input == 0 {
        return before - after * signed(summary.rounds.max(1) as u64);
    }
    let direct = signed(summary.first.input) + before - after;
    direct - signed(summary.usage.input)
}

/// Returns the printable part of a name that a client chose, shortened to 64 characters, or `unknown` if nothing is
/// left.
pub(crate) fn printable_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    let name: String = name.chars().filter(|c| plain(*c)).take(64).collect();
    if name.is_empty() { "unknown".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_dialect::usage::Usage;

    fn summary(rounds: usize, first: u64, all: u64) -> TurnSummary {
        let usage = |input| Usage { input, ..Usage::default() };
        TurnSummary { rounds, usage: usage(all), first: usage(first), ..TurnSummary::default() }
    }

    #[test]
    fn the_tokens_of_hidden_rounds_are_subtracted() {
        // The tools take 2,000 tokens instead of 50,000 (3,000 in the third case), and the rest of the prompt takes
        // 1,000.
        assert_eq!(saved((50_000, 2_000), &summary(1, 3_000, 3_000)), 48_000);
        assert_eq!(saved((50_000, 2_000), &summary(2, 3_000, 8_000)), 43_000);
        assert_eq!(saved((3_000, 2_000), &summary(3, 3_000, 12_000)), -8_000);
        assert_eq!(saved((50_000, 2_000), &summary(2, 0, 0)), 46_000);
    }

    #[test]
    fn the_number_and_characters_of_client_names_are_limited() {
        let running = RunningTotals::default();
        for at in 0..1_000 {
            let client = format!("c\n\"{at}");
            let summary = summary(1, 0, 0);
            running.add(&TotalsEntry {
                caller: None,
                model: "m",
                client: &client,
                deferred: true,
                tokens: (2, 1),
                summary,
            });
        }
        let totals = running.totals(&StatsView::All);
        assert_eq!(totals.rows.len(), MAX_ROWS + 1);
        assert_eq!(totals.rows.iter().map(|row| row.requests).sum::<u64>(), 1_000);
        assert!(totals.rows.iter().all(|row| !row.client.contains(['\n', '"'])));
    }
}
