//! Decides whether a tool only reads, which determines whether it is called through `tool_read` or `tool_write`.
//!
//! Annotations come from the tool's owner, and nobody verifies them. So a tool counts as read-only only if it says so
//! itself, and whoever embeds the engine can ignore its annotations or decide for it.

use serde::Serialize;

use super::{Refusal, RefusalCode};
use crate::catalog::ToolId;
use crate::crib::Crib;
use crate::disclosure::DisclosureKind;
use crate::tool::Tool;

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

impl Tool {
    /// This tool, but with another policy on who decides whether it only reads.
    #[must_use]
    pub fn with_access(self, access: AccessPolicy) -> Self {
        Self { access, ..self }
    }

    /// Whether the tool only reads. A tool that is annotated as both read-only and destructive may write.
    pub fn access(&self) -> ToolAccess {
        match self.access {
            AccessPolicy::ReadOnly => ToolAccess::ReadOnly(ReadOnlyReason::Config),
            AccessPolicy::MayWrite => ToolAccess::MayWrite(MayWriteReason::Config),
            AccessPolicy::IgnoreAnnotations => ToolAccess::MayWrite(MayWriteReason::Untrusted),
            AccessPolicy::Annotations => {
                let hints = self.annotations().unwrap_or_default();
                if hints.read_only_hint == Some(true) && hints.destructive_hint != Some(true) {
                    ToolAccess::ReadOnly(ReadOnlyReason::Annotations)
                } else {
                    ToolAccess::MayWrite(MayWriteReason::Annotations)
                }
            }
        }
    }
}

impl Crib {
    /// The name of our own tool through which a tool is called, if the calls are split into those that read and those
    /// that may write.
    pub fn call_tool(&self, tool: &Tool) -> Option<&'static str> {
        let settings = self.settings();
        let is_split = settings.split_calls && settings.disclosure_kind() == DisclosureKind::Bridge;
        is_split.then(|| match tool.access() {
            ToolAccess::ReadOnly(_) => settings.own_names.read,
            ToolAccess::MayWrite(_) => settings.own_names.write,
        })
    }

    /// Refuses a call of a tool through the wrong one of our own tools.
    pub(super) fn wrong_call_tool(&self, id: ToolId, through: &str) -> Option<Refusal> {
        let tool = self.catalog().tool(id);
        let right = self.call_tool(tool).filter(|right| *right != through)?;
        let message = format!("`{}` is not called through {through}", tool.name());
        let hint = format!("send the same input to {right}");
        let mut refusal = Refusal::new(RefusalCode::WrongCallTool, message, hint);
        refusal.tool = Some(tool.name().to_owned());
        Some(refusal)
    }
}
