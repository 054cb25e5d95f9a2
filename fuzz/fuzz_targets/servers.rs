//! Any text as a config of the gateway, ours or another client's.
//!
//! An error must say what to do. Servers that are taken over must come back the same from the config
//! they are written to, and nothing of what is shown of them may be more than what was there.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use toolcrib_mcp::Config;
use toolcrib_mcp::config::import::{ImportSource, read, read_as};
use toolcrib_mcp::config::{ClientKind, Server, masked, server_toml};
use toolcrib_server::expand::{Reference, expand_secret};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Config::from_toml(text) {
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
    let config = Config::from_toml(&text).expect("what is written can be read");
    assert!(config.servers.get(name) == Some(server), "{text}");
    let _ = server_toml(name, &masked(server));
    if let Err(error) = server.expanded(name, &|_: Reference<'_>| Some("x".into())) {
        assert!(!error.hint.is_empty());
    }
}
