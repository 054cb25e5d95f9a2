//! The operations of a server that clients can use, and the requests for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CompleteRequest, CompleteRequestParams,
    GetPromptRequest, GetPromptRequestParams, JsonObject, ReadResourceRequest,
    ReadResourceRequestParams,
};
use serde_json::Value;

use super::tasks::TaskRequest;
use crate::config::seconds;
use crate::raw_arguments::{RawArguments, TaskParam};
use crate::upstream::Upstream;

/// An operation of a server.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// Runs a tool.
    Tool {
        name: String,
        arguments: Option<RawArguments>,
        /// Whether a server of the older protocol must be asked to run the call as a task. False with
        /// `unsupported_tasks = "reject"`.
        must_run_as_task: bool,
    },
    /// Renders a prompt.
    Prompt { name: String, arguments: Option<JsonObject> },
    /// Reads a resource.
    Resource { uri: String },
    /// Completes an argument.
    Completion(Arc<CompleteRequestParams>),
    /// Sends `tasks/get`, `tasks/update` or `tasks/cancel`.
    Task(TaskRequest),
}

/// The fields that a client adds when it retries a request whose result asked for input.
#[derive(Debug, Clone, Default)]
pub(crate) struct RetryInputs {
    pub(crate) responses: Option<BTreeMap<String, Value>>,
    pub(crate) state: Option<String>,
}

impl Operation {
    /// Builds the request that is sent to the server.
    pub(super) fn request(&self, inputs: RetryInputs) -> ClientRequest {
        let RetryInputs { responses, state } = inputs;
        match self.clone() {
            Self::Tool { name, arguments, .. } => {
                let mut params = CallToolRequestParams::new(name);
                params.arguments = arguments.as_ref().and_then(RawArguments::parsed);
                params.input_responses = responses;
                params.request_state = state;
                let mut call = CallToolRequest::new(params);
                if let Some(arguments) = arguments {
                    call.extensions.insert(arguments);
                }
                ClientRequest::CallToolRequest(call)
            }
            Self::Prompt { name, arguments } => {
                let mut params = GetPromptRequestParams::new(name);
                params.arguments = arguments;
                params.input_responses = responses;
                params.request_state = state;
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
            }
            Self::Resource { uri } => {
                let mut params = ReadResourceRequestParams::new(uri);
                params.input_responses = responses;
                params.request_state = state;
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
            }
            Self::Completion(params) => {
                ClientRequest::CompleteRequest(CompleteRequest::new((*params).clone()))
            }
            Self::Task(request) => request.request(RetryInputs { responses, state }),
        }
    }

    /// Makes this operation's request ask a server of the older protocol for a task, if the tool requires that.
    pub(super) fn as_older_task(&self, mut request: ClientRequest) -> ClientRequest {
        if matches!(self, Self::Tool { must_run_as_task: true, .. })
            && let ClientRequest::CallToolRequest(call) = &mut request
        {
            call.extensions.insert(TaskParam);
        }
        request
    }

    /// Whether a client of the newer protocol can answer a question by retrying this operation's request.
    pub(super) fn can_be_retried(&self) -> bool {
        !matches!(self, Self::Completion(_) | Self::Task(_))
    }

    /// Whether both operations use the same tool, prompt or resource, regardless of the arguments.
    pub(super) fn has_same_target(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tool { name, .. }, Self::Tool { name: other, .. })
            | (Self::Prompt { name, .. }, Self::Prompt { name: other, .. }) => name == other,
            (Self::Resource { uri }, Self::Resource { uri: other }) => uri == other,
            _ => false,
        }
    }

    /// Returns the operation's timeout, from the config.
    pub(super) fn timeout(&self, upstream: &Upstream) -> Duration {
        let config = upstream.config();
        let tool_timeout = match self {
            Self::Tool { name, .. } => {
                let matches =
                    |pattern: &str| toolcrib_core::policy::Glob::new(pattern).matches_name(name);
                config
                    .timeouts
                    .iter()
                    .find(|(pattern, _)| matches(pattern))
                    .map(|(_, limit)| *limit)
            }
            _ => None,
        };
        seconds(tool_timeout.unwrap_or(config.call_timeout))
    }
}
