//! Waits for a server's answer to a call, and meanwhile passes on its progress, its log messages and its questions.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::call_deadline::CallDeadline;
use super::client::{AnswerSender, Client};
use super::forward_error::{ForwardError, question_rejected};
use super::forwarded_request::ForwardedRequest;
use super::lossy_notifier::LossyNotifier;
use super::question::{label_log, prepare_question};
use crate::metrics::CallStatus;
use crate::upstream::{PendingRequest, RawRequest, RequestEvent, ServerMessage, UpstreamError};

/// The state of a wait for a call, which may need several requests.
pub(super) struct CallWait {
    pub(super) deadline: CallDeadline,
    /// The number of times that the server has asked for input in a result.
    pub(super) input_rounds: usize,
    open_questions: JoinSet<()>,
    notifier: LossyNotifier,
    /// The last progress that was sent to the client. Progress must increase.
    last_progress: f64,
}

/// What ends a wait.
pub(super) enum WaitEvent {
    /// The server has answered the request.
    Answered(Result<Value, UpstreamError>),
    /// The server asks a question that this client can be asked only in a result.
    Question(RawRequest, AnswerSender),
    /// It is time to request the state of the task that the call waits for.
    PollDue,
}

impl CallWait {
    pub(super) fn new(timeout: std::time::Duration) -> Self {
        Self {
            deadline: CallDeadline::new(timeout),
            input_rounds: 0,
            open_questions: JoinSet::new(),
            notifier: LossyNotifier::default(),
            last_progress: 0.0,
        }
    }

    /// Tells the client that a task is still running. This is the gateway's own progress: the number of polls, in
    /// addition to what the server has reported.
    pub(super) async fn report_poll(&mut self, client: &Client, message: Option<String>) {
        self.last_progress = self.last_progress.floor() + 1.0;
        let mut params = json!({"progress": self.last_progress});
        if let Some(message) = message {
            params["message"] = message.into();
        }
        let client = client.clone();
        self.notifier.notify(async move { client.progress(params).await }, None).await;
    }
}

/// Waits for progress of the call, or for the answer to the current request, if there is one. While the call waits for a
/// task, `call` is the call itself: the server still reports the progress of the task under the call's token.
async fn next_request_event(
    current: &mut PendingRequest,
    call: Option<&mut PendingRequest>,
    awaits_answer: bool,
) -> RequestEvent {
    let of_call = async {
        match call {
            Some(call) => call.next_progress().await,
            None => std::future::pending().await,
        }
    };
    let of_current = async {
        if awaits_answer {
            current.next_event().await
        } else {
            RequestEvent::Progress(current.next_progress().await)
        }
    };
    tokio::select! {
        biased;
        progress = of_call => RequestEvent::Progress(progress),
        event = of_current => event,
    }
}

impl ForwardedRequest {
    /// Waits for the server's answer, or until the state of the call's task must be requested.
    pub(super) async fn next_event(
        &mut self,
        client: &Client,
        wait: &mut CallWait,
    ) -> Result<WaitEvent, ForwardError> {
        let poll_at = self.polled_task.as_ref().and_then(super::tasks::PolledTask::poll_at);
        let poll_due = async {
            match poll_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let mut poll_due = std::pin::pin!(poll_due);
        loop {
            let connection = &self.permit.connection;
            let awaits_answer = poll_at.is_none();
            let event = tokio::select! {
                biased;
                () = client.abandoned.cancelled() => {
                    self.count(CallStatus::Cancelled);
                    return Err(ForwardError::cancelled());
                }
                () = wait.deadline.passed() => {
                    self.count(CallStatus::Timeout);
                    let error = UpstreamError::Timeout(self.timeout.as_secs_f64());
                    return Err(ForwardError::from_upstream(&self.upstream, &error));
                }
                Some(message) = self.messages.recv() => match message {
                    ServerMessage::Log(mut line, charge) => {
                        label_log(self.server(), &mut line);
                        let client = client.clone();
                        let sent = async move { client.log(line).await };
                        wait.notifier.notify(sent, Some(charge)).await;
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
                            return Ok(WaitEvent::Question(question, answer));
                        }
                        let client = client.clone();
                        wait.open_questions.spawn(async move { client.forward_question(question, answer).await });
                        wait.deadline.pause_for_question(wait.open_questions.len() == 1);
                        continue;
                    }
                },
                Some(_) = wait.open_questions.join_next() => {
                    if wait.open_questions.is_empty() {
                        wait.deadline.resume();
                    }
                    continue;
                }
                () = &mut poll_due => return Ok(WaitEvent::PollDue),
                error = connection.closed(), if !awaits_answer => {
                    return Ok(WaitEvent::Answered(Err(error)));
                }
                event = next_request_event(&mut self.pending, self.call.as_deref_mut(), awaits_answer) => event,
            };
            match event {
                RequestEvent::Progress((params, charge)) => {
                    if wait.open_questions.is_empty() {
                        wait.deadline.extend_for_progress();
                    }
                    let progress = params.get("progress").and_then(Value::as_f64);
                    wait.last_progress = progress.unwrap_or(wait.last_progress);
                    let client = client.clone();
                    let sent = async move { client.progress(params).await };
                    wait.notifier.notify(sent, Some(charge)).await;
                }
                RequestEvent::Done(answer) => {
                    if self.polled_task.is_none() {
                        self.active_call.finish();
                    }
                    return Ok(WaitEvent::Answered(answer));
                }
            }
        }
    }
}
