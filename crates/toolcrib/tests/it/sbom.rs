//! Tests of `scripts/sbom`: the list of the binary's components is complete, valid, and the same every time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::own_path;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the target of this machine. Only the crates for this target are certain to be available here.
fn host() -> String {
    let done = Command::new("rustc").arg("-vV").current_dir(root()).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

/// Runs the script, and returns the component list and the overview of licences that it writes.
fn written(name: &str) -> (Vec<u8>, String) {
    let out = own_path(name);
    let done = Command::new("python3")
        .arg(root().join("scripts/sbom"))
        .args(["--texts", "--target", &host(), "--out"])
        .arg(&out)
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO", env!("CARGO"))
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(fs::metadata(out.join("THIRD-PARTY-LICENSE-TEXTS.txt")).unwrap().len() > 10_000);
    let licences = fs::read_to_string(out.join("THIRD-PARTY-LICENSES.md")).unwrap();
    (fs::read(out.join("toolcrib.cdx.json")).unwrap(), licences)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}

/// Returns the names and versions of the crates in the binary, according to cargo.
fn tree() -> BTreeSet<(String, String)> {
    let done = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--package", "toolcrib", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}", "--target", &host()])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    let pairs = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        Some((name, words.next()?.trim_start_matches('v').to_owned()))
    });
    pairs.collect()
}

#[test]
fn every_crate_of_the_binary_is_listed_with_license_hash_and_dependencies() {
    let (bytes, licences) = written("one");
    let (again, same_licences) = written("two");
    assert_eq!((&bytes, &licences), (&again, &same_licences), "the same lock gives the same bytes");
    assert!(!String::from_utf8_lossy(&bytes).contains(root().to_str().unwrap()));

    let document: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(document["bomFormat"], "CycloneDX");
    assert_eq!(document["specVersion"], "1.5");
    assert_eq!(document["version"], 1);
    let serial = text(&document["serialNumber"]);
    assert!(serial.starts_with("urn:uuid:") && serial.len() == 45, "{serial}");
    let program = &document["metadata"]["component"];
    assert_eq!((&program["type"], &program["name"]), (&"application".into(), &"toolcrib".into()));

    let components = document["components"].as_array().unwrap();
    let all: Vec<&Value> = components.iter().chain([program]).collect();
    let mut listed = BTreeSet::new();
    for component in &all {
        let (name, version) = (text(&component["name"]), text(&component["version"]));
        let purl = format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"));
        assert_eq!(text(&component["purl"]), purl);
        assert_eq!(text(&component["bom-ref"]), purl);
        let licence = text(&component["licenses"][0]["expression"]);
        assert!(!licence.is_empty() && !licence.contains('/'), "{name}: {licence}");
        let is_ours = name.starts_with("toolcrib");
        if is_ours {
            assert!(component.get("hashes").is_none(), "{name}");
        } else {
            assert_eq!(component["hashes"][0]["alg"], "SHA-256", "{name}");
            let hash = text(&component["hashes"][0]["content"]);
            assert!(
                hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{name}"
            );
            let row = format!("| {name} | {version} | {licence} |\n");
            assert!(licences.contains(&row), "{row}");
        }
        assert!(listed.insert((name, version)), "listed twice: {purl}");
    }
    assert_eq!(listed, tree());
    let has = |name: &str| listed.iter().any(|(listed, _)| listed == name);
    assert!(has("tokio") && has("toolcrib-core"));
    assert!(!has("proptest") && !has("toolcrib-testkit"), "test dependencies are not listed");

    // Every crate is reachable from the binary, and every reference leads to a component.
    let mut uses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in document["dependencies"].as_array().unwrap() {
        let names = entry["dependsOn"].as_array().unwrap().iter().map(text).collect();
        assert!(uses.insert(text(&entry["ref"]), names).is_none(), "{entry}");
    }
    let mut reached = BTreeSet::new();
    let mut left = vec![text(&program["bom-ref"])];
    while let Some(next) = left.pop() {
        left.extend(uses[&next].iter().filter(|used| !reached.contains(*used)).cloned());
        reached.insert(next);
    }
    let references: BTreeSet<String> = all.iter().map(|one| text(&one["bom-ref"])).collect();
    assert_eq!(reached, references);
    assert_eq!(uses.len(), all.len());
}
