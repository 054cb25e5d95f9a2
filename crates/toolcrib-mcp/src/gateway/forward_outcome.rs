//! What a forwarded request leads to: a result, a question to the client, or a task.

use rmcp::model::ErrorData;
use serde_json::{Value, json};

use super::client::AnswerSender;
use super::forwarded_request::ForwardedRequest;

/// The key in `inputRequests` for a question from a server of the older protocol, which has no keys of its own.
pub(super) const QUESTION_KEY: &str = "question";

/// The outcome of a forwarded request.
pub(crate) enum ForwardOutcome {
    /// The server's result.
    Result(Value),
    /// The server asks a question before the call is over, and this client can be asked only in a result.
    InputRequired(Box<PausedRequest>),
    /// The server has answered the call with a task, in this result.
    Task(Box<ForwardedRequest>, Value),
    /// The server has rejected the call, because it can run the tool only as a task.
    TaskRequired(Box<ForwardedRequest>, ErrorData),
}

impl ForwardOutcome {
    /// Returns the result, if there is one.
    pub(super) fn into_result(self) -> Option<Value> {
        match self {
            Self::Result(result) => Some(result),
            _ => None,
        }
    }
}

/// A forwarded request that is paused until its client answers questions.
pub(crate) struct PausedRequest {
    pub(crate) forwarded: ForwardedRequest,
    /// The questions, by their keys.
    pub(crate) requests: Value,
    pub(crate) paused_for: PausedFor,
}

/// Where the answers of a paused request go.
pub(crate) enum PausedFor {
    /// To the question of a server of the older protocol.
    Question(AnswerSender),
    /// To the task that the call waits for.
    Task,
}

impl PausedFor {
    /// Whether the server no longer waits for the answer.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Question(answer) if answer.is_closed())
    }
}

/// Builds a result that asks a client of the newer protocol questions.
pub(super) fn input_required(requests: &Value, state: &str) -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": requests,
        "requestState": state,
    })
}
