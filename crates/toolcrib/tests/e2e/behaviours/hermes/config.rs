//! Tests of Hermes' own file, which is recognised by its keys.

use serde_json::{Value, json};

use super::super::{Setup, numbered};
use super::{BRIDGE, configured, defers, slack, thousands};

fn jobs() -> Vec<Value> {
    numbered(30, "job", "Runs a job.")
}

#[test]
fn the_configuration_has_four_keys_and_these_defaults() {
    let written = json!({
        "enabled": "auto", "threshold_pct": 10, "search_default_limit": 5, "max_search_limit": 20
    });
    let answers = [written, json!({}), json!(true)].map(|section| {
        let mut session = configured(&section, &jobs()).flags(&["--context", "1000"]).start();
        (session.list(), session.search("job"))
    });
    let mut preset =
        Setup::preset("hermes", &[("acme", &jobs())]).flags(&["--context", "1000"]).start();
    let expected = (preset.list(), preset.search("job"));
    assert_eq!(expected.1["matches"].as_array().unwrap().len(), 5);
    assert!(answers.iter().all(|answer| *answer == expected));
}

#[test]
fn the_keys_are_taken_as_written() {
    let section = json!({"enabled": "on", "search_default_limit": "7", "max_search_limit": 9});
    let mut session = configured(&section, &jobs()).start();
    assert_eq!(session.found("job").len(), 7);
    assert_eq!(session.found_with("tool_search", &json!({"query": "job", "limit": 50})).len(), 9);
    let share = configured(&json!({"threshold_pct": 2.5}), &thousands(10));
    assert!(defers(&mut share.flags(&["--context", "200000"]).start()));
}

#[test]
fn on_activates_with_one_deferrable_tool_and_not_with_none() {
    for (section, deferred) in [
        (json!({"enabled": "on"}), true),
        (json!({"enabled": true}), true),
        (json!({"enabled": "yes"}), true),
        (json!({"threshold_pct": 0}), true),
        (json!({"enabled": "off"}), false),
        (json!({"enabled": false}), false),
        (json!(false), false),
        // `true` means `auto`. The tools take far less than a tenth of the context window, so they are not deferred.
        (json!(true), false),
    ] {
        let mut session = configured(&section, &slack()).flags(&["--context", "1000000"]).start();
        assert_eq!(defers(&mut session), deferred, "{section}");
    }
    let config = "preset = \"hermes\"\n[activation]\nmode = \"on\"\n[defer]\nnever = [\"*\"]\n";
    assert_eq!(Setup::toml(config, &[("acme", &slack())]).start().names(), ["acme__post"]);
}

#[test]
fn off_disables_it_whatever_the_tools_cost() {
    let setup = configured(&json!({"enabled": "off"}), &thousands(20));
    let mut session = setup.flags(&["--context", "10000"]).start().restart();
    assert_eq!((session.names().len(), session.instructions()), (20, None));
}

#[test]
fn invalid_values_fall_back_and_are_logged() {
    for (section, logged) in [
        (
            json!({"enabled": "sometimes"}),
            "\"sometimes\" is not one of `auto`, `on`, `off`; using `auto`",
        ),
        (json!({"threshold_pct": 150}), "150 is not within 0 to 100; using 100"),
        (json!({"threshold_pct": "ten"}), "\"ten\" is not a number; using 10"),
        (json!({"max_search_limit": 51}), "51 is not within 1 to 50; using 50"),
        (json!({"search_default_limit": 21}), "21 is not within 1 to 20; using 20"),
        (json!({"listing": "auto"}), "`tools.tool_search.listing`: unknown and ignored"),
        (json!([1]), "[1] is not a boolean; using `auto`"),
    ] {
        let session = configured(&section, &slack()).flags(&["--context", "100"]).start();
        session.logs(logged);
    }
    let clamped = json!({"enabled": "on", "search_default_limit": 21});
    assert_eq!(configured(&clamped, &jobs()).start().found("job").len(), 20);
    let mut session = configured(&json!({"threshold_pct": -1}), &slack()).start();
    assert_eq!(session.names(), BRIDGE, "a threshold of 0 % is always reached");
}
