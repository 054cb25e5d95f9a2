//! Tests of `connect` for a client that was connected before: with another config, and after changes by hand.

use std::fs;

use serde_json::json;

use super::{ConnectHome, reports};

const CURSOR: &str =
    "{\n  \"mcpServers\": {\n    \"files\": {\n      \"command\": \"npx\"\n    }\n  }\n}\n";

#[test]
fn a_client_is_not_connected_to_another_config() {
    let home = ConnectHome::new("other-config");
    home.put(".cursor/mcp.json", CURSOR);
    home.succeed(&["connect", "cursor", "--yes", "--config", "first.toml"]);
    let connected = home.text(".cursor/mcp.json");
    let run = home.run(&["connect", "cursor", "--yes", "--config", "second.toml"]);
    let work = home.root.join("work").display().to_string();
    let expected = format!(
        "error: `HOME/.cursor/mcp.json`: cursor is connected with the config `{work}/first.toml`, and not with \
         `{work}/second.toml`\nhint: run `toolcrib disconnect cursor` first, or use the config that it has\n"
    );
    assert_eq!((run.code, run.err), (2, expected));
    assert_eq!(home.text(".cursor/mcp.json"), connected);
    assert!(!home.root.join("work/second.toml").exists());
    // The same config is accepted. The words of our own entry, which is replaced, are shown.
    let run = home.run(&["connect", "cursor", "--yes", "--config", "first.toml", "--http"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.out.contains(&format!("\"--config\",\n-        \"{work}/first.toml\""))
            || run.out.contains(&format!("[\"mcp\", \"--config\", \"{work}/first.toml\"]")),
        "{}",
        run.out
    );
    home.succeed(&["disconnect", "--yes"]);
    assert_eq!(home.text(".cursor/mcp.json"), CURSOR);
}

#[test]
fn a_config_must_have_the_ending_of_toml() {
    let home = ConnectHome::new("json-config");
    home.put(".cursor/mcp.json", CURSOR);
    for name in ["new.json", "new"] {
        let run = home.run(&["connect", "--yes", "--config", name]);
        let expected = format!(
            "error: `{name}`: the name of a config that servers are added to must end in `.toml`\nhint: use \
             `--config new.toml`\n"
        );
        assert_eq!((run.code, run.err), (2, expected));
        assert!(!home.root.join("work").join(name).exists());
    }
    assert_eq!(home.text(".cursor/mcp.json"), CURSOR);
}

#[test]
fn a_client_can_be_connected_again_after_changes_by_hand() {
    let home = ConnectHome::new("again");
    let other = CURSOR.replace("npx", "other");
    for (now, restored) in [
        // Our entry was removed. The servers that were moved come back.
        (Some("{\n  \"mcpServers\": {}\n}\n"), CURSOR),
        // The file was restored from the backup.
        (Some(CURSOR), CURSOR),
        // The server was added again in another way.
        (Some(&*other), &*other),
        (Some(""), CURSOR),
        (None, CURSOR),
    ] {
        home.put(".cursor/mcp.json", CURSOR);
        home.succeed(&["connect", "--yes"]);
        let connected = home.text(".cursor/mcp.json");
        match now {
            Some(now) => home.put(".cursor/mcp.json", now),
            None => fs::remove_file(home.at(".cursor/mcp.json")).unwrap(),
        }
        let document = home.succeed(&["connect", "--yes"]);
        assert_eq!(reports(&document, "cursor")[0]["status"], "connected", "{now:?}");
        assert_eq!(home.text(".cursor/mcp.json"), connected, "{now:?}");
        let document = home.succeed(&["connect", "--yes"]);
        assert_eq!(reports(&document, "cursor")[0]["status"], "already-connected", "{now:?}");
        home.succeed(&["disconnect", "--yes"]);
        assert_eq!(home.text(".cursor/mcp.json"), restored, "{now:?}");
    }
    assert_eq!(
        json!(home.config().servers.keys().collect::<Vec<_>>()),
        json!(["files", "files-cursor"])
    );
}
