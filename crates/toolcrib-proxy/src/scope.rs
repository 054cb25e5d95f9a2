//! The tools that a caller may know of.

use toolcrib_core::policy::Glob;

/// The tools a caller may know of.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Each must let a tool through: a header narrows what a key allows, and never widens it.
    pub(crate) all: Vec<Rule>,
}

impl Scope {
    /// Whether a tool of this name exists for the caller.
    pub fn sees(&self, name: &str) -> bool {
        self.sees_tool(&[name])
    }

    /// Whether a tool that goes by these names exists for the caller: one of them is allowed, and none is hidden.
    pub fn sees_tool(&self, names: &[&str]) -> bool {
        let matches =
            |globs: &[Glob]| globs.iter().any(|glob| names.iter().any(|name| glob.is(name)));
        self.all
            .iter()
            .all(|rule| (rule.only.is_empty() || matches(&rule.only)) && !matches(&rule.hidden))
    }

    /// Adds its patterns to a hash, so that equal hashes mean equal scopes.
    pub(crate) fn hash_into(&self, hasher: &mut blake3::Hasher) {
        for rule in &self.all {
            for (kind, globs) in [("only", &rule.only), ("hidden", &rule.hidden)] {
                hasher.update(kind.as_bytes());
                for glob in globs {
                    let text = glob.to_string();
                    hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
                }
            }
        }
    }

    /// Whether there is anything that it may not see.
    pub fn is_narrow(&self) -> bool {
        self.all.iter().any(|rule| !rule.only.is_empty() || !rule.hidden.is_empty())
    }
}

/// Names and patterns of one source: a caller in the config, or a header.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rule {
    only: Vec<Glob>,
    hidden: Vec<Glob>,
}

impl Rule {
    /// The rule of a caller in the config.
    pub(crate) fn new(only: &[String], hidden: &[String]) -> Self {
        let globs = |texts: &[String]| texts.iter().map(|text| Glob::new(text)).collect();
        Self { only: globs(only), hidden: globs(hidden) }
    }

    /// Reads `a__*, -*delete*`; `None` if it names nothing, or has a `-` without a name.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut rule = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.strip_prefix('-').map(str::trim) {
                Some("") => return None,
                Some(hidden) => rule.hidden.push(Glob::new(hidden)),
                None => rule.only.push(Glob::new(part)),
            }
        }
        let is_empty = rule.only.is_empty() && rule.hidden.is_empty();
        (!is_empty).then_some(rule)
    }
}
