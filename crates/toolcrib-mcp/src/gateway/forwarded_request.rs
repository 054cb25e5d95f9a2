//! One request, carried between one client and one server.
//!
//! The answer passes as it came. On the way, progress goes to the client, cancelling goes to the server,
//! and what the server needs to ask goes to the client in whichever way that client's era has for it:
//!
//! | server | client | how it is asked |
//! |---|---|---|
//! | older | older | the question is passed on, and its answer back |
//! | newer | newer | `input_required` and the retry pass as they are |
//! | newer | older | we ask, and retry with the answers |
//! | older | newer | we answer `input_required` and keep the call; the retry brings the answer |

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

/// Rounds of questions in one request.
const MAX_INPUT_ROUNDS: usize = 8;
/// How many times its limit a call may take that shows progress.
const MAX_TIMEOUT_FACTOR: u32 = 30;
/// How long a client may take to be told of progress or of a line of a log.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a person may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);
/// The key of a question that we turned into `input_required`.
pub(super) const QUESTION_KEY: &str = "question";

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum ForwardError {
    /// The server refused, and its error goes to the client.
    Rpc(ErrorData),
    /// The server cannot be asked, or went away, or took too long: in words.
    UpstreamError(String),
}

/// Operation becomes of a request for now.
pub(crate) enum ForwardOutcome {
    /// The server's answer.
    Result(Value),
    /// The server asks something, and this client can only be asked by way of an answer.
    InputRequired(Box<PausedRequest>),
}

/// A question of a server, and the call it holds up.
pub(crate) struct PausedRequest {
    pub(crate) forwarded: ForwardedRequest,
    pub(crate) question: RawRequest,
    pub(crate) answer: oneshot::Sender<Result<Value, ErrorData>>,
}

/// A request under way.
pub(crate) struct ForwardedRequest {
    upstream: Arc<Upstream>,
    operation: Operation,
    pending: PendingRequest,
    said: mpsc::Receiver<ServerMessage>,
    listed: ActiveCall,
    timeout: Duration,
    metric: Option<metrics::InFlightCall>,
    leave: CallPermit,
    /// Whether a question of its server was refused before.
    has_rejected_question: bool,
    /// The arguments come from the request body, so the body counts for as long as the exchange lasts.
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
            ForwardError::UpstreamError(match why {
                PermitError::ServerDown(why) => format!("`{name}` is not available: {why}"),
                PermitError::QueueFull(why) => why.to_string(),
            })
        };
        let timeout = operation.timeout(&upstream);
        let leave = tokio::select! {
            leave = upstream.acquire_call_permit() => leave.map_err(unavailable)?,
            () = client.abandoned.cancelled() => return Err(ForwardError::UpstreamError("cancelled".into())),
            () = tokio::time::sleep(timeout) => {
                let name = &upstream.name;
                let waited = timeout.as_secs_f64();
                return Err(ForwardError::UpstreamError(format!("`{name}` had no time for this within {waited:.0} s")));
            }
        };
        // Servers of the older era give out no state, so it can only be one of ours, and is not there: to
        // begin again would run twice what was asked for once.
        if inputs.state.is_some() && !leave.connection.is_modern() {
            let problem = "`requestState` is not known: it was used, is too old, or is another's";
            return Err(ForwardError::Rpc(ErrorData::invalid_params(problem, None)));
        }
        // A reload may have taken it out of this client's visible while it waited.
        if !allowed() {
            return Err(ForwardError::UpstreamError(format!(
                "`{}` is not available any more",
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

    /// It waits for its client now: others may have its place among all calls.
    pub(super) fn release_global_permit(&mut self) {
        self.leave.release_shared_permit();
    }

    /// How many calls of its server may wait for their clients: half of those that may be under way.
    pub(super) fn max_pending_inputs(&self) -> usize {
        (self.upstream.max_concurrent_calls() / 2).max(1)
    }

    /// The server it is with.
    pub(super) fn server(&self) -> &str {
        &self.upstream.name
    }

    /// Whether it is this request, made earlier.
    pub(crate) fn is_retry_of(&self, upstream: &Upstream, operation: &Operation) -> bool {
        self.upstream.name == upstream.name && self.operation.has_same_target(operation)
    }

    /// Carries it on until there is an answer, or a question that can only be put as one.
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
                    return Err(ForwardError::UpstreamError("cancelled".into()));
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
                        // The clock stands while a person thinks.
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
                    // A server that shows that it works has not gone silent.
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
                return Err(ForwardError::UpstreamError(format!(
                    "`{}` asks for input again and again",
                    self.upstream.name
                )));
            }
            self.retry_with_input(client, &answer).await?;
            deadline = Instant::now() + self.timeout;
        }
    }

    /// Whether a client is asked by way of an answer to its request.
    fn must_ask_in_result(&self, client: &Client, request: &RawRequest) -> bool {
        client.is_modern && self.operation.can_be_retried() && client.can_answer(request)
    }

    /// Asks a client of the older era what a server of the newer one needs, and asks the server again.
    async fn retry_with_input(
        &mut self,
        client: &Client,
        answer: &Value,
    ) -> Result<(), ForwardError> {
        let asked = client.ask_all(&answer["inputRequests"]);
        let responses = tokio::select! {
            responses = asked => responses.map_err(ForwardError::Rpc)?,
            () = client.abandoned.cancelled() => return Err(ForwardError::UpstreamError("cancelled".into())),
            () = tokio::time::sleep(ANSWER_TIMEOUT) => {
                return Err(ForwardError::UpstreamError("nobody answered what the server asked".into()));
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

    /// Logs a question that was refused. One warning for each exchange: a server may ask without end.
    fn log_rejected_question(&mut self, why: &question::QuestionError) {
        if std::mem::replace(&mut self.has_rejected_question, true) {
            tracing::debug!(server = self.server(), "question refused: {why}");
        } else {
            self.upstream.warn(format_args!("question refused: {why}"));
        }
    }

    fn count(&mut self, outcome: metrics::CallStatus) {
        if let Some(metric) = self.metric.take() {
            metric.end(outcome);
        }
    }
}

/// Sends a client its progress and log messages. A client that does not read them delays nobody: at most one message
/// waits, and later ones are dropped until it is written.
#[derive(Default)]
struct LossyNotifier(Option<BoxFuture<'static, ()>>);

impl LossyNotifier {
    /// Tells it something, and keeps the memory that it takes charged until it is written.
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

/// Whether an answer is a question.
fn is_input_required(answer: &Value) -> bool {
    answer.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// The error for a server whose question was not put to the client.
fn question_rejected(why: &question::QuestionError) -> ErrorData {
    ErrorData::invalid_params(format!("the question was not passed on: {why}"), None)
}

/// A question, as a client of the newer era is asked.
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
            ForwardError::UpstreamError(format!(
                "`{name}` went away before it answered ({why}); whether it did what was asked is not known"
            ))
        }
        UpstreamError::Timeout(_) => {
            upstream.request_health_check();
            ForwardError::UpstreamError(format!("`{name}` gave {failed}; it was told to stop"))
        }
        UpstreamError::Cancelled | UpstreamError::Unexpected(_) => {
            ForwardError::UpstreamError(format!("`{name}`: {failed}"))
        }
    }
}
