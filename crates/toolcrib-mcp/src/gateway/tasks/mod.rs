//! Tasks: a server may answer a call with a task, and do the work later.
//!
//! A client that supports tasks gets the task, under an id of the gateway ([`open_tasks`]), and its requests about the
//! task are sent on to the server. For any other client the gateway waits until the task is over and then answers the
//! call ([`polling`]). [`fields`] reads what a server reports about a task.

mod call;
mod fields;
mod open_tasks;
mod polling;

use std::sync::Arc;

use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, ErrorCode, ErrorData, GetTaskParams,
    GetTaskRequest, UpdateTaskParams, UpdateTaskRequest,
};
use serde_json::{Value, json};

use super::Gateway;
use super::client::Client;
use super::forward_error::question_rejected;
use super::forwarded_request::ForwardedRequest;
use super::operation::{Operation, RetryInputs};
use super::question::{prepare_input_requests, prepare_url_error};
use super::supported_methods::unknown_method;
pub(super) use fields::created_task;
pub(super) use open_tasks::{OpenTasks, TaskOwner};
pub(super) use polling::{PolledTask, TaskStep};

use crate::hidden_text::clean_error;
use crate::upstream::{ConnectionHandle, ServerTask, Upstream};
use call::missing_tasks_capability;
use fields::{MAX_ID_BYTES, TaskFields, TaskForm, prepare_for_client};
use open_tasks::{MAX_TTL, OpenTask};

/// A request to a server about a task.
#[derive(Debug, Clone)]
pub(crate) struct TaskRequest {
    kind: TaskRequestKind,
    /// The server's id of the task.
    id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskRequestKind {
    /// Returns the state of the task.
    Get,
    /// Answers questions of the task.
    Update,
    /// Cancels the task.
    Cancel,
}

impl TaskRequest {
    /// Builds the request that is sent to the server.
    pub(super) fn request(self, inputs: RetryInputs) -> ClientRequest {
        let Self { kind, id } = self;
        match kind {
            TaskRequestKind::Get => {
                ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(id)))
            }
            TaskRequestKind::Update => {
                let responses = inputs.responses.unwrap_or_default();
                let params = UpdateTaskParams::new(id, responses);
                ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params))
            }
            TaskRequestKind::Cancel => {
                ClientRequest::CancelTaskRequest(CancelTaskRequest::new(CancelTaskParams::new(id)))
            }
        }
    }
}

/// Returns a placeholder that the SDK can parse, with the id and the TTL of a task that it cannot parse.
pub(super) fn empty_task(task: &Value) -> Value {
    json!({
        "resultType": task.get("resultType"),
        "taskId": task.get("taskId"),
        "status": "working",
        "createdAt": "",
        "lastUpdatedAt": "",
        "ttlMs": task.get("ttlMs"),
    })
}

/// Builds the error for a task that does not exist, or that belongs to another client.
fn unknown_task() -> ErrorData {
    ErrorData::invalid_params("there is no such task: its id is unknown, or it has expired", None)
}

impl Gateway {
    /// Stores the task in a call's result, and returns the result for the client. If too many tasks are stored, or the
    /// client cannot use this task, the gateway must wait for the task itself, so the request is returned as the error.
    pub(super) fn pass_on_task(
        &self,
        forwarded: Box<ForwardedRequest>,
        mut result: Value,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<Value, (Box<ForwardedRequest>, Value)> {
        let Operation::Tool { name: tool, .. } = &forwarded.operation else {
            return Err((forwarded, result));
        };
        let fields = created_task(&result)
            .filter(|(form, _)| client.supports_tasks() && *form == TaskForm::Extension)
            .and_then(|(form, fields)| TaskFields::read(form, fields).ok());
        let Some(fields) = fields else { return Err((forwarded, result)) };
        let upstream = &forwarded.upstream;
        let connection = Arc::clone(&forwarded.permit.connection);
        let task = ServerTask::new(Arc::clone(upstream), connection, fields.id.clone());
        let open = OpenTask::new(task, tool.clone(), TaskOwner::new(client, profile), &fields);
        match self.tasks.add(open, upstream.limits()) {
            Ok(id) => {
                // Questions of a task are in the answers to `tasks/get`.
                if let Some(fields) = result.as_object_mut() {
                    fields.shift_remove("inputRequests");
                }
                forwarded.end_with_task();
                prepare_for_client(&mut result, &id, MAX_TTL);
                Ok(result)
            }
            Err(mut rejected) => {
                // The request goes on to wait for this task, so the task must not be cancelled here.
                rejected.task.set_over();
                Err((forwarded, result))
            }
        }
    }

    /// Answers a client's request about a task.
    pub(super) async fn request_task(
        &self,
        request: ClientRequest,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<Value, ErrorData> {
        if !client.uses_newer_protocol {
            return Err(unknown_method(request.method()));
        }
        if !client.supports_tasks() {
            return Err(missing_tasks_capability());
        }
        let mut inputs = RetryInputs::default();
        let (kind, id) = match request {
            ClientRequest::GetTaskRequest(request) => {
                (TaskRequestKind::Get, request.params.task_id)
            }
            ClientRequest::UpdateTaskRequest(request) => {
                inputs.responses = Some(request.params.input_responses);
                (TaskRequestKind::Update, request.params.task_id)
            }
            ClientRequest::CancelTaskRequest(request) => {
                (TaskRequestKind::Cancel, request.params.task_id)
            }
            other => return Err(unknown_method(other.method())),
        };
        let owner = TaskOwner::new(client, profile);
        let target = Some(&id).filter(|id| id.len() <= MAX_ID_BYTES);
        let target = target.and_then(|id| self.tasks.find(id, &owner)).ok_or_else(unknown_task)?;
        let tool = Operation::Tool { name: target.tool, arguments: None, must_run_as_task: false };
        let visible = self.visible_to(client.viewer(profile), client.session_kind())?;
        let is_visible = self.is_allowed(client.viewer(profile), &target.server, &tool);
        let upstream = match self.visible_upstream(&visible, &target.server, client.identified()) {
            Some(Ok(upstream)) if is_visible => upstream,
            _ => return Err(unknown_task()),
        };
        // A server whose config has changed is another server.
        let exists =
            |task: &ServerTask| Arc::ptr_eq(task.upstream(), &upstream) && task.may_exist();
        if self.tasks.with(&id, exists) != Some(true) {
            self.tasks.remove(&id);
            return Err(ErrorData::invalid_params(lost_task(&upstream.name), None));
        }
        let operation = Operation::Task(TaskRequest { kind, id: target.id });
        let is_reached = |connection: &Arc<ConnectionHandle>| {
            self.tasks.with(&id, |task| task.is_reached_by(connection)) == Some(true)
        };
        let sent = async {
            let permit = ForwardedRequest::wait_for_permit(&upstream, &operation, client).await?;
            let server = (Arc::clone(&upstream), permit);
            ForwardedRequest::send(server, operation, client, inputs, is_reached).await
        };
        let answer = match sent.await {
            Ok(forwarded) => forwarded.wait(client).await,
            Err(error) => Err(error),
        };
        let mut result = match answer {
            Ok(outcome) => outcome.into_result().ok_or_else(unknown_task)?,
            Err(error) => {
                let error = error.into_error_data(true);
                if kind == TaskRequestKind::Get && error.code == ErrorCode::INVALID_PARAMS {
                    self.tasks.remove(&id);
                }
                return Err(error);
            }
        };
        if kind == TaskRequestKind::Cancel {
            self.tasks.set_cancelled(&id);
        }
        if kind != TaskRequestKind::Get {
            return Ok(json!({"resultType": "complete"}));
        }
        let fields = result.as_object().ok_or("is not an object");
        let fields = fields.and_then(|fields| TaskFields::read(TaskForm::Extension, fields));
        let fields = fields.map_err(|problem| {
            ErrorData::internal_error(format!("`{}`: its task {problem}", upstream.name), None)
        })?;
        self.tasks.update(&id, &fields);
        prepare_input_requests(&upstream.name, &mut result, upstream.limits())
            .map_err(|error| question_rejected(&error))?;
        if let Some(error) = result.get_mut("error") {
            prepare_task_error(&upstream, error);
        }
        prepare_for_client(&mut result, &id, MAX_TTL);
        if let Some(of_tool) = result.get_mut("result").map(Value::take) {
            result["result"] = self.check_hidden_text(&upstream.name, &tool, of_tool);
        }
        Ok(result)
    }
}

/// Prepares the error of a failed task like the error of a call. An error that is not valid is replaced.
fn prepare_task_error(upstream: &Upstream, error: &mut Value) {
    let invalid = || ErrorData::internal_error("the task failed", None);
    let failed = serde_json::from_value(error.take()).unwrap_or_else(|_| invalid());
    let prepared = prepare_url_error(&upstream.name, clean_error(failed), upstream.limits());
    let prepared = prepared.unwrap_or_else(|error| question_rejected(&error));
    *error = serde_json::to_value(prepared).unwrap_or_default();
}

/// Returns the error for a task whose server was restarted.
fn lost_task(server: &str) -> String {
    format!(
        "`{server}` was restarted or disconnected after it created the task, so the task cannot be reached; the task may still run"
    )
}
