//! Decides whether a tool only reads, which determines whether it is called through `tool_read` or `tool_write`.
//!
//! Annotations come from the tool's owner, and nobody verifies them. So a tool counts as read-only only if it says so
//! itself, and the program that embeds the engine can ignore its annotations or override them.

use serde::{Deserialize, Serialize};

/// MCP's four behaviour hints. They come from the tool's owner and are not verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// Whether the tool changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// Whether the tool may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Whether a second call with the same arguments has no further effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Whether the tool interacts with external systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// Who decides whether a tool only reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccessPolicy {
    /// The tool's annotations decide.
    #[default]
    Annotations,
    /// The tool's annotations are not trusted.
    IgnoreAnnotations,
    /// The owner of the config declares that the tool only reads.
    ReadOnly,
    /// The owner of the config declares that the tool may write.
    MayWrite,
}

/// Whether a tool only reads, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolAccess {
    /// It only reads.
    ReadOnly(ReadOnlyReason),
    /// It may write.
    MayWrite(MayWriteReason),
}

/// Why a tool counts as read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadOnlyReason {
    /// The owner of the config says so.
    Config,
    /// The tool's annotations say so.
    Annotations,
}

/// Why a tool counts as one that may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MayWriteReason {
    /// The owner of the config says so.
    Config,
    /// The annotations do not say that it only reads, or they contradict each other.
    Annotations,
    /// The tool's annotations are not trusted.
    Untrusted,
}

impl AccessPolicy {
    /// Whether a tool with these annotations only reads. A tool that is annotated as both read-only and destructive may
    /// write.
    pub(crate) fn decide(self, hints: ToolAnnotations) -> ToolAccess {
        match self {
            Self::ReadOnly => ToolAccess::ReadOnly(ReadOnlyReason::Config),
            Self::MayWrite => ToolAccess::MayWrite(MayWriteReason::Config),
            Self::IgnoreAnnotations => ToolAccess::MayWrite(MayWriteReason::Untrusted),
            Self::Annotations => {
                if hints.read_only_hint == Some(true) && hints.destructive_hint != Some(true) {
                    ToolAccess::ReadOnly(ReadOnlyReason::Annotations)
                } else {
                    ToolAccess::MayWrite(MayWriteReason::Annotations)
                }
            }
        }
    }
}
