//! Tests of importing the config file of every MCP client: the servers and the warnings.
//!
//! `Debug` hides secrets, so the output of `assert_eq!` might not show a difference. Servers are compared with `==`
//! instead, and a failure names the server.

use std::path::Path;

use serde_json::json;
use toolcrib_core::DeferPolicy;
use toolcrib_mcp::config::import::{
    ImportSource, project_folder, read, read_value, set_start_folder,
};
use toolcrib_mcp::config::{ClientKind, OAuth, Server, Transport};
use toolcrib_server::expand::Reference;

use crate::{http_server, imported_sample, in_folder, sample, sse_server, stdio_server, texts};

#[track_caller]
fn check(name: &str, client: ClientKind, servers: &[(&str, Server)], warnings: &[&str]) {
    let imported = imported_sample(name);
    assert_eq!(imported.client, client);
    let names: Vec<&str> = imported.servers.keys().map(String::as_str).collect();
    assert_eq!(names, servers.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let (file, _) = sample(name);
    for (name, server) in servers {
        let mut server = server.clone();
        if let Some(folder) = project_folder(&file) {
            set_start_folder(&mut server, folder);
        }
        assert!(imported.servers[*name] == server, "{name}: {:#?}", imported.servers[*name]);
    }
    assert_eq!(imported.warnings, warnings);
}

fn oauth(id: &str, scopes: &[&str]) -> OAuth {
    OAuth { client_id: Some(id.into()), scopes: texts(scopes), ..OAuth::default() }
}

#[test]
fn claude_code_user_file_with_a_project() {
    let env = [("NOTES_HOME", "${HOME}/notes"), ("NOTES_TOKEN", "CANARY-env-1")];
    let headers = [("Authorization", "Bearer ${DOCS_TOKEN:-CANARY-default-1}")];
    let docs = http_server("https://docs.example.com/mcp", &headers, oauth("docs-client", &[]));
    check(
        "home/.claude.json",
        ClientKind::ClaudeCode,
        &[
            (
                "docs",
                Server {
                    enabled: false,
                    defer: Some(DeferPolicy::Never),
                    call_timeout: 90.0,
                    ..docs
                },
            ),
            ("events", sse_server("https://events.example.com/sse")),
            ("local", stdio_server("./serve", &[], &[])),
            (
                "notes",
                stdio_server("npx", &["-y", "notes-server", "--api-key", "CANARY-args-1"], &env),
            ),
        ],
        &["`toolcrib` is Toolcrib itself and is left out: it would call itself endlessly"],
    );
}

#[test]
fn claude_code_project_file() {
    let headers = [("X-Api-Key", "${TICKETS_KEY}")];
    let url = "${TICKETS_URL:-https://tickets.example.com}/mcp";
    check(
        "project/.mcp.json",
        ClientKind::ClaudeCode,
        &[("tickets", http_server(url, &headers, OAuth::default()))],
        &[
            "`tickets`: `headersHelper` is not run: set `headers` instead, from a variable or a file",
            "`gateway` is Toolcrib itself and is left out: it would call itself endlessly",
        ],
    );
}

#[test]
fn claude_desktop() {
    let args = ["-y", "files-server", "/home/me/Documents"];
    check(
        "home/.config/Claude/claude_desktop_config.json",
        ClientKind::ClaudeDesktop,
        &[("files", stdio_server("npx", &args, &[("GREETING", "$${not a variable}")]))],
        &[],
    );
}

#[test]
fn cursor() {
    let headers = [("Authorization", "Bearer ${env:DESIGN_TOKEN}")];
    let secret = Some("CANARY-oauth-1".into());
    let oauth = OAuth { client_secret: secret, ..oauth("design", &["read", "write"]) };
    let url = "https://design.example.com/mcp?key=CANARY-query-1";
    check(
        "home/.cursor/mcp.json",
        ClientKind::Cursor,
        &[
            ("design", http_server(url, &headers, oauth)),
            ("files", stdio_server("node", &["${userHome}/files.js"], &[])),
        ],
        &["`files`: `envFile` is not read: set its variables in `env`"],
    );
}

#[test]
fn vs_code_file_and_settings() {
    let env = [("PORT", "8080"), ("WIKI_KEY", "${input:wiki-key}")];
    let headers = [("X-Key", "CANARY-header-1")];
    check(
        "project/.vscode/mcp.json",
        ClientKind::VsCode,
        &[
            ("feed", sse_server("https://feed.example.com/sse")),
            ("search", http_server("https://search.example.com/mcp", &headers, OAuth::default())),
            ("wiki", in_folder(stdio_server("uvx", &["wiki-server"], &env), "${workspaceFolder}")),
        ],
        &[
            "`wiki`: `envFile` is not read: set its variables in `env`",
            "`wiki`: `WIKI_KEY` asks for an input: set an environment variable and write `${NAME}` \
             instead",
        ],
    );
    let clock = stdio_server("clock-server", &[], &[]);
    check("home/.config/Code/User/settings.json", ClientKind::VsCode, &[("clock", clock)], &[]);
}

#[test]
fn codex() {
    let env = [("BUILD_TOKEN", "${BUILD_TOKEN:-}"), ("CI", "${CI:-}"), ("MODE", "fast")];
    let headers = [
        ("Authorization", "Bearer ${ISSUES_TOKEN}"),
        ("X-Team", "core"),
        ("X-User", "${ISSUES_USER}"),
    ];
    let scopes = OAuth { scopes: texts(&["issues:read"]), ..OAuth::default() };
    check(
        "home/.codex/config.toml",
        ClientKind::Codex,
        &[
            (
                "build",
                Server {
                    start_timeout: 12.5,
                    call_timeout: 300.0,
                    allow: texts(&["run", "status"]),
                    deny: texts(&["deploy"]),
                    ..in_folder(
                        stdio_server("build-server", &["--format", "$${raw}"], &env),
                        "/srv/build",
                    )
                },
            ),
            (
                "issues",
                Server {
                    enabled: false,
                    ..http_server("https://issues.example.com/mcp", &headers, scopes)
                },
            ),
            ("locked", Server { deny: texts(&["*"]), ..stdio_server("locked-server", &[], &[]) }),
        ],
        &[],
    );
}

#[test]
fn both_versions_of_opencode() {
    let (file, _) = sample("home/.config/opencode/opencode.jsonc");
    let key = format!("${{file:{}}}", file.with_file_name("db.key").display());
    let env = [("DB_KEY", &*key), ("DB_URL", "${DB_URL}")];
    let headers = [("Authorization", "Bearer ${REMOTE_TOKEN}")];
    let remote = http_server("https://remote.example.com/mcp", &headers, oauth("oc", &["a", "b"]));
    check(
        "home/.config/opencode/opencode.jsonc",
        ClientKind::Opencode,
        &[
            ("db", Server { call_timeout: 15.0, ..stdio_server("bun", &["x", "db-server"], &env) }),
            ("remote", Server { enabled: false, ..remote }),
        ],
        &["`provided`: `command` is missing; the server is left out"],
    );
    let second = stdio_server("second-server", &[], &[]);
    let second = Server { enabled: false, start_timeout: 60.0, call_timeout: 5.0, ..second };
    check("project/opencode.json", ClientKind::Opencode, &[("second", second)], &[]);
}

#[test]
fn gemini_cli() {
    let headers = [("X-Goog-Api-Key", "${MAPS_KEY:-$MAPS_KEY}")];
    let python = stdio_server("python", &["-m", "server"], &[("KEY", "${KEY:-$KEY}")]);
    check(
        "home/.gemini/settings.json",
        ClientKind::Gemini,
        &[
            (
                "maps",
                Server {
                    enabled: false,
                    call_timeout: 5.0,
                    allow: texts(&["route", "geocode"]),
                    deny: texts(&["delete_place"]),
                    ..http_server("https://maps.example.com/mcp", &headers, OAuth::default())
                },
            ),
            ("python", in_folder(python, "./server")),
            ("stream", http_server("https://stream.example.com/mcp", &[], OAuth::default())),
        ],
        &["`maps`: `trust` is ignored: tool approvals stay with your client"],
    );
}

#[test]
fn windsurf() {
    let headers = [("Authorization", "Bearer ${env:AUTOMATION_TOKEN}")];
    let url = "https://automation.example.com/mcp/k3y0123456789abcdef";
    check(
        "home/.codeium/windsurf/mcp_config.json",
        ClientKind::Windsurf,
        &[
            (
                "automation",
                Server {
                    deny: texts(&["send_mail"]),
                    ..http_server(url, &headers, OAuth::default())
                },
            ),
            ("off", Server { enabled: false, ..stdio_server("off-server", &[], &[]) }),
        ],
        &[],
    );
}

#[test]
fn cline() {
    let weather = http_server("https://weather.example.com/mcp", &[], OAuth::default());
    check(
        "home/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ClientKind::Cline,
        &[
            ("legacy", sse_server("https://legacy.example.com/sse")),
            ("weather", Server { enabled: false, call_timeout: 45.0, ..weather }),
        ],
        &["`weather`: `alwaysAllow` is ignored: tool approvals stay with your client"],
    );
}

#[test]
fn zed() {
    let notes =
        stdio_server("notes-server", &["--literal", "$${HOME}"], &[("NOTES_KEY", "CANARY-zed-1")]);
    let headers = [("X-Key", "CANARY-zed-3")];
    let remote = http_server("https://zed.example.com/mcp", &headers, OAuth::default());
    check(
        "home/.config/zed/settings.json",
        ClientKind::Zed,
        &[
            ("notes-zed", Server { call_timeout: 30.0, ..notes }),
            ("older", stdio_server("/opt/older", &["run"], &[("A", "CANARY-zed-2")])),
            ("remote-zed", Server { enabled: false, ..remote }),
        ],
        &[
            "`postgres`: `command` is missing, because an extension of Zed runs the server; it cannot be imported",
        ],
    );
}

#[test]
fn goose() {
    // The file is YAML, which the binary parses; here it is given as JSON.
    let value = json!({"extensions": {
        "developer": {"type": "builtin", "enabled": true, "name": "developer"},
        "helpdesk": {
            "type": "stdio", "enabled": true, "name": "helpdesk", "cmd": "uvx", "args": ["helpdesk-server"],
            "envs": {"URL": "https://help.example.com"}, "env_keys": [], "timeout": 120,
            "available_tools": ["find_ticket"],
        },
        "stats": {
            "type": "streamable_http", "enabled": false, "uri": "https://stats.example.com/mcp",
            "headers": {"Authorization": "Bearer ${TOKEN}"},
        },
        "vault": {
            "type": "stdio", "cmd": "vault-server", "args": [], "envs": {"A": "1"}, "env_keys": ["A", "VAULT_TOKEN"],
        },
        "old": {"type": "sse", "uri": "https://old.example.com/sse"},
        "new": {"type": "quantum"},
    }});
    let source = ImportSource { file: Path::new("config.yaml"), folder: Path::new("/") };
    let imported = read_value(ClientKind::Goose, &value, &source);
    let helpdesk =
        stdio_server("uvx", &["helpdesk-server"], &[("URL", "https://help.example.com")]);
    let headers = [("Authorization", "Bearer ${TOKEN}")];
    let stats = http_server("https://stats.example.com/mcp", &headers, OAuth::default());
    let vault = [("A", "1"), ("VAULT_TOKEN", "${VAULT_TOKEN}")];
    let expected = [
        ("helpdesk", Server { call_timeout: 120.0, allow: texts(&["find_ticket"]), ..helpdesk }),
        ("old", sse_server("https://old.example.com/sse")),
        ("stats", Server { enabled: false, ..stats }),
        ("vault", stdio_server("vault-server", &[], &vault)),
    ];
    assert_eq!(imported.servers, expected.map(|(name, server)| (name.to_owned(), server)).into());
    let missing = "needs VAULT_TOKEN from Goose's keyring".to_owned();
    assert_eq!(imported.client_only, [("vault".to_owned(), missing)].into());
    assert_eq!(
        imported.warnings,
        [
            "`vault`: `env_keys` is read from the environment, not from Goose's keyring",
            "`new`: `type` names an unknown kind of extension; it is left out",
        ]
    );
}

/// An entry that starts Toolcrib must never be imported, because Toolcrib would call itself.
#[test]
fn entries_that_start_toolcrib_are_recognized() {
    let value = json!({"mcpServers": {
        "a": {"command": "/usr/local/bin/toolcrib", "args": ["mcp"]},
        "b": {"command": "uvx", "args": ["toolcrib", "mcp", "--config", "/c.toml"]},
        "c": {"command": "npx", "args": ["-y", "toolcrib@0.1.0", "mcp"]},
        "d": {"command": "sh", "args": ["-c", "exec toolcrib mcp"]},
        "e": {"url": "http://localhost:4180/mcp/work"},
        "toolcrib": {"url": "http://127.0.0.1:9000/mcp"},
        "other": {"url": "http://127.0.0.1:9000/mcp"},
        "files": {"command": "files-server", "args": ["/src/toolcrib"]},
    }});
    let source = ImportSource { file: Path::new("any.json"), folder: Path::new("/") };
    let imported = read_value(ClientKind::Other, &value, &source);
    let own: Vec<&str> = imported.own_entries.iter().map(String::as_str).collect();
    assert_eq!(own, ["a", "b", "c", "d", "e", "toolcrib"]);
    let others: Vec<&str> = imported.servers.keys().map(String::as_str).collect();
    assert_eq!(others, ["files", "other"]);
}

#[test]
fn hermes() {
    // The file is YAML, which the binary parses; here it is given as JSON.
    let value = json!({"mcp_servers": {
        "crm": {
            "url": "https://crm.example.com/mcp",
            "headers": {"Authorization": "Bearer ${env:CRM_TOKEN}"},
            "timeout": 180, "connect_timeout": 20, "tools": {"exclude": "delete_account"},
        },
        "music": {
            "command": "npx", "args": ["-y", "music-server"], "env": {"PLAYER": "den"},
            "supports_parallel_tool_calls": false, "tools": {"include": ["play"], "exclude": ["stop"]},
        },
        "old": {"url": "http://localhost:8000/sse", "transport": "sse"},
        "parked": {"command": "parked-server", "enabled": "no"},
    }});
    let source = ImportSource { file: Path::new("config.yaml"), folder: Path::new("/") };
    let imported = read_value(ClientKind::Hermes, &value, &source);
    let headers = [("Authorization", "Bearer ${CRM_TOKEN}")];
    let crm = Server {
        call_timeout: 180.0,
        start_timeout: 20.0,
        deny: texts(&["delete_account"]),
        ..http_server("https://crm.example.com/mcp", &headers, OAuth::default())
    };
    let music = Server {
        parallel: false,
        allow: texts(&["play"]),
        ..stdio_server("npx", &["-y", "music-server"], &[("PLAYER", "den")])
    };
    let parked = Server { enabled: false, ..stdio_server("parked-server", &[], &[]) };
    let old = sse_server("http://localhost:8000/sse");
    let expected = [("crm", crm), ("music", music), ("old", old), ("parked", parked)];
    assert_eq!(imported.servers, expected.map(|(name, server)| (name.to_owned(), server)).into());
    assert!(imported.warnings.is_empty(), "{:?}", imported.warnings);
}

/// Every client whose format can name HTTP+SSE is read, under each key and in each spelling.
#[test]
fn every_client_can_have_servers_over_sse() {
    let url = "https://events.example.com/sse";
    for client in ClientKind::ALL.into_iter().chain([ClientKind::Other]) {
        let servers = json!({
            "auto": {"url": url},
            "transport": {"url": url, "transport": "sse"},
            "type": {"url": url, "type": "SSE"},
        });
        let value = match client {
            ClientKind::Codex | ClientKind::Hermes => json!({"mcp_servers": servers}),
            ClientKind::Opencode => json!({"mcp": servers}),
            ClientKind::VsCode => json!({"servers": servers}),
            // Zed chooses the protocol itself, and Goose has its own format, which another test checks.
            ClientKind::Zed | ClientKind::Goose => continue,
            _ => json!({"mcpServers": servers}),
        };
        let source = ImportSource { file: Path::new("file"), folder: Path::new("/") };
        let imported = read_value(client, &value, &source);
        let auto = http_server(url, &[], OAuth::default());
        let sse = if client == ClientKind::Codex { auto.clone() } else { sse_server(url) };
        let without_type = if client == ClientKind::Cline { sse.clone() } else { auto };
        let expected = [("auto", without_type), ("transport", sse.clone()), ("type", sse)]
            .map(|(name, server)| (name.to_owned(), server));
        assert_eq!(imported.servers, expected.into(), "{client}");
        assert!(imported.warnings.is_empty(), "{client}: {:?}", imported.warnings);
    }
}

/// `${file:PATH}` is a reference only in Toolcrib's own config. Otherwise, a project's config could send any of the
/// user's files to its server.
#[test]
fn file_references_are_plain_text_in_other_clients_files() {
    let reads_no_file = |source: Reference<'_>| {
        assert!(!matches!(source, Reference::File(_)), "{source:?}");
        None
    };
    let plain = "${file:/etc/passwd}";
    let others = ["${env:file:/etc/passwd}", "${A:-${file:/etc/passwd}}", "$${file:/etc/passwd}"];
    for client in ClientKind::ALL.into_iter().chain([ClientKind::Other]) {
        // opencode is skipped, because it supports `{file:PATH}`, which is contained in these texts.
        if client == ClientKind::Opencode {
            continue;
        }
        for text in others.into_iter().chain([plain]) {
            let servers = json!({
                "a": {"command": text, "args": [text], "env": {"A": text}, "cwd": text},
                "b": {"url": format!("http://a/{text}"), "headers": {"A": text},
                    "oauth": {"clientSecret": text}},
            });
            let extensions = json!({
                "a": {"type": "stdio", "cmd": text, "args": [text], "envs": {"A": text}, "cwd": text},
                "b": {"type": "streamable_http", "uri": format!("http://a/{text}"), "headers": {"A": text}},
            });
            let value = json!({
                "mcpServers": servers, "servers": servers, "mcp_servers": servers,
                "context_servers": servers, "extensions": extensions,
            });
            let source = ImportSource { file: Path::new("any"), folder: Path::new("/") };
            let imported = read_value(client, &value, &source);
            assert_eq!(imported.servers.len(), 2, "{client}: {:?}", imported.warnings);
            let expanded = |name: &str| imported.servers[name].expanded(name, &reads_no_file);
            let _ = expanded("b");
            let program = expanded("a");
            if text == plain {
                let Transport::Stdio { command, args, .. } = program.unwrap().transport else {
                    panic!("{client}: `a` is not a stdio server");
                };
                assert_eq!((&*command, args[0].expose()), (plain, plain), "{client}");
            }
        }
    }
}

#[test]
fn folder_references_are_plain_text_if_the_client_has_none() {
    for (client, is_plain) in [(ClientKind::ClaudeCode, true), (ClientKind::Cursor, false)] {
        let text = "${userHome} ${workspaceFolder}";
        let value = json!({"mcpServers": {"a": {"command": "x", "args": [text]}}});
        let source = ImportSource { file: Path::new("any"), folder: Path::new("/") };
        let imported = read_value(client, &value, &source);
        let plain = "$${userHome} $${workspaceFolder}";
        let expected = stdio_server("x", &[if is_plain { plain } else { text }], &[]);
        assert!(imported.servers["a"] == expected, "{client}");
    }
}

#[test]
fn servers_of_a_projects_file_start_in_its_folder() {
    let text = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x", "cwd": "/b"}}}"#;
    for (file, expected) in [
        ("/srv/${A}/.mcp.json", Some("/srv/$${A}")),
        ("/srv/.cursor/mcp.json", Some("/srv")),
        ("/srv/any.json", None),
    ] {
        let source = ImportSource { file: Path::new(file), folder: Path::new("/") };
        let imported = read(text, &source).unwrap().unwrap();
        let server = stdio_server("x", &[], &[]);
        assert!(imported.servers["b"] == in_folder(server.clone(), "/b"), "{file}");
        let server = match expected {
            Some(folder) => in_folder(server, folder),
            None => server,
        };
        assert!(imported.servers["a"] == server, "{file}");
    }
}

#[test]
fn an_invalid_server_does_not_affect_the_others() {
    let text = r#"{"mcpServers": {
        "fine": {"command": "a", "args": ["x", {"no": 1}], "env": {"A": ["no"], "B": true}},
        "list": [], "empty": {}, "": {"command": "b"}, "number": {"command": 5},
        "dash": {"command": "-c"}, "ftp": {"url": "ftp://x"}, "ws": {"type": "ws", "url": "ws://x"},
        "user": {"url": "https://u:s3cret@example.com"}, "npx": {"command": "npx", "args": ["toolcrib@1", "mcp"]}
    }}"#;
    let source = ImportSource { file: Path::new("any.json"), folder: Path::new("/") };
    let imported = read(text, &source).unwrap().unwrap();
    assert_eq!(imported.client, ClientKind::Other);
    assert_eq!(imported.servers.keys().collect::<Vec<_>>(), ["fine"]);
    assert!(imported.servers["fine"] == stdio_server("a", &["x"], &[("B", "true")]));
    assert_eq!(
        imported.warnings,
        [
            "`fine`: `args` has entries that are not strings; they are ignored",
            "`fine`: `env` has no string for `A`; ignored",
            "`list` is not an object; ignored",
            "`empty`: `command` is missing, and so is `url`; the server is left out",
            "`` has an invalid name; it is left out",
            "`number`: `command` is not a string; ignored",
            "`dash`: `command` begins with `-`; the server is left out",
            "`ftp`: `url` is not an http or https address; the server is left out",
            "`ws`: `type` names an unknown transport; the server is left out",
            "`user`: `url` has a user name or password in it; the server is left out",
            "`npx` is Toolcrib itself and is left out: it would call itself endlessly",
        ]
    );
}

#[test]
fn files_of_unknown_format_belong_to_no_client() {
    let source = |file| ImportSource { file: Path::new(file), folder: Path::new("/") };
    for (file, text) in [
        ("a.json", "{}"),
        ("a.json", "[]"),
        ("a.json", "null"),
        ("a.json", r#"{"mcp": 1, "servers": []}"#),
        ("toolcrib.toml", "[servers.a]\ncommand = 'x'"),
        ("toolcrib.toml", "not toml"),
    ] {
        assert_eq!(read(text, &source(file)).unwrap(), None, "{text}");
    }
}

#[test]
fn files_that_are_too_large_or_too_deep_are_rejected() {
    let source = ImportSource { file: Path::new("a.json"), folder: Path::new("/") };
    let large = format!("{{\"mcpServers\": {{}} {}}}", " ".repeat(4 << 20));
    assert_eq!(read(&large, &source).unwrap_err().to_string(), "the file is larger than 4 MiB");
    let deep = "{\"mcpServers\":".repeat(100_000);
    let error = read(&deep, &source).unwrap_err().to_string();
    assert!(error.starts_with("not JSON: Maximum nesting depth exceeded at line 1"), "{error}");
    let codex = ImportSource { file: Path::new("a.toml"), ..source };
    assert_eq!(read(&format!("mcp_servers = {}", "[".repeat(100_000)), &codex).unwrap(), None);
}
