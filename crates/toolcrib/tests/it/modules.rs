//! Tests that the top-level modules of each crate have no import cycles.
//!
//! Without cycles, there is a reading order in which each module needs only the modules before it.

mod graph;
mod paths;

use std::fs;
use std::path::{Path, PathBuf};

use graph::Graph;

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the import graph of a crate in this workspace. Programs under `bin` are excluded, because they are separate
/// crates.
fn graph_of(name: &str) -> Graph {
    let src = workspace().join("crates").join(name).join("src");
    let mut files = Vec::new();
    read_folder(&src, &mut files);
    let relative =
        |path: &PathBuf| path.strip_prefix(&src).unwrap().to_str().unwrap().replace('\\', "/");
    let files: Vec<(String, String)> =
        files.iter().map(|path| (relative(path), fs::read_to_string(path).unwrap())).collect();
    let files = files.iter().filter(|(path, _)| !path.starts_with("bin/"));
    Graph::of(files.map(|(path, text)| (path.as_str(), text.as_str())))
}

/// Adds the Rust files of a folder and its subfolders to `files`, sorted by name.
fn read_folder(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            read_folder(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn no_crate_has_modules_that_import_each_other_in_a_cycle() {
    let crates = fs::read_dir(workspace().join("crates")).unwrap();
    let mut crates: Vec<String> =
        crates.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    crates.sort();
    for one in ["core", "dialect", "mcp", "proxy", "server"] {
        assert!(crates.contains(&format!("toolcrib-{one}")), "{crates:?}");
    }
    let cycle = |name: &String| Some(format!("{name}: {}", graph_of(name).cycle()?));
    let cycles: Vec<String> = crates.iter().filter_map(cycle).collect();
    assert!(cycles.is_empty(), "modules import each other in a cycle:\n{}", cycles.join("\n"));
}

/// The list of modules in ARCHITECTURE.md must be complete, and each module may use only those that are listed before
/// it.
#[test]
fn the_core_modules_can_be_read_in_the_order_of_the_list() {
    let page = fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
    let section = page.split("### The modules of the core\n").nth(1).unwrap();
    let list = section.split("```").nth(1).unwrap();
    let order: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let uses = graph_of("toolcrib-core").uses;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, uses.keys().collect::<Vec<_>>());
    let position = |name: &String| order.iter().position(|listed| listed == name);
    for (module, used) in &uses {
        for (name, file) in used {
            assert!(
                position(name) < position(module),
                "`{module}` uses `{name}`, which is listed after it ({file})"
            );
        }
    }
}

fn edges(files: &[(&str, &str)]) -> Vec<String> {
    let uses = Graph::of(files.iter().copied()).uses;
    let edges = uses.iter().flat_map(|(module, used)| {
        used.iter().map(move |(name, file)| format!("{module} -> {name} ({file})"))
    });
    edges.collect()
}

fn cycle(files: &[(&str, &str)]) -> Option<String> {
    Graph::of(files.iter().copied()).cycle()
}

#[test]
fn a_cycle_is_printed_with_the_files_that_make_it() {
    let lib = ("lib.rs", "mod a; pub mod b; mod c;");
    let a = ("a/mod.rs", "mod deep; pub fn f() {}");
    let deep = ("a/deep.rs", "fn g(_: crate::b::B) {}");
    let b = ("b.rs", "use crate::c::C; pub struct B(C);");
    let back = ("c.rs", "use crate::a; pub struct C; fn h() { a::f() }");
    assert_eq!(
        cycle(&[lib, a, deep, b, back]).unwrap(),
        "a -> b (a/deep.rs) -> c (b.rs) -> a (c.rs)"
    );
    assert_eq!(cycle(&[lib, a, deep, b, ("c.rs", "pub struct C;")]), None);
    let short = ("c.rs", "use crate::b::B; use crate::a; pub struct C;");
    assert_eq!(cycle(&[lib, a, deep, b, short]).unwrap(), "b -> c (b.rs) -> b (c.rs)");
}

#[test]
fn every_kind_of_import_counts() {
    let lib = ("lib.rs", "mod a; mod b;");
    let b = ("b.rs", "pub mod x { pub fn f() {} } pub struct B;");
    for code in [
        "use crate::b::B;",
        "use crate::{a, b::x::{self, f}};",
        "pub use crate::b as other;",
        "fn g() { use super::b::B; }",
        "mod inner { use super::super::b; }",
        "fn g(b: &[crate::b::B]) {}",
        "fn g() { crate::b::x::f() }",
        "impl Iterator for X { type Item = crate::b::B; }",
        "fn g() { println!(\"{:?}\", (1, crate::b::B)) }",
        "macro_rules! m { () => { $crate::b::x::f() } }",
        "m! { use crate::{a::{c, d}, a as e, b}; }",
        "#[derive(Debug)] #[attribute(crate::b)] struct S;",
        "pub(in crate::b) struct S;",
    ] {
        assert_eq!(edges(&[lib, ("a.rs", code), b]), ["a -> b (a.rs)"], "{code}");
    }
    let inside = "mod inner { use super::f; pub(super) fn g() { self::h(); crate::a::f() } }";
    for code in
        [inside, "use std::b::B;", "fn g(b: B) { b::c() }", "/// See [`crate::b`].\nfn g() {}"]
    {
        assert_eq!(edges(&[lib, ("a.rs", code), b]), [""; 0], "{code}");
    }
}

#[test]
fn a_name_re_exported_by_the_root_counts_as_its_module() {
    let lib = "mod a; mod b; pub use b::{B, x as y}; use self::b::hidden; pub use serde::Value;";
    for (name, edge) in [
        ("B", &["a -> b (a.rs)"][..]),
        ("y::Z", &["a -> b (a.rs)"]),
        ("hidden", &["a -> b (a.rs)"]),
        ("Value", &[]),
    ] {
        let code = format!("use crate::{name};");
        assert_eq!(edges(&[("lib.rs", lib), ("a.rs", &code), ("b.rs", "")]), edge, "{name}");
    }
    let own = "mod a; mod b; use b::B; pub struct Own(B);";
    assert_eq!(
        edges(&[("lib.rs", own), ("a.rs", "fn f(own: super::Own) {}"), ("b.rs", "")]),
        ["a -> lib (a.rs)", "lib -> b (lib.rs)"]
    );
}

#[test]
fn code_for_tests_does_not_count() {
    let lib = "mod a; mod b; #[cfg(test)] mod c; #[cfg(doctest)] struct Page(b::B);";
    let a = "#[cfg(test)] mod checks;
        #[cfg(test)] use crate::b::B;
        impl A { #[cfg(test)] fn f() { crate::b::f() } }
        #[cfg(all(test, unix))] mod tests { use crate::b::B; }";
    let test = "use crate::b::B;";
    let files =
        [("lib.rs", lib), ("a/mod.rs", a), ("a/checks.rs", test), ("a/checks/more.rs", test)];
    assert_eq!(edges(&[&files[..], &[("b.rs", ""), ("c.rs", test)]].concat()), [""; 0]);
    let not_only = "#[cfg(any(test, unix))] use crate::b::B;";
    assert_eq!(edges(&[("lib.rs", lib), ("a.rs", not_only), ("b.rs", "")]), ["a -> b (a.rs)"]);
}

#[test]
#[should_panic(expected = "a.rs: nothing in the root is called `*`")]
fn a_glob_import_of_the_root_is_rejected() {
    edges(&[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::*;"), ("b.rs", "")]);
}

/// Every file that a walkthrough in ARCHITECTURE.md names must exist, and no walkthrough may name a file twice.
#[test]
fn the_walkthroughs_name_files_that_exist() {
    let page = fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
    let section = page.split("\n## Three walks\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut walks = 0;
    for walk in section.split("\n**A ").skip(1) {
        walks += 1;
        let crates: Vec<&str> = ["core", "server", "mcp", "proxy", "dialect"]
            .into_iter()
            .filter(|name| walk.contains(&format!("crates/toolcrib-{name}/")) || *name == "core")
            .collect();
        let mut named: Vec<(&str, &str)> = Vec::new();
        for row in walk.lines().filter(|line| line.starts_with("| ") && line.contains(".rs`")) {
            let cell = row.split('|').nth(2).unwrap().trim();
            let path = cell.split('`').nth(1).unwrap();
            let stated = cell.split(['(', ')']).nth(1).unwrap_or("");
            let exists = |name: &&str| {
                let at = format!("crates/toolcrib-{name}/src/{path}");
                (stated.is_empty() || stated == *name) && workspace().join(at).is_file()
            };
            assert!(crates.iter().any(exists), "{cell} does not exist");
            assert!(!named.contains(&(path, stated)), "{cell} is named twice");
            named.push((path, stated));
        }
        assert!(named.len() > 10, "{walk}");
    }
    assert_eq!(walks, 3);
}
