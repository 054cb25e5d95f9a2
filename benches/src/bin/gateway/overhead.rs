//! What the way through the gateway costs, against the same call made directly.

use std::process::Command;

use serde_json::json;
use toolcrib_bench::{at, median};

use crate::client::{Call, Client, Schedule};
use crate::http::Http;
use crate::stdio::Pipe;
use toolcrib_bench::Failed;
use toolcrib_bench::process::{Process, Setting, program};

/// Turns that each way gets.
const ROUNDS: usize = 10;
/// One turn: a second of 500 calls.
const TURN: Schedule = Schedule { rate: 500, calls: 500 };

/// One way to a tool.
struct Way<'a> {
    name: &'static str,
    client: &'a dyn Client,
    call: Call,
}

pub(crate) fn measure() -> Result<(), Failed> {
    println!("{} calls a second, {ROUNDS} turns of one second each, in rotation; ms.\n", TURN.rate);
    println!("| way | p50 | p99 | p50 more | p99 more | p50 more, by turn | p99 more, by turn |");
    println!("|---|---:|---:|---:|---:|---|---|");
    stdio()?;
    http()
}

fn stdio() -> Result<(), Failed> {
    let server = program("faulty-server")?;
    let args = ["--tools", "20"];
    let mut setting = Setting::new()?;
    setting.command("deferred", &server, &args, "");
    setting.command("loaded", &server, &args, "always_load = [\"echo\"]");
    let mut direct = Command::new(&server);
    direct.args(args);
    let direct = Pipe::start(direct)?;
    let through = Pipe::start(setting.toolcrib(&["mcp"])?)?;
    let arguments = json!({"text": "Nothing but a short text.", "number": 7});
    compare(&[
        Way { name: "stdio: direct", client: &direct, call: Call::new("echo", arguments.clone()) },
        Way {
            name: "stdio: through `tool_call`",
            client: &through,
            call: Call::bridged("deferred__echo", &arguments),
        },
        Way {
            name: "stdio: by its own name",
            client: &through,
            call: Call::new("loaded__echo", arguments),
        },
    ])
}

fn http() -> Result<(), Failed> {
    let server = program("fixture-server")?;
    let mut fixture = Command::new(&server);
    fixture.args(["--http", "127.0.0.1:0"]).stderr(std::process::Stdio::piped());
    let mut fixture = Process(fixture.spawn()?);
    let address = fixture.address()?;
    let mut setting = Setting::new()?;
    setting.command("pipe", &server, &[], "");
    setting.address("web", &address);
    let (_gateway, gateway) = setting.serve(&[])?;
    let tool = "test_simple_text";
    let bridged = |server: &str| Call::bridged(&format!("{server}__{tool}"), &json!({}));
    let ways = |name, direct, through| {
        [
            Way { name, client: direct, call: Call::new(tool, json!({})) },
            Way { name: "— to a stdio server", call: bridged("pipe"), client: through },
            Way { name: "— to an HTTP server", call: bridged("web"), client: through },
        ]
    };
    let (direct, through) = (Http::session(&address)?, Http::session(&gateway)?);
    compare(&ways("HTTP session: direct", &direct as &dyn Client, &through as &dyn Client))?;
    let (direct, through) = (Http::stateless(&address), Http::stateless(&gateway));
    compare(&ways("HTTP stateless: direct", &direct, &through))
}

/// Measures all ways in turns; the first is what the others are compared with.
fn compare(ways: &[Way<'_>]) -> Result<(), Failed> {
    for way in ways {
        way.client.until_it_works(&way.call)?;
        way.client.open_loop(&way.call, TURN)?;
    }
    let mut turns: Vec<Vec<Vec<f64>>> = vec![Vec::new(); ways.len()];
    for round in 0..ROUNDS {
        for i in 0..ways.len() {
            let i = (i + round) % ways.len();
            let mut took = ways[i].client.open_loop(&ways[i].call, TURN)?;
            took.sort_by(f64::total_cmp);
            turns[i].push(took);
        }
    }
    let pooled = |i: usize, share| {
        let mut all = turns[i].concat();
        all.sort_by(f64::total_cmp);
        at(&all, share)
    };
    for (i, way) in ways.iter().enumerate() {
        let (p50, p99) = (pooled(i, 0.5), pooled(i, 0.99));
        if i == 0 {
            println!("| {} | {p50:.2} | {p99:.2} | | | | |", way.name);
            continue;
        }
        let by_turn = |share| {
            let mut more: Vec<f64> =
                turns[i].iter().zip(&turns[0]).map(|(a, b)| at(a, share) - at(b, share)).collect();
            more.sort_by(f64::total_cmp);
            let (least, most) = (at(&more, 0.0), at(&more, 1.0));
            format!("{:.2} ({least:.2} to {most:.2})", median(more))
        };
        println!(
            "| {} | {p50:.2} | {p99:.2} | {:+.2} | {:+.2} | {} | {} |",
            way.name,
            p50 - pooled(0, 0.5),
            p99 - pooled(0, 0.99),
            by_turn(0.5),
            by_turn(0.99)
        );
    }
    Ok(())
}
