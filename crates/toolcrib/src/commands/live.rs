//! `toolcrib stats --live`: shows what the running gateways and proxies have done, and how many tokens they have saved.
//!
//! Without an address, the command asks every running instance of this user: each `toolcrib serve`, whose address is in
//! the state folder, and each background gateway, at its socket.

use std::io::IsTerminal as _;
use std::time::Duration;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use toolcrib_proxy::fetch_totals::fetch_totals;
use toolcrib_proxy::totals::{Totals, TotalsRow};
use toolcrib_server::access::TOKEN_FILE;
use toolcrib_server::{GatewayTotals, Secret};
use toolcrib_text::clean::one_line;

use super::gateway::ps::{running_gateways, time};
use super::gateway::serve_address::published_addresses;
use crate::output::{Failure, Output, print_stderr};
use crate::user_folders::state_folder;

/// Interval at which the totals are refreshed on a terminal.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum size of the file with the access token, in bytes.
const MAX_TOKEN_BYTES: u64 = 4 << 10;

/// All running instances.
#[derive(Serialize)]
struct LiveReport {
    instances: Vec<Instance>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Instance {
    /// A `toolcrib serve` process.
    Serve {
        url: String,
        #[serde(flatten)]
        totals: Totals,
    },
    /// A background gateway, which `toolcrib mcp` starts.
    Background { pid: u32, config: String, seconds: u64, gateway: GatewayTotals },
}

/// Prints the totals. On a terminal they are printed repeatedly until interrupted, otherwise once. Without an address,
/// returns false if nothing is running.
pub(crate) fn run(address: Option<&str>, output: &mut Output) -> Result<bool, Failure> {
    let repeats = !output.is_json() && std::io::stdout().is_terminal();
    super::gateway::block_on(async {
        loop {
            let report = match address {
                Some(address) => {
                    let totals = ask(address).await?;
                    if output.is_json() {
                        return output.document(&totals).map(|()| true);
                    }
                    LiveReport {
                        instances: vec![Instance::Serve { url: address.to_owned(), totals }],
                    }
                }
                None => find_instances().await?,
            };
            let is_empty = report.instances.is_empty();
            if output.is_json() {
                output.document(&report)?;
            } else {
                if repeats && !is_empty {
                    output.clear()?;
                }
                print(&report, output)?;
                if repeats && !is_empty {
                    output.line("\nUpdated every 2 s. Ctrl-C ends.")?;
                }
            }
            if !repeats || is_empty {
                return Ok(!is_empty);
            }
            output.finish()?;
            tokio::time::sleep(REFRESH_INTERVAL).await;
        }
    })
}

/// Asks the `toolcrib serve` at an address that the user has named.
async fn ask(address: &str) -> Result<Totals, Failure> {
    let url = base_url(address);
    let totals = fetch_totals(&url, key().as_ref()).await;
    totals.map_err(|error| Failure::input(format!("`{address}`"), &error, error.hint()))
}

fn key() -> Option<Secret> {
    std::env::var("TOOLCRIB_KEY").ok().map(Secret::from)
}

/// Returns the base URL for an address in any form that Toolcrib prints or accepts, such as `127.0.0.1:4180`, `:4180` or
/// `http://127.0.0.1:4180/mcp`.
fn base_url(address: &str) -> String {
    let address = address.trim();
    let url = match address.strip_prefix(':') {
        Some(port) => format!("http://127.0.0.1:{port}"),
        None if address.contains("://") => address.to_owned(),
        None => format!("http://{address}"),
    };
    let Some((scheme, rest)) = url.split_once("://") else { return url };
    match rest.split_once('/') {
        // `/mcp/NAME` is the path of a profile. `/v1` and `/v1beta` are parts of the base URLs that agents use for the
        // proxy.
        Some((host, path))
            if ["mcp", "v1", "v1beta"].contains(&path.split('/').next().unwrap_or_default()) =>
        {
            format!("{scheme}://{host}")
        }
        _ => url,
    }
}

/// Finds all running instances of this user, and asks them for their totals.
async fn find_instances() -> Result<LiveReport, Failure> {
    let mut instances = Vec::new();
    if let Some(state) = state_folder() {
        let token = || {
            let bytes = state.read(TOKEN_FILE, MAX_TOKEN_BYTES).ok()??;
            Some(Secret::from(String::from_utf8(bytes).ok()?.trim().to_owned()))
        };
        let key = key().or_else(token);
        for url in published_addresses(&state) {
            match fetch_totals(&url, key.as_ref()).await {
                Ok(totals) => instances.push(Instance::Serve { url, totals }),
                Err(error) => {
                    print_stderr(&format!("warning: `{url}`: {error}\nhint: {}", error.hint()));
                }
            }
        }
    }
    instances.extend(running_gateways().await?.into_iter().map(|status| Instance::Background {
        pid: status.pid,
        config: status.config.display().to_string(),
        seconds: status.uptime_seconds,
        gateway: status.totals,
    }));
    Ok(LiveReport { instances })
}

fn print(report: &LiveReport, output: &mut Output) -> Result<(), Failure> {
    if report.instances.is_empty() {
        print_stderr(
            "nothing is running\nhint: start `toolcrib serve`, or a client that runs `toolcrib mcp`",
        );
    }
    for (at, instance) in report.instances.iter().enumerate() {
        if at > 0 {
            output.line("")?;
        }
        match instance {
            Instance::Serve { url, totals } => {
                output.line(&format!("{url}, started {} ago", time(totals.seconds)))?;
                print_lines(&proxy_text(totals), output)?;
                if let Some(gateway) = &totals.gateway {
                    print_lines(&gateway_text(gateway), output)?;
                }
            }
            Instance::Background { pid, config, seconds, gateway } => {
                let started = time(*seconds);
                output.line(&format!("background gateway {pid}, started {started} ago"))?;
                output.line(&format!("config: {config}"))?;
                print_lines(&gateway_text(gateway), output)?;
            }
        }
    }
    Ok(())
}

fn print_lines(text: &str, output: &mut Output) -> Result<(), Failure> {
    text.lines().try_for_each(|line| output.line(line.trim_end()))
}

/// Describes what a gateway has done.
fn gateway_text(totals: &GatewayTotals) -> String {
    let GatewayTotals { sessions, searches, misses, described, tokens_saved, servers } = totals;
    let mut text = format!(
        "gateway: {sessions} open sessions, {searches} searches ({misses} found nothing), {described} tools described\n\
         gateway: tool lists were {tokens_saved} tokens smaller than the full definitions"
    );
    if servers.iter().any(|server| server.calls > 0) {
        let mut table = Table::new();
        table.load_style(NOTHING).set_header(["server", "state", "calls", "failed"]);
        for server in servers.iter().filter(|server| server.calls > 0) {
            let (calls, failed) = (server.calls.to_string(), server.failed.to_string());
            table.add_row([server.server.clone(), server.state.clone(), calls, failed]);
        }
        align_numbers(&mut table);
        text.push('\n');
        text.push_str(&table.to_string());
    }
    text
}

/// Describes what a proxy has saved.
fn proxy_text(total: &Totals) -> String {
    if total.rows.is_empty() {
        return "proxy: no request with tools yet".to_owned();
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
            one_line(&row.model),
            one_line(&row.client),
            row.requests.to_string(),
            row.deferred.to_string(),
            row.rounds.to_string(),
            row.searches.to_string(),
            row.tokens_before.to_string(),
            row.tokens_after.to_string(),
            row.saved.to_string(),
        ]);
    }
    align_numbers(&mut table);
    format!(
        "{table}\n\n`tools before`, `after` and `saved` are tokens. `saved` takes the cost of hidden rounds into account."
    )
}

fn align_numbers(table: &mut Table) {
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printed_address_is_accepted() {
        for (address, expected) in [
            ("http://127.0.0.1:4180", "http://127.0.0.1:4180"),
            ("http://127.0.0.1:4180/mcp", "http://127.0.0.1:4180"),
            ("http://127.0.0.1:4180/mcp/work", "http://127.0.0.1:4180"),
            ("http://127.0.0.1:4180/v1", "http://127.0.0.1:4180"),
            ("https://[::1]:4180/mcp", "https://[::1]:4180"),
            ("127.0.0.1:4180", "http://127.0.0.1:4180"),
            ("localhost:4180/mcp", "http://localhost:4180"),
            (":4180", "http://127.0.0.1:4180"),
            ("https://host/behind/a/path", "https://host/behind/a/path"),
        ] {
            assert_eq!(base_url(address), expected, "{address}");
        }
    }
}
