//! Reads any text as a config of the gateway, or of a client whose servers can be imported.
//!
//! An error must say what to do. If imported servers are written to a config, reading it must give the same servers.
//! Masking a server for display and expanding its references must not panic.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use toolcrib_mcp::GatewayConfig;
use toolcrib_mcp::config::import::{ImportSource, read, read_as};
use toolcrib_mcp::config::{ClientKind, Server, masked, server_toml};
use toolcrib_server::expand::{Reference, expand_secret};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match GatewayConfig::from_toml(text) {
        Err(error) => assert!(!error.hint.is_empty() && !error.to_string().is_empty()),
        Ok(config) => config.servers.iter().for_each(|(name, server)| check(name, server)),
    }
    for file in ["a.json", "a.toml"] {
        let source = ImportSource { file: Path::new(file), folder: Path::new("/work") };
        if let Ok(Some(imported)) = read(text, &source) {
            imported.servers.iter().for_each(|(name, server)| check(name, server));
        }
    }
    let source = ImportSource { file: Path::new("/etc/any"), folder: Path::new("/work") };
    for client in ClientKind::ALL.into_iter().chain([ClientKind::Other]) {
        match read_as(client, text, &source) {
            Err(error) => assert!(!error.hint.is_empty() && !error.to_string().is_empty()),
            Ok(imported) => {
                imported.servers.iter().for_each(|(name, server)| check(name, server));
            }
        }
    }
    let _ = expand_secret(&text.into(), &|_: Reference<'_>| None);
});

fn check(name: &str, server: &Server) {
    let text = server_toml(name, server);
    let config = GatewayConfig::from_toml(&text).expect("what is written can be read");
    assert!(config.servers.get(name) == Some(server), "{text}");
    let _ = server_toml(name, &masked(server));
    if let Err(error) = server.expanded(name, &|_: Reference<'_>| Some("x".into())) {
        assert!(!error.hint.is_empty());
    }
}
