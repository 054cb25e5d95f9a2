//! Checks the documentation: the examples on settings pages must be valid settings, and tables must name existing
//! tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use toolcrib_core::{Preset, Settings};

const PRESETS: [Preset; 5] =
    [Preset::Everruns, Preset::Everruns050, Preset::Hermes, Preset::Opencode, Preset::ClaudeCode];

/// The names that the preset pages use for their source documents, each with the title of the document.
const DOCUMENTS: [(&str, &str); 6] = [
    ("current", "everruns: Tool Search"),
    ("earlier", "everruns: Tool Search, earlier edition"),
    ("0.50", "everruns 0.50: source"),
    ("Hermes", "Hermes: Tool Search"),
    ("README", "opencode-tool-search: README"),
    ("article", "article: How Tool Search Works and How It Saves Tokens"),
];

/// The source name for behaviour that a system has but its document does not mention.
const NOT_DOCUMENTED: &str = "not documented";

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn page(name: &str) -> String {
    let path = root().join("docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn file(preset: Preset) -> String {
    format!("presets/{}.md", preset.name().replace('@', "-"))
}

fn first_toml(page: &str) -> &str {
    page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap()
}

/// A row of a table of behaviours. The cells are: the document, what it says, what Toolcrib does, and one cell each for
/// the library, `mcp` and `serve`. These last three name the tests that show the behaviour, or say why there is none.
type Row = [String; 6];

fn rows(preset: Preset) -> Vec<Row> {
    let page = page(&file(preset));
    let header = "| document | it says | Toolcrib | library | `mcp` | `serve` |\n";
    let table = page.split(header).nth(1).unwrap();
    let lines = table.lines().skip(1).take_while(|line| line.starts_with("| "));
    lines
        .map(|line| {
            let inner = line.trim_start_matches("| ").trim_end_matches(" |");
            // A bar inside a cell is escaped as `\|`, so it does not split the cell.
            let cells: Vec<String> = inner.split(" | ").map(str::to_owned).collect();
            cells.try_into().unwrap_or_else(|cells| panic!("{preset}: {cells:?}"))
        })
        .collect()
}

#[test]
fn the_settings_page_shows_the_defaults() {
    let page = page("settings.md");
    assert_eq!(Settings::from_toml(first_toml(&page)).unwrap(), Settings::default());
    // If a key were missing on the page, the settings would still be equal, because it would have its default. So the
    // keys are also compared.
    let shown: toml::Table = toml::from_str(first_toml(&page)).unwrap();
    let Settings { activation, listing, rank, search, limits, .. } = Settings::default();
    for (table, keys) in [
        ("activation", keys(activation)),
        ("listing", keys(listing)),
        ("rank", keys(rank)),
        ("search", keys(search)),
        ("limits", keys(limits)),
    ] {
        assert_eq!(keys, shown[table].as_table().unwrap().keys().cloned().collect(), "{table}");
    }
}

fn keys(table: impl serde::Serialize) -> BTreeSet<String> {
    toml::Table::try_from(table).unwrap().keys().cloned().collect()
}

/// A preset must consist of plain settings, so the TOML file on its page must give the same settings as the preset.
#[test]
fn every_preset_page_shows_its_preset_as_settings() {
    for preset in PRESETS {
        let page = page(&file(preset));
        let settings = Settings::from_toml(first_toml(&page)).unwrap();
        assert_eq!(settings, preset.settings(), "{preset}");
    }
}

#[test]
fn every_behaviour_names_an_existing_test() {
    for preset in PRESETS {
        let rows = rows(preset);
        assert!(rows.len() >= 15, "{preset}: {} rows", rows.len());
        for [document, says, ours, cells @ ..] in &rows {
            let known = |name: &str| {
                name == NOT_DOCUMENTED || DOCUMENTS.iter().any(|(known, _)| *known == name)
            };
            assert!(document.split(", ").all(known), "{preset}: {document}");
            assert!(!says.trim().is_empty() && !ours.trim().is_empty(), "{preset}: {says}");
            for (cell, folders) in cells.iter().zip(FOLDERS) {
                let quoted = cell.split('`').skip(1).step_by(2);
                let tests: Vec<&str> = quoted.filter(|quoted| quoted.contains("::")).collect();
                for path in &tests {
                    let is_there = is_test(path, folders);
                    assert!(is_there, "{preset}: {folders:?} have no test `{path}` for: {says}");
                }
                let has_reason = cell.split_whitespace().count() > 2;
                assert!(!tests.is_empty() || has_reason, "{preset}: no test for: {says}");
            }
        }
    }
}

/// The folders with the tests of the library, of `mcp` and of `serve`, in this order. The tests of the last two run the
/// program.
const FOLDERS: [&[&str]; 3] = [
    &["toolcrib-core/tests/it", "toolcrib-dialect/tests/it", "toolcrib/tests/it"],
    &["toolcrib/tests/e2e", "toolcrib/tests/faults", "toolcrib/tests/it"],
    &["toolcrib/tests/proxy", "toolcrib/tests/it"],
];

/// Whether `module::name` is a test in one of these folders.
fn is_test(path: &str, folders: &[&str]) -> bool {
    let Some((module, name)) = path.rsplit_once("::") else { return false };
    let module = module.replace("::", "/");
    folders.iter().any(|folder| {
        let folder = root().join("crates").join(folder);
        let files = [folder.join(format!("{module}.rs")), folder.join(format!("{module}/mod.rs"))];
        let mut texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
        texts.any(|text| {
            text.split("#[test]").skip(1).any(|rest| {
                let signature = rest.split('{').next().unwrap_or_default();
                signature
                    .split("fn ")
                    .nth(1)
                    .is_some_and(|rest| rest.starts_with(&format!("{name}(")))
            })
        })
    })
}

/// The page `behaviours.md` has one table with the behaviours of all documents, which is generated from the preset
/// pages. `UPDATE_DOCS=1 cargo test -p toolcrib-core --test it docs` generates it again.
#[test]
fn the_table_of_behaviours_matches_the_preset_pages() {
    let mut lines = Vec::new();
    for (short, title) in DOCUMENTS {
        let before = lines.len();
        for preset in PRESETS {
            let mentions = |row: &Row| row[0].split(", ").any(|name| name == short);
            let rows = rows(preset).into_iter().filter(mentions);
            lines.extend(rows.map(|[_, says, ours, cells @ ..]| {
                let (file, cells) = (file(preset), cells.join(" | "));
                format!("| {title} | {says} | {ours} | [{preset}]({file}) | {cells} |")
            }));
        }
        assert!(lines.len() > before, "no row for `{title}`");
    }
    let distinct: BTreeSet<&String> = lines.iter().collect();
    assert_eq!(distinct.len(), lines.len(), "a row occurs twice");
    let page = page("behaviours.md");
    let header = "| document | it says | Toolcrib | preset | library | `mcp` | `serve` |\n\
                  |---|---|---|---|---|---|---|\n";
    let (intro, _) = page.split_once(header).unwrap();
    let expected = format!("{intro}{header}{}\n", lines.join("\n"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join("docs/behaviours.md"), &expected).unwrap();
    } else {
        assert!(page == expected, "docs/behaviours.md is outdated: set UPDATE_DOCS=1");
    }
}
