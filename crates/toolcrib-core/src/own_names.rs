//! The names of our own tools.
//!
//! A client may already have a tool called `tool_search`. In that case our tools use an alternative set of names for
//! the whole conversation, and the client's tool is treated like any other. The alternative names have the same lengths
//! as the default names, so the choice does not change any budget.

/// The name of the search tool.
pub const SEARCH: &str = "tool_search";
/// The name of the pattern search tool.
pub const SEARCH_REGEX: &str = "tool_search_regex";
/// The name of the tool that returns the schema of one tool.
pub const DESCRIBE: &str = "tool_describe";
/// The name of the tool that runs another tool.
pub const CALL: &str = "tool_call";
/// The name of our tool that runs read-only tools.
pub const READ: &str = "tool_read";
/// The name of our tool that runs tools that may write.
pub const WRITE: &str = "tool_write";

/// Names of the providers' own search tools. They are reserved, like the names of our own tools.
pub const PROVIDER_SEARCH_NAMES: [&str; 2] = ["tool_search_tool_regex", "tool_search_tool_bm25"];

/// One of our own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnToolKind {
    /// Finds tools by words or by name.
    Search,
    /// Finds tools by a pattern.
    SearchRegex,
    /// Returns the schema of one tool.
    Describe,
    /// Runs another tool.
    Call,
    /// Runs another tool that only reads.
    Read,
    /// Runs another tool that may write.
    Write,
}

impl OwnToolKind {
    /// Whether the tool runs other tools.
    pub fn runs_tools(self) -> bool {
        matches!(self, Self::Call | Self::Read | Self::Write)
    }
}

/// A set of names for our own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnNames {
    /// The name of the search tool.
    pub search: &'static str,
    /// The name of the pattern search tool.
    pub search_regex: &'static str,
    /// The name of the tool that returns the schema of one tool.
    pub describe: &'static str,
    /// The name of the tool that runs another tool.
    pub call: &'static str,
    /// The name of our tool that runs read-only tools.
    pub read: &'static str,
    /// The name of our tool that runs tools that may write.
    pub write: &'static str,
}

impl Default for OwnNames {
    fn default() -> Self {
        Self {
            search: SEARCH,
            search_regex: SEARCH_REGEX,
            describe: DESCRIBE,
            call: CALL,
            read: READ,
            write: WRITE,
        }
    }
}

impl OwnNames {
    /// The names to use if the client already uses one of the default names.
    pub fn alternative() -> Self {
        Self {
            search: "crib_search",
            search_regex: "crib_search_regex",
            describe: "crib_describe",
            call: "crib_call",
            read: "crib_read",
            write: "crib_write",
        }
    }

    /// All six names.
    pub fn all(&self) -> [&'static str; 6] {
        [self.search, self.search_regex, self.describe, self.call, self.read, self.write]
    }

    /// Which of our own tools has exactly this name, if any.
    pub fn kind_of(&self, name: &str) -> Option<OwnToolKind> {
        let owns = [
            OwnToolKind::Search,
            OwnToolKind::SearchRegex,
            OwnToolKind::Describe,
            OwnToolKind::Call,
            OwnToolKind::Read,
            OwnToolKind::Write,
        ];
        self.all().iter().position(|own| *own == name).map(|at| owns[at])
    }

    /// Whether a name belongs to one of our own tools or to a provider's search tool, compared case-insensitively. No
    /// other tool may have a reserved name.
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
    fn every_provider_accepts_both_sets_and_they_have_no_name_in_common() {
        let (first, second) = (OwnNames::default(), OwnNames::alternative());
        for (one, other) in first.all().into_iter().zip(second.all()) {
            assert!(wire_name::is_valid(one) && wire_name::is_valid(other));
            assert_eq!(one.len(), other.len());
            assert!(first.is_reserved(&one.to_uppercase()) && !second.is_reserved(one));
            assert!(second.is_reserved(&other.to_uppercase()) && !first.is_reserved(other));
            assert_eq!(first.kind_of(one), second.kind_of(other));
            assert_eq!((first.kind_of(other), second.kind_of(one)), (None, None));
        }
        assert_eq!(wire_name::RESERVED[..6], first.all());
        assert!(
            PROVIDER_SEARCH_NAMES
                .iter()
                .all(|name| first.is_reserved(name) && second.is_reserved(name))
        );
    }
}
