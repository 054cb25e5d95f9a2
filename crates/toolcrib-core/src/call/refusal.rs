//! What the model can fix, answered with what it needs.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::argument_validation::ArgumentFault;
use crate::reply::UnavailableServer;

/// Why a call was not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalCode {
    /// No tool of this name. The same for a tool out of scope: there is no difference to see.
    UnknownTool,
    /// The name fits several tools.
    AmbiguousName,
    /// The call names no tool.
    NoName,
    /// The arguments do not fit the schema.
    InvalidArguments,
    /// The input is not what the tool takes.
    InvalidInput,
    /// One of our own tools was called through `tool_call`.
    Recursion,
}

/// An answer in place of a result: what is wrong, where, and what would be right.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Refusal {
    /// Which kind of wrong.
    #[serde(rename = "error")]
    pub code: RefusalCode,
    /// The one sentence to read.
    pub message: String,
    /// The tool that was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What is wrong where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<ArgumentFault>,
    /// Names that may have been meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// The whole schema, the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Box<RawValue>>,
    /// The schema in one line, once the whole one was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Servers that are still connecting: what is missing may be theirs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connecting: Vec<String>,
    /// Servers that do not answer.
    #[serde(rename = "down", skip_serializing_if = "Vec::is_empty")]
    pub unavailable_servers: Vec<UnavailableServer>,
    /// What to do next.
    pub hint: String,
}

impl Refusal {
    /// A refusal with nothing but its words.
    pub(crate) fn new(
        code: RefusalCode,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            code,
            message: message.into(),
            tool: None,
            faults: Vec::new(),
            nearest: Vec::new(),
            input_schema: None,
            signature: None,
            connecting: Vec::new(),
            unavailable_servers: Vec::new(),
            hint: hint.into(),
        }
    }

    /// The answer as the model gets it.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
