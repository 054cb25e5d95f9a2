//! The names by which the patterns of a profile match a tool.
//!
//! A pattern can match any of three texts: the name that clients use, `server/tool`, or the server's own name for the
//! tool. If the config renames tools, a pattern in `allow` matches the names that a tool would have otherwise, and a
//! pattern in `deny` matches those and the new name. So a new name can only narrow a profile: `allow = ["read_*"]` does
//! not include `delete_all`, even if the config renames that tool to `read_all`.
//!
//! Rejected: also matching the new name in `allow`. A rename is made for the model, and it would silently widen the
//! patterns of profiles that were written before it.

use std::borrow::Cow;

use toolcrib_core::Tool;
use toolcrib_core::policy::Glob;

/// The names by which patterns match a tool.
pub(crate) struct ToolNames<'a> {
    tool: &'a Tool,
    /// The server's own name for the tool.
    own_name: Cow<'a, str>,
    /// The name that clients would use without the config's changes, if the config changes any of the server's tools.
    original: Option<String>,
    /// The tool's new name from the config, without the prefix.
    new_name: Option<&'a str>,
}

impl<'a> ToolNames<'a> {
    pub(super) fn new(tool: &'a Tool, original: Option<String>, new_name: Option<&'a str>) -> Self {
        Self { tool, own_name: tool.declared_name(), original, new_name }
    }

    /// Whether a pattern in `allow` matches the tool.
    pub(crate) fn are_allowed_by(&self, glob: &Glob) -> bool {
        let server = self.tool.server().unwrap_or_default();
        match &self.original {
            Some(original) if *original != self.tool.name() => {
                glob.matches_name(original) || matches_own_or_full(glob, server, &self.own_name)
            }
            _ => self.matches_current(glob),
        }
    }

    /// Whether a pattern in `deny` matches the tool.
    pub(crate) fn are_denied_by(&self, glob: &Glob) -> bool {
        let server = self.tool.server().unwrap_or_default();
        self.are_allowed_by(glob)
            || self.matches_current(glob)
            || self.new_name.is_some_and(|name| matches_own_or_full(glob, server, name))
    }

    fn matches_current(&self, glob: &Glob) -> bool {
        glob.matches(self.tool) || glob.matches_name(&self.own_name)
    }
}

/// Whether a pattern matches a tool's name at its server, with or without the server's name before it.
pub(super) fn matches_own_or_full(glob: &Glob, server: &str, own_name: &str) -> bool {
    glob.matches_name(own_name) || glob.matches_name(&format!("{server}/{own_name}"))
}
