//! Tests that the documentation is true: links lead somewhere, outputs are what the binary prints, and the charts show
//! the measured tables.

mod quoted_messages;
mod topics;

pub(crate) use quoted_messages::plain_literals;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{own_path, run_in, toolcrib};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// Returns all Markdown pages of the repository.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            // Folders with build outputs and installed packages are skipped.
            let is_ours = !name.starts_with('.') && name != "target" && name != "node_modules";
            if path.is_dir() && is_ours && !path.is_symlink() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 20, "only {} pages were found", found.len());
    found
}

/// Removes the code blocks of a page, because in them brackets are not links and `#` is not a heading.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Returns the anchors of a page: its headings in lower case, with hyphens instead of spaces and without punctuation.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        title.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_between_pages_lead_to_files_and_headings() {
    for page in pages() {
        let text = prose(&fs::read_to_string(&page).unwrap());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.contains(' ') {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{}: there is no `{link}`", page.display());
            if !anchor.is_empty() {
                let headings = anchors(&prose(&fs::read_to_string(&target).unwrap()));
                assert!(headings.contains(anchor), "{}: no heading `{link}`", page.display());
            }
        }
    }
}

#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= 150, "README.md has {lines} lines");
}

#[test]
fn the_readme_shows_the_beginning_of_the_demo() {
    let readme = read("README.md");
    let shown = readme.split("$ cargo run --release -- demo\n").nth(1).unwrap();
    let shown = shown.split("…\n").next().unwrap();
    assert!(shown.lines().count() >= 2 && toolcrib(&["demo"]).out.starts_with(shown), "{shown}");
}

#[test]
fn the_page_about_the_command_line_shows_what_is_printed() {
    let page = read("docs/command-line.md");
    let assert_shown = |command: &str, args: &[&str]| {
        let out = toolcrib(args).out;
        assert!(page.contains(&format!("$ {command}\n{out}")), "{command} prints\n{out}");
    };
    assert_shown("toolcrib demo", &["demo"]);
    for query in ["create a github issue", "somebody paid us twice, give it back"] {
        let command = format!("toolcrib search --limit 1 '{query}'");
        assert_shown(&command, &["search", "--limit", "1", query]);
    }
    let query = "create a github issue";
    assert_shown(
        "toolcrib explain 'create a github issue' github/create_issue",
        &["explain", query, "github/create_issue"],
    );
    let nothing_fits = toolcrib(&["search", "how many calories are in a banana"]).out;
    assert!(page.contains(&nothing_fits), "{nothing_fits}");
}

#[test]
fn the_page_about_problems_shows_the_errors_that_are_printed() {
    let page = read("docs/troubleshooting.md");
    let folder = own_path("problems");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("typo.toml"), "[servers.files]\ncomand = \"npx\"\n").unwrap();
    let assert_shown = |args: &[&str]| {
        let printed = run_in(&folder, &folder, args, "").err;
        let from = printed.find("error: ").unwrap_or_else(|| panic!("no error: {printed}"));
        assert!(page.contains(&printed[from..]), "{args:?} prints\n{printed}");
    };
    assert_shown(&["doctor", "--config", "typo.toml"]);
    assert_shown(&["stats", "--live", "http://127.0.0.1:4199"]);
}

#[test]
fn the_charts_show_the_measured_tables() {
    let check = Command::new("python3").arg(root().join("scripts/charts")).arg("--check").output();
    let check = check.unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}
