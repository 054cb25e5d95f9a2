//! A canary in every source where people keep tokens: nothing we print may sing.

use std::path::Path;

use toolcrib_mcp::config::import::{ImportSource, read};
use toolcrib_mcp::config::{masked, server_toml};

use crate::{OTHERS, SAMPLES, imported_sample, read_file};

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

fn silent(text: &str, of: &str) {
    assert!(!text.contains(CANARY), "{of} tells: {text}");
}

#[test]
fn debug_tells_nothing() {
    silent(&format!("{:?}", read_file(CONFIG).unwrap()), "Debug");
    for name in SAMPLES {
        silent(&format!("{:?}", imported_sample(name)), name);
    }
}

#[test]
fn a_masked_server_tells_nothing() {
    let mut servers = read_file(CONFIG).unwrap().0.servers;
    for name in SAMPLES {
        servers.extend(imported_sample(name).servers);
    }
    for (name, server) in servers {
        silent(&server_toml(&name, &masked(&server)), &name);
    }
}

/// Every line broken in every way that a slip of the finger breaks it.
#[test]
fn errors_tell_nothing() {
    let mut refused = 0;
    let slips = [
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
        for (from, to) in slips {
            let mut broken = lines.clone();
            let line = broken[at].replacen(from, to, 1);
            broken[at] = &line;
            let Err(error) = read_file(&broken.join("\n")) else { continue };
            refused += 1;
            silent(&format!("{error} {error:?} {}", error.hint), &line);
        }
        // A value where a table or another kind of value belongs.
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
            silent(&format!("{error} {error:?}"), text);
            // The engine's own reader meets the same file.
            if let Err(error) = toolcrib_core::SettingsReader::new().ignoring(&OTHERS).read(text) {
                silent(&format!("{error} {error:?}"), text);
            }
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn errors_about_other_clients_files_tell_nothing() {
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
        silent(&format!("{read:?}"), text);
    }
}
