//! The tools that a request declares, under the names that calls use.
//!
//! Tools outside the caller's scope have already been removed, so the caller may use every tool that is still in the
//! request: those in `tools` and those that the history loads. Tools that only a previous response loaded are unknown
//! here, so a caller with a limited scope must send them again.

use std::collections::{BTreeSet, HashSet};

use toolcrib_text::json::{self, Fields};

use crate::scope::fold_key;
use crate::tool_list;

/// The tools that a request declares.
#[derive(Debug, Default)]
pub(super) struct DeclaredTools {
    /// The names of all functions, whether or not they are in a namespace.
    names: HashSet<String>,
    /// Pairs of a namespace or hosted server and the name of one of its tools.
    members: HashSet<(String, String)>,
    /// The types and names of tools that are not functions.
    types: BTreeSet<String>,
    /// The keys of Gemini's tools that are not functions, in the form that `fold_key` returns.
    hosted: BTreeSet<String>,
}

impl DeclaredTools {
    /// Reads the tools that the body of a request declares.
    pub(super) fn read(body: &[u8]) -> Self {
        let mut declared = Self::default();
        let body = std::str::from_utf8(body).ok().and_then(Fields::read);
        let Some(body) = body else { return declared };
        for key in ["tools", "functions"] {
            declared.list(body.get(key).unwrap_or("[]"), None);
        }
        for server in objects(body.get("mcp_servers").unwrap_or("[]")) {
            let config = server.get("tool_configuration").and_then(Fields::read);
            let allowed = config.as_ref().and_then(|config| config.get("allowed_tools"));
            declared.server(&server.string("name").unwrap_or_default(), allowed.unwrap_or("[]"));
        }
        for key in ["input", "messages"] {
            for entry in objects(body.get(key).unwrap_or("[]")) {
                declared.list(entry.get("tools").unwrap_or("[]"), None);
                declared.additions(&entry);
            }
        }
        declared
    }

    /// Adds the tools that `tool_addition` blocks in a message declare.
    fn additions(&mut self, entry: &Fields<'_>) {
        for block in objects(entry.get("content").unwrap_or("[]")) {
            let tool = block.get("tool").and_then(Fields::read);
            let added = block.string("type").as_deref() == Some("tool_addition");
            let Some(tool) = tool.filter(|_| added) else { continue };
            let name = tool.string("name");
            match (tool.string("server_name"), name, tool.get("definition")) {
                (Some(server), Some(name), _) => {
                    self.members.insert((server, name));
                }
                (_, name, definition) => {
                    self.names.extend(name);
                    self.list(&format!("[{}]", definition.unwrap_or_default()), None);
                }
            }
        }
    }

    /// Adds a list of tools. `group` is the namespace that contains the list, if any.
    fn list(&mut self, raw: &str, group: Option<&str>) {
        for entry in objects(raw) {
            let name = tool_list::name(&entry);
            let kind = entry.string("type");
            let label = entry.string("server_label").or_else(|| entry.string("mcp_server_name"));
            if let Some(label) = label {
                let allowed = entry.get("allowed_tools").or_else(|| entry.get("configs"));
                self.server(&label, allowed.unwrap_or("[]"));
                continue;
            }
            if let Some(members) = entry.get("tools").filter(|raw| *raw != "null") {
                self.list(members, name.as_deref());
                continue;
            }
            for key in ["functionDeclarations", "function_declarations"] {
                self.list(entry.get(key).unwrap_or("[]"), None);
            }
            match kind.as_deref() {
                // Gemini's entries have no type. Each key of an entry is a tool.
                None if name.is_none() => {
                    let keys = entry.iter().map(|(key, _)| fold_key(key));
                    self.hosted.extend(keys.filter(|key| !key.is_empty()));
                }
                None | Some("function" | "custom") => {}
                Some(kind) => {
                    self.types.insert(kind.to_owned());
                    self.types.extend(name.clone());
                }
            }
            if let (Some(group), Some(name)) = (group, &name) {
                self.members.insert((group.to_owned(), name.clone()));
            }
            self.names.extend(name);
        }
    }

    /// Adds the tools of a hosted server. `allowed` is a list of names, an object with such a list, or an object whose
    /// keys are names.
    fn server(&mut self, label: &str, allowed: &str) {
        let fields = Fields::read(allowed);
        let listed = fields.as_ref().map_or(Some(allowed), |fields| fields.get("tool_names"));
        let names: Vec<String> = match (listed, &fields) {
            (Some(raw), _) => serde_json::from_str(raw).unwrap_or_default(),
            (None, Some(configs)) => configs.iter().map(|(name, _)| name.to_owned()).collect(),
            (None, None) => Vec::new(),
        };
        self.members.extend(names.into_iter().map(|name| (label.to_owned(), name)));
    }

    /// Whether the request declares a tool of this name, in this namespace if one is given. If a tool has no namespace,
    /// the Responses API reports the tool's own name as its namespace.
    pub(super) fn has(&self, namespace: Option<&str>, name: &str) -> bool {
        match namespace {
            Some(namespace) if namespace != name => {
                self.members.contains(&(namespace.to_owned(), name.to_owned()))
            }
            _ => self.names.contains(name),
        }
    }

    /// Whether this hosted server has a tool of this name.
    pub(super) fn has_member(&self, server: &str, name: &str) -> bool {
        self.members.contains(&(server.to_owned(), name.to_owned()))
    }

    /// Whether any namespace or hosted server has a tool of this name.
    pub(super) fn has_member_of_any(&self, name: &str) -> bool {
        self.members.iter().any(|(_, member)| member == name)
    }

    /// Whether every tool in a list is declared.
    pub(super) fn has_all(&self, list: &str) -> bool {
        let mut loaded = Self::default();
        loaded.list(list, None);
        loaded.names.is_subset(&self.names)
            && loaded.members.iter().all(|(group, name)| self.has(Some(group), name))
            && loaded.types.is_subset(&self.types)
    }

    /// Whether the request declares a tool of this type or of one of its versions. For example, `computer_use_preview`
    /// is a version of `computer`.
    pub(super) fn has_type(&self, kind: &str) -> bool {
        let versions = ["", "_preview", "_use_preview"];
        self.types.iter().any(|own| {
            // Some gateways put their name and a colon before the type.
            let own = own.rsplit(':').next().unwrap_or(own);
            let version = undated(own).strip_prefix(kind);
            version.is_some_and(|version| versions.contains(&version))
        })
    }

    /// Whether a declared hosted tool makes calls with this name. For example, `code_execution` makes calls of
    /// `bash_code_execution`.
    pub(super) fn has_hosted_suffix(&self, name: &str) -> bool {
        let mut types = self.types.iter().map(|own| undated(own)).filter(|own| !own.is_empty());
        types.any(|own| name.ends_with(own))
    }

    /// Whether a declared hosted tool of Gemini makes calls of this type. For example, `googleSearch` makes calls of
    /// type `GOOGLE_SEARCH_WEB`.
    pub(super) fn has_hosted_prefix(&self, kind: &str) -> bool {
        let kind = fold_key(kind);
        self.hosted.iter().any(|own| kind.starts_with(own.as_str()))
    }
}

/// Returns a type without the date of its version.
fn undated(kind: &str) -> &str {
    kind.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_')
}

/// Returns the objects in a list.
fn objects(raw: &str) -> impl Iterator<Item = Fields<'_>> {
    json::items(raw).unwrap_or_default().into_iter().filter_map(|item| Fields::read(item.get()))
}
