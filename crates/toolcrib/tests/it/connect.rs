//! Tests of `toolcrib connect` and `disconnect`, with home folders that contain the files of every client.

mod again;
mod conflicts;
mod endpoints;
mod interruptions;
mod questions;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_mcp::GatewayConfig;

use crate::{Run, run_in};

/// A home folder for one test.
struct ConnectHome {
    root: PathBuf,
}

/// The files of the sample home that have servers, each with its client and the servers that `connect` moves.
const MOVED: [(&str, &str, &[&str]); 12] = [
    ("claude-code", ".claude.json", &["docs", "notes"]),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", &["files"]),
    ("cursor", ".cursor/mcp.json", &["design"]),
    ("vscode", ".config/Code/User/settings.json", &["clock"]),
    ("codex", ".codex/config.toml", &["build", "issues", "locked"]),
    ("opencode", ".config/opencode/opencode.jsonc", &["db", "remote"]),
    ("gemini", ".gemini/settings.json", &["maps", "stream", "python"]),
    ("windsurf", ".codeium/windsurf/mcp_config.json", &["automation", "off"]),
    (
        "cline",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        &["weather", "legacy"],
    ),
    ("zed", ".config/zed/settings.json", &["notes-zed", "older", "remote-zed"]),
    ("goose", ".config/goose/config.yaml", &["helpdesk", "stats"]),
    ("hermes", ".hermes/config.yaml", &["crm", "music", "old", "parked"]),
];

/// Claude Code's file, formatted as Claude Code formats it.
const CLAUDE: &str = r#"{
  "numStartups": 3,
  "mcpServers": {
    "docs": {
      "type": "http",
      "url": "https://docs.example.com/mcp",
      "headers": {
        "Authorization": "Bearer CANARY-claude-1"
      }
    },
    "notes": {
      "type": "stdio",
      "command": "notes",
      "args": [],
      "env": {
        "NOTES_TOKEN": "CANARY-claude-2"
      }
    }
  },
  "projects": {
    "/work": {
      "mcpServers": {
        "local": {
          "command": "local-server"
        }
      }
    }
  },
  "oauthAccount": "CANARY-account"
}"#;

impl ConnectHome {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("connect").join(name);
        let _ = fs::remove_dir_all(&root);
        for folder in ["home", "home/.config", "work"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::set_permissions(root.join(folder), fs::Permissions::from_mode(0o700)).unwrap();
        }
        Self { root: root.canonicalize().unwrap() }
    }

    fn with_samples(name: &str) -> Self {
        let home = Self::new(name);
        let samples =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../toolcrib-mcp/tests/samples/home");
        for (_, file, _) in &MOVED[1..] {
            home.put(file, &fs::read_to_string(samples.join(file)).unwrap());
        }
        home.put(".claude.json", CLAUDE);
        home
    }

    fn at(&self, file: &str) -> PathBuf {
        self.root.join("home").join(file)
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.at(file);
        let folder = path.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.at(file)).unwrap()
    }

    /// Runs a command, and writes `HOME` in place of the path of the home folder in its output.
    fn run(&self, args: &[&str]) -> Run {
        let run = run_in(&self.root.join("work"), &self.root.join("home"), args, "");
        let home = self.at("").to_str().unwrap().trim_end_matches('/').to_owned();
        Run { out: run.out.replace(&home, "HOME"), err: run.err.replace(&home, "HOME"), ..run }
    }

    /// Runs a command that succeeds, and returns its JSON document.
    fn succeed(&self, args: &[&str]) -> Value {
        let run = self.run(&[args, &["--json"]].concat());
        assert_eq!(run.code, 0, "{run:?}");
        run.json()
    }

    fn config(&self) -> GatewayConfig {
        GatewayConfig::from_toml(&self.text(".config/toolcrib/toolcrib.toml")).unwrap()
    }

    /// Returns all files in the home folder, except those of Toolcrib.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.at("")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_name() == "toolcrib" {
                    continue;
                }
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    files.insert(entry.path(), fs::read_to_string(entry.path()).unwrap());
                }
            }
        }
        files
    }
}

/// Returns the reports on files of a client.
fn reports<'a>(document: &'a Value, client: &str) -> Vec<&'a Value> {
    let all = document["clients"].as_array().unwrap().iter();
    all.filter(|report| report["client"] == client).collect()
}

#[test]
fn every_client_is_connected_and_gets_its_bytes_back() {
    let home = ConnectHome::with_samples("all");
    let before = home.files();
    let document = home.succeed(&["connect", "--yes"]);
    assert_eq!(document["written"], true);
    for (client, file, names) in MOVED {
        let [report] = reports(&document, client)[..] else { panic!("{client}: {document}") };
        assert_eq!(
            (&report["status"], &report["entry"]),
            (&"connected".into(), &"toolcrib".into())
        );
        assert_eq!(report["file"], format!("HOME/{file}"));
        let moved: Vec<&str> = report["servers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|server| server["name"].as_str().unwrap())
            .collect();
        assert_eq!(moved, names, "{client}");
        // The backup contains secrets.
        let backup = report["backup"].as_str().unwrap().strip_prefix("HOME/").unwrap();
        let backup = home.at(backup);
        assert_eq!(fs::read_to_string(&backup).unwrap(), before[&home.at(file)]);
        assert_eq!(fs::metadata(backup).unwrap().permissions().mode() & 0o777, 0o600);
        let text = home.text(file);
        assert!(text.contains("toolcrib"), "{client}: {text}");
    }
    let count: usize = MOVED.iter().map(|(_, _, names)| names.len()).sum();
    assert_eq!(home.config().servers.len(), count);
    assert!(!home.config().servers["remote-zed"].enabled);
    // Nothing is changed when it runs again.
    let connected = home.files();
    let document = home.succeed(&["connect", "--yes"]);
    assert_eq!(document["written"], false);
    let is_connected = |report: &Value| report["status"] == "already-connected";
    assert!(document["clients"].as_array().unwrap().iter().all(is_connected), "{document}");
    assert_eq!(home.files(), connected);
    let document = home.succeed(&["disconnect", "--yes"]);
    assert_eq!(document["clients"].as_array().unwrap().len(), MOVED.len());
    assert_eq!(home.files(), before);
    assert_eq!(fs::read_dir(home.at(".local/state/toolcrib/connected")).unwrap().count(), 0);
    assert_eq!(home.config().servers.len(), count, "the servers stay in the config");
}

#[test]
fn servers_that_only_the_client_can_run_stay_in_its_file() {
    let home = ConnectHome::with_samples("stays");
    home.put(
        ".config/Code/User/mcp.json",
        r#"{"servers": {"asks": {"command": "x", "env": {"A": "${input:key}"}}, "plain": {"command": "y"}}}"#,
    );
    let document = home.succeed(&["connect", "goose", "vscode", "zed", "claude-code", "--yes"]);
    let stays = |client: &str| {
        let reports = reports(&document, client);
        let all = reports.iter().flat_map(|report| report["stays"].as_array().unwrap().clone());
        all.map(|one| {
            format!("{}: {}", one["server"].as_str().unwrap(), one["reason"].as_str().unwrap())
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(stays("goose"), ["vault: needs VAULT_TOKEN from Goose's keyring"]);
    assert_eq!(stays("vscode"), ["asks: asks for an input, which only VS Code can do"]);
    assert_eq!(
        stays("zed"),
        [
            "postgres: `command` is missing, because an extension of Zed runs the server; it cannot be imported"
        ]
    );
    let notes = reports(&document, "claude-code")[0]["notes"].to_string();
    assert!(notes.contains("the servers of 1 project in this file are not changed"), "{notes}");
    assert!(home.text(".claude.json").contains("local-server"));
    assert!(home.text(".config/goose/config.yaml").contains("vault-server"));
    // VS Code reads both of its files, so only one of them has the entry.
    let (file, settings) =
        (home.text(".config/Code/User/mcp.json"), home.text(".config/Code/User/settings.json"));
    assert!(
        file.contains("toolcrib") && file.contains("asks") && !file.contains("plain"),
        "{file}"
    );
    assert!(!settings.contains("toolcrib") && !settings.contains("clock"), "{settings}");
}

#[test]
fn neither_the_output_nor_a_document_contains_a_secret() {
    let home = ConnectHome::with_samples("canary");
    for (args, code) in [
        (&["connect"][..], 2),
        (&["connect", "--yes"], 0),
        (&["disconnect"], 2),
        (&["disconnect", "--yes"], 0),
        (&["connect", "--yes", "--json"], 0),
        (&["disconnect", "--yes", "--json"], 0),
    ] {
        let run = home.run(args);
        assert_eq!(run.code, code, "{args:?}: {run:?}");
        assert!(
            !run.out.contains("CANARY") && !run.err.contains("CANARY"),
            "{args:?}: {}",
            run.out
        );
        assert!(run.out.contains("***"), "{args:?}: {}", run.out);
    }
}

#[test]
fn the_change_is_shown_as_a_difference() {
    let home = ConnectHome::new("difference");
    home.put(".cursor/mcp.json", "{\n  \"mcpServers\": {\n    \"files\": { \"command\": \"npx\", \"env\": { \"KEY\": \"s3cret\" } } // mine\n  }\n}\n");
    let run = home.run(&["connect", "cursor", "--yes"]);
    let command = env!("CARGO_BIN_EXE_toolcrib");
    // If the editor is running, the output contains a note.
    let lines = run.out.lines().filter(|line| !line.starts_with("  note: "));
    let expected = format!(
        "cursor: HOME/.cursor/mcp.json
@@ -2,3 +2,6 @@
   \"mcpServers\": {{
-    \"files\": {{ \"command\": \"npx\", \"env\": {{ \"KEY\": \"***\" }} }} // ***
+    \"toolcrib\": {{
+      \"command\": \"{command}\",
+      \"args\": [\"mcp\"]
+    }}
   }}

To be added to `HOME/.config/toolcrib/toolcrib.toml`: 1 server (files)

Connected cursor.
  backup: HOME/.local/state/toolcrib/connected/cursor-mcp.json.original
Restart these clients. `toolcrib disconnect` undoes the changes.
`toolcrib doctor` checks the servers."
    );
    assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected);
}

#[test]
fn servers_that_would_lose_a_setting_stay_and_a_preview_shows_no_value() {
    let home = ConnectHome::new("preview");
    home.put(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
    "db": {"command": "npx", "args": ["-y", "db-server", "--db-pass", "V1", "-pV2", "me:V3@host", "--header", "x:V4"]},
    "hook": {"url": "https://hooks.example/services/V5"},
    "file": {"command": "x", "envFile": "/home/me/.env"},
    "two  spaces": {"command": "x"}
}}"#,
    );
    let document = home.succeed(&["connect", "--yes"]);
    let report = reports(&document, "cursor")[0];
    let diff = report["diff"].as_str().unwrap();
    let shown = [
        r#"-    "db": {"command": "npx", "args": ["-y", "db-server", "--db-pass", "***", "***", "***", "--header", "***"]},"#,
        r#"-    "hook": {"url": "https://hooks.example/***"},"#,
    ];
    for line in shown {
        assert!(diff.lines().any(|shown| shown == line), "{diff}");
    }
    assert_eq!(
        report["stays"],
        serde_json::json!([
            {"server": "file", "reason": "needs the variables in its `envFile`, which Toolcrib does not read"},
            {"server": "two  spaces", "reason": "has an invalid name; it is left out"},
        ])
    );
}

#[test]
fn rules_of_a_client_are_translated_or_named() {
    let home = ConnectHome::new("rules");
    let server = r#"{"mcpServers": {"my.files": {"command": "npx", "args": ["files"]}}}"#;
    home.put(".claude.json", server);
    home.put(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__my_files__write_file", "mcp__my_files_2", "Bash"], "ask": ["mcp__my_files__move"]}}"#,
    );
    home.put(
        ".config/opencode/opencode.json",
        r#"{"mcp": {"db": {"type": "local", "command": ["db"]}}, "tools": {"db_*": false, "dbx_a": false}, "permission": {"db_drop": "ask"}}"#,
    );
    home.put(
        ".codex/config.toml",
        "[mcp_servers.build]\ncommand = \"b\"\ndefault_tools_approval_mode = \"prompt\"\n",
    );
    let document = home.succeed(&["connect", "--yes"]);
    let set = "to deny a tool, set `deny` of the server in toolcrib.toml";
    let lost = |rule: &str, file: &str, server: &str| {
        format!(
            "`{rule}` in `HOME/{file}` no longer applies to the tools of `{server}`, which are now called through \
             `toolcrib`; "
        )
    };
    let (claude, opencode, codex) =
        (".claude/settings.json", ".config/opencode/opencode.json", ".codex/config.toml");
    for (client, expected) in [
        (
            "claude-code",
            vec![
                lost("permissions.deny: mcp__my_files__write_file", claude, "my.files")
                    + "`deny` of `my.files` in toolcrib.toml has `write_file` instead",
                lost("permissions.ask: mcp__my_files__move", claude, "my.files") + set,
            ],
        ),
        (
            "opencode",
            vec![
                lost("tools.db_*", opencode, "db")
                    + "`deny` of `db` in toolcrib.toml has `*` instead",
                lost("permission.db_drop", opencode, "db") + set,
            ],
        ),
        (
            "codex",
            vec![lost("mcp_servers.build.default_tools_approval_mode", codex, "build") + set],
        ),
    ] {
        let notes = reports(&document, client)[0]["notes"].as_array().unwrap().clone();
        let notes: Vec<&str> = notes
            .iter()
            .map(|note| note.as_str().unwrap())
            .filter(|note| note.contains("no longer applies"))
            .collect();
        assert_eq!(notes, expected, "{client}");
    }
    let denied = |name: &str| home.config().servers[name].deny.clone();
    assert_eq!((denied("my.files"), denied("db")), (vec!["write_file".into()], vec!["*".into()]));
}
