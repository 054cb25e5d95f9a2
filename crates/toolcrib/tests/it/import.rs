//! Tests of `toolcrib import`, with a home folder that contains the files of every client.
//!
//! The files are those of the library's tests. `PROJECT` in them is replaced by the test's project folder.

mod scopes;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib_mcp::GatewayConfig;
use toolcrib_mcp::config::import::{ImportSource, read_as, set_start_folder};
use toolcrib_mcp::config::{ClientKind, Server};

use crate::{Run, run_in};

/// A home and a project folder for one test.
struct ImportFolders {
    root: PathBuf,
}

impl ImportFolders {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("import").join(name);
        let _ = fs::remove_dir_all(&root);
        for folder in ["home", "project"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        // The binary prints the real path of its working folder, so symbolic links are resolved here, too.
        Self { root: root.canonicalize().unwrap() }
    }

    fn with_samples(name: &str) -> Self {
        let folders = Self::new(name);
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../toolcrib-mcp/tests/samples");
        copy(&samples, &folders.root, folders.at("project").to_str().unwrap());
        folders
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn import(&self, args: &[&str]) -> Run {
        let run = run_in(&self.at("project"), &self.at("home"), &[&["import"], args].concat(), "");
        let root = self.root.to_str().unwrap();
        Run { out: run.out.replace(root, "ROOT"), err: run.err.replace(root, "ROOT"), ..run }
    }

    /// Returns a server as the library reads it from a client's file.
    fn server(&self, client: ClientKind, file: &str, name: &str) -> Server {
        let file = self.at(file);
        let text = fs::read_to_string(&file).unwrap();
        let source = ImportSource { file: &file, folder: &self.at("project") };
        read_as(client, &text, &source).unwrap().servers.remove(name).unwrap()
    }
}

fn copy(from: &Path, to: &Path, project: &str) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target, project);
        } else {
            let text = fs::read_to_string(entry.path()).unwrap();
            fs::write(target, text.replace("PROJECT", project)).unwrap();
        }
    }
}

/// Returns the client, the path and the servers of each file in the JSON output.
fn found(answer: &Value) -> Vec<(String, String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let files = answer["found"].as_array().unwrap().iter();
    files
        .map(|file| {
            let servers = file["servers"].as_array().unwrap().iter().map(text).collect();
            (text(&file["client"]), text(&file["file"]), servers)
        })
        .collect()
}

/// The files that the import finds, each with its client, its path and its servers: first the user's own files, then
/// those of the working folder.
const FOUND: [(&str, &str, &[&str]); 15] = [
    ("claude-code", "ROOT/home/.claude.json", &["docs", "events", "local", "notes"]),
    ("claude-desktop", "ROOT/home/.config/Claude/claude_desktop_config.json", &["files"]),
    ("cursor", "ROOT/home/.cursor/mcp.json", &["design", "files-cursor"]),
    ("vscode", "ROOT/home/.config/Code/User/settings.json", &["clock"]),
    ("codex", "ROOT/home/.codex/config.toml", &["build", "issues", "locked"]),
    ("opencode", "ROOT/home/.config/opencode/opencode.jsonc", &["db", "remote"]),
    ("gemini", "ROOT/home/.gemini/settings.json", &["maps", "python", "stream"]),
    ("windsurf", "ROOT/home/.codeium/windsurf/mcp_config.json", &["automation", "off"]),
    (
        "cline",
        "ROOT/home/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        &["legacy", "weather"],
    ),
    ("zed", "ROOT/home/.config/zed/settings.json", &["notes-zed", "older", "remote-zed"]),
    ("goose", "ROOT/home/.config/goose/config.yaml", &["helpdesk", "stats", "vault"]),
    ("hermes", "ROOT/home/.hermes/config.yaml", &["crm", "music", "old", "parked"]),
    ("claude-code", "ROOT/project/.mcp.json", &["tickets"]),
    ("vscode", "ROOT/project/.vscode/mcp.json", &["feed", "search", "wiki"]),
    ("opencode", "ROOT/project/opencode.json", &["second"]),
];

/// The number of files in `FOUND` that are the user's own.
const USERS: usize = 12;

#[test]
fn every_clients_files_are_found() {
    let folders = ImportFolders::with_samples("all");
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let expected = FOUND.map(|(client, file, names)| (client.into(), file.into(), owned(names)));
    let run = folders.import(&["--json"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert_eq!(found(&run.json()), expected[..USERS]);
    let left_out = run.json()["left_out"].clone();
    let files = left_out.as_array().unwrap().iter().map(|file| file["file"].as_str().unwrap());
    assert!(files.eq(FOUND[USERS..].iter().map(|(_, file, _)| *file)), "{left_out}");
    assert_eq!(left_out[0]["reason"], "files in the working folder are read only with `--project`");
    let run = folders.import(&["--json", "--project"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert_eq!(found(&run.json()), expected);
    assert_eq!(run.json()["left_out"], json!([]));
    let is_project = |file: &Value| file["project"].as_bool().unwrap();
    let answer = run.json();
    let projects = answer["found"].as_array().unwrap().iter().map(is_project);
    assert!(projects.eq((0..FOUND.len()).map(|at| at >= USERS)), "{answer}");
}

#[test]
fn files_of_one_client_can_be_selected() {
    let folders = ImportFolders::with_samples("one");
    for client in ClientKind::ALL.map(ClientKind::name) {
        let run = folders.import(&["--from", client, "--json", "--project"]);
        assert_eq!(run.code, 0, "{run:?}");
        let files: Vec<String> = found(&run.json()).into_iter().map(|(_, file, _)| file).collect();
        let expected = FOUND.iter().filter(|(of, ..)| *of == client).map(|(_, file, _)| *file);
        assert_eq!(files, expected.collect::<Vec<_>>(), "{client}");
    }
    assert_eq!(folders.import(&["--from", "nobody"]).code, 2);
}

/// Checks the complete output of a small import: the config is on standard output, everything else on standard error.
#[test]
fn without_write_the_config_is_printed_without_secrets() {
    let folders = ImportFolders::new("print");
    let text = r#"{"mcpServers": {"a": {"command": "x", "env": {"T": "s3cret", "U": "${U}"}},
        "b": {"type": "sse", "url": "https://b"}, "c": {"type": "ws", "url": "https://c"}}}"#;
    folders.put("project/.mcp.json", text);
    let run = folders.import(&["--project"]);
    let config = "[servers.a]\ncommand = \"x\"\nenv = { T = \"***\", U = \"${U}\" }\ncwd = \"ROOT/project\"\n
[servers.b]\nurl = \"https://b\"\ntransport = \"sse\"\n";
    assert_eq!((run.code, run.out.as_str()), (0, config));
    // Whitespace is normalised, because lines are wrapped and the path has another length on each machine.
    let words: Vec<&str> = run.err.split_whitespace().collect();
    assert_eq!(
        words.join(" "),
        "claude-code: ROOT/project/.mcp.json servers a, b note `c`: `type` names an unknown transport; the server is left \
         out note: secrets are shown as `***`; `--write F` writes them to the file"
    );
}

#[test]
fn no_option_prints_a_secret() {
    let folders = ImportFolders::with_samples("canary");
    folders.put("home/.codex/config.toml", "[mcp_servers.a]\nenv = { A = \"CANARY }");
    for args in [&[][..], &["--json"], &["--write", "out.toml"], &["--write", "out.json", "--json"]]
    {
        let run = folders.import(&[args, &["--project"]].concat());
        assert_eq!(run.code, 2);
        assert!(!run.out.contains("CANARY") && !run.err.contains("CANARY"), "{run:?}");
    }
    let written = fs::read_to_string(folders.at("project/out.toml")).unwrap();
    assert!(written.contains("CANARY-env-1"), "the written file has the secrets");
}

/// The servers that are defined in the samples in YAML, as TOML.
const YAML: &str = r#"
[servers.helpdesk]
command = "uvx"
args = ["helpdesk-server"]
env = { HELPDESK_URL = "https://help.example.com", HELPDESK_KEY = "CANARY-goose-1" }
call_timeout = 120.0
allow = ["find_ticket"]
[servers.vault]
command = "vault-server"
env = { VAULT_TOKEN = "${VAULT_TOKEN}" }
call_timeout = 300.0
[servers.stats]
url = "https://stats.example.com/mcp"
headers = { Authorization = "Bearer CANARY-goose-2" }
enabled = false
call_timeout = 300.0
[servers.crm]
url = "https://crm.example.com/mcp"
headers = { Authorization = "Bearer ${CRM_TOKEN}" }
call_timeout = 180.0
start_timeout = 20.0
deny = ["delete_account"]
[servers.music]
command = "npx"
args = ["-y", "music-server"]
env = { PLAYER = "den" }
parallel = false
[servers.old]
url = "http://localhost:8000/sse"
transport = "sse"
[servers.parked]
command = "parked-server"
enabled = false
"#;

#[test]
fn the_written_config_equals_the_files_that_were_read() {
    let folders = ImportFolders::with_samples("write");
    let run = folders.import(&["--write", "out.toml", "--project"]);
    assert_eq!(run.code, 0, "{run:?}");
    let count: usize = FOUND.iter().map(|(_, _, names)| names.len()).sum();
    let added = format!("\nAdded {count} servers to `out.toml`.\n");
    assert!(run.out.ends_with(&added), "{}", run.out);
    let path = folders.at("project/out.toml");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let config = GatewayConfig::from_toml(&fs::read_to_string(&path).unwrap()).unwrap();
    // The library cannot read YAML, so the servers of the YAML files are compared with `YAML`, which has the same
    // servers in TOML.
    let (yaml, others): (Vec<_>, Vec<_>) =
        FOUND.into_iter().partition(|(client, ..)| ["hermes", "goose"].contains(client));
    let expected = GatewayConfig::from_toml(YAML).unwrap();
    for name in yaml.iter().flat_map(|(_, _, names)| *names) {
        assert!(config.servers[*name] == expected.servers[*name], "{name}");
    }
    for (client, file, names) in others {
        let client = ClientKind::from_name(client).unwrap();
        for name in names {
            let own = name.strip_suffix("-cursor").unwrap_or(name);
            let mut server = folders.server(client, file.strip_prefix("ROOT/").unwrap(), own);
            if file.starts_with("ROOT/project/") {
                set_start_folder(&mut server, &folders.at("project"));
            }
            assert!(config.servers[*name] == server, "{name}");
        }
    }
    assert_eq!(config.servers.len(), count);
}

#[test]
fn only_new_servers_are_added_to_an_existing_config() {
    let folders = ImportFolders::new("merge");
    let old = "# mine\n[activation]\ntools = 3\n\n[servers.same]\ncommand = 'x' # why\n\n[servers.other]\ncommand = 'mine'\n";
    folders.put("project/crib.toml", old);
    let server = |command: &str| {
        format!(
            r#"{{"mcpServers": {{"same": {{"command": "x"}}, "other": {{"command": "{command}"}}}}}}"#
        )
    };
    folders.put("home/.claude.json", &server("theirs"));
    folders.put("home/.cursor/mcp.json", &server("third"));
    let run = folders.import(&["--write", "crib.toml", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let answer = run.json();
    assert_eq!(answer["added"], json!(["other-claude-code", "other-cursor"]));
    assert_eq!(answer["written"], json!("crib.toml"));
    let expected = format!(
        "{old}\n[servers.other-claude-code]\ncommand = \"theirs\"\n\n[servers.other-cursor]\ncommand = \"third\"\n"
    );
    assert_eq!(fs::read_to_string(folders.at("project/crib.toml")).unwrap(), expected);
    // A second import adds nothing.
    let run = folders.import(&["--write", "crib.toml"]);
    assert_eq!(run.code, 0);
    assert!(run.out.ends_with("`crib.toml` already has all of them.\n"), "{}", run.out);
    assert_eq!(fs::read_to_string(folders.at("project/crib.toml")).unwrap(), expected);
    let left: Vec<_> = fs::read_dir(folders.at("project")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_config_that_servers_cannot_be_appended_to_is_not_changed() {
    let folders = ImportFolders::new("refused");
    folders.put("home/.claude.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    for (text, error) in [
        ("servers = { b = { command = 'y' } }", "servers cannot be appended to this file"),
        ("[servers.b]\ncomand = 'y'", "unknown field `comand`"),
    ] {
        folders.put("project/crib.toml", text);
        let run = folders.import(&["--write", "crib.toml"]);
        assert_eq!(run.code, 2);
        let expected = format!("error: `ROOT/project/crib.toml`: {error}");
        assert!(run.err.contains(&expected) && run.err.contains("\nhint: "), "{}", run.err);
        assert_eq!(fs::read_to_string(folders.at("project/crib.toml")).unwrap(), text);
    }
    folders.put("project/file", "");
    let run = folders.import(&["--write", "file/crib.toml"]);
    assert!(run.code == 2 && run.err.contains("`file/crib.toml`"), "{run:?}");
}

#[test]
fn a_missing_folder_is_created() {
    let folders = ImportFolders::new("folder");
    folders.put("home/.claude.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    assert_eq!(folders.import(&["--write", "new/folder/crib.toml"]).code, 0);
    assert!(folders.at("project/new/folder/crib.toml").is_file());
}

#[test]
fn without_any_server_the_exit_code_is_1() {
    let folders = ImportFolders::new("nothing");
    folders.put("home/.config/Code/User/settings.json", "{\"editor.fontSize\": 13}");
    let run = folders.import(&[]);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert_eq!(run.err, "no MCP servers found in the files of other clients\n");
    let run = folders.import(&["--json", "--write", "out.toml"]);
    assert_eq!(run.code, 1);
    let empty = json!({"found": [], "broken": [], "left_out": [], "toml": "", "masked": false, "added": []});
    assert_eq!(run.json(), empty);
    assert!(!folders.at("project/out.toml").exists());
}

#[test]
fn a_broken_file_is_reported_and_the_others_are_imported() {
    let folders = ImportFolders::new("broken");
    folders.put("home/.cursor/mcp.json", "{\n  \"mcpServers\": {\n    \"a\": ]\n");
    folders.put("home/.codex/config.toml", "[mcp_servers.a]\ncommand = \"x\n");
    folders.put("home/.gemini/settings.json", r#"{"mcpServers": {"fine": {"command": "y"}}}"#);
    let run = folders.import(&[]);
    assert_eq!((run.code, run.out.as_str()), (2, "[servers.fine]\ncommand = \"y\"\n"));
    for expected in [
        "error: `ROOT/home/.cursor/mcp.json`: not JSON: Unexpected close bracket at line 3, column 10\n\
         hint: comments and trailing commas are allowed; the rest must be JSON\n",
        "error: `ROOT/home/.codex/config.toml`: invalid basic string, expected `\"` at line 2, column 13\n\
         hint: the file must be TOML\n",
    ] {
        assert!(run.err.contains(expected), "{}", run.err);
    }
    let run = folders.import(&["--json"]);
    assert_eq!(run.code, 2);
    let broken = run.json()["broken"].clone();
    assert_eq!(broken.as_array().unwrap().len(), 2, "{broken}");
    assert_eq!(
        broken[0],
        json!({
            "client": "cursor",
            "file": "ROOT/home/.cursor/mcp.json",
            "error": "not JSON: Unexpected close bracket at line 3, column 10",
            "hint": "comments and trailing commas are allowed; the rest must be JSON",
        })
    );
}

/// `import` is not the only command that reads the files of clients: other commands accept them as a config.
#[test]
fn other_commands_read_the_files_of_clients() {
    let folders = ImportFolders::with_samples("before");
    let run = run_in(
        &folders.at("project"),
        &folders.at("home"),
        &["search", "--sample", "--config", ".mcp.json", "issue"],
        "",
    );
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.err, "note: reading `.mcp.json` as a configuration of claude-code\n");
    folders
        .put("project/toolcrib.toml", "[search]\nlimit = 2\n[servers.a]\ncommand = 'x'\n[http]\n");
    let args = ["search", "--sample", "--json", "--config", "toolcrib.toml", "issue"];
    let run = run_in(&folders.at("project"), &folders.at("home"), &args, "");
    assert_eq!(run.json()["hits"].as_array().unwrap().len(), 2, "{run:?}");
}
