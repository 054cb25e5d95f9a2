//! `toolcrib doctor`: connects to every server and says how it went.

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use toolcrib_mcp::{Checkup, Era, Phase};
use toolcrib_tokens::Counter;

use super::{END, block_on, loaded, start_counting};
use crate::args::DoctorArgs;
use crate::output::{Failure, Output, remark};

#[derive(Serialize)]
struct Answer {
    config: Option<String>,
    servers: Vec<Row>,
    tools: usize,
    tokens: usize,
    well: bool,
}

#[derive(Serialize)]
struct Row {
    name: String,
    state: &'static str,
    transport: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    era: Option<String>,
    tools: usize,
    tokens: usize,
    prompts: usize,
    resources: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_in_ms: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls_itself: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl From<Checkup> for Row {
    fn from(checkup: Checkup) -> Self {
        let status = checkup.status;
        let era = status.era.map(|era| match era {
            Era::Legacy => "handshake",
            Era::Modern => "stateless",
        });
        let hint = status.hint.or_else(|| match status.phase {
            Phase::Down => Some("run its command by hand and see what it says".into()),
            _ => None,
        });
        Self {
            state: match status.phase {
                Phase::Off => "off",
                Phase::Connecting => "connecting",
                Phase::Up => "up",
                Phase::Down => "down",
                Phase::NeedsLogin => "needs login",
            },
            transport: checkup.over,
            era: era.map(|era| format!("{era} {}", status.version.unwrap_or_default())),
            tools: checkup.tools,
            tokens: checkup.tokens,
            prompts: checkup.prompts,
            resources: checkup.resources,
            started_in_ms: status.started_in.map(|took| took.as_millis()),
            calls_itself: status.calls_itself,
            error: status.why,
            hint,
            notes: checkup.notes,
            name: checkup.name,
        }
    }
}

pub(crate) fn run(args: &DoctorArgs, output: &mut Output) -> Result<bool, Failure> {
    let found = loaded(args.config.as_deref())?;
    let config = found.path.as_ref().map(|path| path.display().to_string());
    if found.config.servers.is_empty() {
        remark(
            "note: the config names no server; `toolcrib import` finds those of your other clients",
        );
    }
    let rows: Vec<Row> = block_on(async {
        let gateway = start_counting(found.config, Counter::for_model("gpt-5").shared());
        gateway.settled().await;
        let rows = gateway.checkup().into_iter().map(Row::from).collect();
        gateway.stop(END).await;
        Ok(rows)
    })?;
    let answer = Answer {
        config,
        tools: rows.iter().map(|row| row.tools).sum(),
        tokens: rows.iter().map(|row| row.tokens).sum(),
        well: rows.iter().all(|row| matches!(row.state, "up" | "off")),
        servers: rows,
    };
    if output.is_json() {
        output.document(&answer)?;
    } else {
        print(&answer, output)?;
    }
    Ok(answer.well)
}

fn print(answer: &Answer, output: &mut Output) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header([
        "SERVER",
        "STATE",
        "ERA",
        "TOOLS",
        "TOKENS",
        "START",
        "LAST ERROR",
        "WHAT TO DO",
    ]);
    for row in &answer.servers {
        let start = row.started_in_ms.map(|ms| format!("{ms} ms")).unwrap_or_default();
        let error = row.error.clone().unwrap_or_else(|| row.notes.join("; "));
        table.add_row([
            row.name.clone(),
            row.state.to_owned(),
            row.era.clone().unwrap_or_default(),
            row.tools.to_string(),
            row.tokens.to_string(),
            start,
            error,
            row.hint.clone().unwrap_or_default(),
        ]);
    }
    for line in table.to_string().lines() {
        output.line(line.trim_end())?;
    }
    let up = answer.servers.iter().filter(|row| row.state == "up").count();
    let (all, tools, tokens) = (answer.servers.len(), answer.tools, answer.tokens);
    output.line(&format!("{up} of {all} servers up, {tools} tools, {tokens} tokens in full"))
}
