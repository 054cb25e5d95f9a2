//! Errors that the model can correct, with the information that it needs to do so.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::argument_validation::ArgumentFault;
use crate::reply::UnavailableServer;

/// Why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalCode {
    /// There is no tool of this name. A tool outside the caller's scope is refused in exactly the same way.
    UnknownTool,
    /// The name matches several tools.
    AmbiguousName,
    /// The call names no tool.
    NoName,
    /// The arguments do not match the schema.
    InvalidArguments,
    /// The input of one of our own tools is not valid.
    InvalidInput,
    /// One of our own tools was called through `tool_call`.
    Recursion,
    /// The tool was called through `tool_read` instead of `tool_write`, or vice versa.
    WrongCallTool,
}

/// A reply to the model in place of a tool's result: what is wrong, where, and how to correct it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Refusal {
    /// The kind of error.
    #[serde(rename = "error")]
    pub code: RefusalCode,
    /// The error in one sentence.
    pub message: String,
    /// The tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What is wrong with the arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<ArgumentFault>,
    /// Names of tools that are similar to the one that was called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// The complete schema, if the model has not been shown it yet or keeps repeating the same call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Box<RawValue>>,
    /// The schema in one line. It is used instead of the complete schema if the model was already shown the complete
    /// schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Servers that are still connecting and may have the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connecting: Vec<String>,
    /// Servers that do not respond and may have the tool.
    #[serde(rename = "down", skip_serializing_if = "Vec::is_empty")]
    pub unavailable_servers: Vec<UnavailableServer>,
    /// What the model should do next.
    pub hint: String,
}

impl Refusal {
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

    /// The refusal as JSON text, to be sent to the model.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
