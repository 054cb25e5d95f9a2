//! What is to be said about a tool that came in.

use std::fmt;

use toolcrib_text::clean::Hidden;

/// One remark about one tool, or about the place where a tool should be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Where it stood: `tools[3]`, `line 12`.
    pub place: String,
    /// The tool's name, where it has one.
    pub tool: Option<String>,
    /// What is the matter.
    pub problem: Problem,
}

impl Finding {
    /// Whether the tool was kept out of the catalog.
    pub fn is_held(&self) -> bool {
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
            Some(tool) => write!(f, "{}: `{tool}`: {}", self.place, self.problem),
            None => write!(f, "{}: {}", self.place, self.problem),
        }
    }
}

/// What can be the matter with a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The entry is not JSON.
    NotJson(String),
    /// The entry is JSON, but not an object.
    NotAnObject,
    /// There is no name, or an empty one.
    NoName,
    /// The name is longer than allowed.
    NameTooLong {
        /// Bytes it has.
        bytes: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The name holds characters that nobody can see.
    NameHidden,
    /// The name is one of ours.
    NameReserved,
    /// The same server declares the same name with two different definitions: both are held.
    Collision,
    /// The same definition stood there before and was kept once.
    Duplicate,
    /// Several servers use this name; each of their tools goes by its wire name.
    Renamed {
        /// The name it has now.
        to: String,
    },
    /// The schema is neither an object nor absent.
    SchemaNotAnObject,
    /// The schema has more bytes than allowed.
    SchemaTooLarge {
        /// Bytes it has.
        bytes: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The schema is nested deeper than allowed.
    SchemaTooDeep {
        /// Levels it has.
        depth: usize,
        /// Levels allowed.
        limit: usize,
    },
    /// The schema has more values than allowed.
    SchemaTooMany {
        /// Values it has.
        nodes: usize,
        /// Values allowed.
        limit: usize,
    },
    /// An `enum` has more values than allowed.
    EnumTooLong {
        /// Values it has.
        values: usize,
        /// Values allowed.
        limit: usize,
    },
    /// The whole definition has more bytes than allowed.
    DefinitionTooLarge {
        /// Bytes it has.
        bytes: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// A parameter's name, or another key, holds characters that nobody can see.
    ParameterHidden,
    /// Hidden characters were removed from what is shown.
    HiddenText(Vec<Hidden>),
    /// The description was cut.
    DescriptionCut {
        /// Bytes it had.
        bytes: usize,
        /// Bytes kept at most.
        limit: usize,
    },
    /// A provider's own tool: not ours to defer.
    LeftToProvider {
        /// Its `type`.
        kind: String,
    },
    /// The list says that another page follows.
    OnePageOfSeveral,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(problem) => write!(f, "held: not JSON: {problem}"),
            Self::NotAnObject => f.write_str("held: not a JSON object"),
            Self::NoName => f.write_str("held: no `name`"),
            Self::NameTooLong { bytes, limit } => {
                write!(f, "held: the name has {bytes} bytes, the limit is {limit}")
            }
            Self::NameHidden => f.write_str("held: the name has invisible characters"),
            Self::NameReserved => f.write_str("held: the name is reserved"),
            Self::Collision => {
                f.write_str("held: one server declares this name twice, differently")
            }
            Self::Duplicate => f.write_str("declared twice, kept once"),
            Self::Renamed { to } => write!(f, "several servers use this name: now `{to}`"),
            Self::SchemaNotAnObject => f.write_str("held: the input schema is not an object"),
            Self::SchemaTooLarge { bytes, limit } => {
                write!(f, "held: the schema has {bytes} bytes, the limit is {limit}")
            }
            Self::SchemaTooDeep { depth, limit } => {
                write!(f, "held: the schema is {depth} levels deep, the limit is {limit}")
            }
            Self::SchemaTooMany { nodes, limit } => {
                write!(f, "held: the schema has {nodes} values, the limit is {limit}")
            }
            Self::EnumTooLong { values, limit } => {
                write!(f, "held: an `enum` has {values} values, the limit is {limit}")
            }
            Self::DefinitionTooLarge { bytes, limit } => {
                write!(f, "held: the definition has {bytes} bytes, the limit is {limit}")
            }
            Self::ParameterHidden => {
                f.write_str("held: a parameter's name has invisible characters")
            }
            Self::HiddenText(classes) => {
                let classes: Vec<_> = classes.iter().map(ToString::to_string).collect();
                write!(f, "removed from what is shown: {}", classes.join(", "))
            }
            Self::DescriptionCut { bytes, limit } => {
                write!(f, "the description has {bytes} bytes, cut at {limit}")
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
