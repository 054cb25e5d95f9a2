//! How deferred tools are shown, as the wire has it.
//!
//! The engine knows four disclosures. Two more exist only where a provider's API has the words for
//! them: references, where our search answers with blocks that load a tool's definition, and hosted
//! search, where the provider searches itself. Neither changes `tools` after the first request.

use std::fmt;

use serde::{Deserialize, Serialize};
use toolcrib_core::disclose::Kind;

/// Tools that one answer may load by reference. A report has it that more rebuild the provider's cache.
pub(crate) const REFERENCES: usize = 5;

/// How deferred tools are shown and become callable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// `tool_search`, `tool_describe`, `tool_call`; nothing of it changes. Works everywhere.
    Bridge,
    /// Stubs that become definitions once found.
    Reveal,
    /// Names and parameters; descriptions are found.
    Terse,
    /// A listing; definitions are appended once found.
    Append,
    /// Our search, answered with what the API loads a definition by.
    Reference(Primitive),
    /// The provider's own search.
    Hosted(Hosted),
}

/// What an API has to load a definition in the middle of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Primitive {
    /// Anthropic: `tool_reference` blocks in a result, for tools sent with `defer_loading`.
    ToolReference,
    /// OpenAI: `tool_search_output` for a `tool_search` that the client executes.
    SearchOutput,
    /// OpenAI: an `additional_tools` item after the result of a function.
    AdditionalTools,
}

/// A provider's own search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hosted {
    /// Anthropic's by pattern.
    Regex,
    /// Anthropic's by words.
    Bm25,
    /// OpenAI's, over namespaces.
    Namespaces,
}

impl Mode {
    /// The engine's disclosure behind it. References and hosted search need the listing and the one
    /// search tool of `append`, and nothing appended.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Bridge => Kind::Bridge,
            Self::Reveal => Kind::Reveal,
            Self::Terse => Kind::Terse,
            Self::Append | Self::Reference(_) | Self::Hosted(_) => Kind::Append,
        }
    }

    /// Whether it needs a feature of the upstream.
    pub(crate) fn is_native(self) -> bool {
        matches!(self, Self::Reference(_) | Self::Hosted(_))
    }

    /// Whether `tools` changes with what was found.
    pub(crate) fn grows(self) -> bool {
        matches!(self, Self::Append | Self::Reveal)
    }

    /// Its name in headers, logs and configs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::Reveal => "reveal",
            Self::Terse => "terse",
            Self::Append => "append",
            Self::Reference(_) => "reference",
            Self::Hosted(_) => "hosted",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
