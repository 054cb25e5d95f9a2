//! `toolcrib doctor`: connects to every server and reports its state, its last error and how to fix it.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use toolcrib_mcp::config::{RunPolicy, StartPolicy};
use toolcrib_mcp::{Gateway, GatewayConfig, PoolClients, ProtocolEra, ServerHealth, ServerPhase};
use toolcrib_proxy::unsupported_mode_notices;
use toolcrib_tokens::VocabularyCounter;

use super::{SHUTDOWN_TIMEOUT, block_on, environment, find_config, load_config_with_servers};
use crate::args::DoctorArgs;
use crate::output::{Failure, Output, print_stderr};

/// Width of the table in columns if standard output is not a terminal and `COLUMNS` is not set.
const DEFAULT_WIDTH: u16 = 160;

#[derive(Serialize)]
struct DoctorReport {
    config: Option<String>,
    servers: Vec<ServerReport>,
    tools: usize,
    /// Tokens of all complete tool definitions.
    tokens: usize,
    /// Tokens of everything that clients see instead of the complete definitions.
    shown: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DeferralDecision>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Whether every server is up or disabled.
    well: bool,
}

/// Whether tools are deferred, how, and why.
#[derive(Serialize)]
struct DeferralDecision {
    defers: bool,
    disclosure: &'static str,
    reason: String,
}

const UNKNOWN_AUTHORITY_HINT: &str = "its certificate was issued by an unknown authority: add that authority to the system's trusted ones or, \
                         on Linux, set `SSL_CERT_FILE` to a PEM file with every authority to trust";

#[derive(Serialize)]
struct ServerReport {
    name: String,
    state: &'static str,
    transport: &'static str,
    /// When the gateway runs the server, and why. `doctor` itself starts every server.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<String>,
    /// Which clients share a process of the server, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<String>,
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

impl From<ServerHealth> for ServerReport {
    fn from(checkup: ServerHealth) -> Self {
        let status = checkup.status;
        let era = status.era.map(|era| match era {
            ProtocolEra::Older => "handshake",
            ProtocolEra::Newer => "stateless",
        });
        // This searches for rustls' message, because the error is available only as text here.
        let is_unknown_authority =
            status.reason.as_ref().is_some_and(|why| why.contains("certificate: UnknownIssuer"));
        let hint = status.hint.or_else(|| match status.phase {
            ServerPhase::Down if checkup.transport != "stdio" && is_unknown_authority => {
                Some(UNKNOWN_AUTHORITY_HINT.into())
            }
            ServerPhase::Down if checkup.transport != "stdio" => {
                Some("check its `url`, and that this machine can reach it".into())
            }
            ServerPhase::Down => Some("run its command in a terminal and read its output".into()),
            _ => None,
        });
        Self {
            state: status.phase.name(),
            transport: checkup.transport,
            runs: None,
            shares: (status.phase != ServerPhase::Off).then(|| checkup.sharing.to_string()),
            era: era.map(|era| format!("{era} {}", status.protocol_version.unwrap_or_default())),
            tools: checkup.tools,
            tokens: checkup.tokens,
            prompts: checkup.prompts,
            resources: checkup.resources,
            started_in_ms: status.startup_time.map(|took| took.as_millis()),
            calls_itself: status.reported_name,
            error: status.reason,
            hint,
            notes: checkup.notes,
            name: checkup.name,
        }
    }
}

pub(crate) fn run(args: &DoctorArgs, output: &mut Output) -> Result<bool, Failure> {
    let location = find_config(args.config.as_deref(), print_stderr)?;
    let config = load_config_with_servers(location.as_ref(), &args.overrides)?;
    let config_path = location.map(|location| location.path().display().to_string());
    // An error in the `[proxy]` section is ignored here, because `serve` reports it.
    let proxy = config.sections.proxy.as_ref();
    let proxy_notes =
        proxy.map(|proxy| unsupported_mode_notices(proxy, &config.sections.gateway.settings));
    let mut gateway_config = config.sections.gateway;
    let policies = start_all_eagerly(&mut gateway_config);
    let (mut rows, (cost, decision, mut notes)): (Vec<ServerReport>, _) = block_on(async {
        let counter = VocabularyCounter::for_model("gpt-5").shared();
        let gateway = Gateway::start(gateway_config, environment(), PoolClients::One, counter);
        gateway.wait_until_settled().await;
        let rows = gateway.server_health().into_iter().map(ServerReport::from).collect();
        let totals = (gateway.token_cost(), gateway.deferral_decision(), gateway.config_warnings());
        gateway.stop(SHUTDOWN_TIMEOUT).await;
        Ok((rows, totals))
    })?;
    for row in &mut rows {
        row.runs = policies.get(&row.name).map(ToString::to_string);
    }
    if let Some(file) = &args.config {
        // The hint suggests `toolcrib login`, which must be run with the same config as this `doctor`.
        let logins = rows.iter_mut().filter(|row| row.state == "needs login");
        for hint in logins.filter_map(|row| row.hint.as_mut()) {
            *hint = format!("{hint} --config {}", file.display());
        }
    }
    notes.extend(proxy_notes.unwrap_or_default());
    let (tokens, shown) = cost.unwrap_or_default();
    let report = DoctorReport {
        config: config_path,
        tools: rows.iter().map(|row| row.tools).sum(),
        tokens,
        shown,
        decision: decision.map(|(defers, disclosure, reason)| DeferralDecision {
            defers,
            disclosure,
            reason,
        }),
        notes,
        well: rows.iter().all(|row| matches!(row.state, "up" | "off")),
        servers: rows,
    };
    if output.is_json() {
        output.document(&report)?;
    } else {
        print(&report, output)?;
    }
    Ok(report.well)
}

/// Makes the gateway start every enabled server. Returns the policies that the config has for them.
pub(super) fn start_all_eagerly(config: &mut GatewayConfig) -> BTreeMap<String, RunPolicy> {
    let enabled = config.servers.iter_mut().filter(|(_, server)| server.enabled);
    let policies = enabled.map(|(name, server)| {
        let policy = server.run_policy(name);
        (server.start, server.idle) = (Some(StartPolicy::Eager), None);
        (name.clone(), policy)
    });
    policies.collect()
}

/// Returns the protocol that a server uses. The transport is added only for HTTP+SSE, because the config shows whether a
/// server has a command or a URL.
fn protocol(row: &ServerReport) -> String {
    match row.era.as_deref() {
        Some(era) if row.transport == "sse" => format!("{era}, sse"),
        era => era.unwrap_or_default().to_owned(),
    }
}

fn print(report: &DoctorReport, output: &mut Output) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        // The output is not a terminal, so its width is unknown.
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        table.set_width(columns.unwrap_or(DEFAULT_WIDTH));
    }
    table.set_header([
        "SERVER",
        "STATE",
        "PROTOCOL",
        "TOOLS",
        "TOKENS",
        "START",
        "LAST ERROR",
        "WHAT TO DO",
    ]);
    for row in &report.servers {
        table.add_row([
            row.name.clone(),
            row.state.to_owned(),
            protocol(row),
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
    for row in &report.servers {
        for note in &row.notes {
            output.line(&format!("\n{}: {note}", row.name))?;
        }
    }
    for note in &report.notes {
        output.line(&format!("\nnote: {note}"))?;
    }
    let up = report.servers.iter().filter(|row| row.state == "up").count();
    let (all, tools, tokens, shown) =
        (report.servers.len(), report.tools, report.tokens, report.shown);
    output.line(&format!(
        "\n{up} of {all} servers up. {tools} tools cost {tokens} tokens in full; clients see {shown}."
    ))?;
    let mut names_by_policy = BTreeMap::<(&str, &str), Vec<&str>>::new();
    for row in &report.servers {
        if let (Some(runs), Some(shares)) = (&row.runs, &row.shares) {
            names_by_policy.entry((runs, shares)).or_default().push(&row.name);
        }
    }
    for ((runs, shares), names) in names_by_policy {
        output.line(&format!("{}: {runs}; {shares}.", names.join(", ")))?;
    }
    if let Some(DeferralDecision { defers, disclosure, reason }) = &report.decision {
        let what = if *defers {
            format!("Tools are deferred ({disclosure})")
        } else {
            "Tools are not deferred".to_owned()
        };
        output.line(&format!("{what}: {reason}."))?;
    }
    Ok(())
}
