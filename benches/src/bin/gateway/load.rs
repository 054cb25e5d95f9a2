//! Measures the maximum throughput, and whether memory grows with the number of calls.

use std::process::{Command, Stdio};

use serde_json::json;
use toolcrib_bench::{median, resident_mb};

use crate::client::{Call, Client};
use crate::http::HttpClient;
use crate::stdio::StdioClient;
use toolcrib_bench::BenchError;
use toolcrib_bench::process::{GatewaySetup, Process, program};

/// Number of calls in one pass.
const PASS: u32 = 10_000;
const PASSES: usize = 10;

pub(crate) fn measure() -> Result<(), BenchError> {
    println!("{PASSES} passes of {PASS} calls; calls a second of the median pass.\n");
    println!("| way | calls/s | MB after 1 pass | MB after {PASSES} |");
    println!("|---|---:|---:|---:|");
    stdio()?;
    http()
}

fn stdio() -> Result<(), BenchError> {
    let server = program("faulty-server")?;
    let args = ["--tools", "20"];
    let mut direct = Command::new(&server);
    direct.args(args);
    let direct = StdioClient::start(direct)?;
    let arguments = json!({"text": "Nothing but a short text."});
    row("stdio: direct", &direct, &Call::new("echo", arguments.clone()), None)?;
    let mut setting = GatewaySetup::new()?;
    setting.command("s", &server, &args, "");
    let through = StdioClient::start(setting.toolcrib(&["mcp", "--own"])?)?;
    let id = through.process.id();
    row("stdio: through `tool_call`", &through, &Call::bridged("s__echo", &arguments), Some(&id))
}

fn http() -> Result<(), BenchError> {
    let server = program("fixture-server")?;
    let mut fixture = Command::new(&server);
    fixture.args(["--http", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut fixture = Process(fixture.spawn()?);
    let address = fixture.address()?;
    let mut setting = GatewaySetup::new()?;
    setting.command("pipe", &server, &[], "");
    let (gateway, through) = setting.serve(&[])?;
    let id = gateway.id();
    let plain = Call::new("test_simple_text", json!({}));
    let bridged = Call::bridged("pipe__test_simple_text", &json!({}));
    row("HTTP session: direct", &HttpClient::session(&address)?, &plain, None)?;
    row("HTTP session: to a stdio server", &HttpClient::session(&through)?, &bridged, Some(&id))?;
    row("HTTP stateless: direct", &HttpClient::stateless(&address), &plain, None)?;
    row("HTTP stateless: to a stdio server", &HttpClient::stateless(&through), &bridged, Some(&id))
}

fn row(
    name: &str,
    client: &dyn Client,
    call: &Call,
    process: Option<&str>,
) -> Result<(), BenchError> {
    client.retry_until_success(call)?;
    let mut rates = vec![client.saturate(call, PASS)?];
    let memory = || process.map(|id| format!("{:.1}", resident_mb(id))).unwrap_or_default();
    let before = memory();
    for _ in 1..PASSES {
        rates.push(client.saturate(call, PASS)?);
    }
    println!("| {name} | {:.0} | {before} | {} |", median(rates), memory());
    Ok(())
}
