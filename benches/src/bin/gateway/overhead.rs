//! Measures how much longer a call takes through the gateway than directly to its server.

use std::process::Command;

use serde_json::json;
use toolcrib_bench::{median, quantile};

use crate::client::{Call, Client, Schedule};
use crate::http::HttpClient;
use crate::stdio::StdioClient;
use toolcrib_bench::BenchError;
use toolcrib_bench::process::{GatewaySetup, Process, program};

const ROUNDS: usize = 10;
/// One round: 500 calls in one second.
const ROUND: Schedule = Schedule { rate: 500, calls: 500 };

/// A way to call a tool: directly, or through the gateway.
struct Route<'a> {
    name: &'static str,
    client: &'a dyn Client,
    call: Call,
}

pub(crate) fn measure() -> Result<(), BenchError> {
    println!(
        "{} calls a second, {ROUNDS} turns of one second each, in rotation; ms.\n",
        ROUND.rate
    );
    println!("| way | p50 | p99 | p50 more | p99 more | p50 more, by turn | p99 more, by turn |");
    println!("|---|---:|---:|---:|---:|---|---|");
    stdio()?;
    http()
}

fn stdio() -> Result<(), BenchError> {
    let server = program("faulty-server")?;
    let args = ["--tools", "20"];
    let mut setting = GatewaySetup::new()?;
    setting.command("deferred", &server, &args, "");
    setting.command("loaded", &server, &args, "always_load = [\"echo\"]");
    let mut direct = Command::new(&server);
    direct.args(args);
    let direct = StdioClient::start(direct)?;
    let through = StdioClient::start(setting.toolcrib(&["mcp", "--own"])?)?;
    let arguments = json!({"text": "Nothing but a short text.", "number": 7});
    compare(&[
        Route {
            name: "stdio: direct",
            client: &direct,
            call: Call::new("echo", arguments.clone()),
        },
        Route {
            name: "stdio: through `tool_call`",
            client: &through,
            call: Call::bridged("deferred__echo", &arguments),
        },
        Route {
            name: "stdio: by its own name",
            client: &through,
            call: Call::new("loaded__echo", arguments),
        },
    ])
}

fn http() -> Result<(), BenchError> {
    let server = program("fixture-server")?;
    let mut fixture = Command::new(&server);
    fixture.args(["--http", "127.0.0.1:0"]).stderr(std::process::Stdio::piped());
    let mut fixture = Process(fixture.spawn()?);
    let address = fixture.address()?;
    let mut setting = GatewaySetup::new()?;
    setting.command("pipe", &server, &[], "");
    setting.address("web", &address);
    let (_gateway, gateway) = setting.serve(&[])?;
    let tool = "test_simple_text";
    let bridged = |server: &str| Call::bridged(&format!("{server}__{tool}"), &json!({}));
    let routes = |name, direct, through| {
        [
            Route { name, client: direct, call: Call::new(tool, json!({})) },
            Route { name: "— to a stdio server", call: bridged("pipe"), client: through },
            Route { name: "— to an HTTP server", call: bridged("web"), client: through },
        ]
    };
    let (direct, through) = (HttpClient::session(&address)?, HttpClient::session(&gateway)?);
    compare(&routes("HTTP session: direct", &direct as &dyn Client, &through as &dyn Client))?;
    let (direct, through) = (HttpClient::stateless(&address), HttpClient::stateless(&gateway));
    compare(&routes("HTTP stateless: direct", &direct, &through))
}

/// Measures all routes in alternation and prints the times of each route in comparison with those of the first route.
fn compare(routes: &[Route<'_>]) -> Result<(), BenchError> {
    for way in routes {
        way.client.retry_until_success(&way.call)?;
        way.client.open_loop(&way.call, ROUND)?;
    }
    let mut turns: Vec<Vec<Vec<f64>>> = vec![Vec::new(); routes.len()];
    for round in 0..ROUNDS {
        for i in 0..routes.len() {
            let i = (i + round) % routes.len();
            let mut took = routes[i].client.open_loop(&routes[i].call, ROUND)?;
            took.sort_by(f64::total_cmp);
            turns[i].push(took);
        }
    }
    let pooled = |i: usize, share| {
        let mut all = turns[i].concat();
        all.sort_by(f64::total_cmp);
        quantile(&all, share)
    };
    for (i, way) in routes.iter().enumerate() {
        let (p50, p99) = (pooled(i, 0.5), pooled(i, 0.99));
        if i == 0 {
            println!("| {} | {p50:.2} | {p99:.2} | | | | |", way.name);
            continue;
        }
        let by_turn = |share| {
            let mut more: Vec<f64> = turns[i]
                .iter()
                .zip(&turns[0])
                .map(|(a, b)| quantile(a, share) - quantile(b, share))
                .collect();
            more.sort_by(f64::total_cmp);
            let (least, most) = (quantile(&more, 0.0), quantile(&more, 1.0));
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
