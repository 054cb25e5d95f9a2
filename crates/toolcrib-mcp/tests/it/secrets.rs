//! Tests with secrets in every part of a config: nothing that is printed may contain one.

use std::path::Path;

use toolcrib_mcp::config::import::{ImportSource, read};
use toolcrib_mcp::config::{masked, server_toml};

use crate::{IGNORED_SECTIONS, SAMPLES, imported_sample, read_file};

const CANARY: &str = "CANARY";

const CONFIG: &str = r#"[servers.a]
command = "x"
args = ["--token", "CANARY-1", "--key=CANARY-2"]
env = { TOKEN = "CANARY-3", OTHER = "${NOPE:-CANARY-4}" }

[servers.b]
url = "https://example.com/CANARY0123456789/mcp?key=CANARY-5"
headers = { Authorization = "Bearer CANARY-6" }
oauth = { client_id = "id", client_secret = "CANARY-7" }

[http]
token = "CANARY-8"
"#;

fn assert_no_secret(text: &str, source: &str) {
    assert!(!text.contains(CANARY), "{source} contains a secret: {text}");
}

#[test]
fn debug_output_contains_no_secret() {
    assert_no_secret(&format!("{:?}", read_file(CONFIG).unwrap()), "Debug");
    for name in SAMPLES {
        assert_no_secret(&format!("{:?}", imported_sample(name)), name);
    }
}

#[test]
fn a_masked_server_contains_no_secret() {
    let mut servers = read_file(CONFIG).unwrap().0.servers;
    for name in SAMPLES {
        servers.extend(imported_sample(name).servers);
    }
    for (name, server) in servers {
        assert_no_secret(&server_toml(&name, &masked(&server)), &name);
    }
}

/// Applies each of several typing errors to each line of a config.
#[test]
fn errors_contain_no_secret() {
    let mut rejected = 0;
    let typos = [
        ("\"", ""),
        ("= ", "= 5 "),
        ("=", ""),
        ("= \"", "= [\""),
        (" = ", " = {} #"),
        ("{", ""),
        ("]", ""),
    ];
    let lines: Vec<&str> = CONFIG.lines().collect();
    for at in 0..lines.len() {
        for (from, to) in typos {
            let mut broken = lines.clone();
            let line = broken[at].replacen(from, to, 1);
            broken[at] = &line;
            let Err(error) = read_file(&broken.join("\n")) else { continue };
            rejected += 1;
            assert_no_secret(&format!("{error} {error:?} {}", error.hint), &line);
        }
        // Other mistakes, most of them values of the wrong type.
        for text in [
            "servers = 'CANARY'",
            "[servers]\na = 'CANARY'",
            "[servers.a]\nargs = 'CANARY'",
            "[servers.a]\nenabled = 'CANARY, expected CANARY'",
            "[servers.a]\ndefer = 'CANARY'",
            "[servers.a]\nenv = ['CANARY']",
            "[servers.a]\nurl = 'CANARY'",
            "[http]\nlisten = 'CANARY'",
            "server = { a = { env = { A = 'CANARY' } } }",
            "[servers.a]\nenv = { A = 'CANARY }",
            "[servers.a]\nstart_timeout = 'CANARY'",
            "[servers.a.oauth]\nscopes = 'CANARY'",
        ] {
            let error = read_file(text).unwrap_err();
            assert_no_secret(&format!("{error} {error:?}"), text);
            // The engine parses the same file, so its errors must not contain a secret either.
            if let Err(error) =
                toolcrib_core::SettingsReader::new().ignoring(&IGNORED_SECTIONS).read(text)
            {
                assert_no_secret(&format!("{error} {error:?}"), text);
            }
        }
    }
    assert!(rejected > 20, "{rejected}");
}

#[test]
fn errors_about_other_clients_files_contain_no_secret() {
    let folder = Path::new("/");
    for (file, text) in [
        ("a.json", r#"{"mcpServers": {"a": {"env": {"A": "CANARY}}}"#),
        ("a.json", r#"{"mcpServers": {"a": {"env": CANARY}}}"#),
        ("a.json", r#"{"mcpServers": "CANARY"}"#),
        (
            "a.json",
            r#"{"mcpServers": {"a": "CANARY", "b": {"command": ["CANARY"]}, "c": {"url": "CANARY"}}}"#,
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"command": "x", "env": "CANARY", "args": "CANARY", "timeout": "CANARY", "type": "CANARY"}}}"#,
        ),
        (
            "a.toml",
            "[mcp_servers.a]\ncommand = 'x'\nenv_vars = ['no CANARY']\nbearer_token_env_var = 'no CANARY'",
        ),
        (
            "a.toml",
            "[mcp_servers.a]\nurl = 'http://x'\nenv_http_headers = { A = 'no CANARY' }\nbearer_token_env_var = 'no CANARY'",
        ),
    ] {
        let read = read(text, &ImportSource { file: Path::new(file), folder });
        assert_no_secret(&format!("{read:?}"), text);
    }
}
