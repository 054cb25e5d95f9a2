//! Tests of the entries and settings that `connect` writes: for stdio, for HTTP, and for the proxy.

use serde_json::{Value, json};

use super::{ConnectHome, MOVED, reports};

fn parsed(home: &ConnectHome, file: &str) -> Value {
    parsed_text(file, &home.text(file))
}

fn parsed_text(file: &str, text: &str) -> Value {
    match file.rsplit('.').next().unwrap() {
        "toml" => toolcrib_client_files::Format::Toml,
        "yaml" => toolcrib_client_files::Format::Yaml,
        _ => toolcrib_client_files::Format::Json,
    }
    .parse(text)
    .unwrap()
}

/// Where the entry is in each client's file.
fn pointer(client: &str) -> &'static str {
    match client {
        "vscode" => "/mcp/servers/toolcrib",
        "codex" | "hermes" => "/mcp_servers/toolcrib",
        "opencode" => "/mcp/toolcrib",
        "zed" => "/context_servers/toolcrib",
        "goose" => "/extensions/toolcrib",
        _ => "/mcpServers/toolcrib",
    }
}

#[test]
fn each_client_gets_its_own_kind_of_entry() {
    let home = ConnectHome::with_samples("entries");
    let config = home.root.join("work/mine.toml");
    home.succeed(&["connect", "--yes", "--config", "mine.toml"]);
    let command = env!("CARGO_BIN_EXE_toolcrib");
    let args = json!(["mcp", "--config", config]);
    for (client, file, _) in MOVED {
        let expected = match client {
            "claude-code" => {
                json!({"type": "stdio", "command": command, "args": args, "alwaysLoad": true})
            }
            "vscode" => json!({"type": "stdio", "command": command, "args": args}),
            "opencode" => {
                json!({"type": "local", "command": [command, "mcp", "--config", config], "enabled": true})
            }
            "zed" => json!({"source": "custom", "command": command, "args": args, "env": {}}),
            "goose" => json!({
                "enabled": true, "type": "stdio", "name": "toolcrib", "description": "Toolcrib", "cmd": command,
                "args": args, "envs": {}, "env_keys": [], "timeout": 300,
            }),
            _ => json!({"command": command, "args": args}),
        };
        assert_eq!(parsed(&home, file).pointer(pointer(client)), Some(&expected), "{client}");
    }
    assert!(config.is_file() && !home.at(".config/toolcrib/toolcrib.toml").exists());
}

#[test]
fn with_http_each_client_gets_the_url_in_the_config() {
    let home = ConnectHome::with_samples("http");
    home.put(
        ".config/toolcrib/toolcrib.toml",
        "[http]\nlisten = \"127.0.0.1:4999\"\ntoken = \"CANARY-0123456789abcdef\"\n",
    );
    let document = home.succeed(&["connect", "--http", "--yes"]);
    let notes = reports(&document, "claude-desktop")[0]["notes"].to_string();
    assert!(
        notes.contains("its file cannot contain URLs, so the entry starts `toolcrib mcp`"),
        "{notes}"
    );
    let notes = reports(&document, "cursor")[0]["notes"].to_string();
    assert!(notes.contains("add the header `Authorization: Bearer TOKEN` to the entry"), "{notes}");
    let url = "http://127.0.0.1:4999/mcp";
    for (client, file, _) in MOVED {
        let expected = match client {
            "claude-desktop" => json!({"command": env!("CARGO_BIN_EXE_toolcrib"), "args": ["mcp"]}),
            "claude-code" => json!({"type": "http", "url": url, "alwaysLoad": true}),
            "vscode" => json!({"type": "http", "url": url}),
            "opencode" => json!({"type": "remote", "url": url, "enabled": true}),
            "gemini" => json!({"httpUrl": url}),
            "windsurf" => json!({"serverUrl": url}),
            "cline" => json!({"type": "streamableHttp", "url": url}),
            "goose" => json!({
                "enabled": true, "type": "streamable_http", "name": "toolcrib", "description": "Toolcrib",
                "uri": url, "envs": {}, "env_keys": [], "headers": {}, "timeout": 300,
            }),
            _ => json!({"url": url}),
        };
        assert_eq!(parsed(&home, file).pointer(pointer(client)), Some(&expected), "{client}");
    }
    // Without `--http`, the same command changes the entries, and the originals can still be restored.
    let before = ConnectHome::with_samples("http-original");
    home.succeed(&["connect", "cursor", "codex", "--yes"]);
    let command = Some(&json!(env!("CARGO_BIN_EXE_toolcrib")));
    assert_eq!(parsed(&home, ".cursor/mcp.json").pointer("/mcpServers/toolcrib/command"), command);
    home.succeed(&["disconnect", "--yes"]);
    for (_, file, _) in MOVED {
        assert_eq!(home.text(file), before.text(file));
    }
}

#[test]
fn the_base_url_is_set_and_taken_back() {
    let home = ConnectHome::with_samples("proxy");
    home.put(".claude/settings.json", "{\n  \"model\": \"opus\", // best\n}\n");
    home.put(".gemini/.env", "GEMINI_API_KEY=CANARY-key\n");
    let before = home.files();
    let clients = ["claude-code", "codex", "opencode", "gemini"];
    // The servers are connected as well, so two changes of the same file are undone.
    home.succeed(&["connect", "codex", "--yes"]);
    let document = home.succeed(&[&["connect", "--proxy", "--yes"], &clients[..]].concat());
    let notes = reports(&document, "gemini")[0]["notes"].to_string();
    assert!(notes.contains("only if it signs in with an API key"), "{notes}");
    let settings = parsed(&home, ".claude/settings.json");
    let origin = "http://127.0.0.1:4180";
    assert_eq!(
        settings["env"],
        json!({"ANTHROPIC_BASE_URL": origin, "ENABLE_TOOL_SEARCH": "false"})
    );
    assert_eq!(
        home.text(".gemini/.env"),
        format!("GEMINI_API_KEY=CANARY-key\nGOOGLE_GEMINI_BASE_URL={origin}\n")
    );
    let codex = parsed(&home, ".codex/config.toml");
    assert_eq!(codex["model_provider"], "toolcrib");
    assert_eq!(codex["model_providers"]["toolcrib"]["base_url"], format!("{origin}/v1"));
    let opencode = parsed(&home, ".config/opencode/opencode.jsonc");
    assert_eq!(opencode["provider"]["google"]["options"]["baseURL"], format!("{origin}/v1beta"));
    let document = home.succeed(&[&["connect", "--proxy", "--yes"], &clients[..]].concat());
    assert_eq!(document["written"], false);
    home.succeed(&["disconnect", "--yes"]);
    assert_eq!(home.files(), before);
}

#[test]
fn clients_without_a_file_for_the_base_url_are_an_error() {
    let home = ConnectHome::with_samples("proxy-error");
    let run = home.run(&["connect", "--proxy", "cursor", "--yes"]);
    assert_eq!(run.code, 2);
    assert_eq!(
        run.err,
        "error: cursor: its base URL is not in a file that can be changed\nhint: `--proxy` works for claude-code, \
         codex, opencode, gemini; set the base URL of other clients in their own settings: http://127.0.0.1:4180\n"
    );
    let run = home.run(&["connect", "--proxy", "--yes"]);
    assert!(run.code == 2 && run.err.contains("no client given"), "{run:?}");
}

#[test]
fn a_token_that_was_added_to_our_url_is_removed_with_the_entry() {
    let home = ConnectHome::new("http-token");
    for (file, text) in [
        (".cursor/mcp.json", "{\"mcpServers\": {\"files\": {\"command\": \"npx\"}}}"),
        (".codex/config.toml", "[mcp_servers.files]\ncommand = \"npx\"\n"),
    ] {
        home.put(file, text);
        home.succeed(&["connect", "--http", "--yes"]);
        let connected = home.text(file);
        let changed = if file.ends_with("toml") {
            format!("{connected}http_headers = {{ Authorization = \"Bearer x\" }}\n")
        } else {
            let mut value: Value = serde_json::from_str(&connected).unwrap();
            value["mcpServers"]["toolcrib"]["headers"] = json!({"Authorization": "Bearer x"});
            value.to_string()
        };
        home.put(file, &changed);
        home.succeed(&["disconnect", "--yes"]);
        assert_eq!(parsed(&home, file), parsed_text(file, text));
        std::fs::remove_file(home.at(file)).unwrap();
    }
}

#[test]
fn the_option_for_an_earlier_url_is_that_of_the_provider() {
    let home = ConnectHome::new("proxy-upstream");
    home.put(
        ".claude/settings.json",
        r#"{"env": {"ANTHROPIC_BASE_URL": "https://gateway.example"}}"#,
    );
    let document = home.succeed(&["connect", "--proxy", "claude-code", "--yes"]);
    let expected = "`env.ANTHROPIC_BASE_URL` had another URL; if that is the provider to use, name it when you start the \
                    proxy, for example with `toolcrib serve --anthropic URL`";
    let notes = reports(&document, "claude-code")[0]["notes"].as_array().unwrap().clone();
    assert!(notes.contains(&json!(expected)), "{notes:?}");
    let run = home.run(&["disconnect", "--yes"]);
    assert!(run.out.ends_with("\nDisconnected claude-code.\n"), "{}", run.out);
}
