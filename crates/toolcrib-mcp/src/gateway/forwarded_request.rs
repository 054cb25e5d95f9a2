//! One request, forwarded from one client to one server.
//!
//! The result is passed on unchanged. Until it arrives, progress and the server's questions are forwarded to the
//! client, and a cancellation is forwarded to the server. How a question is asked depends on the protocol, older or
//! newer, of the server and of the client:
//!
//! | server | client | how the question is asked |
//! |---|---|---|
//! | older | older | the question and its answer are forwarded |
//! | newer | newer | `input_required` and the retry are forwarded unchanged |
//! | newer | older | the gateway asks, and retries with the answers |
//! | older | newer | the gateway returns `input_required` and keeps the call open; the retry brings the answer |

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorData};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::call_deadline::ANSWER_TIMEOUT;
use super::call_wait::{CallWait, WaitEvent};
use super::client::{BodyMemory, Client};
use super::forward_error::{ForwardError, question_rejected};
use super::forward_outcome::{ForwardOutcome, PausedFor, PausedRequest, QUESTION_KEY};
use super::operation::{Operation, RetryInputs};
use super::pending_input::is_own_state;
use super::question::{QuestionError, prepare_input_requests};
use super::tasks::{PolledTask, TaskStep, created_task};
use crate::metrics::{self, CallStatus};
use crate::upstream::{
    ActiveCall, CLIENT_QUEUE, CallPermit, CallingClient, ConnectionHandle, PendingRequest,
    RawRequest, ServerMessage, Upstream, UpstreamError,
};

/// Maximum number of times that a server may ask for input in one request.
const MAX_INPUT_ROUNDS: usize = 8;

/// A request that was sent to a server.
pub(crate) struct ForwardedRequest {
    pub(super) upstream: Arc<Upstream>,
    pub(super) operation: Operation,
    /// What the client has added to the request. It is needed if the request must be sent again.
    pub(super) inputs: RetryInputs,
    /// The last request that was sent for the call: the call itself, or a request about its task.
    pub(super) pending: PendingRequest,
    /// The call itself, once requests about its task are sent.
    pub(super) call: Option<Box<PendingRequest>>,
    /// Questions and log messages of the server about this call.
    pub(super) messages: mpsc::Receiver<ServerMessage>,
    pub(super) active_call: ActiveCall,
    pub(super) timeout: Duration,
    metric: Option<metrics::InFlightCall>,
    /// Whether the server was told that it may answer with a task.
    pub(super) announces_tasks: bool,
    /// The task that the call waits for. It is declared before the permit, because it is cancelled while the permit is
    /// still held.
    pub(super) polled_task: Option<PolledTask>,
    pub(super) permit: CallPermit,
    /// Whether a question from the server was already rejected.
    has_rejected_question: bool,
    /// The memory reserved for the body of the client's request. The arguments refer to the body, so this memory stays
    /// reserved until this request ends.
    _body: Option<BodyMemory>,
}

impl ForwardedRequest {
    /// Waits until a request may be sent to a server.
    pub(crate) async fn wait_for_permit(
        upstream: &Upstream,
        operation: &Operation,
        client: &Client,
    ) -> Result<CallPermit, ForwardError> {
        let timeout = operation.timeout(upstream);
        tokio::select! {
            permit = upstream.acquire_call_permit() => {
                permit.map_err(|error| ForwardError::not_sent(upstream, &error))
            }
            () = client.abandoned.cancelled() => Err(ForwardError::cancelled()),
            () = tokio::time::sleep(timeout) => {
                let name = &upstream.name;
                let waited = timeout.as_secs_f64();
                let problem = format!("`{name}`: the call waited {waited:.0} s and was not sent");
                Err(ForwardError::Failed(problem))
            }
        }
    }

    /// Sends a request to a server on a client's behalf.
    pub(crate) async fn send(
        (upstream, permit): (Arc<Upstream>, CallPermit),
        operation: Operation,
        client: &Client,
        inputs: RetryInputs,
        is_allowed: impl Fn(&Arc<ConnectionHandle>) -> bool,
    ) -> Result<Self, ForwardError> {
        let timeout = operation.timeout(&upstream);
        // If the gateway created this `requestState`, the call that it belonged to has already ended, and sending the
        // request again would execute it twice. Servers of the older protocol send none.
        let uses_newer_protocol = permit.connection.uses_newer_protocol();
        let is_own = |state: &String| !uses_newer_protocol || is_own_state(&upstream, state);
        if inputs.state.as_ref().is_some_and(is_own) {
            let problem = "unknown `requestState`: it was already used, has expired, or belongs to another request";
            return Err(ForwardError::Rpc(ErrorData::invalid_params(problem, None)));
        }
        // While the request waited for its permit, a config reload may have hidden the operation from this client.
        if !is_allowed(&permit.connection) {
            return Err(ForwardError::Failed(format!(
                "`{}` is no longer available",
                upstream.name
            )));
        }
        let metric = matches!(operation, Operation::Tool { .. })
            .then(|| upstream.metrics().call(&upstream.name));
        let (sender, messages) = mpsc::channel(CLIENT_QUEUE);
        let caller =
            CallingClient { client: client.id, client_group: client.group, messages: sender };
        let announces_tasks = client.supports_tasks();
        let meta = client.meta_for(uses_newer_protocol, announces_tasks);
        let mut active_call = upstream.active_calls.register(caller);
        let request = match operation.request(inputs.clone()) {
            request if uses_newer_protocol => request,
            request => operation.as_older_task(request),
        };
        let pending = match permit.connection.send(request, Some(meta)).await {
            Ok(pending) => pending,
            Err(error) => {
                active_call.finish();
                return Err(ForwardError::from_upstream(&upstream, &error));
            }
        };
        active_call.set_id(pending.id().clone());
        Ok(Self {
            upstream,
            operation,
            inputs,
            pending,
            call: None,
            messages,
            active_call,
            timeout,
            metric,
            announces_tasks,
            polled_task: None,
            permit,
            has_rejected_question: false,
            _body: client.body.clone(),
        })
    }

    /// Releases the permit that limits the calls to all servers, so that another call can be sent while this one waits
    /// for its client.
    pub(super) fn release_global_permit(&mut self) {
        self.permit.release_shared_permit();
    }

    /// Returns the maximum number of calls to this request's server that may wait for their clients. It is half of the
    /// calls that may run concurrently, but at least one.
    pub(super) fn max_pending_inputs(&self) -> usize {
        (self.upstream.max_concurrent_calls() / 2).max(1)
    }

    /// Returns the name of the server that the request was sent to.
    pub(super) fn server(&self) -> &str {
        &self.upstream.name
    }

    /// Whether a new request, for `operation` on `upstream`, is a retry of this request.
    pub(crate) fn is_retried_by(&self, upstream: &Upstream, operation: &Operation) -> bool {
        self.upstream.name == upstream.name && self.operation.has_same_target(operation)
    }

    /// Waits for the result, or for something that the caller has to decide.
    pub(crate) async fn wait(mut self, client: &Client) -> Result<ForwardOutcome, ForwardError> {
        let mut wait = CallWait::new(self.timeout);
        loop {
            let answer = match self.next_event(client, &mut wait).await? {
                WaitEvent::Answered(answer) => answer,
                WaitEvent::Question(question, answer) => {
                    let requests = json!({ QUESTION_KEY: question });
                    return Ok(self.paused(requests, PausedFor::Question(answer)));
                }
                WaitEvent::PollDue => {
                    let request = self.polled_task.as_mut().map(PolledTask::poll_request);
                    if let Some(request) = request {
                        self.send_next(client, request).await?;
                    }
                    continue;
                }
            };
            let step = match answer {
                Err(UpstreamError::Rejected(error)) if self.needs_tasks(&error) => {
                    return Ok(ForwardOutcome::TaskRequired(Box::new(self), error));
                }
                answer => match &mut self.polled_task {
                    Some(task) => {
                        let is_closed = matches!(answer, Err(UpstreamError::Closed(_)));
                        let step = task.receive(answer);
                        if is_closed || task.is_over() {
                            self.active_call.finish();
                        }
                        step
                    }
                    None => answer
                        .map(TaskStep::Done)
                        .map_err(|error| ForwardError::from_upstream(&self.upstream, &error)),
                },
            };
            let mut result = match step {
                Ok(TaskStep::Done(result)) => result,
                Ok(TaskStep::Send(request)) => {
                    self.send_next(client, *request).await?;
                    continue;
                }
                Ok(TaskStep::Working { message, is_active }) => {
                    if is_active {
                        wait.deadline.extend_for_progress();
                    }
                    wait.report_poll(client, message).await;
                    continue;
                }
                Ok(TaskStep::Ask(requests)) => {
                    json!({"resultType": "input_required", "inputRequests": requests})
                }
                Err(error) => {
                    self.count(CallStatus::Error);
                    return Err(error);
                }
            };
            if matches!(self.operation, Operation::Tool { .. })
                && self.polled_task.is_none()
                && created_task(&result).is_some()
            {
                return Ok(ForwardOutcome::Task(Box::new(self), result));
            }
            if is_input_required(&result)
                && let Err(error) =
                    prepare_input_requests(self.server(), &mut result, self.upstream.limits())
            {
                self.count(CallStatus::Error);
                self.log_rejected_question(&error);
                return Err(ForwardError::Rpc(question_rejected(&error)));
            }
            if is_input_required(&result)
                && self.is_waiting_for_task()
                && client.uses_newer_protocol
            {
                return Ok(self.paused(result["inputRequests"].take(), PausedFor::Task));
            }
            if client.uses_newer_protocol || !is_input_required(&result) {
                let is_error = result.get("isError") == Some(&Value::Bool(true));
                self.count(if is_error { CallStatus::ToolError } else { CallStatus::Ok });
                return Ok(ForwardOutcome::Result(result));
            }
            wait.input_rounds += 1;
            if wait.input_rounds > MAX_INPUT_ROUNDS {
                self.count(CallStatus::Error);
                return Err(ForwardError::Failed(format!(
                    "`{}` asked for input more than {MAX_INPUT_ROUNDS} times",
                    self.upstream.name
                )));
            }
            self.send_input(client, &result).await?;
            wait.deadline.restart();
        }
    }

    /// Whether the question must be asked in the result of the client's request.
    pub(super) fn must_ask_in_result(&self, client: &Client, question: &RawRequest) -> bool {
        client.uses_newer_protocol && self.operation.can_be_retried() && client.can_answer(question)
    }

    /// Asks a client of the older protocol the questions of a server of the newer protocol, and sends the answers: to
    /// the task that the call waits for, or by sending the call again.
    async fn send_input(&mut self, client: &Client, result: &Value) -> Result<(), ForwardError> {
        let answers = client.ask_all(&result["inputRequests"]);
        let responses = tokio::select! {
            responses = answers => responses.map_err(ForwardError::Rpc)?,
            () = client.abandoned.cancelled() => return Err(ForwardError::cancelled()),
            () = tokio::time::sleep(ANSWER_TIMEOUT) => {
                return Err(ForwardError::Failed("the server's question was not answered in time".into()));
            }
        };
        if self.is_waiting_for_task() {
            return self.answer_task(client, responses).await;
        }
        let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
        self.inputs = RetryInputs { responses: Some(responses), state };
        let request = self.operation.request(self.inputs.clone());
        self.send_next(client, request).await
    }

    /// Sends the next request for this call.
    pub(super) async fn send_next(
        &mut self,
        client: &Client,
        request: ClientRequest,
    ) -> Result<(), ForwardError> {
        let announces_tasks = self.announces_tasks || self.is_waiting_for_task();
        let connection = &self.permit.connection;
        let meta = client.meta_for(connection.uses_newer_protocol(), announces_tasks);
        match connection.send(request, Some(meta)).await {
            Ok(pending) => {
                let previous = std::mem::replace(&mut self.pending, pending);
                if self.is_waiting_for_task() {
                    self.call.get_or_insert_with(|| Box::new(previous));
                }
            }
            Err(error) => {
                self.count(CallStatus::Error);
                return Err(match &mut self.polled_task {
                    Some(task) => task.lost(&error),
                    None => ForwardError::from_upstream(&self.upstream, &error),
                });
            }
        }
        self.active_call.set_id(self.pending.id().clone());
        Ok(())
    }

    fn paused(self, requests: Value, paused_for: PausedFor) -> ForwardOutcome {
        ForwardOutcome::InputRequired(Box::new(PausedRequest {
            forwarded: self,
            requests,
            paused_for,
        }))
    }

    /// Logs a rejected question. Only the first rejection in each request is logged as a warning, because a server may
    /// ask any number of times.
    pub(super) fn log_rejected_question(&mut self, error: &QuestionError) {
        if std::mem::replace(&mut self.has_rejected_question, true) {
            tracing::debug!(server = self.server(), "question rejected: {error}");
        } else {
            self.upstream.warn(format_args!("question rejected: {error}"));
        }
    }

    pub(super) fn count(&mut self, status: CallStatus) {
        if let Some(metric) = self.metric.take() {
            metric.end(status);
        }
    }
}

/// Whether a result asks for input.
fn is_input_required(result: &Value) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}
