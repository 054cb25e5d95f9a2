//! An MCP server that serves the tools of a file, so that the benchmark searches real descriptions.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

use toolcrib_bench::BenchError;

/// The command-line argument that makes this program run as the catalog server instead of as the benchmark.
pub(crate) const ROLE: &str = "catalog-server";

/// Serves MCP on standard input and output, with the tools of a JSON array in `file`.
pub(crate) fn serve(file: &str) -> Result<(), BenchError> {
    let tools: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "catalog", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": tools}),
            Some("tools/call" | "ping") => json!({"content": []}),
            _ => {
                let error = json!({"code": -32601, "message": "unknown method"});
                writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                continue;
            }
        };
        writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
    }
    Ok(())
}
