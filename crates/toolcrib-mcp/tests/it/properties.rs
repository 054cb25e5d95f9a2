//! Property tests: any text results in a config, or in an error with a hint.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::select;
use toolcrib_mcp::GatewayConfig;
use toolcrib_mcp::config::import::{ImportSource, read, read_as};
use toolcrib_mcp::config::{ClientKind, masked, server_toml};
use toolcrib_server::expand::{Reference, expand_secret};

use crate::{SAMPLES, sample};

fn check_text(text: &str) {
    match GatewayConfig::from_toml(text) {
        Ok(_) => {}
        Err(error) => assert!(!error.problem.is_empty() && !error.hint.is_empty()),
    }
    for file in ["a.json", "a.toml", ".cursor/mcp.json"] {
        let source = ImportSource { file: Path::new(file), folder: Path::new("/work") };
        let _ = read(text, &source);
        for client in ClientKind::ALL.into_iter().chain([ClientKind::Other]) {
            let Ok(imported) = read_as(client, text, &source) else { continue };
            for (name, server) in imported.servers {
                // An imported server can be written, parsed again, masked and expanded.
                let text = server_toml(&name, &server);
                assert!(
                    GatewayConfig::from_toml(&text).unwrap().servers[&name] == server,
                    "{text}"
                );
                let _ = server_toml(&name, &masked(&server));
                let _ = server.expanded(&name, &|_: Reference<'_>| Some("x".into()));
            }
        }
    }
    let _ = expand_secret(&text.into(), &|_: Reference<'_>| None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_text_is_handled(text in any::<String>()) {
        check_text(&text);
    }

    /// Parses fragments of config files, concatenated in any order.
    #[test]
    fn any_fragments_are_handled(pieces in prop::collection::vec(select(&[
        "{", "}", "[", "]", "\"", ":", ",", "=", "\n", "$", "${", ":-", "mcpServers", "servers", "mcp",
        "mcp_servers", "command", "url", "args", "env", "a", "1", "null", "true", "\"a\"", "[servers.a]",
        "https://", "/*", "//", "'", "projects", "timeout", "-1", "1e999", "{env:", "{file:", "\\u0000",
    ][..]), 0..40)) {
        check_text(&pieces.concat());
    }

    /// Parses a sample of which a part was removed or replaced.
    #[test]
    fn any_damaged_sample_is_handled(name in select(&SAMPLES[..]), from in any::<prop::sample::Index>(), len in 0..40_usize, put in "[\\PC\n]{0,6}") {
        let (_, text) = sample(name);
        let chars: Vec<char> = text.chars().collect();
        let from = from.index(chars.len());
        let to = (from + len).min(chars.len());
        let damaged: String = chars[..from].iter().copied().chain(put.chars()).chain(chars[to..].iter().copied()).collect();
        check_text(&damaged);
    }
}
