//! The fields of a tool that are embedded, each with its own weight.

/// A field of a tool. The variants are in the order of the field weights in a table file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmbeddedField {
    /// The name, an identifier such as `create_issue`.
    Name,
    /// The human-readable title.
    Title,
    /// The description.
    Description,
    /// The names of the parameters.
    ParameterNames,
    /// The descriptions of the parameters.
    ParameterDescriptions,
    /// The name of the tool's server.
    Server,
}

impl EmbeddedField {
    /// All fields, in the order of their weights in a table file.
    pub const ALL: [Self; 6] = [
        Self::Name,
        Self::Title,
        Self::Description,
        Self::ParameterNames,
        Self::ParameterDescriptions,
        Self::Server,
    ];

    /// Returns the maximum number of pieces of this field that are embedded; the rest is ignored. `training/` uses the
    /// same limits. Even the longest descriptions state their subject well before the limit.
    pub(crate) fn max_pieces(self) -> usize {
        match self {
            Self::Name | Self::Title => 32,
            Self::Description | Self::ParameterDescriptions => 192,
            Self::ParameterNames => 96,
            Self::Server => 16,
        }
    }
}
