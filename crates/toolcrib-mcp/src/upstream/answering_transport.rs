//! A transport that answers the server's requests, so that the SDK sees only responses and notifications.
//!
//! The SDK would start a task for each request of a server and queue the answers without limit. Here each request was
//! accepted by [`super::server_requests`] and holds a permit until its answer is written, so the number of requests is
//! limited. The gateway's own notifications are limited too, because each cancelled call sends one, and they pile up if
//! the server does not read.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use rmcp::model::{
    ClientJsonRpcMessage, ClientResult, CustomResult, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::message_budget::MessageCharge;
use super::question_router::QuestionRouter;
use super::server_requests::{AcceptedRequests, RequestAction, ServerRequest};
use super::tap::Tap;

/// Maximum number of notifications that wait to be written. Further ones are dropped, because a server that does not
/// read would not act on them.
const MAX_NOTIFICATIONS: usize = 1_024;

/// A question with the client's answer. The answer is `None` if the server cancelled the question.
struct AnsweredQuestion {
    id: RequestId,
    answer: Option<Result<Value, ErrorData>>,
    permit: OwnedSemaphorePermit,
}

/// A transport that keeps the server's requests from the SDK.
pub(super) struct AnsweringTransport<T> {
    inner: T,
    tap: Arc<Tap>,
    router: Arc<QuestionRouter>,
    accepted: AcceptedRequests,
    questions: FuturesUnordered<BoxFuture<'static, AnsweredQuestion>>,
    sending: FuturesUnordered<BoxFuture<'static, ()>>,
    notifications: Arc<Semaphore>,
}

impl<T: Transport<RoleClient>> AnsweringTransport<T> {
    pub(super) fn new(
        inner: T,
        tap: Arc<Tap>,
        router: QuestionRouter,
        accepted: AcceptedRequests,
    ) -> Self {
        Self {
            inner,
            tap,
            router: Arc::new(router),
            accepted,
            questions: FuturesUnordered::new(),
            sending: FuturesUnordered::new(),
            notifications: Arc::new(Semaphore::new(MAX_NOTIFICATIONS)),
        }
    }

    fn accept(&mut self, request: ServerRequest) {
        let ServerRequest { id, action, permit } = request;
        match action {
            RequestAction::Answer(answer) => self.send_answer(id, answer, permit, None),
            RequestAction::AskClient(question) => {
                let router = Arc::clone(&self.router);
                self.questions.push(Box::pin(async move {
                    AnsweredQuestion { id, answer: router.ask(question).await, permit }
                }));
            }
        }
    }

    fn finish_question(&mut self, question: AnsweredQuestion) {
        let AnsweredQuestion { id, answer, permit } = question;
        self.tap.question_answered(&id);
        let Some(answer) = answer else { return };
        let charge = self.tap.charge(answer.as_ref().unwrap_or(&Value::Null));
        let answer = match (&charge, answer) {
            (None, Ok(_)) => {
                Err(ErrorData::internal_error("the answer is larger than the limit", None))
            }
            (_, answer) => answer,
        };
        self.send_answer(id, answer, permit, charge);
    }

    fn send_answer(
        &mut self,
        id: RequestId,
        answer: Result<Value, ErrorData>,
        permit: OwnedSemaphorePermit,
        charge: Option<MessageCharge>,
    ) {
        let message = match answer {
            Ok(value) => {
                let result = ClientResult::CustomResult(CustomResult(value));
                ClientJsonRpcMessage::response(result, id)
            }
            Err(error) => ClientJsonRpcMessage::error(error, Some(id)),
        };
        let sent = self.inner.send(message);
        self.sending.push(Box::pin(async move {
            // The error can be ignored, because a failed write also ends the connection, which reports the error.
            let _ = sent.await;
            drop((permit, charge));
        }));
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for AnsweringTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let is_notification = matches!(message, JsonRpcMessage::Notification(_));
        let permit = Arc::clone(&self.notifications).try_acquire_owned();
        // `send` is called even if the notification is dropped, because over HTTP this call is what cancels the
        // request.
        let sent = self.inner.send(message);
        async move {
            match (is_notification, permit) {
                (true, Err(_)) => Ok(()),
                (true, Ok(_permit)) => sent.await,
                (false, permit) => {
                    drop(permit);
                    sent.await
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            tokio::select! {
                biased;
                () = self.tap.closed() => return None,
                Some(request) = self.accepted.recv() => self.accept(request),
                Some(question) = self.questions.next(), if !self.questions.is_empty() => {
                    self.finish_question(question);
                },
                Some(()) = self.sending.next(), if !self.sending.is_empty() => {}
                message = self.inner.receive() => return message,
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.questions.clear();
        self.sending.clear();
        self.inner.close().await
    }
}
