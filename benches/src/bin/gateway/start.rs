//! Twenty servers, one of which never says a word.

use std::time::Instant;

use serde_json::json;
use toolcrib_bench::at;

use crate::client::{Call, Client, since};
use crate::stdio::Pipe;
use toolcrib_bench::Failed;
use toolcrib_bench::process::{Setting, program};

const WELL: usize = 19;
const RUNS: usize = 7;

pub(crate) fn measure() -> Result<(), Failed> {
    println!(
        "{WELL} servers that answer and one that never does; from the start of the gateway, {RUNS} runs.\n"
    );
    println!("| until | median ms | least to most |");
    println!("|---|---:|---|");
    let server = program("faulty-server")?;
    let runs: Vec<[f64; 3]> = (0..RUNS).map(|_| once(&server)).collect::<Result<_, Failed>>()?;
    let names =
        ["the first list of tools", "the first server can be called", "all 19 can be called"];
    for (i, name) in names.iter().enumerate() {
        let mut times: Vec<f64> = runs.iter().map(|run| run[i]).collect();
        times.sort_by(f64::total_cmp);
        let (least, most) = (at(&times, 0.0), at(&times, 1.0));
        println!("| {name} | {:.0} | {least:.0} to {most:.0} |", at(&times, 0.5));
    }
    Ok(())
}

fn once(server: &std::path::Path) -> Result<[f64; 3], Failed> {
    let mut setting = Setting::new()?;
    // First in the order of names, in case anything waits for its turn.
    setting.command("a_silent", server, &["--never-answer"], "");
    for i in 0..WELL {
        setting.command(&format!("s{i}"), server, &["--tools", "20"], "");
    }
    let begin = Instant::now();
    let gateway = Pipe::start(setting.toolcrib(&["mcp"])?)?;
    gateway.ask("tools/list", &json!({}))?;
    let listed = since(begin);
    let mut called = Vec::new();
    for i in 0..WELL {
        gateway.until_it_works(&Call::bridged(&format!("s{i}__echo"), &json!({})))?;
        called.push(since(begin));
    }
    Ok([listed, called[0], called[WELL - 1]])
}
