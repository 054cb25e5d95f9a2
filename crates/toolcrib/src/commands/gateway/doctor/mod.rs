//! `toolcrib doctor`: connects to every server and reports its state, its last error and how to fix it.

mod print;

use serde::Serialize;
use toolcrib_mcp::{ProtocolEra, ServerHealth, ServerPhase};
use toolcrib_proxy::unsupported_mode_notices;
use toolcrib_tokens::VocabularyCounter;

use super::checkup::{start_all_eagerly, start_and_wait};
use super::{SHUTDOWN_TIMEOUT, block_on, find_config, load_config_with_servers};
use crate::args::DoctorArgs;
use crate::commands::connect::status::{self, ConnectedClient};
use crate::output::{Failure, Output, print_stderr};

#[derive(Serialize)]
struct DoctorReport {
    config: Option<String>,
    servers: Vec<ServerReport>,
    /// The clients that `toolcrib connect` has changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    clients: Vec<ConnectedClient>,
    tools: usize,
    /// Tokens of all complete tool definitions.
    tokens: usize,
    /// Tokens of everything that clients see instead of the complete definitions.
    shown: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DeferralDecision>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Whether every server is up or disabled, and at least one is up.
    well: bool,
}

/// Returns the clients that `toolcrib connect` has changed. If the records about them cannot be read, `connect` and
/// `disconnect` report that.
fn connected_clients() -> Vec<ConnectedClient> {
    status::connected_clients().unwrap_or_default()
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
    let proxy_notes = match &config.sections.proxy {
        Ok(proxy) => unsupported_mode_notices(proxy, &config.sections.gateway.settings),
        // Only `serve` runs the proxy, so other commands still work.
        Err(error) => {
            vec![format!("`toolcrib serve` rejects this config: {error}; {}", error.hint)]
        }
    };
    let mut gateway_config = config.sections.gateway;
    let policies = start_all_eagerly(&mut gateway_config);
    let (mut rows, (cost, decision, mut notes)): (Vec<ServerReport>, _) = block_on(async {
        let counter = VocabularyCounter::for_model("gpt-5").shared();
        let gateway = start_and_wait(gateway_config, counter).await;
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
    notes.extend(proxy_notes);
    let (tokens, shown) = cost.unwrap_or_default();
    let report = DoctorReport {
        config: config_path,
        clients: connected_clients(),
        tools: rows.iter().map(|row| row.tools).sum(),
        tokens,
        shown,
        decision: decision.map(|(defers, disclosure, reason)| DeferralDecision {
            defers,
            disclosure,
            reason,
        }),
        notes,
        well: rows.iter().any(|row| row.state == "up")
            && rows.iter().all(|row| matches!(row.state, "up" | "off")),
        servers: rows,
    };
    if output.is_json() {
        output.document(&report)?;
    } else {
        print::print(&report, output)?;
    }
    Ok(report.well)
}
