//! Measures the startup with twenty servers, one of which never answers.

use std::time::Instant;

use serde_json::json;
use toolcrib_bench::quantile;

use crate::client::{Call, Client, since};
use crate::stdio::StdioClient;
use toolcrib_bench::BenchError;
use toolcrib_bench::process::{GatewaySetup, program};

const HEALTHY_SERVERS: usize = 19;
const RUNS: usize = 7;

pub(crate) fn measure() -> Result<(), BenchError> {
    println!(
        "{HEALTHY_SERVERS} servers that answer and one that never does; from the start of the gateway, {RUNS} runs.\n"
    );
    println!("| until | median ms | least to most |");
    println!("|---|---:|---|");
    let server = program("faulty-server")?;
    let runs: Vec<[f64; 3]> =
        (0..RUNS).map(|_| once(&server)).collect::<Result<_, BenchError>>()?;
    let names =
        ["the first list of tools", "the first server can be called", "all 19 can be called"];
    for (i, name) in names.iter().enumerate() {
        let mut times: Vec<f64> = runs.iter().map(|run| run[i]).collect();
        times.sort_by(f64::total_cmp);
        let (least, most) = (quantile(&times, 0.0), quantile(&times, 1.0));
        println!("| {name} | {:.0} | {least:.0} to {most:.0} |", quantile(&times, 0.5));
    }
    Ok(())
}

fn once(server: &std::path::Path) -> Result<[f64; 3], BenchError> {
    let mut setting = GatewaySetup::new()?;
    // The server that never answers comes first by name. If the gateway waited for its servers in order, it would wait
    // for this one first.
    setting.command("a_silent", server, &["--never-answer"], "");
    for i in 0..HEALTHY_SERVERS {
        setting.command(&format!("s{i}"), server, &["--tools", "20"], "");
    }
    let begin = Instant::now();
    let gateway = StdioClient::start(setting.toolcrib(&["mcp", "--own"])?)?;
    gateway.ask("tools/list", &json!({}))?;
    let listed = since(begin);
    let mut called = Vec::new();
    for i in 0..HEALTHY_SERVERS {
        gateway.retry_until_success(&Call::bridged(&format!("s{i}__echo"), &json!({})))?;
        called.push(since(begin));
    }
    Ok([listed, called[0], called[HEALTHY_SERVERS - 1]])
}
