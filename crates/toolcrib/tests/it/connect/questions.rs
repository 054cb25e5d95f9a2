//! Tests of the question before files are changed, and of the exit codes.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::json;

use super::ConnectHome;

/// The server cannot be started, because `connect` then asks every server in a terminal, and a real one could take long.
const CURSOR: &str = r#"{"mcpServers": {"files": {"command": "/no/such/server"}}}"#;

/// Runs a command in a terminal, and types an answer. Python's standard library creates the pseudoterminal.
fn in_terminal(home: &ConnectHome, args: &[&str], answer: &str) -> (i32, String) {
    at_question(home, args, || {}, answer)
}

/// Runs a command in a terminal, does something while it waits for the answer, and types the answer.
pub(super) fn at_question(
    home: &ConnectHome,
    args: &[&str],
    action: impl FnOnce(),
    answer: &str,
) -> (i32, String) {
    let spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut child = Command::new("python3")
        .args(["-c", spawn, env!("CARGO_BIN_EXE_toolcrib")])
        .args(args)
        .current_dir(home.root.join("work"))
        .env("HOME", home.at(""))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut shown, mut byte) = (Vec::new(), [0]);
    while !shown.ends_with(b"[y/N] ") && out.read(&mut byte).unwrap() == 1 {
        shown.push(byte[0]);
    }
    action();
    child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
    out.read_to_end(&mut shown).unwrap();
    let home = home.at("").to_str().unwrap().trim_end_matches('/').to_owned();
    let shown = String::from_utf8(shown).unwrap().replace(&home, "HOME");
    (child.wait().unwrap().code().unwrap(), shown)
}

#[test]
fn files_are_changed_only_if_the_answer_is_yes() {
    let home = ConnectHome::new("question");
    home.put(".cursor/mcp.json", CURSOR);
    for answer in ["n\n", "\n"] {
        let (code, out) = in_terminal(&home, &["connect"], answer);
        assert_eq!(code, 1, "{out}");
        assert!(out.contains("Change these 2 files? [y/N] "), "{out}");
        assert!(out.contains("Nothing was changed."), "{out}");
        assert!(out.contains("\x1b[31m-"), "removed lines are red in a terminal: {out}");
        assert_eq!(home.text(".cursor/mcp.json"), CURSOR);
        assert!(!home.at(".config/toolcrib").exists());
        assert!(!home.at(".local/state/toolcrib/connected").exists());
    }
    let (code, out) = in_terminal(&home, &["connect"], "y\n");
    assert!(code == 0 && out.contains("Connected cursor."), "{out}");
    let (code, out) = in_terminal(&home, &["disconnect"], "n\n");
    assert!(code == 1 && out.contains("Change this file? [y/N] "), "{out}");
    let (code, out) = in_terminal(&home, &["disconnect"], "yes\n");
    assert!(code == 0 && out.contains("Disconnected cursor."), "{out}");
    assert_eq!(home.text(".cursor/mcp.json"), CURSOR);
}

#[test]
fn without_a_terminal_nothing_is_changed_unless_yes_is_given() {
    let home = ConnectHome::new("no-terminal");
    home.put(".cursor/mcp.json", CURSOR);
    let error =
        "nothing was changed: standard input is not a terminal, so the question cannot be answered";
    let hint = "run the command again with `--yes`";
    let run = home.run(&["connect"]);
    assert_eq!((run.code, run.err), (2, format!("error: {error}\nhint: {hint}\n")));
    assert!(run.out.starts_with("cursor: HOME/.cursor/mcp.json\n"), "{}", run.out);
    let run = home.run(&["connect", "--json"]);
    assert_eq!((run.code, run.json()), (2, json!({"error": error, "hint": hint})));
    assert_eq!(home.text(".cursor/mcp.json"), CURSOR);
    home.succeed(&["connect", "--yes"]);
    assert_eq!(home.run(&["disconnect"]).code, 2);
    assert_ne!(home.text(".cursor/mcp.json"), CURSOR);
}

#[test]
fn the_exit_code_is_1_if_there_is_nothing_to_do() {
    let home = ConnectHome::new("nothing");
    let run = home.run(&["connect", "--yes"]);
    assert_eq!((run.code, run.out.as_str()), (1, "No client was found.\n"));
    let run = home.run(&["disconnect", "--yes"]);
    assert_eq!((run.code, run.out.as_str()), (1, "No client is connected.\n"));
    let run = home.run(&["disconnect", "--yes", "--json"]);
    assert_eq!((run.code, run.json()), (1, json!({"clients": [], "written": false})));
}

#[test]
fn a_client_that_is_not_there_is_an_error_and_an_empty_one_gets_the_entry() {
    let home = ConnectHome::new("empty");
    let run = home.run(&["connect", "zed", "--yes"]);
    assert_eq!(run.code, 2);
    assert_eq!(
        run.err,
        "error: zed: not found: `HOME/.config/zed` does not exist\nhint: start the client once, so that it creates the \
         folder; `toolcrib connect` without a name connects the clients that are found\n"
    );
    assert_eq!(home.run(&["connect", "nobody", "--yes"]).code, 2);
    std::fs::create_dir_all(home.at(".cursor")).unwrap();
    home.succeed(&["connect", "cursor", "--yes"]);
    let command = env!("CARGO_BIN_EXE_toolcrib");
    let expected = format!(
        "{{\n  \"mcpServers\": {{\n    \"toolcrib\": {{\n      \"command\": \"{command}\",\n      \"args\": [\"mcp\"]\n    }}\n  }}\n}}\n"
    );
    assert_eq!(home.text(".cursor/mcp.json"), expected);
    let run = home.run(&["disconnect", "zed", "--yes"]);
    assert_eq!(
        (run.code, run.err.as_str()),
        (
            2,
            "error: zed: not connected by `toolcrib connect`\nhint: connected: cursor (`HOME/.cursor/mcp.json`)\n"
        )
    );
    home.succeed(&["disconnect", "--yes"]);
    assert!(!home.at(".cursor/mcp.json").exists());
}

#[test]
fn files_of_the_working_folder_are_not_changed() {
    let home = ConnectHome::new("working-folder");
    home.put(".cursor/mcp.json", CURSOR);
    let project = home.root.join("work/.cursor/mcp.json");
    std::fs::create_dir_all(project.parent().unwrap()).unwrap();
    let text = r#"{"mcpServers": {"theirs": {"command": "theirs"}}}"#;
    std::fs::write(&project, text).unwrap();
    std::fs::write(home.root.join("work/.mcp.json"), text).unwrap();
    let document = home.succeed(&["connect", "--yes"]);
    assert_eq!(document["added"], json!(["files"]));
    assert_eq!(document["clients"].as_array().unwrap().len(), 1);
    assert_eq!(std::fs::read_to_string(&project).unwrap(), text);
}

/// The entry of a program with another name cannot be recognized by its command, and must not be moved to the config.
#[test]
fn a_program_with_another_name_can_connect_twice() {
    let home = ConnectHome::new("renamed");
    home.put(".cursor/mcp.json", CURSOR);
    let program = home.root.join("crib");
    std::fs::hard_link(env!("CARGO_BIN_EXE_toolcrib"), &program).unwrap();
    for _ in 0..2 {
        let mut command = Command::new(&program);
        command.args(["connect", "--yes"]).current_dir(home.root.join("work"));
        command.env("HOME", home.at("")).env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
        assert!(command.output().unwrap().status.success());
    }
    assert_eq!(home.config().servers.into_keys().collect::<Vec<_>>(), ["files"]);
    home.succeed(&["disconnect", "--yes"]);
    assert_eq!(home.text(".cursor/mcp.json"), CURSOR);
}
