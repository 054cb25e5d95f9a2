//! Tests that the Python and TypeScript snippets of docs/clients.md run exactly as they are written, with the official
//! SDKs.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::support::gateway::{DEFERRED, Home, server};
use crate::support::{DEADLINE, Program, peer, root};

/// Returns the first code block in this language below a heading of the page.
fn snippet(heading: &str, language: &str) -> String {
    let page = fs::read_to_string(root().join("docs/clients.md")).unwrap();
    let section = page.split(heading).nth(1).unwrap();
    let block = section.split(&format!("```{language}\n")).nth(1).unwrap();
    block.split("```").next().unwrap().to_owned()
}

/// Runs a snippet against a gateway with the reference server `mcp-server-time`, and returns what the snippet prints.
fn output(snippet: &str, interpreter: &str, file: &str) -> String {
    let time: Program = vec![peer("python/bin/mcp-server-time")];
    // The long wait makes the first search wait for the server, even on a slow machine.
    let home =
        Home::new(&format!("{DEFERRED}[gateway]\nwait = 600\n{}", server("time", &time, "")));
    let gateway = home.mcp();
    let (command, arguments) = gateway.split_first().unwrap();
    let script = snippet.replace("\"toolcrib\"", &format!("{command:?}"));
    let script = script
        .replace("[\"mcp\", \"--config\", \"/home/me/toolcrib.toml\"]", &format!("{arguments:?}"));
    let path = home.path().join(file);
    fs::write(&path, &script).unwrap();
    symlink(peer("node_modules"), home.path().join("node_modules")).unwrap();
    let ran = Command::new("timeout")
        .args([&DEADLINE.as_secs().to_string(), interpreter])
        .arg(&path)
        .env("HOME", home.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(ran.status.success(), "{}\n{}\n{script}", ran.status, text(&ran.stderr));
    text(&ran.stdout)
}

fn assert_found_and_called(printed: &str) {
    assert!(printed.starts_with("time__get_current_time ["), "{printed}");
    assert!(printed.contains("\"timezone\": \"Europe/Berlin\""), "{printed}");
}

#[test]
fn the_python_snippet_finds_and_calls_a_tool() {
    let python = peer("python/bin/python");
    assert_found_and_called(&output(&snippet("### From Python", "python"), &python, "agent.py"));
}

/// The snippet has no type annotations, so Node can run it unchanged.
#[test]
fn the_typescript_snippet_finds_and_calls_a_tool() {
    let node = peer("node_modules/.bin/node");
    let code = snippet("### From TypeScript", "typescript");
    assert_found_and_called(&output(&code, &node, "agent.mjs"));
}
