//! Tests of lists that are too long, change all the time or cause many warnings: what the gateway keeps, logs and
//! saves.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{at_most, until_true};
use crate::raw_client::{Era, RawClient};

/// Writes the tools for `--define`. The file is replaced atomically, as careful editors do.
fn define(file: &Path, tools: &[Value]) {
    let draft = file.with_extension("new");
    fs::write(&draft, json!(tools).to_string()).unwrap();
    fs::rename(draft, file).unwrap();
}

fn tool(name: String, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

fn wait_until_listed(peer: &RawClient, name: &str) {
    let query = format!("select:shop__{name}");
    until_true(name, || peer.search(&query)["hits"][0]["name"] == format!("shop__{name}"));
}

#[test]
fn long_names_and_addresses_are_withheld() {
    let x = |bytes: usize| "x".repeat(bytes);
    let script = json!({
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        "tools": {},
        "methods": {
            "prompts/list": {"prompts": [
                {"name": "short", "description": x(100_000)},
                {"name": x(1_025)},
                {"name": "large", "arguments": [{"name": "a", "description": x(200_000)}]},
            ]},
            "resources/list": {"resources": [
                {"uri": "a://short", "name": "short"},
                {"uri": format!("a://{}", x(240_000)), "name": "a"},
                {"uri": format!("b://{}", x(240_000)), "name": "b"},
            ]},
            "resources/templates/list": {"resourceTemplates": [
                {"uriTemplate": format!("a://{}/{{id}}", x(8_192)), "name": "a"},
            ]},
        },
    });
    let environment = TestEnvironment::new("long-lists").scripted("shop", &script, "");
    assert_eq!(
        environment.doctor()[0]["notes"],
        json!([
            "1 of its prompts are withheld: the definition takes more than 131072 bytes",
            "1 of its prompts are withheld: the name has more than 1024 bytes",
            "2 of its resources are withheld: the address has more than 8192 bytes",
            "1 of its resourceTemplates are withheld: the address has more than 8192 bytes",
        ])
    );
    let peer = environment.stdio(Era::Older);
    until_true("the lists", || peer.ask("prompts/list", json!({}))["prompts"] != json!([]));
    let prompts = peer.ask("prompts/list", json!({}));
    assert_eq!(prompts["prompts"].as_array().unwrap().len(), 1, "{prompts}");
    let description = prompts["prompts"][0]["description"].as_str().unwrap();
    assert!(description.len() < 17_000 && description.ends_with("x…"), "{}", description.len());
    let resources = peer.ask("resources/list", json!({}));
    assert_eq!(resources["resources"].as_array().unwrap().len(), 1);
    assert_eq!(resources["resources"][0]["name"], "short");
}

/// When the list changes, only new warnings are logged, in a few short lines.
#[test]
fn findings_do_not_fill_the_log() {
    const TOOLS: usize = 300;
    let environment = TestEnvironment::new("remarks");
    let file = environment.folder.join("tools.json");
    let mut tools: Vec<Value> = (0..TOOLS)
        .map(|number| tool(format!("{number}{}", "x".repeat(3_000)), "the name is too long"))
        .collect();
    tools.push(tool("first".into(), "A tool."));
    define(&file, &tools);
    let environment = environment.faulty("shop", &["--define", file.to_str().unwrap()]);
    let peer = environment.stdio(Era::Older);
    wait_until_listed(&peer, "first");
    tools.push(tool(format!("y{}", "y".repeat(3_000)), "another"));
    tools.push(tool("second".into(), "A tool."));
    define(&file, &tools);
    wait_until_listed(&peer, "second");
    let stderr = environment.stderr();
    let remarks: Vec<&str> = stderr.lines().filter(|line| line.contains("the name has")).collect();
    assert_eq!(remarks.len(), 21, "{remarks:#?}");
    assert!(remarks[20].contains("`yyy"), "the new one: {}", remarks[20]);
    assert!(stderr.contains(&format!("and {} more warnings", TOOLS - 20)), "{stderr}");
    at_most("bytes of the longest line", stderr.lines().map(str::len).max().unwrap(), 500);
}

/// The reasons for failures come from servers, which can send texts of any length.
#[test]
fn long_reasons_are_truncated_in_the_log() {
    let long = "x".repeat(100_000);
    let environment = TestEnvironment::new("long-reasons")
        .faulty("loud", &["--say", &long, "--storm", "1", "--refuse-list", "2"]);
    let peer = environment.stdio(Era::Older);
    peer.ready("loud__echo");
    peer.call("loud__storm", json!({}));
    until_true("the refusal is logged", || environment.stderr().contains("no list today"));
    let stderr = environment.stderr();
    at_most("bytes of the longest line", stderr.lines().map(str::len).max().unwrap(), 500);
}

/// A large list that changes all the time is saved after a delay in proportion to its size, and when the gateway exits.
#[test]
fn large_changing_lists_are_not_saved_on_every_change() {
    const RATE: u64 = 256 << 10;
    let environment = TestEnvironment::new("changing-lists");
    let file = environment.folder.join("tools.json");
    let large = |version: usize| {
        let text = "A tool. ".repeat(1_500);
        let others = (0..200).map(|at| tool(format!("other{at}"), &text));
        others.chain([tool(format!("version{version}"), "A tool.")]).collect::<Vec<_>>()
    };
    define(&file, &large(0));
    let environment = environment.faulty("shop", &["--define", file.to_str().unwrap()]);
    let began = Instant::now();
    let peer = environment.stdio(Era::Older);
    let saved = || {
        fs::read_dir(environment.state().join("servers")).unwrap().next().unwrap().unwrap().path()
    };
    let mut written = Vec::new();
    for version in 0..5 {
        define(&file, &large(version));
        wait_until_listed(&peer, &format!("version{version}"));
        written.push(fs::metadata(saved()).unwrap().modified().unwrap());
    }
    written.dedup();
    let size = fs::metadata(saved()).unwrap().len();
    let allowed = 1 + (began.elapsed().as_secs() + 1) * RATE / size;
    at_most("writes of large lists", written.len() as u64, allowed);
    drop(peer);
    let text = fs::read_to_string(saved()).unwrap();
    assert!(text.contains("version4"), "the last list is written at exit");
}

/// A small list is saved on every change, before clients see it.
#[test]
fn small_lists_are_saved_before_clients_see_them() {
    let environment = TestEnvironment::new("small-lists");
    let file = environment.folder.join("tools.json");
    define(&file, &[tool("version0".into(), "A tool.")]);
    let environment = environment.faulty("shop", &["--define", file.to_str().unwrap()]);
    let peer = environment.stdio(Era::Older);
    for version in 0..5 {
        let name = format!("version{version}");
        define(&file, &[tool(name.clone(), "A tool.")]);
        wait_until_listed(&peer, &name);
        let saved =
            fs::read_dir(environment.state().join("servers")).unwrap().next().unwrap().unwrap();
        let text = fs::read_to_string(saved.path()).unwrap();
        assert!(text.contains(&name), "{name} is not written: {text}");
    }
}
