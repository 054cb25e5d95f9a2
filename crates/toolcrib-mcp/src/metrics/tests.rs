use toolcrib_server::metrics::{encode, registry};

use super::*;

fn text(metrics: &GatewayMetrics) -> String {
    let mut registry = registry();
    metrics.register(&mut registry);
    encode(&registry)
}

#[test]
fn recorded_events_produce_the_expected_text() {
    let metrics = GatewayMetrics::new(["github", "files"]);
    metrics.set_state("github", ServerState::Up);
    metrics.set_state("files", ServerState::Down);
    metrics.searched(3);
    metrics.searched(0);
    metrics.searched(1);
    metrics.described();
    metrics.saved(12_345);
    metrics.call("github").end_after(CallStatus::Ok, 0.0004);
    metrics.call("github").end_after(CallStatus::ToolError, 0.25);
    metrics.call("files").end_after(CallStatus::Timeout, 500.0);
    metrics.refused("files");
    metrics.refreshed("github");
    metrics.restarted("files");
    metrics.restarted("files");
    metrics.found_hidden_text("github");
    let _open = metrics.session();
    drop(metrics.session());
    let in_flight = metrics.call("github");

    assert_eq!(text(&metrics), include_str!("metrics.txt"));
    assert_eq!(text(&metrics), text(&metrics), "the same numbers give the same bytes");

    drop(in_flight);
    let text = self::text(&metrics);
    assert!(text.contains("toolcrib_calls_in_flight{server=\"github\"} 0\n"));
    assert!(text.contains("toolcrib_calls_total{server=\"github\",outcome=\"cancelled\"} 1\n"));
}

#[test]
fn a_server_outside_the_config_creates_no_series() {
    let metrics = GatewayMetrics::new(["github"]);
    let before = text(&metrics);
    metrics.call("stranger\"} 1\n").end(CallStatus::Ok);
    metrics.refused("stranger");
    metrics.refreshed("stranger");
    metrics.restarted("stranger");
    metrics.set_state("stranger", ServerState::Up);
    assert_eq!(text(&metrics), before);
}

#[test]
fn a_config_reload_keeps_the_numbers_of_remaining_servers() {
    let metrics = GatewayMetrics::new(["github", "files"]);
    metrics.refreshed("github");
    metrics.refreshed("files");
    metrics.set_servers(["github", "mail"]);
    let text = self::text(&metrics);
    let lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with("toolcrib_refreshes_total")).collect();
    assert_eq!(
        lines,
        [
            "toolcrib_refreshes_total{server=\"github\"} 1",
            "toolcrib_refreshes_total{server=\"mail\"} 0",
        ]
    );
}

#[test]
fn a_name_with_quotes_and_newlines_stays_one_label() {
    let text = self::text(&GatewayMetrics::new(["a\"b\\c\nd"]));
    assert!(text.contains("toolcrib_restarts_total{server=\"a\\\"b\\\\c\\nd\"} 0\n"), "{text}");
}
