//! What our own tools are called.
//!
//! A client may already own a tool called `tool_search`. Then ours go by a second set of names, for
//! the whole conversation, and the client's tool is a tool like any other. Both sets are as long as
//! each other, so that no budget changes with the choice.

/// The name of the search tool.
pub const SEARCH: &str = "tool_search";
/// The name of the pattern search tool.
pub const SEARCH_REGEX: &str = "tool_search_regex";
/// The name of the tool that shows one schema.
pub const DESCRIBE: &str = "tool_describe";
/// The name of the tool that runs another.
pub const CALL: &str = "tool_call";

/// Names of the providers' own search tools. They are reserved like ours.
pub const PROVIDER_SEARCH_NAMES: [&str; 2] = ["tool_search_tool_regex", "tool_search_tool_bm25"];

/// One of our tools, by what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnToolKind {
    /// Finds tools by words or by name.
    Search,
    /// Finds tools by a pattern.
    SearchRegex,
    /// Shows one schema.
    Describe,
    /// Runs another tool.
    Call,
}

/// A set of names for our own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnNames {
    /// The search tool.
    pub search: &'static str,
    /// The pattern search tool.
    pub search_regex: &'static str,
    /// The tool that shows one schema.
    pub describe: &'static str,
    /// The tool that runs another.
    pub call: &'static str,
}

impl Default for OwnNames {
    fn default() -> Self {
        Self { search: SEARCH, search_regex: SEARCH_REGEX, describe: DESCRIBE, call: CALL }
    }
}

impl OwnNames {
    /// The names to use where the first ones are taken.
    pub fn alternative() -> Self {
        Self {
            search: "crib_search",
            search_regex: "crib_search_regex",
            describe: "crib_describe",
            call: "crib_call",
        }
    }

    /// All four.
    pub fn all(&self) -> [&'static str; 4] {
        [self.search, self.search_regex, self.describe, self.call]
    }

    /// Which of ours goes by exactly this name.
    pub fn kind_of(&self, name: &str) -> Option<OwnToolKind> {
        let owns = [
            OwnToolKind::Search,
            OwnToolKind::SearchRegex,
            OwnToolKind::Describe,
            OwnToolKind::Call,
        ];
        self.all().iter().position(|own| *own == name).map(|at| owns[at])
    }

    /// Whether no other tool may have this name, in whatever case: it is ours, or a provider's own.
    pub fn is_reserved(&self, name: &str) -> bool {
        self.all()
            .iter()
            .chain(&PROVIDER_SEARCH_NAMES)
            .any(|taken| taken.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire_name;

    #[test]
    fn every_provider_accepts_both_sets_and_they_share_nothing() {
        let (first, second) = (OwnNames::default(), OwnNames::alternative());
        for (one, other) in first.all().into_iter().zip(second.all()) {
            assert!(wire_name::is_valid(one) && wire_name::is_valid(other));
            assert_eq!(one.len(), other.len());
            assert!(first.is_reserved(&one.to_uppercase()) && !second.is_reserved(one));
            assert!(second.is_reserved(&other.to_uppercase()) && !first.is_reserved(other));
            assert_eq!(first.kind_of(one), second.kind_of(other));
            assert_eq!((first.kind_of(other), second.kind_of(one)), (None, None));
        }
        assert_eq!(wire_name::RESERVED[..4], first.all());
        assert!(
            PROVIDER_SEARCH_NAMES
                .iter()
                .all(|name| first.is_reserved(name) && second.is_reserved(name))
        );
    }
}
