//! `toolcrib doctor`: connects to every server and says how it went.

use std::io::IsTerminal as _;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use toolcrib_mcp::{Checkup, Era, Phase};
use toolcrib_proxy::notices;
use toolcrib_tokens::Counter;

use super::{END, block_on, loaded, located, start_counting};
use crate::args::DoctorArgs;
use crate::output::{Failure, Output, remark};

/// Columns where there is no terminal to fit.
const WIDTH: u16 = 160;

#[derive(Serialize)]
struct Answer {
    config: Option<String>,
    servers: Vec<Row>,
    tools: usize,
    /// Of all tools in full.
    tokens: usize,
    /// Of what clients see in their place.
    shown: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    well: bool,
}

/// Whether tools are deferred, how, and why.
#[derive(Serialize)]
struct Decision {
    defers: bool,
    disclosure: &'static str,
    reason: String,
}

const UNTRUSTED: &str = "its certificate is from an unknown authority: add that authority to those the system trusts or, \
                         on Linux, set `SSL_CERT_FILE` to a PEM file with every authority to trust";

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
        // Matched on rustls' message, because the error has already been turned into text.
        let untrusted =
            status.why.as_ref().is_some_and(|why| why.contains("certificate: UnknownIssuer"));
        let hint = status.hint.or_else(|| match status.phase {
            Phase::Down if checkup.over == "http" && untrusted => Some(UNTRUSTED.into()),
            Phase::Down if checkup.over == "http" => {
                Some("check its `url`, and whether it is reached from here".into())
            }
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
    let location = located(args.config.as_deref(), remark)?;
    let found = loaded(location.as_ref(), &args.overrides)?;
    let config = location.map(|location| location.path().display().to_string());
    // An error in this section is for `serve` to report.
    let proxy = found.sections.proxy.as_ref();
    let of_proxy = proxy.map(|proxy| notices(proxy, &found.sections.gateway.settings));
    let (mut rows, (cost, decision, mut notes)): (Vec<Row>, _) = block_on(async {
        let gateway = start_counting(found.sections.gateway, Counter::for_model("gpt-5").shared());
        gateway.settled().await;
        let rows = gateway.checkup().into_iter().map(Row::from).collect();
        let told = (gateway.cost(), gateway.decision(), gateway.remarks());
        gateway.stop(END).await;
        Ok((rows, told))
    })?;
    if let Some(file) = &args.config {
        // The command that is to be run must find the same config.
        let logins = rows.iter_mut().filter(|row| row.state == "needs login");
        for hint in logins.filter_map(|row| row.hint.as_mut()) {
            *hint = format!("{hint} --config {}", file.display());
        }
    }
    notes.extend(of_proxy.unwrap_or_default());
    let (tokens, shown) = cost.unwrap_or_default();
    let answer = Answer {
        config,
        tools: rows.iter().map(|row| row.tools).sum(),
        tokens,
        shown,
        decision: decision.map(|(defers, disclosure, reason)| Decision {
            defers,
            disclosure,
            reason,
        }),
        notes,
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
    if !std::io::stdout().is_terminal() {
        // Whoever reads a pipe has no width; a page of paper has this one.
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        table.set_width(columns.unwrap_or(WIDTH));
    }
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
        table.add_row([
            row.name.clone(),
            row.state.to_owned(),
            row.era.clone().unwrap_or_default(),
            row.tools.to_string(),
            row.tokens.to_string(),
            row.started_in_ms.map(|ms| format!("{ms} ms")).unwrap_or_default(),
            row.error.clone().unwrap_or_default(),
            row.hint.clone().unwrap_or_default(),
        ]);
    }
    for line in table.to_string().lines() {
        output.line(line.trim_end())?;
    }
    for row in &answer.servers {
        for note in &row.notes {
            output.line(&format!("\n{}: {note}", row.name))?;
        }
    }
    for note in &answer.notes {
        output.line(&format!("\nnote: {note}"))?;
    }
    let up = answer.servers.iter().filter(|row| row.state == "up").count();
    let (all, tools, tokens, shown) =
        (answer.servers.len(), answer.tools, answer.tokens, answer.shown);
    output.line(&format!(
        "\n{up} of {all} servers up. {tools} tools cost {tokens} tokens in full; clients see {shown}."
    ))?;
    if let Some(Decision { defers, disclosure, reason }) = &answer.decision {
        let what = if *defers {
            format!("Tools are deferred ({disclosure})")
        } else {
            "Tools are not deferred".to_owned()
        };
        output.line(&format!("{what}: {reason}."))?;
    }
    Ok(())
}
