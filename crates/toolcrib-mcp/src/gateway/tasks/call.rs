//! Calls that lead to a task: whether a call needs one, and how it waits for one.

use std::sync::Arc;

use rmcp::model::{ClientCapabilities, ErrorCode, ErrorData, InputResponses, TASKS_EXTENSION_ID};
use serde_json::Value;

use super::PolledTask;
use crate::gateway::client::Client;
use crate::gateway::forward_error::ForwardError;
use crate::gateway::forwarded_request::ForwardedRequest;
use crate::gateway::operation::Operation;
use crate::metrics::CallStatus;

impl ForwardedRequest {
    /// Sends answers to the questions of the task that the call waits for.
    pub(in crate::gateway) async fn answer_task(
        &mut self,
        client: &Client,
        answers: InputResponses,
    ) -> Result<(), ForwardError> {
        let Some(task) = &mut self.polled_task else { return Ok(()) };
        let request = task.answer_request(answers);
        self.send_next(client, request).await
    }

    /// Sends the call again, and tells the server that it may answer with a task.
    pub(in crate::gateway) async fn resend_for_task(
        &mut self,
        client: &Client,
    ) -> Result<(), ForwardError> {
        self.announces_tasks = true;
        let request = self.operation.request(self.inputs.clone());
        self.send_next(client, request).await
    }

    /// Makes the call wait for the task in its result.
    pub(in crate::gateway) fn poll_task(&mut self, result: &Value) -> Result<(), ForwardError> {
        let connection = Arc::clone(&self.permit.connection);
        self.polled_task = Some(PolledTask::start(&self.upstream, connection, result)?);
        self.active_call.go_on();
        Ok(())
    }

    /// Ends a call whose task was passed on to the client.
    pub(in crate::gateway) fn end_with_task(mut self) {
        self.count(CallStatus::Ok);
    }

    pub(in crate::gateway) fn is_waiting_for_task(&self) -> bool {
        self.polled_task.is_some()
    }

    /// Whether a server's error says that it can run this tool only as a task, and was not told that it may.
    pub(in crate::gateway) fn needs_tasks(&self, error: &ErrorData) -> bool {
        matches!(self.operation, Operation::Tool { .. })
            && !self.announces_tasks
            && self.polled_task.is_none()
            && requires_tasks(error)
    }
}

/// Builds the error for a request that only a client with tasks can send.
pub(super) fn missing_tasks_capability() -> ErrorData {
    let required = ClientCapabilities::builder().enable_tasks().build();
    ErrorData::missing_required_client_capability(required)
}

/// Whether a server's error says that it can answer a call only with a task.
fn requires_tasks(error: &ErrorData) -> bool {
    let required = "/requiredCapabilities/extensions";
    let extensions = error.data.as_ref().and_then(|data| data.pointer(required));
    error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        && extensions.is_some_and(|required| required.get(TASKS_EXTENSION_ID).is_some())
}
