//! `toolcrib stats`: shows how many tokens the tools cost, and how many deferring them saves.

use std::collections::BTreeMap;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use toolcrib_core::disclosure::DisclosureSetting;
use toolcrib_core::policy::{ActivationMode, Deferral};
use toolcrib_core::{Conversation, Crib, Scope, Settings, TokenCounter, TurnContext, Weakness};
use toolcrib_tokens::VocabularyCounter;

use super::tool_source::ToolSource;
use crate::args::StatsArgs;
use crate::output::{Failure, Output};
use crate::terminal::stdout_width;

/// Width of the longest bar, in columns.
const BAR_WIDTH: usize = 24;
/// Width of the other columns of the tables, in columns, if the names are not unusually long.
const OTHER_COLUMNS: usize = 50;
/// Maximum number of weakly described tools that are printed.
const MAX_WEAK_SHOWN: usize = 10;
/// Maximum number of servers that are printed.
const MAX_SERVERS_SHOWN: usize = 30;

#[derive(Serialize)]
struct StatsReport {
    tools: usize,
    tokens: usize,
    counter: String,
    exact: bool,
    context: usize,
    context_percent: f64,
    /// Whether tools are deferred with these settings.
    active: bool,
    reason: String,
    /// How deferred tools are shown with these settings.
    disclosure: &'static str,
    servers: Vec<ServerCost>,
    disclosures: Vec<DisclosureCost>,
    weak: Vec<Weakness>,
}

#[derive(Serialize)]
struct ServerCost {
    server: String,
    tools: usize,
    tokens: usize,
    percent: f64,
}

#[derive(Serialize)]
struct DisclosureCost {
    disclosure: &'static str,
    /// Tokens that the tools take up in the first turn.
    tokens: usize,
    /// Tokens saved compared with all tools in full. Negative if deferring costs more than it saves.
    saved: isize,
    saved_percent: f64,
    context_percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    listing: Option<String>,
}

pub(crate) fn run(args: &StatsArgs, output: &mut Output) -> Result<bool, Failure> {
    if let Some(url) = &args.live {
        return super::live::run(Some(url.as_str()).filter(|url| !url.is_empty()), output);
    }
    let counter = VocabularyCounter::for_model(&args.model);
    let ToolSource { crib, scope, .. } =
        ToolSource::load(&args.source, None, counter.clone().shared())?;
    let report = report(&crib, &scope, &counter, args.context);
    if output.is_json() {
        output.document(&report)?;
    } else {
        print(&report, output)?;
    }
    Ok(true)
}

fn report(crib: &Crib, scope: &Scope, counter: &VocabularyCounter, context: usize) -> StatsReport {
    let turn = TurnContext::new(scope).with_context_window(context);
    let sizes = crib.definition_tokens();
    let tokens: usize = scope.ids().map(|id| sizes[id.index()]).sum();
    let decision = crib.decide_with_search(&crib.disclose(&turn, &mut Conversation::new()));
    let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    let catalog = crib.catalog();
    StatsReport {
        tools: scope.ids().count(),
        tokens,
        counter: counter.label().to_owned(),
        exact: counter.is_exact(),
        context,
        context_percent: percent(tokens, context),
        active: decision.deferral != Deferral::Nothing,
        reason: decision.reason.to_string(),
        disclosure: DisclosureSetting::from(crib.settings().disclosure_kind()).name(),
        servers: servers(crib, scope),
        disclosures: disclosures(crib, &turn, (tokens, context)),
        weak: scope.ids().filter_map(|id| catalog.weakness(id)).collect(),
    }
}

/// Returns the number of tools and tokens of each server, the server with the most tokens first.
fn servers(crib: &Crib, scope: &Scope) -> Vec<ServerCost> {
    let sizes = crib.definition_tokens();
    let total: usize = scope.ids().map(|id| sizes[id.index()]).sum();
    let mut sums: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for id in scope.ids() {
        let server = crib.catalog().tool(id).server().unwrap_or("(none)");
        let (tools, tokens) = sums.entry(server).or_default();
        *tools += 1;
        *tokens += sizes[id.index()];
    }
    let mut servers: Vec<ServerCost> = sums
        .into_iter()
        .map(|(server, (tools, tokens))| ServerCost {
            server: server.to_owned(),
            tools,
            tokens,
            percent: 100.0 * tokens as f64 / total.max(1) as f64,
        })
        .collect();
    servers.sort_by_key(|server| std::cmp::Reverse(server.tokens));
    servers
}

/// Returns what the tools cost in the first turn: first without deferral, then with deferral switched on, for each
/// disclosure.
fn disclosures(
    crib: &Crib,
    turn: &TurnContext<'_>,
    (before, context): (usize, usize),
) -> Vec<DisclosureCost> {
    let disclosed = |disclosure, tokens: usize, listing| {
        let saved = before.cast_signed() - tokens.cast_signed();
        DisclosureCost {
            disclosure,
            tokens,
            saved,
            saved_percent: 100.0 * saved as f64 / before.max(1) as f64,
            context_percent: 100.0 * tokens as f64 / context.max(1) as f64,
            listing,
        }
    };
    let mut all = vec![disclosed("pass-through", before, None)];
    for kind in [
        DisclosureSetting::Bridge,
        DisclosureSetting::Append,
        DisclosureSetting::Reveal,
        DisclosureSetting::Terse,
    ] {
        let mut settings: Settings = crib.settings().clone();
        settings.disclosure = kind;
        settings.activation.mode = ActivationMode::On;
        let shown = crib.with_settings(settings).disclose(turn, &mut Conversation::new());
        let form = shown.listing.as_ref().map(|listing| serde_json::to_value(listing.form));
        let form = form.and_then(Result::ok).and_then(|form| form.as_str().map(str::to_owned));
        all.push(disclosed(kind.name(), shown.tokens_after, form));
    }
    all
}

fn print(report: &StatsReport, output: &mut Output) -> Result<(), Failure> {
    let exact = if report.exact { "exact, " } else { "" };
    output.wrapped(&format!(
        "{} cost {} tokens on every turn ({exact}{}): {:.1} % of a {}-token context.",
        tools(report.tools),
        report.tokens,
        report.counter,
        report.context_percent,
        report.context
    ))?;
    let active = if report.active { "would be deferred" } else { "would not be deferred" };
    let disclosure = report.disclosure;
    output.wrapped(&format!("Tools {active} ({disclosure}): {}.\n", report.reason))?;

    let mut table = new_table(["server", "tools", "tokens", "share", ""]);
    let most = report.servers.first().map_or(1, |server| server.tokens.max(1));
    for server in report.servers.iter().take(MAX_SERVERS_SHOWN) {
        table.add_row([
            server.server.clone(),
            server.tools.to_string(),
            server.tokens.to_string(),
            format!("{:.1} %", server.percent),
            bar(server.tokens, most),
        ]);
    }
    output.line(&table.to_string())?;
    if report.servers.len() > MAX_SERVERS_SHOWN {
        let more = report.servers.len() - MAX_SERVERS_SHOWN;
        output.line(&format!("and {more} more servers; `--json` lists them"))?;
    }
    output.line("")?;

    let mut table = new_table(["disclosure", "first turn", "saved", "context", ""]);
    let most = report.disclosures.iter().map(|row| row.tokens).max().unwrap_or(1).max(1);
    for row in &report.disclosures {
        let listing = row.listing.as_ref().map_or(String::new(), |form| format!(" ({form})"));
        table.add_row([
            format!("{}{listing}", row.disclosure),
            row.tokens.to_string(),
            format!("{:.1} %", row.saved_percent),
            format!("{:.1} %", row.context_percent),
            bar(row.tokens, most),
        ]);
    }
    output.line(&table.to_string())?;
    print_weak(&report.weak, output)
}

fn print_weak(weak: &[Weakness], output: &mut Output) -> Result<(), Failure> {
    if weak.is_empty() {
        return Ok(());
    }
    let verb = if weak.len() == 1 { "has" } else { "have" };
    output.line(&format!("\n{} {verb} too little description to be found:", tools(weak.len())))?;
    for tool in weak.iter().take(MAX_WEAK_SHOWN) {
        let problem = if tool.described { "one or two words" } else { "no description" };
        output.line(&format!("  {} ({problem})", tool.name))?;
    }
    if weak.len() > MAX_WEAK_SHOWN {
        output.line(&format!("  and {} more; `--json` lists them", weak.len() - MAX_WEAK_SHOWN))?;
    }
    Ok(())
}

fn tools(count: usize) -> String {
    if count == 1 { "1 tool".into() } else { format!("{count} tools") }
}

fn new_table(header: [&str; 5]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn bar(part: usize, most: usize) -> String {
    let room = stdout_width().map_or(BAR_WIDTH, |width| width.saturating_sub(OTHER_COLUMNS));
    let longest = room.min(BAR_WIDTH);
    "█".repeat((part * longest).div_ceil(most).min(longest))
}
