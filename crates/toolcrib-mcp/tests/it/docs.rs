//! Tests that the documentation page about the config is correct.

use std::collections::BTreeSet;
use std::path::Path;

use toolcrib_core::Settings;
use toolcrib_mcp::config::{GatewaySettings, Profile, Server};
use toolcrib_server::HttpSettings;

use crate::read_file;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateway-config.md");
    std::fs::read_to_string(path).unwrap()
}

fn blocks(page: &str) -> Vec<&str> {
    let parts = page.split("```toml\n").skip(1);
    parts.filter_map(|rest| rest.split("```").next()).collect()
}

/// Returns the keys that the section in `text` may contain. `text` must contain an unknown key, because the known keys
/// are taken from the error about that key.
fn known_keys(text: &str) -> BTreeSet<String> {
    let error = read_file(text).unwrap_err().problem;
    let (_, known) = error.split_once(", expected one of ").unwrap();
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_first_block_shows_the_defaults() {
    let page = page();
    let text = blocks(&page)[0];
    let (config, http) = read_file(text).unwrap();
    assert_eq!(config.settings, Settings::default());
    let program = &config.servers["files"];
    assert!(*program == Server::new(program.transport.clone()));
    let address = &config.servers["issues"];
    assert!(*address == Server::new(address.transport.clone()));
    assert_eq!(config.profiles["work"], Profile::default());
    assert_eq!(config.gateway, GatewaySettings::default());
    assert_eq!(http, HttpSettings::default());
}

/// Checks that the page shows every key, because the test above does not notice a missing key. A key that has no
/// default is shown in a TOML comment.
#[test]
fn the_first_block_names_every_key() {
    let page = page();
    let text = blocks(&page)[0];
    let shown: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.trim_start_matches("# ").split_once(" = "))
        .map(|(key, _)| key.trim().to_owned())
        .collect();
    for broken in [
        "[servers.a]\nnope = 1",
        "[servers.a]\ncommand = 'x'\ntools.t.nope = 1",
        "[profiles.a]\nnope = 1",
        "[gateway]\nnope = 1",
        "[gateway.limits]\nnope = 1",
        "[http]\nnope = 1",
    ] {
        for key in known_keys(broken).iter().filter(|key| !["limits", "tools"].contains(&&***key)) {
            assert!(shown.contains(key), "`{key}` is missing in the page: {broken}");
        }
    }
}

#[test]
fn every_block_is_a_config() {
    for block in blocks(&page()) {
        read_file(block).unwrap_or_else(|error| panic!("{error}:\n{block}"));
    }
}
