//! What a caller may see: the tools in its scope.

use std::sync::Arc;

use toolcrib_core::policy::{Glob, Globs};

/// Maximum length of a tool's name that is compared with patterns, in bytes. Providers allow 128.
const MAX_NAME_BYTES: usize = 1_024;
/// Maximum number of names and patterns in a header. Each pattern is compared with each tool.
const MAX_PATTERNS: usize = 256;
/// Maximum length of a header with names and patterns, in bytes.
const MAX_HEADER_BYTES: usize = 8 << 10;

/// The tools that a caller may know of. All others do not exist for it.
#[derive(Debug, Clone, Default)]
pub struct CallerScope {
    /// A tool is visible if every rule allows it. So a header can only narrow what the caller's key allows.
    pub(crate) rules: Vec<Arc<ScopeRule>>,
}

impl CallerScope {
    /// Whether a tool with this name is visible to the caller.
    pub fn sees(&self, name: &str) -> bool {
        self.sees_tool(&[name])
    }

    /// Whether a tool with these names is visible to the caller: at least one of them is allowed, and none is hidden.
    /// If the caller may not see all tools, a tool with a name that is far too long for any provider is never visible.
    pub fn sees_tool(&self, names: &[&str]) -> bool {
        if names.iter().any(|name| name.len() > MAX_NAME_BYTES) && self.is_narrow() {
            return false;
        }
        let matches = |globs: &Globs| names.iter().any(|name| globs.matches_name(name));
        self.rules
            .iter()
            .all(|rule| (rule.only.is_empty() || matches(&rule.only)) && !matches(&rule.hidden))
    }

    /// Adds the patterns to a hash, so that different scopes have different hashes.
    pub(crate) fn hash_into(&self, hasher: &mut blake3::Hasher) {
        for rule in &self.rules {
            for (kind, globs) in [("only", &rule.only), ("hidden", &rule.hidden)] {
                hasher.update(kind.as_bytes());
                for glob in globs.iter() {
                    let text = glob.to_string();
                    hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
                }
            }
        }
    }

    /// Whether there are tools that the caller may not see.
    pub fn is_narrow(&self) -> bool {
        self.rules.iter().any(|rule| !rule.only.is_empty() || !rule.hidden.is_empty())
    }
}

/// Why a list of names and patterns in a header is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScopeRule {
    /// The list contains no name, or a `-` without a name.
    #[error("names no tool: omit it to get all tools, or send `-*` for none")]
    Empty,
    /// The list is too long.
    #[error(
        "has more than {MAX_PATTERNS} names and patterns or {MAX_HEADER_BYTES} bytes: use patterns such as `github__*`, or `tools` of a caller in the config"
    )]
    TooLong,
}

/// Names and patterns from one source: a caller in the config, or a header.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScopeRule {
    only: Globs,
    hidden: Globs,
}

impl ScopeRule {
    /// Creates the rule of a caller in the config.
    pub(crate) fn new(only: &[String], hidden: &[String]) -> Self {
        let globs = |texts: &[String]| texts.iter().map(String::as_str).collect();
        Self { only: globs(only), hidden: globs(hidden) }
    }

    /// Parses a header such as `a__*, -*delete*`. A pattern after a `-` hides the tools that match it.
    pub(crate) fn read(text: &str) -> Result<Self, InvalidScopeRule> {
        if text.len() > MAX_HEADER_BYTES {
            return Err(InvalidScopeRule::TooLong);
        }
        let mut rule = Self::default();
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        for (at, part) in parts.enumerate() {
            if at == MAX_PATTERNS {
                return Err(InvalidScopeRule::TooLong);
            }
            match part.strip_prefix('-').map(str::trim) {
                Some("") => return Err(InvalidScopeRule::Empty),
                Some(hidden) => rule.hidden.push(Glob::new(hidden)),
                None => rule.only.push(Glob::new(part)),
            }
        }
        let is_empty = rule.only.is_empty() && rule.hidden.is_empty();
        if is_empty { Err(InvalidScopeRule::Empty) } else { Ok(rule) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_limited_number_of_patterns() {
        let list = |count: usize| vec!["a*b"; count].join(", ");
        assert!(ScopeRule::read(&list(MAX_PATTERNS)).is_ok());
        assert_eq!(
            ScopeRule::read(&list(MAX_PATTERNS + 1)).unwrap_err(),
            InvalidScopeRule::TooLong
        );
        assert_eq!(
            ScopeRule::read(&"a".repeat(MAX_HEADER_BYTES + 1)).unwrap_err(),
            InvalidScopeRule::TooLong
        );
        for text in ["", " , ", "-", "a, -"] {
            assert_eq!(ScopeRule::read(text).unwrap_err(), InvalidScopeRule::Empty, "{text}");
        }
    }

    #[test]
    fn a_name_that_no_provider_accepts_is_not_visible() {
        let long = "a".repeat(MAX_NAME_BYTES + 1);
        assert!(CallerScope::default().sees(&long));
        let scope = CallerScope { rules: vec![Arc::new(ScopeRule::read("a*").unwrap())] };
        assert!(scope.sees(&long[1..]) && !scope.sees(&long));
    }
}
