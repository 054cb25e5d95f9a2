//! Tests of files that the user or the client changes between `connect` and `disconnect`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::{CLAUDE, ConnectHome, reports};

#[test]
fn edits_in_between_stay_and_only_our_part_is_taken_back() {
    let home = ConnectHome::with_samples("between");
    home.succeed(&["connect", "--yes"]);
    // In each file, one line is changed or added.
    let edits = [
        (".claude.json", "\"numStartups\": 3", "\"numStartups\": 4"),
        (".cursor/mcp.json", "{\n", "{\n  // my servers\n"),
        (".codex/config.toml", "model = ", "model_verbosity = \"low\"\nmodel = "),
        (".hermes/config.yaml", "mcp_servers:", "added: 1\nmcp_servers:"),
        (".config/zed/settings.json", "\"One Dark\"", "\"One Light\""),
        (".config/goose/config.yaml", "openai", "anthropic"),
    ];
    let edited = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        text.replacen(from, to, 1)
    };
    let original = ConnectHome::with_samples("between-original");
    let mut expected = original.files();
    for (file, from, to) in edits {
        home.put(file, &edited(&home.text(file), from, to));
        expected.insert(original.at(file), edited(&original.text(file), from, to));
    }
    home.succeed(&["disconnect", "--yes"]);
    for (file, text) in expected {
        let file = file.strip_prefix(original.at("")).unwrap();
        assert_eq!(home.text(file.to_str().unwrap()), text);
    }
}

#[test]
fn servers_that_were_added_since_are_moved_by_a_second_connect() {
    let home = ConnectHome::new("second");
    home.put(".claude.json", CLAUDE);
    home.succeed(&["connect", "claude-code", "--yes"]);
    // Claude Code adds a server at the end.
    let with_server = |text: &str, name: &str| {
        let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
        value["mcpServers"][name] = serde_json::json!({"type": "stdio", "command": name});
        serde_json::to_string_pretty(&value).unwrap()
    };
    home.put(".claude.json", &with_server(&home.text(".claude.json"), "later"));
    let document = home.succeed(&["connect", "claude-code", "--yes"]);
    assert_eq!(document["added"], serde_json::json!(["later"]));
    assert!(!home.text(".claude.json").contains("later"));
    home.put(".claude.json", &with_server(&home.text(".claude.json"), "last"));
    home.succeed(&["disconnect", "claude-code", "--yes"]);
    assert_eq!(home.text(".claude.json"), with_server(&with_server(CLAUDE, "later"), "last"));
}

#[test]
fn a_changed_entry_stays_when_later_servers_are_moved() {
    let home = ConnectHome::new("changed");
    let text = "[mcp_servers.files]\ncommand = \"npx\"\n";
    home.put(".codex/config.toml", text);
    home.succeed(&["connect", "--yes"]);
    let args = "args = [\"mcp\", \"--profile\", \"work\"]";
    let later = "\n[mcp_servers.later]\ncommand = \"later\"\n";
    let changed = home.text(".codex/config.toml").replace("args = [\"mcp\"]", args);
    home.put(".codex/config.toml", &format!("{changed}{later}"));
    home.succeed(&["connect", "--yes"]);
    assert_eq!(home.text(".codex/config.toml"), changed);
    home.succeed(&["disconnect", "--yes"]);
    assert_eq!(home.text(".codex/config.toml"), format!("{text}{later}"));
}

#[test]
fn an_entry_that_the_user_changed_stops_the_undo_of_that_file() {
    let home = ConnectHome::new("conflict");
    home.put(".claude.json", CLAUDE);
    let cursor = r#"{"mcpServers": {"files": {"command": "npx"}}}"#;
    home.put(".cursor/mcp.json", cursor);
    home.succeed(&["connect", "--yes"]);
    let changed = home.text(".claude.json").replace("\"mcp\"", "\"mcp\", \"--profile\", \"work\"");
    home.put(".claude.json", &changed);
    // The user's change stays when the command runs again.
    let document = home.succeed(&["connect", "--yes"]);
    assert_eq!(reports(&document, "claude-code")[0]["status"], "already-connected");
    let run = home.run(&["disconnect", "--yes"]);
    assert_eq!(run.code, 2);
    let connected = "HOME/.local/state/toolcrib/connected/claude-code-claude.json";
    let expected = format!(
        "error: `HOME/.claude.json`: changed since `toolcrib connect`: `mcpServers.toolcrib` was changed\n\
         hint: remove or rename these keys by hand, then run the command again; the original file is in \
         `{connected}.original`; to keep the file as it is, delete `{connected}.json`\n"
    );
    assert_eq!(run.err, expected);
    assert_eq!(home.text(".claude.json"), changed);
    assert_eq!(home.text(".cursor/mcp.json"), cursor);
    // After the entry is removed by hand, as the hint says, the servers come back.
    let mut value: serde_json::Value = serde_json::from_str(&changed).unwrap();
    value["mcpServers"].as_object_mut().unwrap().remove("toolcrib");
    home.put(".claude.json", &serde_json::to_string_pretty(&value).unwrap());
    home.succeed(&["disconnect", "--yes"]);
    assert_eq!(home.text(".claude.json"), CLAUDE);
}

#[test]
fn a_link_stays_a_link_and_a_read_only_file_is_not_changed() {
    let home = ConnectHome::new("link");
    home.put("dotfiles/claude.json", CLAUDE);
    std::os::unix::fs::symlink(home.at("dotfiles/claude.json"), home.at(".claude.json")).unwrap();
    fs::set_permissions(home.at("dotfiles/claude.json"), fs::Permissions::from_mode(0o640))
        .unwrap();
    home.succeed(&["connect", "--yes"]);
    assert!(home.at(".claude.json").is_symlink());
    let mode = |file: &str| fs::metadata(home.at(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("dotfiles/claude.json"), 0o640);
    assert!(home.text("dotfiles/claude.json").contains("toolcrib"));
    home.succeed(&["disconnect", "--yes"]);
    assert_eq!(home.text("dotfiles/claude.json"), CLAUDE);
    assert!(home.at(".claude.json").is_symlink());
    fs::set_permissions(home.at("dotfiles/claude.json"), fs::Permissions::from_mode(0o440))
        .unwrap();
    fs::remove_file(home.at(".config/toolcrib/toolcrib.toml")).unwrap();
    let run = home.run(&["connect", "--yes"]);
    assert_eq!(run.code, 2);
    assert_eq!(
        run.err,
        "error: `HOME/dotfiles/claude.json`: the file is read-only\nhint: run `chmod u+w \
         HOME/dotfiles/claude.json`, or change it with the tool that manages it\n"
    );
    assert_eq!(home.text("dotfiles/claude.json"), CLAUDE);
    assert!(!home.at(".config/toolcrib/toolcrib.toml").exists());
}

#[test]
fn the_name_of_a_server_that_stays_is_not_taken() {
    let home = ConnectHome::new("name");
    let text = r#"{"servers": {"toolcrib": {"command": "x", "env": {"A": "${input:key}"}}}}"#;
    home.put(".config/Code/User/mcp.json", text);
    let document = home.succeed(&["connect", "--yes"]);
    assert_eq!(reports(&document, "vscode")[0]["entry"], "toolcrib-gateway");
    home.succeed(&["disconnect", "--yes"]);
    assert_eq!(home.text(".config/Code/User/mcp.json"), text);
}

#[test]
fn an_entry_that_the_user_added_is_kept() {
    let home = ConnectHome::new("by-hand");
    let text = r#"{"mcpServers": {"crib": {"command": "toolcrib", "args": ["mcp", "--config", "/c.toml"]}, "x": {"command": "x"}}}"#;
    home.put(".cursor/mcp.json", text);
    let document = home.succeed(&["connect", "--yes"]);
    let report = reports(&document, "cursor")[0];
    assert_eq!((&report["status"], &report["entry"]), (&"by-hand".into(), &"crib".into()));
    assert_eq!(home.text(".cursor/mcp.json"), text);
    assert!(!home.at(".config/toolcrib/toolcrib.toml").exists());
}

#[test]
fn a_file_that_cannot_be_parsed_does_not_affect_the_other_clients() {
    let home = ConnectHome::new("broken");
    home.put(".cursor/mcp.json", "{\"mcpServers\": {");
    home.put(".config/goose/config.yaml", "extensions: {a: {type: stdio, cmd: x, args: []}}\n");
    home.put(".claude.json", CLAUDE);
    let run = home.run(&["connect", "--yes"]);
    assert_eq!(run.code, 2);
    assert!(run.err.starts_with("error: `HOME/.cursor/mcp.json`: not JSON: "), "{}", run.err);
    let goose = "error: `HOME/.config/goose/config.yaml`: `extensions` at line 1 is not a block mapping\n\
                 hint: write one key per line, each indented below the name; then run the command again\n";
    assert!(run.err.ends_with(goose), "{}", run.err);
    assert!(home.text(".claude.json").contains("toolcrib"));
    let servers: Vec<String> = home.config().servers.into_keys().collect();
    assert_eq!(servers, ["docs", "notes"], "a server that stays must not run twice");
}
