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

use rmcp::model::ErrorData;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::call_deadline::{ANSWER_TIMEOUT, CallDeadline};
use super::client::{AnswerSender, BodyMemory, Client};
use super::forward_error::{ForwardError, question_rejected};
use super::lossy_notifier::LossyNotifier;
use super::operation::{Operation, RetryInputs};
use super::question::{QuestionError, label_log, prepare_input_requests, prepare_question};
use crate::metrics::{self, CallStatus};
use crate::upstream::{
    ActiveCall, CLIENT_QUEUE, CallPermit, CallingClient, PendingRequest, RawRequest, RequestEvent,
    ServerMessage, Upstream, UpstreamError,
};

/// Maximum number of times that a server may ask for input in one request.
const MAX_INPUT_ROUNDS: usize = 8;
/// The key in `inputRequests` for a question from a server of the older protocol, which has no keys of its own.
pub(super) const QUESTION_KEY: &str = "question";

/// The outcome of a forwarded request.
pub(crate) enum ForwardOutcome {
    /// The server's result.
    Result(Value),
    /// A server of the older protocol asks a question, and this client can be asked only in a result.
    InputRequired(Box<PausedRequest>),
}

/// A forwarded request that is paused until its client answers a question.
pub(crate) struct PausedRequest {
    pub(crate) forwarded: ForwardedRequest,
    pub(crate) question: RawRequest,
    pub(crate) answer: AnswerSender,
}

/// A request that was sent to a server.
pub(crate) struct ForwardedRequest {
    upstream: Arc<Upstream>,
    operation: Operation,
    pending: PendingRequest,
    /// Questions and log messages of the server about this call.
    messages: mpsc::Receiver<ServerMessage>,
    active_call: ActiveCall,
    timeout: Duration,
    metric: Option<metrics::InFlightCall>,
    permit: CallPermit,
    /// Whether a question from the server was already rejected.
    has_rejected_question: bool,
    /// The memory reserved for the body of the client's request. The arguments refer to the body, so this memory stays
    /// reserved until this request ends.
    _body: Option<BodyMemory>,
}

impl ForwardedRequest {
    /// Sends a request to a server on a client's behalf.
    pub(crate) async fn send(
        upstream: Arc<Upstream>,
        operation: Operation,
        client: &Client,
        inputs: RetryInputs,
        is_allowed: impl Fn() -> bool,
    ) -> Result<Self, ForwardError> {
        let timeout = operation.timeout(&upstream);
        let permit = tokio::select! {
            permit = upstream.acquire_call_permit() => {
                permit.map_err(|error| ForwardError::not_sent(&upstream, &error))?
            }
            () = client.abandoned.cancelled() => return Err(ForwardError::cancelled()),
            () = tokio::time::sleep(timeout) => {
                let name = &upstream.name;
                let waited = timeout.as_secs_f64();
                let problem = format!("`{name}`: the call waited {waited:.0} s and was not sent");
                return Err(ForwardError::Failed(problem));
            }
        };
        // Servers of the older protocol send no `requestState`, so this one was created by the gateway, and the call
        // that it belonged to has already ended. Sending the request again would execute it twice.
        if inputs.state.is_some() && !permit.connection.uses_newer_protocol() {
            let problem = "unknown `requestState`: it was already used, has expired, or belongs to another request";
            return Err(ForwardError::Rpc(ErrorData::invalid_params(problem, None)));
        }
        // While the request waited for its permit, a config reload may have hidden the operation from this client.
        if !is_allowed() {
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
        let meta = client.meta_for(permit.connection.uses_newer_protocol());
        let mut active_call = upstream.active_calls.register(caller);
        let pending = match permit.connection.send(operation.request(inputs), Some(meta)).await {
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
            pending,
            messages,
            active_call,
            timeout,
            metric,
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

    /// Waits for the result, or for a question that can be asked only in a result.
    pub(crate) async fn wait(mut self, client: &Client) -> Result<ForwardOutcome, ForwardError> {
        let mut rounds = 0;
        let mut open_questions = tokio::task::JoinSet::new();
        let mut deadline = CallDeadline::new(self.timeout);
        let mut notifier = LossyNotifier::default();
        loop {
            let event = tokio::select! {
                biased;
                () = client.abandoned.cancelled() => {
                    self.count(CallStatus::Cancelled);
                    return Err(ForwardError::cancelled());
                }
                () = deadline.passed() => {
                    self.count(CallStatus::Timeout);
                    let error = UpstreamError::Timeout(self.timeout.as_secs_f64());
                    return Err(ForwardError::from_upstream(&self.upstream, &error));
                }
                Some(message) = self.messages.recv() => match message {
                    ServerMessage::Log(mut line, charge) => {
                        label_log(self.server(), &mut line);
                        let client = client.clone();
                        notifier.notify(async move { client.log(line).await }, charge).await;
                        continue;
                    }
                    ServerMessage::Question(mut question, answer) => {
                        let limits = self.upstream.limits();
                        let (method, params) = (&question.method, question.params.as_mut());
                        let prepared = prepare_question(self.server(), method, params, limits);
                        if let Err(error) = prepared {
                            self.log_rejected_question(&error);
                            let _ = answer.send(Err(question_rejected(&error)));
                            continue;
                        }
                        if self.must_ask_in_result(client, &question) {
                            let paused = PausedRequest { forwarded: self, question, answer };
                            return Ok(ForwardOutcome::InputRequired(Box::new(paused)));
                        }
                        let client = client.clone();
                        open_questions.spawn(async move { client.forward_question(question, answer).await });
                        deadline.pause_for_question(open_questions.len() == 1);
                        continue;
                    }
                },
                Some(_) = open_questions.join_next() => {
                    if open_questions.is_empty() {
                        deadline.resume();
                    }
                    continue;
                }
                event = self.pending.next_event() => event,
            };
            let mut result = match event {
                RequestEvent::Progress((params, charge)) => {
                    if open_questions.is_empty() {
                        deadline.extend_for_progress();
                    }
                    let client = client.clone();
                    notifier.notify(async move { client.progress(params).await }, charge).await;
                    continue;
                }
                RequestEvent::Done(Ok(result)) => {
                    self.active_call.finish();
                    result
                }
                RequestEvent::Done(Err(error)) => {
                    self.active_call.finish();
                    self.count(CallStatus::Error);
                    return Err(ForwardError::from_upstream(&self.upstream, &error));
                }
            };
            if is_input_required(&result)
                && let Err(error) =
                    prepare_input_requests(self.server(), &mut result, self.upstream.limits())
            {
                self.count(CallStatus::Error);
                self.log_rejected_question(&error);
                return Err(ForwardError::Rpc(question_rejected(&error)));
            }
            if client.uses_newer_protocol || !is_input_required(&result) {
                let is_error = result.get("isError") == Some(&Value::Bool(true));
                self.count(if is_error { CallStatus::ToolError } else { CallStatus::Ok });
                return Ok(ForwardOutcome::Result(result));
            }
            rounds += 1;
            if rounds > MAX_INPUT_ROUNDS {
                self.count(CallStatus::Error);
                return Err(ForwardError::Failed(format!(
                    "`{}` asked for input more than {MAX_INPUT_ROUNDS} times",
                    self.upstream.name
                )));
            }
            self.retry_with_input(client, &result).await?;
            deadline.restart();
        }
    }

    /// Whether the question must be asked in the result of the client's request.
    fn must_ask_in_result(&self, client: &Client, question: &RawRequest) -> bool {
        client.uses_newer_protocol && self.operation.can_be_retried() && client.can_answer(question)
    }

    /// Asks a client of the older protocol the questions of a server of the newer protocol, and sends the request again
    /// with the answers.
    async fn retry_with_input(
        &mut self,
        client: &Client,
        result: &Value,
    ) -> Result<(), ForwardError> {
        let answers = client.ask_all(&result["inputRequests"]);
        let responses = tokio::select! {
            responses = answers => responses.map_err(ForwardError::Rpc)?,
            () = client.abandoned.cancelled() => return Err(ForwardError::cancelled()),
            () = tokio::time::sleep(ANSWER_TIMEOUT) => {
                return Err(ForwardError::Failed("the server's question was not answered in time".into()));
            }
        };
        let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
        let inputs = RetryInputs { responses: Some(responses), state };
        let meta = client.meta_for(self.permit.connection.uses_newer_protocol());
        let sent = self.permit.connection.send(self.operation.request(inputs), Some(meta)).await;
        self.pending = sent.map_err(|error| ForwardError::from_upstream(&self.upstream, &error))?;
        self.active_call.set_id(self.pending.id().clone());
        Ok(())
    }

    /// Logs a rejected question. Only the first rejection in each request is logged as a warning, because a server may
    /// ask any number of times.
    fn log_rejected_question(&mut self, error: &QuestionError) {
        if std::mem::replace(&mut self.has_rejected_question, true) {
            tracing::debug!(server = self.server(), "question rejected: {error}");
        } else {
            self.upstream.warn(format_args!("question rejected: {error}"));
        }
    }

    fn count(&mut self, status: CallStatus) {
        if let Some(metric) = self.metric.take() {
            metric.end(status);
        }
    }
}

/// Whether a result asks for input.
fn is_input_required(result: &Value) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// Builds a result that asks a client of the newer protocol a question.
pub(super) fn input_required(question: &RawRequest, state: &str) -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": { QUESTION_KEY: question },
        "requestState": state,
    })
}
