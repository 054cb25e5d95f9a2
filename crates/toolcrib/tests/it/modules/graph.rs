//! The import graph of a crate: which of its top-level modules use which others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use syn::Item;

use super::paths::{Paths, imports, is_for_tests};

/// The name of the module for items that are defined in `lib.rs` itself.
const ROOT: &str = "lib";

/// For each module: the modules that it uses, and for each of those the first file that uses it.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) uses: BTreeMap<String, BTreeMap<String, String>>,
}

impl Graph {
    /// Builds the graph of a crate from its files, each with its path under `src`.
    pub(super) fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let parsed: Vec<File<'_>> =
            files.into_iter().map(|(path, text)| File::parse(path, text)).collect();
        let root = parsed.iter().find(|file| file.module.is_empty()).unwrap();
        let names = Names::of(&root.items);
        let for_tests: BTreeSet<Vec<String>> = parsed.iter().flat_map(File::test_modules).collect();
        let mut graph = Self::default();
        for module in &names.modules {
            graph.uses.entry(module.clone()).or_default();
        }
        for file in &parsed {
            if (1..=file.module.len()).any(|length| for_tests.contains(&file.module[..length])) {
                continue;
            }
            let own = file.module.first().map_or(ROOT, String::as_str);
            for path in file.paths() {
                let Some(name) = path.first() else { continue };
                match names.module_of(name) {
                    Some(used) if used != own => {
                        let uses = graph.uses.entry(own.to_owned()).or_default();
                        uses.entry(used.to_owned()).or_insert_with(|| file.path.to_owned());
                    }
                    Some(_) => {}
                    None if file.module.is_empty() || names.external.contains(name) => {}
                    None => panic!("{}: nothing in the root is called `{name}`", file.path),
                }
            }
        }
        graph
    }

    /// Returns the shortest cycle, as `a -> b (a/file.rs) -> a (b.rs)`. The file after each module is the one that uses
    /// this module.
    pub(super) fn cycle(&self) -> Option<String> {
        let cycles = self.uses.keys().filter_map(|module| self.shortest_cycle_from(module));
        let shortest = cycles.min_by_key(Vec::len)?;
        let mut text = shortest[0].to_owned();
        for pair in shortest.windows(2) {
            let _ = write!(text, " -> {} ({})", pair[1], self.uses[pair[0]][pair[1]]);
        }
        Some(text)
    }

    /// Returns the shortest path from a module through its imports back to the module, or `None` if there is no such
    /// path.
    fn shortest_cycle_from<'a>(&'a self, module: &'a str) -> Option<Vec<&'a str>> {
        let mut from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut next = VecDeque::from([module]);
        while let Some(at) = next.pop_front() {
            for used in self.uses.get(at).into_iter().flat_map(BTreeMap::keys) {
                if from.contains_key(used.as_str()) {
                    continue;
                }
                from.insert(used, at);
                next.push_back(used);
            }
        }
        let mut path = vec![module, from.get(module)?];
        while path[path.len() - 1] != module {
            path.push(from[path[path.len() - 1]]);
        }
        path.reverse();
        Some(path)
    }
}

/// One file of a crate.
struct File<'a> {
    /// The path of the file, relative to `src`.
    path: &'a str,
    /// The path of the module that the file contains; empty for the root.
    module: Vec<String>,
    items: Vec<Item>,
}

impl<'a> File<'a> {
    fn parse(path: &'a str, text: &str) -> Self {
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut module: Vec<String> =
            path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if module.last().is_some_and(|name| name == "mod") || matches!(path, "lib.rs" | "main.rs") {
            module.pop();
        }
        Self { path, module, items: parsed.items }
    }

    /// Returns the modules that are declared in this file and compiled only for tests.
    fn test_modules(&self) -> impl Iterator<Item = Vec<String>> + '_ {
        self.items.iter().filter(|item| is_for_tests(item)).filter_map(|item| match item {
            Item::Mod(item) => {
                Some(self.module.iter().cloned().chain([item.ident.to_string()]).collect())
            }
            _ => None,
        })
    }

    /// Returns the paths in the items of this file. Imports in the root do not count as uses, because they only make
    /// names available to other modules.
    fn paths(&self) -> Vec<Vec<String>> {
        let imports = |item: &&Item| self.module.is_empty() && matches!(item, Item::Use(_));
        Paths::in_items(&self.module, self.items.iter().filter(|item| !imports(item)))
    }
}

/// The names that `crate::name` may refer to, by which it is resolved to a module.
#[derive(Default)]
struct Names {
    modules: BTreeSet<String>,
    /// Names that the root imports from a module of the crate, with the name of that module.
    imported: BTreeMap<String, String>,
    /// Names that the root imports from other crates.
    external: BTreeSet<String>,
    /// Names of items that are defined in the root.
    own: BTreeSet<String>,
}

impl Names {
    fn of(root: &[Item]) -> Self {
        let mut names = Self::default();
        let items = || root.iter().filter(|item| !is_for_tests(item));
        for item in items() {
            let own = match item {
                Item::Mod(item) => {
                    names.modules.insert(item.ident.to_string());
                    continue;
                }
                Item::Const(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                Item::Fn(item) => &item.sig.ident,
                Item::Static(item) => &item.ident,
                Item::Struct(item) => &item.ident,
                Item::Trait(item) => &item.ident,
                Item::Type(item) => &item.ident,
                Item::Macro(syn::ItemMacro { ident: Some(ident), .. }) => ident,
                _ => continue,
            };
            names.own.insert(own.to_string());
        }
        for item in items() {
            let Item::Use(item) = item else { continue };
            for (path, here) in imports(&item.tree) {
                let mut path =
                    path.into_iter().skip_while(|name| name == "crate" || name == "self");
                match path.next().filter(|first| names.modules.contains(first)) {
                    Some(module) => _ = names.imported.insert(here, module),
                    None => _ = names.external.insert(here),
                }
            }
        }
        names
    }

    /// Returns the module in which `crate::name` is defined, or `None` if no module of this crate defines it.
    fn module_of(&self, name: &str) -> Option<&str> {
        let module = self.modules.get(name).or_else(|| self.imported.get(name));
        module.map(String::as_str).or_else(|| self.own.contains(name).then_some(ROOT))
    }
}
