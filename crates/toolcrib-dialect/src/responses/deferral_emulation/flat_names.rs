//! Maps the names of tools in namespaces to flat names and back.

use std::collections::{HashMap, HashSet};

use toolcrib_core::wire_name;

/// A tool in a namespace, as the client declared it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct NamespacedTool {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// The flat name of each tool in a namespace, and the original tool of each flat name.
#[derive(Debug, Default)]
pub(super) struct FlatNames {
    flat: HashMap<NamespacedTool, String>,
    originals: HashMap<String, NamespacedTool>,
    used: HashSet<String>,
}

impl FlatNames {
    /// Reserves the name of a tool without a namespace.
    pub(super) fn reserve(&mut self, name: String) {
        self.used.insert(name);
    }

    /// Reserves a name and returns it. If the name is already used, a similar name is reserved instead.
    pub(super) fn unique(&mut self, name: &str) -> String {
        let free = !self.used.contains(name);
        let name = if free { name.to_owned() } else { wire_name::with_hash("client", name) };
        self.used.insert(name.clone());
        name
    }

    /// Returns the flat name of a tool. If a tool has no namespace, the API gives it a namespace that equals its name.
    /// Such a tool keeps its name.
    pub(super) fn flatten(&mut self, namespace: &str, name: &str) -> String {
        if namespace == name {
            return name.to_owned();
        }
        let tool = NamespacedTool { namespace: namespace.to_owned(), name: name.to_owned() };
        if let Some(known) = self.flat.get(&tool) {
            return known.clone();
        }
        // Some namespaces already end with the separator, so it is not added twice.
        let separator = if namespace.ends_with("__") { "" } else { "__" };
        let mut flat = format!("{namespace}{separator}{name}");
        if !wire_name::is_valid(&flat) || self.used.contains(&flat) {
            flat = wire_name::with_hash(namespace, name);
        }
        self.used.insert(flat.clone());
        self.originals.insert(flat.clone(), tool.clone());
        self.flat.insert(tool, flat.clone());
        flat
    }

    /// Returns the namespaced tool for a flat name, or `None` if no namespaced tool has this flat name.
    pub(super) fn original(&self, flat: &str) -> Option<&NamespacedTool> {
        self.originals.get(flat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_namespaced_tool_has_a_valid_unique_name() {
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
