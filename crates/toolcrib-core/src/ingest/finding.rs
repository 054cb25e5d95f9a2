//! Remarks about tool definitions that were read.

use std::fmt;

use toolcrib_text::clean::Hidden;

/// A remark about one tool, or about an entry that should have been a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The position of the tool in the input, such as `tools[3]` or `line 12`.
    pub location: String,
    /// The tool's name, if it has one.
    pub tool: Option<String>,
    /// The problem.
    pub problem: Problem,
}

impl Finding {
    /// Whether the problem causes the tool to be left out of the catalog.
    pub fn is_withheld(&self) -> bool {
        !matches!(
            self.problem,
            Problem::HiddenText(_)
                | Problem::DescriptionCut { .. }
                | Problem::Renamed { .. }
                | Problem::Duplicate
                | Problem::LeftToProvider { .. }
                | Problem::OnePageOfSeveral
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tool {
            Some(tool) => write!(f, "{}: `{tool}`: {}", self.location, self.problem),
            None => write!(f, "{}: {}", self.location, self.problem),
        }
    }
}

/// A problem with a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The entry is not JSON.
    NotJson(String),
    /// The entry is JSON, but not an object.
    NotAnObject,
    /// The name is missing or empty.
    NoName,
    /// The name is longer than allowed.
    NameTooLong {
        /// Actual size in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The name contains invisible characters.
    NameHidden,
    /// The name is reserved for our own tools.
    NameReserved,
    /// One server declares this name several times, with different definitions. All tools of that server with this name
    /// are withheld.
    Collision,
    /// The server declares exactly the same definition more than once. One copy is kept.
    Duplicate,
    /// Several servers have a tool of this name, so each of these tools is shown under its wire name.
    Renamed {
        /// The new name.
        to: String,
    },
    /// The tool has a schema, but the schema is not an object.
    SchemaNotAnObject,
    /// The schema is too large.
    SchemaTooLarge {
        /// Actual size in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The schema is nested deeper than allowed.
    SchemaTooDeep {
        /// Actual depth.
        depth: usize,
        /// Maximum depth.
        limit: usize,
    },
    /// The schema has more values than allowed.
    SchemaTooMany {
        /// Actual number of values.
        nodes: usize,
        /// Maximum number of values.
        limit: usize,
    },
    /// An `enum` has more values than allowed.
    EnumTooLong {
        /// Actual number of values.
        values: usize,
        /// Maximum number of values.
        limit: usize,
    },
    /// The definition is too large.
    DefinitionTooLarge {
        /// Actual size in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
    /// A parameter's name, or another key, contains invisible characters.
    ParameterHidden,
    /// Hidden characters were removed from the definition.
    HiddenText(Vec<Hidden>),
    /// The description was truncated.
    DescriptionCut {
        /// Original size in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The entry is one of the provider's own tools, which are never deferred.
    LeftToProvider {
        /// The `type` of the provider's tool.
        kind: String,
    },
    /// The list has a cursor to a next page, so some tools are missing.
    OnePageOfSeveral,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(problem) => write!(f, "withheld: not JSON: {problem}"),
            Self::NotAnObject => f.write_str("withheld: not a JSON object"),
            Self::NoName => f.write_str("withheld: no `name`"),
            Self::NameTooLong { bytes, limit } => {
                write!(f, "withheld: the name has {bytes} bytes, the limit is {limit}")
            }
            Self::NameHidden => f.write_str("withheld: the name has invisible characters"),
            Self::NameReserved => f.write_str("withheld: the name is reserved"),
            Self::Collision => {
                f.write_str("withheld: its server declares this name more than once, with different definitions")
            }
            Self::Duplicate => f.write_str("declared twice, kept once"),
            Self::Renamed { to } => write!(f, "several servers use this name: now `{to}`"),
            Self::SchemaNotAnObject => f.write_str("withheld: the input schema is not an object"),
            Self::SchemaTooLarge { bytes, limit } => {
                write!(f, "withheld: the schema has {bytes} bytes, the limit is {limit}")
            }
            Self::SchemaTooDeep { depth, limit } => {
                write!(f, "withheld: the schema is {depth} levels deep, the limit is {limit}")
            }
            Self::SchemaTooMany { nodes, limit } => {
                write!(f, "withheld: the schema has {nodes} values, the limit is {limit}")
            }
            Self::EnumTooLong { values, limit } => {
                write!(f, "withheld: an `enum` has {values} values, the limit is {limit}")
            }
            Self::DefinitionTooLarge { bytes, limit } => {
                write!(f, "withheld: the definition has {bytes} bytes, the limit is {limit}")
            }
            Self::ParameterHidden => {
                f.write_str("withheld: a parameter's name has invisible characters")
            }
            Self::HiddenText(classes) => {
                let classes: Vec<_> = classes.iter().map(ToString::to_string).collect();
                write!(f, "removed from what is shown: {}", classes.join(", "))
            }
            Self::DescriptionCut { bytes, limit } => {
                write!(f, "the description has {bytes} bytes, truncated to {limit}")
            }
            Self::LeftToProvider { kind } => {
                write!(f, "`{kind}` is the provider's own tool, left as it is")
            }
            Self::OnePageOfSeveral => {
                f.write_str("the list has a `nextCursor`: this is one page of several")
            }
        }
    }
}
