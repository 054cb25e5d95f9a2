//! Measures searches among five thousand tools, and the memory that these tools take.

use std::time::Instant;

use serde_json::{Value, json};
use toolcrib_bench::{lines, quantile, repeated, resident_mb, sentence};

use crate::catalog_server::ROLE;
use crate::client::{Call, Client, since};
use crate::http::HttpClient;
use crate::stdio::StdioClient;
use toolcrib_bench::BenchError;
use toolcrib_bench::process::GatewaySetup;

const SERVERS: usize = 5;
const TOOLS_EACH: usize = 1_000;
const SEARCHES: usize = 1_000;

pub(crate) fn measure() -> Result<(), BenchError> {
    let lines = lines()?;
    let tools: Vec<Value> = repeated(&lines, SERVERS * TOOLS_EACH).collect();
    let text = |tool: &Value| sentence(tool["description"].as_str().unwrap_or_default());
    let queries: Vec<String> = tools.iter().map(text).filter(|text| !text.is_empty()).collect();
    let step = (queries.len() / SEARCHES).max(1);
    let queries: Vec<String> = queries.into_iter().step_by(step).take(SEARCHES).collect();
    println!("{} tools on {SERVERS} servers, {} searches.\n", tools.len(), queries.len());
    println!(
        "| door | p50 ms | p99 ms | list of tools ms | list bytes | resident MB | after a restart MB |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let setting = setting(&tools)?;
    let pipe = || StdioClient::start(setting.toolcrib(&["mcp", "--own"])?);
    let first = pipe()?;
    let row = row(&first, &queries)?;
    let resident = resident_mb(&first.process.id());
    drop(first);
    // The first run saved the servers' tool lists, and this run loads them. The last column of the table is the memory
    // of this run.
    let again = pipe()?;
    search_times(&again, &queries)?;
    println!("| stdio | {row} | {resident:.0} | {:.0} |", resident_mb(&again.process.id()));
    drop(again);
    for (name, stateless) in [("HTTP session", false), ("HTTP stateless", true)] {
        let (process, address) = setting.serve(&[])?;
        let client = if stateless {
            HttpClient::stateless(&address)
        } else {
            HttpClient::session(&address)?
        };
        let row = self::row(&client, &queries)?;
        println!("| {name} | {row} | | {:.0} |", resident_mb(&process.id()));
    }
    Ok(())
}

/// Returns a setup in which the tools are distributed over several servers. Writes the tools of each server to a file.
fn setting(tools: &[Value]) -> Result<GatewaySetup, BenchError> {
    let mut setting = GatewaySetup::new()?;
    let ourselves = std::env::current_exe()?;
    for (i, tools) in tools.chunks(TOOLS_EACH).enumerate() {
        let tools: Vec<Value> = tools.iter().enumerate().map(|(i, tool)| mcp(i, tool)).collect();
        let file = setting.folder().join(format!("tools-{i}.json"));
        std::fs::write(&file, serde_json::to_vec(&tools)?)?;
        let file = file.to_string_lossy().into_owned();
        setting.command(&format!("s{i}"), &ourselves, &[ROLE, &file], "");
    }
    Ok(setting)
}

/// Converts a tool of the catalog to an entry of `tools/list`. The suffix `i` makes the name unique within a server.
fn mcp(i: usize, tool: &Value) -> Value {
    json!({
        "name": format!("{}_{i}", tool["name"].as_str().unwrap_or_default()),
        "description": tool["description"],
        "inputSchema": tool["input_schema"],
    })
}

fn row(client: &dyn Client, queries: &[String]) -> Result<String, BenchError> {
    search_times(client, queries)?;
    let mut took = search_times(client, queries)?;
    took.sort_by(f64::total_cmp);
    let begin = Instant::now();
    let list = client.ask("tools/list", &json!({}))?;
    let (list_ms, bytes) = (since(begin), list.to_string().len());
    Ok(format!(
        "{:.2} | {:.2} | {list_ms:.2} | {bytes}",
        quantile(&took, 0.5),
        quantile(&took, 0.99)
    ))
}

/// Searches for each query and returns the times of the searches, in milliseconds.
fn search_times(client: &dyn Client, queries: &[String]) -> Result<Vec<f64>, BenchError> {
    let ask = |query: &str| {
        let call = Call::new("tool_search", json!({"query": query}));
        let begin = Instant::now();
        let result = client.ask("tools/call", &call.params())?;
        Ok::<_, BenchError>((since(begin), result))
    };
    // Wait until all servers have connected.
    while ask(&queries[0])?.1["structuredContent"].get("connecting").is_some() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let mut took = Vec::with_capacity(queries.len());
    for query in queries {
        let (ms, result) = ask(query)?;
        if result["structuredContent"]["hits"].as_array().is_none_or(Vec::is_empty) {
            return Err(format!("`{query}` finds nothing").into());
        }
        took.push(ms);
    }
    Ok(took)
}
