//! The report of `toolcrib doctor` for people: a table if the terminal is wide enough, otherwise a block for each server.

use std::collections::BTreeMap;

use comfy_table::{ContentArrangement, Table, presets};

use super::{DeferralDecision, DoctorReport, ServerReport};
use crate::output::{Failure, Output};
use crate::terminal::{labelled, stdout_width, wrap};

/// Width of the table in columns if the width of the output is unknown.
const DEFAULT_WIDTH: usize = 160;
/// Minimum width of the table in columns. In a narrower table, the columns of errors and hints would be one word wide.
const MIN_TABLE_WIDTH: usize = 130;
/// Width of the labels in a block, in columns.
const LABEL_WIDTH: usize = 9;

pub(super) fn print(report: &DoctorReport, output: &mut Output) -> Result<(), Failure> {
    let width = stdout_width().unwrap_or(DEFAULT_WIDTH);
    let has_problems = report.servers.iter().any(|row| row.error.is_some());
    // Without errors and hints, the table has only narrow columns.
    if width >= MIN_TABLE_WIDTH || (!has_problems && width >= 80) {
        print_table(report, has_problems, width, output)?;
    } else {
        print_blocks(report, width, output)?;
    }
    let mut line = |text: &str| output.wrapped(text);
    for row in &report.servers {
        for note in &row.notes {
            line(&format!("\n{}: {note}", row.name))?;
        }
    }
    for note in &report.notes {
        line(&format!("\nnote: {note}"))?;
    }
    if !report.clients.is_empty() {
        line("")?;
        for client in &report.clients {
            line(&format!("connected: {client}"))?;
        }
    }
    let up = report.servers.iter().filter(|row| row.state == "up").count();
    let (all, tools, tokens, shown) =
        (report.servers.len(), report.tools, report.tokens, report.shown);
    line(&format!(
        "\n{up} of {all} servers up. {tools} tools cost {tokens} tokens in full; clients see {shown}."
    ))?;
    let mut names_by_policy = BTreeMap::<(&str, &str), Vec<&str>>::new();
    for row in &report.servers {
        if let (Some(runs), Some(shares)) = (&row.runs, &row.shares) {
            names_by_policy.entry((runs, shares)).or_default().push(&row.name);
        }
    }
    for ((runs, shares), names) in names_by_policy {
        line(&format!("{}: {runs}; {shares}.", names.join(", ")))?;
    }
    if let Some(DeferralDecision { defers, disclosure, reason }) = &report.decision {
        let what = if *defers {
            format!("Tools are deferred ({disclosure})")
        } else {
            "Tools are not deferred".to_owned()
        };
        line(&format!("{what}: {reason}."))?;
    }
    Ok(())
}

/// Prints a row for each server. The columns for errors and hints are left out if there are no problems.
fn print_table(
    report: &DoctorReport,
    has_problems: bool,
    width: usize,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    let mut header = vec!["SERVER", "STATE", "PROTOCOL", "TOOLS", "TOKENS", "START"];
    if has_problems {
        header.extend(["LAST ERROR", "WHAT TO DO"]);
    }
    table.set_header(header);
    for row in &report.servers {
        let mut cells = vec![
            row.name.clone(),
            row.state.to_owned(),
            protocol(row),
            row.tools.to_string(),
            row.tokens.to_string(),
            row.started_in_ms.map(|ms| format!("{ms} ms")).unwrap_or_default(),
        ];
        if has_problems {
            cells.extend([
                row.error.clone().unwrap_or_default(),
                row.hint.clone().unwrap_or_default(),
            ]);
        }
        table.add_row(cells);
    }
    for line in table.to_string().lines() {
        output.line(line.trim_end())?;
    }
    Ok(())
}

fn print_blocks(report: &DoctorReport, width: usize, output: &mut Output) -> Result<(), Failure> {
    for (at, row) in report.servers.iter().enumerate() {
        if at > 0 {
            output.line("")?;
        }
        output.line(&format!("{}: {}", row.name, row.state))?;
        let mut facts = Vec::new();
        if row.started_in_ms.is_some() {
            facts.push(protocol(row));
            facts.push(format!("{} tools", row.tools));
            facts.push(format!("{} tokens", row.tokens));
        }
        facts.extend(row.started_in_ms.map(|ms| format!("started in {ms} ms")));
        if !facts.is_empty() {
            output.line(&wrap(&format!("  {}", facts.join(", ")), width))?;
        }
        for (label, text) in [("  error:", &row.error), ("  hint:", &row.hint)] {
            if let Some(text) = text {
                output.line(&labelled(label, text, LABEL_WIDTH, width))?;
            }
        }
    }
    Ok(())
}

/// Returns the protocol that a server uses. The transport is added only for HTTP+SSE, because the config shows whether a
/// server has a command or a URL.
fn protocol(row: &ServerReport) -> String {
    match row.era.as_deref() {
        Some(era) if row.transport == "sse" => format!("{era}, sse"),
        era => era.unwrap_or_default().to_owned(),
    }
}
