//! Names of tools in namespaces, flat and back.

use std::collections::{HashMap, HashSet};

use toolcrib_core::wire_name;

/// A tool as the client knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct NamespacedTool {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// The flat name of each tool in a namespace, and the way back.
#[derive(Debug, Default)]
pub(super) struct FlatNames {
    flat: HashMap<NamespacedTool, String>,
    originals: HashMap<String, NamespacedTool>,
    taken: HashSet<String>,
}

impl FlatNames {
    /// Notes a name that stands for itself.
    pub(super) fn reserve(&mut self, name: String) {
        self.taken.insert(name);
    }

    /// A name of this kind that nobody has.
    pub(super) fn unique(&mut self, name: &str) -> String {
        let free = !self.taken.contains(name);
        let name = if free { name.to_owned() } else { wire_name::distinct("client", name) };
        self.taken.insert(name.clone());
        name
    }

    /// The flat name of a tool. The API puts a tool of no namespace into one of its own name.
    pub(super) fn flatten(&mut self, namespace: &str, name: &str) -> String {
        if namespace == name {
            return name.to_owned();
        }
        let tool = NamespacedTool { namespace: namespace.to_owned(), name: name.to_owned() };
        if let Some(known) = self.flat.get(&tool) {
            return known.clone();
        }
        // Some namespaces bring the separator along.
        let gap = if namespace.ends_with("__") { "" } else { "__" };
        let mut flat = format!("{namespace}{gap}{name}");
        if !wire_name::is_valid(&flat) || self.taken.contains(&flat) {
            flat = wire_name::distinct(namespace, name);
        }
        self.taken.insert(flat.clone());
        self.originals.insert(flat.clone(), tool.clone());
        self.flat.insert(tool, flat.clone());
        flat
    }

    /// The tool behind a flat name; `None` for a name that stands for itself.
    pub(super) fn original(&self, flat: &str) -> Option<&NamespacedTool> {
        self.originals.get(flat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_a_valid_name_of_its_own() {
        let mut names = FlatNames::default();
        names.reserve("crm__find".to_owned());
        let long = "n".repeat(64);
        let originals = [
            ("crm", "find"),
            ("crm", "update"),
            ("mcp__git__", "push"),
            ("mcp__git", "push"),
            ("a.b", "c"),
            (&long, "x"),
            ("", "bare"),
        ];
        let flat: Vec<String> =
            originals.iter().map(|(space, name)| names.flatten(space, name)).collect();
        assert_eq!(flat[1], "crm__update");
        assert_eq!(flat[2], "mcp__git__push");
        assert!(flat.iter().all(|name| wire_name::is_valid(name)), "{flat:?}");
        let different: HashSet<&String> = flat.iter().collect();
        assert_eq!(different.len(), flat.len(), "{flat:?}");
        assert!(!flat.contains(&"crm__find".to_owned()));
        for ((space, name), flat) in originals.iter().zip(&flat) {
            let tool = names.original(flat).unwrap();
            assert_eq!((tool.namespace.as_str(), tool.name.as_str()), (*space, *name));
            assert_eq!(names.flatten(space, name), *flat, "the same each time");
        }
        assert_eq!(names.flatten("same", "same"), "same");
        assert_eq!(names.original("same"), None);
    }
}
