//! Tests with other real servers: files, memory, git and time.
//!
//! Each call is made directly to the server and through the gateway, and both must have the same result, including
//! errors.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::client::{Client, Era};
use crate::support::gateway::Home;
use crate::support::pair::Pair;
use crate::support::{Program, node, peer};

/// Two connections that cover both protocol versions and both transports. All four combinations are tested with
/// `server-everything`.
const TWO_WAYS: [(&str, Era); 2] = [("stdio", Era::Older), ("http", Era::Newer)];

fn direct(program: &Program, home: &Home) -> Client {
    Client::of(program, home.path(), Era::Older)
}

fn same(name: &str, program: &Program, calls: &[(&str, Value)]) {
    for connection in TWO_WAYS {
        let mut pair = Pair::new(name, program, connection, direct);
        for (tool, arguments) in calls {
            pair.call(tool, arguments);
        }
    }
}

fn npm(name: &str, arguments: &[&str]) -> Program {
    node(&peer(&format!("node_modules/@modelcontextprotocol/{name}/dist/index.js")), arguments)
}

#[test]
fn files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("notes.txt"), "one\ntwo\nthree\n").unwrap();
    std::fs::write(path("dot.png"), [0x89, b'P', b'N', b'G', 0, 255]).unwrap();
    std::fs::write(path("beep.wav"), b"RIFF\0\0\0\0WAVE").unwrap();
    let program = npm("server-filesystem", &[folder.path().to_str().unwrap()]);
    same(
        "files",
        &program,
        &[
            ("list_allowed_directories", json!({})),
            ("read_text_file", json!({"path": path("notes.txt")})),
            ("read_text_file", json!({"path": path("notes.txt"), "head": 2})),
            ("read_media_file", json!({"path": path("dot.png")})),
            ("read_media_file", json!({"path": path("beep.wav")})),
            ("read_multiple_files", json!({"paths": [path("notes.txt"), path("gone")]})),
            ("write_file", json!({"path": path("new.txt"), "content": "Grüße"})),
            ("list_directory_with_sizes", json!({"path": path("")})),
            ("directory_tree", json!({"path": path("")})),
            ("search_files", json!({"path": path(""), "pattern": "*.txt"})),
            ("get_file_info", json!({"path": path("notes.txt")})),
            ("read_text_file", json!({"path": path("gone")})),
            ("read_text_file", json!({"path": "/etc/passwd"})),
        ],
    );
}

#[test]
fn memory() {
    let person =
        |name: &str| json!({"name": name, "entityType": "person", "observations": ["counts"]});
    let known = json!({"from": "Ada", "to": "Bob", "relationType": "knows"});
    // Each process gets its own file, in the folder that it is started in, so that the two runs do not share memories.
    let mut program = vec!["sh".to_owned(), "-c".to_owned()];
    let server = npm("server-memory", &[]).join(" ");
    program.push(format!("MEMORY_FILE_PATH=$PWD/memory.json exec {server}"));
    same(
        "memory",
        &program,
        &[
            ("create_entities", json!({"entities": [person("Ada"), person("Bob")]})),
            ("create_relations", json!({"relations": [known]})),
            (
                "add_observations",
                json!({"observations": [{"entityName": "Ada", "contents": ["writes"]}]}),
            ),
            ("read_graph", json!({})),
            ("search_nodes", json!({"query": "writes"})),
            ("open_nodes", json!({"names": ["Bob"]})),
            (
                "add_observations",
                json!({"observations": [{"entityName": "Eve", "contents": ["?"]}]}),
            ),
        ],
    );
}

#[test]
fn git() {
    let folder = tempfile::tempdir().unwrap();
    let repo = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("a.txt"), "one\n").unwrap();
    run_git(folder.path(), &["init", "--quiet", "--initial-branch", "main"]);
    run_git(folder.path(), &["add", "."]);
    run_git(
        folder.path(),
        &["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "First."],
    );
    std::fs::write(folder.path().join("a.txt"), "two\n").unwrap();
    let program =
        vec![peer("python/bin/mcp-server-git"), "--repository".to_owned(), repo.to_owned()];
    same(
        "git",
        &program,
        &[
            ("git_status", json!({"repo_path": repo})),
            ("git_log", json!({"repo_path": repo, "max_count": 3})),
            ("git_diff_unstaged", json!({"repo_path": repo})),
            ("git_branch", json!({"repo_path": repo, "branch_type": "local"})),
            ("git_show", json!({"repo_path": repo, "revision": "HEAD"})),
            ("git_show", json!({"repo_path": repo, "revision": "no-such-revision"})),
            ("git_status", json!({"repo_path": "/"})),
        ],
    );
}

fn run_git(folder: &Path, arguments: &[&str]) {
    let done = Command::new("git").args(arguments).current_dir(folder).status().unwrap();
    assert!(done.success(), "git {arguments:?}");
}

#[test]
fn time() {
    let program =
        vec![peer("python/bin/mcp-server-time"), "--local-timezone".to_owned(), "UTC".to_owned()];
    let noon = |from: &str| json!({"source_timezone": from, "time": "12:00", "target_timezone": "Asia/Tokyo"});
    same(
        "time",
        &program,
        &[
            ("get_current_time", json!({"timezone": "Europe/Oslo"})),
            ("convert_time", noon("UTC")),
            ("convert_time", noon("Middle/Nowhere")),
        ],
    );
}
