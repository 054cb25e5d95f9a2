//! One request, forwarded from one client to one server.
//!
//! The result is passed on unchanged. Meanwhile, progress is forwarded to the client, cancellation to the server, and
//! the server's questions to the client, in a way that both support:
//!
//! | server | client | how it is asked |
//! |---|---|---|
//! | older | older | the question and its answer are forwarded |
//! | newer | newer | `input_required` and the retry are forwarded unchanged |
//! | newer | older | the gateway asks, and retries with the answers |
//! | older | newer | the gateway returns `input_required` and keeps the call open; the retry brings the answer |

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::model::ErrorData;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::client::{BodyMemory, Client};
use super::operation::{Operation, RetryInputs};
use super::question;
use crate::metrics;
use crate::upstream::{
    ActiveCall, CLIENT_QUEUE, CallPermit, CallingClient, PendingRequest, PermitError, RawRequest,
    RequestEvent, ServerMessage, Upstream, UpstreamError,
};

/// Maximum number of times that a server may ask for input in one request.
const MAX_INPUT_ROUNDS: usize = 8;
/// How many times its timeout a call may take in total, if it reports progress.
const MAX_TIMEOUT_FACTOR: u32 = 30;
/// How long a progress or log message may take to be written to a client before the request goes on without it.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a person may take to answer a question.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);
/// The key of an older server's question in `inputRequests`.
pub(super) const QUESTION_KEY: &str = "question";

/// Why a forwarded request has no result.
#[derive(Debug)]
pub(crate) enum ForwardError {
    /// A JSON-RPC error for the client: the server's own, or the gateway's.
    Rpc(ErrorData),
    /// The server is unavailable, disconnected, or took too long. A text for the model.
    Failed(String),
}

/// What a forwarded request leads to.
pub(crate) enum ForwardOutcome {
    /// The server's result.
    Result(Value),
    /// An older server asks a question, and this client can be asked only in a result.
    InputRequired(Box<PausedRequest>),
}

/// A request that waits for its client to answer a question.
pub(crate) struct PausedRequest {
    pub(crate) forwarded: ForwardedRequest,
    pub(crate) question: RawRequest,
    pub(crate) answer: oneshot::Sender<Result<Value, ErrorData>>,
}

/// A request that was sent to a server.
pub(crate) struct ForwardedRequest {
    upstream: Arc<Upstream>,
    operation: Operation,
    pending: PendingRequest,
    said: mpsc::Receiver<ServerMessage>,
    listed: ActiveCall,
    timeout: Duration,
    metric: Option<metrics::InFlightCall>,
    leave: CallPermit,
    /// Whether a question of its server was already rejected.
    has_rejected_question: bool,
    /// The arguments refer to the request body, so its memory counts until the request ends.
    _body: Option<BodyMemory>,
}

impl ForwardedRequest {
    /// Sends a request to a server on a client's behalf.
    pub(crate) async fn send(
        upstream: Arc<Upstream>,
        operation: Operation,
        client: &Client,
        inputs: RetryInputs,
        allowed: impl Fn() -> bool,
    ) -> Result<Self, ForwardError> {
        let unavailable = |why: PermitError| {
            let name = &upstream.name;
            ForwardError::Failed(match why {
                PermitError::ServerDown(why) => format!("`{name}` is not available: {why}"),
                PermitError::QueueFull(why) => why.to_string(),
            })
        };
        let timeout = operation.timeout(&upstream);
        let leave = tokio::select! {
            leave = upstream.acquire_call_permit() => leave.map_err(unavailable)?,
            () = client.abandoned.cancelled() => return Err(ForwardError::Failed("cancelled".into())),
            () = tokio::time::sleep(timeout) => {
                let name = &upstream.name;
                let waited = timeout.as_secs_f64();
                return Err(ForwardError::Failed(format!("`{name}` was busy with other calls for {waited:.0} s")));
            }
        };
        // Older servers send no `requestState`, so this one is the gateway's, and the call that it names has ended.
        // Sending the request again would execute it twice.
        if inputs.state.is_some() && !leave.connection.is_modern() {
            let problem = "unknown `requestState`: it was already used, has expired, or belongs to another request";
            return Err(ForwardError::Rpc(ErrorData::invalid_params(problem, None)));
        }
        // A config reload may have hidden it from this client while it waited.
        if !allowed() {
            return Err(ForwardError::Failed(format!(
                "`{}` is no longer available",
                upstream.name
            )));
        }
        let metric = matches!(operation, Operation::Tool { .. })
            .then(|| upstream.metrics().call(&upstream.name));
        let (questions, said) = mpsc::channel(CLIENT_QUEUE);
        let caller =
            CallingClient { client: client.id, client_group: client.kin, messages: questions };
        let meta = client.meta_for(leave.connection.is_modern());
        let mut listed = upstream.active_calls.register(caller);
        let pending = match leave.connection.send(operation.request(inputs), Some(meta)).await {
            Ok(pending) => pending,
            Err(failed) => {
                listed.finish();
                return Err(forward_error(&upstream, &failed));
            }
        };
        listed.set_id(pending.id().clone());
        Ok(Self {
            upstream,
            operation,
            pending,
            said,
            listed,
            timeout,
            metric,
            leave,
            has_rejected_question: false,
            _body: client.body.clone(),
        })
    }

    /// Lets another call take its place among the calls of all servers, while it waits for its client.
    pub(super) fn release_global_permit(&mut self) {
        self.leave.release_shared_permit();
    }

    /// How many calls to its server may wait for their clients: half of those that may run concurrently.
    pub(super) fn max_pending_inputs(&self) -> usize {
        (self.upstream.max_concurrent_calls() / 2).max(1)
    }

    /// The name of its server.
    pub(super) fn server(&self) -> &str {
        &self.upstream.name
    }

    /// Whether it was sent for this operation on this server.
    pub(crate) fn is_retry_of(&self, upstream: &Upstream, operation: &Operation) -> bool {
        self.upstream.name == upstream.name && self.operation.has_same_target(operation)
    }

    /// Waits for the result, or for a question that can be asked only in a result.
    pub(crate) async fn wait(mut self, client: &Client) -> Result<ForwardOutcome, ForwardError> {
        let mut rounds = 0;
        let mut open = tokio::task::JoinSet::new();
        let mut deadline = Instant::now() + self.timeout;
        let mut last = Instant::now() + self.timeout * MAX_TIMEOUT_FACTOR;
        let mut asked = Instant::now();
        let mut notifier = LossyNotifier::default();
        loop {
            let step = tokio::select! {
                biased;
                () = client.abandoned.cancelled() => {
                    self.count(metrics::CallStatus::Cancelled);
                    return Err(ForwardError::Failed("cancelled".into()));
                }
                () = tokio::time::sleep_until(deadline) => {
                    self.count(metrics::CallStatus::Timeout);
                    let failed = UpstreamError::Timeout(self.timeout.as_secs_f64());
                    return Err(forward_error(&self.upstream, &failed));
                }
                Some(said) = self.said.recv() => match said {
                    ServerMessage::Log(mut line, charge) => {
                        question::present_log(self.server(), &mut line);
                        let client = client.clone();
                        notifier.notify(async move { client.log(line).await }, charge).await;
                        continue;
                    }
                    ServerMessage::Question(mut request, answer) => {
                        let limits = self.upstream.limits();
                        let (method, params) = (&request.method, request.params.as_mut());
                        if let Err(why) = question::present(self.server(), method, params, limits) {
                            self.log_rejected_question(&why);
                            let _ = answer.send(Err(question_rejected(&why)));
                            continue;
                        }
                        if self.must_ask_in_result(client, &request) {
                            let question = PausedRequest { forwarded: self, question: request, answer };
                            return Ok(ForwardOutcome::InputRequired(Box::new(question)));
                        }
                        let client = client.clone();
                        open.spawn(async move { client.forward_question(request, answer).await });
                        // The call's timeout is paused while a person answers.
                        if open.len() == 1 {
                            asked = Instant::now();
                        }
                        deadline = Instant::now() + ANSWER_TIMEOUT;
                        continue;
                    }
                },
                Some(_) = open.join_next() => {
                    if open.is_empty() {
                        last += asked.elapsed();
                        deadline = Instant::now() + self.timeout;
                    }
                    continue;
                }
                step = self.pending.next_event() => step,
            };
            let mut answer = match step {
                RequestEvent::Progress((params, charge)) => {
                    // Progress shows that the server is still working.
                    if open.is_empty() {
                        deadline = deadline.max(Instant::now() + self.timeout).min(last);
                    }
                    let client = client.clone();
                    notifier.notify(async move { client.progress(params).await }, charge).await;
                    continue;
                }
                RequestEvent::Done(Ok(answer)) => {
                    self.listed.finish();
                    answer
                }
                RequestEvent::Done(Err(failed)) => {
                    self.listed.finish();
                    self.count(metrics::CallStatus::Error);
                    return Err(forward_error(&self.upstream, &failed));
                }
            };
            if is_input_required(&answer)
                && let Err(why) =
                    question::present_all(self.server(), &mut answer, self.upstream.limits())
            {
                self.count(metrics::CallStatus::Error);
                self.log_rejected_question(&why);
                return Err(ForwardError::Rpc(question_rejected(&why)));
            }
            if client.is_modern || !is_input_required(&answer) {
                let failed = answer.get("isError") == Some(&Value::Bool(true));
                self.count(if failed {
                    metrics::CallStatus::ToolError
                } else {
                    metrics::CallStatus::Ok
                });
                return Ok(ForwardOutcome::Result(answer));
            }
            rounds += 1;
            if rounds > MAX_INPUT_ROUNDS {
                self.count(metrics::CallStatus::Error);
                return Err(ForwardError::Failed(format!(
                    "`{}` asked for input more than {MAX_INPUT_ROUNDS} times",
                    self.upstream.name
                )));
            }
            self.retry_with_input(client, &answer).await?;
            deadline = Instant::now() + self.timeout;
        }
    }

    /// Whether the client must be asked in the result of its request.
    fn must_ask_in_result(&self, client: &Client, request: &RawRequest) -> bool {
        client.is_modern && self.operation.can_be_retried() && client.can_answer(request)
    }

    /// Asks an older client the questions of a newer server, and sends the request again with the answers.
    async fn retry_with_input(
        &mut self,
        client: &Client,
        answer: &Value,
    ) -> Result<(), ForwardError> {
        let asked = client.ask_all(&answer["inputRequests"]);
        let responses = tokio::select! {
            responses = asked => responses.map_err(ForwardError::Rpc)?,
            () = client.abandoned.cancelled() => return Err(ForwardError::Failed("cancelled".into())),
            () = tokio::time::sleep(ANSWER_TIMEOUT) => {
                return Err(ForwardError::Failed("the server's question was not answered in time".into()));
            }
        };
        let state = answer.get("requestState").and_then(Value::as_str).map(str::to_owned);
        let inputs = RetryInputs { responses: Some(responses), state };
        let meta = client.meta_for(self.leave.connection.is_modern());
        let sent = self.leave.connection.send(self.operation.request(inputs), Some(meta)).await;
        self.pending = sent.map_err(|failed| forward_error(&self.upstream, &failed))?;
        self.listed.set_id(self.pending.id().clone());
        Ok(())
    }

    /// Logs a rejected question, as a warning only once for each request, because a server may ask any number of
    /// times.
    fn log_rejected_question(&mut self, why: &question::QuestionError) {
        if std::mem::replace(&mut self.has_rejected_question, true) {
            tracing::debug!(server = self.server(), "question rejected: {why}");
        } else {
            self.upstream.warn(format_args!("question rejected: {why}"));
        }
    }

    fn count(&mut self, outcome: metrics::CallStatus) {
        if let Some(metric) = self.metric.take() {
            metric.end(outcome);
        }
    }
}

/// Sends progress and log messages to a client. A client that does not read them delays nobody: at most one message
/// waits, and further ones are dropped until it is written.
#[derive(Default)]
struct LossyNotifier(Option<BoxFuture<'static, ()>>);

impl LossyNotifier {
    /// Sends a message. The memory that it takes stays charged until it is written.
    async fn notify(
        &mut self,
        telling: impl Future<Output = ()> + Send + 'static,
        charge: crate::upstream::MessageCharge,
    ) {
        if self.0.as_mut().is_some_and(|last| last.now_or_never().is_none()) {
            return;
        }
        let mut telling = Box::pin(async move {
            telling.await;
            drop(charge);
        });
        let written = tokio::time::timeout(NOTIFY_TIMEOUT, &mut telling).await;
        self.0 = if written.is_ok() { None } else { Some(telling) };
    }
}

/// Whether a result asks for input.
fn is_input_required(answer: &Value) -> bool {
    answer.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// The error for a question that is not forwarded.
fn question_rejected(why: &question::QuestionError) -> ErrorData {
    ErrorData::invalid_params(format!("the question was not forwarded: {why}"), None)
}

/// A result that asks a newer client a question.
pub(super) fn input_required(request: &RawRequest, state: &str) -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": { QUESTION_KEY: request },
        "requestState": state,
    })
}

fn forward_error(upstream: &Upstream, failed: &UpstreamError) -> ForwardError {
    let name = &upstream.name;
    match failed {
        UpstreamError::Rejected(error) => {
            let shown = question::present_error(name, error.clone(), upstream.limits());
            ForwardError::Rpc(shown.unwrap_or_else(|why| question_rejected(&why)))
        }
        UpstreamError::Closed(why) => {
            upstream.request_health_check();
            ForwardError::Failed(format!(
                "`{name}` disconnected before it answered ({why}); the call may or may not have been executed"
            ))
        }
        UpstreamError::Timeout(_) => {
            upstream.request_health_check();
            ForwardError::Failed(format!("`{name}`: {failed}; the call was cancelled"))
        }
        UpstreamError::Cancelled | UpstreamError::Unexpected(_) => {
            ForwardError::Failed(format!("`{name}`: {failed}"))
        }
    }
}
