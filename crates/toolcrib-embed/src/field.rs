//! The parts of a tool that are embedded, each with a weight of its own.

/// A part of a tool. The order is that of the weights in a table's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The name, as code writes it.
    Name,
    /// The title for people.
    Title,
    /// The description.
    Description,
    /// The names of the parameters.
    ParameterNames,
    /// The descriptions of the parameters.
    ParameterDescriptions,
    /// The server it comes from.
    Server,
}

impl Field {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [
        Self::Name,
        Self::Title,
        Self::Description,
        Self::ParameterNames,
        Self::ParameterDescriptions,
        Self::Server,
    ];

    /// Pieces of a field that count; the training reads no more. The longest descriptions say what
    /// they are about long before.
    pub(crate) fn most_pieces(self) -> usize {
        match self {
            Self::Name | Self::Title => 32,
            Self::Description | Self::ParameterDescriptions => 192,
            Self::ParameterNames => 96,
            Self::Server => 16,
        }
    }
}
