//! The four LLM APIs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An API that clients and upstreams use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// OpenAI Chat Completions, and the many servers that are compatible with it.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
    /// Gemini `generateContent`.
    Gemini,
}

impl Api {
    /// All four APIs.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Messages, Self::Gemini];

    /// Returns the API's name in configs, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Gemini => "gemini",
        }
    }

    /// Whether a request to this path only counts tokens.
    pub fn is_token_count_path(self, path: &str) -> bool {
        match self {
            Self::Messages => path.ends_with("/messages/count_tokens"),
            Self::Responses => path.ends_with("/responses/input_tokens"),
            Self::Chat | Self::Gemini => false,
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
