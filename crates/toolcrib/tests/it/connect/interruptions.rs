//! Tests of what happens between the question and the changes: other commands, edited files, and writes that fail.

use std::fs;

use serde_json::json;

use super::questions::at_question;
use super::{ConnectHome, reports};

const CURSOR: &str = r#"{"mcpServers": {"files": {"command": "/no/such/server"}}}"#;

#[test]
fn two_commands_do_not_run_at_the_same_time() {
    let home = ConnectHome::new("lock");
    home.put(".cursor/mcp.json", CURSOR);
    home.put(".claude.json", r#"{"mcpServers": {"notes": {"command": "/no/such/server"}}}"#);
    let error = "error: nothing was changed: another `toolcrib connect` or `disconnect` is running\nhint: it may be \
                 waiting for an answer in another terminal; end it, then run this command again\n";
    let others = || {
        for args in [
            &["connect", "claude-code", "--yes"][..],
            &["disconnect", "--yes"],
            &["import", "--write", "other.toml"],
        ] {
            let run = home.run(args);
            assert_eq!((run.code, run.err.as_str()), (2, error), "{args:?}: {run:?}");
        }
    };
    let (code, out) = at_question(&home, &["connect", "cursor"], others, "y\n");
    assert_eq!(code, 0, "{out}");
    home.succeed(&["connect", "claude-code", "--yes"]);
    let servers: Vec<String> = home.config().servers.into_keys().collect();
    assert_eq!(servers, ["files", "notes"]);
    home.succeed(&["disconnect", "--yes"]);
    assert_eq!(home.text(".cursor/mcp.json"), CURSOR);
}

#[test]
fn a_config_that_was_saved_during_the_question_is_not_overwritten() {
    let home = ConnectHome::new("config-changed");
    home.put(".cursor/mcp.json", CURSOR);
    let config = ".config/toolcrib/toolcrib.toml";
    home.put(config, "[servers.mine]\ncommand = \"mine\"\n");
    fs::set_permissions(home.at(config), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    let saved = "[servers.mine]\ncommand = \"mine\"\n\n[servers.later]\ncommand = \"later\"\n";
    let (code, out) = at_question(&home, &["connect"], || home.put(config, saved), "y\n");
    assert_eq!(code, 2, "{out}");
    // The terminal wraps the error.
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.ends_with(
            "error: `HOME/.config/toolcrib/toolcrib.toml`: the file was changed while this command was running, so \
             nothing was written hint: run the command again"
        ),
        "{words}"
    );
    assert_eq!(home.text(config), saved);
    assert_eq!(home.text(".cursor/mcp.json"), CURSOR);
    assert!(!home.at(".local/state/toolcrib/connected").exists());
}

/// An earlier version of Toolcrib takes no lock, so its record may appear at any time.
#[test]
fn a_change_that_is_not_made_leaves_the_records_of_others() {
    let home = ConnectHome::new("foreign-record");
    home.put(".cursor/mcp.json", CURSOR);
    let folder = ".local/state/toolcrib/connected";
    let (record, backup) =
        (format!("{folder}/cursor-mcp.json.json"), format!("{folder}/cursor-mcp.json.original"));
    let theirs = || {
        home.put(&record, "{}");
        home.put(&backup, "the only copy");
        home.put(".cursor/mcp.json", "{}");
    };
    let (code, out) = at_question(&home, &["connect"], theirs, "y\n");
    assert_eq!(code, 2, "{out}");
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(
            "Only `HOME/.config/toolcrib/toolcrib.toml` was changed. The servers are now in it, and still in the files \
             of the clients."
        ),
        "{words}"
    );
    assert_eq!((home.text(&record), home.text(&backup)), ("{}".into(), "the only copy".into()));
    assert_eq!(home.text(".cursor/mcp.json"), "{}");
}

#[test]
fn a_backup_without_a_record_is_not_overwritten() {
    let home = ConnectHome::new("old-backup");
    home.put(".cursor/mcp.json", CURSOR);
    let backup = ".local/state/toolcrib/connected/cursor-mcp.json.original";
    home.succeed(&["connect", "--yes"]);
    // The hint of `disconnect` says how to keep a file as it is.
    fs::remove_file(home.at(".local/state/toolcrib/connected/cursor-mcp.json.json")).unwrap();
    home.put(".cursor/mcp.json", "{}");
    let document = home.succeed(&["connect", "--yes"]);
    assert_eq!(reports(&document, "cursor").len(), 1, "{document}");
    assert_eq!(home.text(backup), CURSOR);
    home.succeed(&["disconnect", "--yes"]);
    assert_eq!((home.text(".cursor/mcp.json"), home.text(backup)), ("{}".into(), CURSOR.into()));
}

#[test]
fn a_damaged_record_or_backup_stops_only_its_own_client() {
    let folder = ".local/state/toolcrib/connected";
    for (damaged, text, problem) in [
        (
            "cursor-mcp.json.original",
            "{}",
            "`HOME/.local/state/toolcrib/connected/cursor-mcp.json.original`: the backup is no longer the one that \
             `toolcrib connect` saved",
        ),
        (
            "cursor-mcp.json.json",
            "{",
            "`HOME/.local/state/toolcrib/connected/cursor-mcp.json.json`: not a record of `toolcrib connect`",
        ),
    ] {
        let home = ConnectHome::new("damaged");
        home.put(".cursor/mcp.json", CURSOR);
        home.put(".claude.json", super::CLAUDE);
        home.succeed(&["connect", "--yes"]);
        let connected = home.text(".cursor/mcp.json");
        let path = home.at(&format!("{folder}/{damaged}"));
        fs::write(&path, text).unwrap();
        for args in [&["disconnect", "--yes", "--json"][..], &["connect", "--yes", "--json"]] {
            let run = home.run(args);
            assert_eq!(run.code, 2, "{run:?}");
            let document = run.json();
            let report = reports(&document, "cursor")[0];
            let error = format!("record of `toolcrib connect`: {problem}");
            assert_eq!((&report["status"], &report["error"]), (&"failed".into(), &json!(error)));
            let other = if args[0] == "connect" { "connected" } else { "disconnected" };
            assert_eq!(reports(&document, "claude-code")[0]["status"], other);
        }
        assert_eq!(home.text(".cursor/mcp.json"), connected);
    }
}

#[test]
fn a_link_that_leads_to_no_file_is_not_replaced() {
    let home = ConnectHome::new("dangling");
    home.put(".cursor/mcp.json", CURSOR);
    let link = |file: &str| {
        std::os::unix::fs::symlink(home.at("dotfiles/missing"), home.at(file)).unwrap();
    };
    link(".claude.json");
    let run = home.run(&["connect", "claude-code", "--yes"]);
    let problem = "a symbolic link to `HOME/dotfiles/missing`, which does not exist";
    let hint = "create the file that the link leads to, or remove the link";
    assert_eq!(
        (run.code, run.err),
        (2, format!("error: `HOME/.claude.json`: {problem}\nhint: {hint}\n"))
    );
    fs::create_dir_all(home.at(".config/mine")).unwrap();
    link(".config/mine/toolcrib.toml");
    let config = home.at(".config/mine/toolcrib.toml");
    let run = home.run(&["connect", "cursor", "--yes", "--config", config.to_str().unwrap()]);
    assert_eq!(
        (run.code, run.err),
        (2, format!("error: `HOME/.config/mine/toolcrib.toml`: {problem}\nhint: {hint}\n"))
    );
    assert!(home.at(".claude.json").is_symlink() && config.is_symlink());
    assert_eq!(home.text(".cursor/mcp.json"), CURSOR);
}
