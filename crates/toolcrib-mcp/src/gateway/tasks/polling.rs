//! Waits for a task that is not passed on to its client: the client does not support tasks, the task is in the older form,
//! or too many tasks are stored.
//!
//! This is a state machine without I/O: [`super::super::forwarded_request`] sends the requests and passes on the
//! answers.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{
    ClientRequest, CustomRequest, ErrorData, GetTaskParams, GetTaskRequest, InputResponses,
    UpdateTaskParams, UpdateTaskRequest,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fields::{
    Activity, TaskFields, TaskForm, TaskStatus, created_task, without_related_task,
};
use crate::gateway::forward_error::ForwardError;
use crate::hidden_text::clean_error;
use crate::upstream::{ConnectionHandle, ServerTask, Upstream, UpstreamError};

/// A task that the gateway waits for.
pub(in crate::gateway) struct PolledTask {
    task: ServerTask,
    form: TaskForm,
    awaits: Awaited,
    activity: Activity,
    /// The keys of the questions that were last reported.
    reported: BTreeSet<String>,
    /// Those of the reported questions that were answered. The server may report them again before it has read the
    /// answers.
    answered: BTreeSet<String>,
}

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Awaited {
    /// The state is requested at this time.
    Poll(Instant),
    /// The answer to `tasks/get`.
    State,
    /// The answer to `tasks/update`.
    Acknowledgement,
    /// The answer to `tasks/result`, in the older protocol.
    Result,
}

/// What an answer of the server leads to.
pub(in crate::gateway) enum TaskStep {
    /// The task goes on. `message` describes its state. `is_active` means that the state has changed since the last
    /// poll.
    Working { message: Option<String>, is_active: bool },
    /// This request must be sent next.
    Send(Box<ClientRequest>),
    /// These questions must be answered, with [`PolledTask::answer_request`].
    Ask(Value),
    /// The task is over, with this result of the call.
    Done(Value),
}

impl PolledTask {
    /// Starts to wait for the task in a call's result.
    pub(in crate::gateway) fn start(
        upstream: &Arc<Upstream>,
        connection: Arc<ConnectionHandle>,
        result: &Value,
    ) -> Result<Self, ForwardError> {
        let invalid = |problem: &str| {
            ForwardError::Failed(format!("`{}` answered with a task that {problem}", upstream.name))
        };
        let (form, fields) = created_task(result).ok_or_else(|| invalid("has no fields"))?;
        let fields = TaskFields::read(form, fields).map_err(invalid)?;
        // A task that does not work needs something, or is over, so it is not left waiting.
        let is_working = fields.status == TaskStatus::Working;
        let now = Instant::now();
        let poll_at = if is_working { now + fields.poll_interval } else { now };
        Ok(Self {
            task: ServerTask::new(Arc::clone(upstream), connection, fields.id),
            form,
            awaits: Awaited::Poll(poll_at),
            activity: fields.activity,
            reported: BTreeSet::new(),
            answered: BTreeSet::new(),
        })
    }

    /// Returns when the state must be requested, or `None` if an answer of the server is awaited.
    pub(in crate::gateway) fn poll_at(&self) -> Option<Instant> {
        match self.awaits {
            Awaited::Poll(at) => Some(at),
            _ => None,
        }
    }

    /// Whether the task has ended, or the server does not know it.
    pub(in crate::gateway) fn is_over(&self) -> bool {
        self.task.is_over()
    }

    /// Builds the request for the task's state.
    pub(in crate::gateway) fn poll_request(&mut self) -> ClientRequest {
        self.awaits = Awaited::State;
        ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(self.task.id())))
    }

    /// Builds the request that answers the task's questions.
    pub(in crate::gateway) fn answer_request(&mut self, answers: InputResponses) -> ClientRequest {
        self.awaits = Awaited::Acknowledgement;
        let is_reported = |key: &&String| self.reported.contains(*key);
        self.answered.extend(answers.keys().filter(is_reported).cloned());
        let params = UpdateTaskParams::new(self.task.id(), answers);
        ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params))
    }

    /// Decides what an answer of the server leads to.
    pub(in crate::gateway) fn receive(
        &mut self,
        answer: Result<Value, UpstreamError>,
    ) -> Result<TaskStep, ForwardError> {
        let upstream = Arc::clone(self.task.upstream());
        match self.awaits {
            Awaited::Poll(_) | Awaited::State => {
                let state = answer.map_err(|error| self.lost(&error))?;
                self.receive_state(state)
            }
            Awaited::Acknowledgement => {
                answer.map_err(|error| self.lost(&error))?;
                self.awaits = Awaited::Poll(Instant::now());
                Ok(TaskStep::Working { message: None, is_active: true })
            }
            Awaited::Result => match answer {
                Ok(result) => {
                    self.task.set_over();
                    Ok(TaskStep::Done(without_related_task(result)))
                }
                Err(error @ UpstreamError::Rejected(_)) => {
                    self.task.set_over();
                    Err(ForwardError::from_upstream(&upstream, &error))
                }
                Err(error) => Err(self.lost(&error)),
            },
        }
    }

    fn receive_state(&mut self, mut state: Value) -> Result<TaskStep, ForwardError> {
        let upstream = Arc::clone(self.task.upstream());
        let failed =
            |problem: &str| ForwardError::Failed(format!("`{}`: {problem}", upstream.name));
        let fields = state.as_object().ok_or("is not an object");
        let fields = fields.and_then(|fields| TaskFields::read(self.form, fields));
        let fields = fields.map_err(|problem| failed(&format!("its task {problem}")))?;
        if self.form == TaskForm::Older
            && !matches!(fields.status, TaskStatus::Working | TaskStatus::Cancelled)
        {
            // In the older protocol this also delivers the task's questions.
            self.awaits = Awaited::Result;
            let params = json!({"taskId": self.task.id()});
            let request = CustomRequest::new("tasks/result", Some(params));
            return Ok(TaskStep::Send(Box::new(ClientRequest::CustomRequest(request))));
        }
        if fields.status.is_final() {
            self.task.set_over();
        }
        match fields.status {
            TaskStatus::Completed => {
                let result = state.get_mut("result").map(Value::take).filter(Value::is_object);
                result.map(TaskStep::Done).ok_or_else(|| failed("its task has no result"))
            }
            TaskStatus::Cancelled => Err(failed("its task was cancelled")),
            TaskStatus::Failed => {
                let error = state.get_mut("error").map(Value::take).unwrap_or_default();
                let error: ErrorData =
                    serde_json::from_value(error).map_err(|_| failed("its task failed"))?;
                let error = UpstreamError::Rejected(clean_error(error));
                Err(ForwardError::from_upstream(&upstream, &error))
            }
            TaskStatus::Working | TaskStatus::InputRequired => {
                let mut questions = state.get_mut("inputRequests").map(Value::take);
                let reported = questions.as_mut().and_then(Value::as_object_mut);
                self.reported = reported.iter().flat_map(|it| it.keys()).cloned().collect();
                self.answered.retain(|key| self.reported.contains(key));
                if let Some(questions) = reported {
                    questions.retain(|key, _| !self.answered.contains(key));
                }
                let has_questions = |questions: &Value| {
                    questions.as_object().is_some_and(|questions| !questions.is_empty())
                };
                let is_active = fields.activity != self.activity;
                self.awaits = Awaited::Poll(Instant::now() + fields.poll_interval);
                self.activity = fields.activity;
                match questions.filter(has_questions) {
                    Some(questions) if fields.status == TaskStatus::InputRequired => {
                        Ok(TaskStep::Ask(questions))
                    }
                    _ => Ok(TaskStep::Working { message: fields.message, is_active }),
                }
            }
        }
    }

    /// Returns the error for a task whose server does not answer or no longer knows the task.
    pub(in crate::gateway) fn lost(&mut self, error: &UpstreamError) -> ForwardError {
        let upstream = Arc::clone(self.task.upstream());
        let name = &upstream.name;
        ForwardError::Failed(match error {
            UpstreamError::Closed(reason) => {
                upstream.request_health_check();
                format!(
                    "`{name}` disconnected before its task was over ({reason}); the task may still run"
                )
            }
            UpstreamError::Rejected(error) => {
                // Cancelling a task that the server does not know would only cause another error.
                self.task.set_over();
                format!(
                    "`{name}` no longer knows its task ({}); the task may still run",
                    error.message
                )
            }
            error => {
                format!("`{name}`: its task cannot be reached ({error}); the task may still run")
            }
        })
    }
}
