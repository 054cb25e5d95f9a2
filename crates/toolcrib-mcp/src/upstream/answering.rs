//! A transport that answers what the server asks, so that the SDK sees answers and notifications only.
//!
//! The SDK would start a task for each request of a server and queue the answers without limit. What arrives here was
//! let in by [`super::server_requests`] and holds a permit until its answer is written, so there is never more of it
//! than the limits allow. Our own notifications are limited too: each call that is given up sends one, and a server
//! that does not read lets them pile up.

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

use super::budget::Charge;
use super::client::Asker;
use super::server_requests::{Accepted, Kind, ServerRequest};
use super::tap::Tap;

/// Notifications that may wait to be written. More are dropped: a server that does not read them would not act on
/// them either.
const NOTIFICATIONS: usize = 1_024;

/// A question that was asked: the answer, unless the server took the question back.
struct Asked {
    id: RequestId,
    answer: Option<Result<Value, ErrorData>>,
    permit: OwnedSemaphorePermit,
}

/// A transport with the server's requests taken out.
pub(super) struct Answering<T> {
    inner: T,
    tap: Arc<Tap>,
    asker: Arc<Asker>,
    accepted: Accepted,
    asking: FuturesUnordered<BoxFuture<'static, Asked>>,
    sending: FuturesUnordered<BoxFuture<'static, ()>>,
    notifications: Arc<Semaphore>,
}

impl<T: Transport<RoleClient>> Answering<T> {
    pub(super) fn new(inner: T, tap: Arc<Tap>, asker: Asker, accepted: Accepted) -> Self {
        Self {
            inner,
            tap,
            asker: Arc::new(asker),
            accepted,
            asking: FuturesUnordered::new(),
            sending: FuturesUnordered::new(),
            notifications: Arc::new(Semaphore::new(NOTIFICATIONS)),
        }
    }

    fn accept(&mut self, request: ServerRequest) {
        let ServerRequest { id, kind, permit } = request;
        match kind {
            Kind::Answered(answer) => self.answer(id, answer, permit, None),
            Kind::Question(question) => {
                let asker = Arc::clone(&self.asker);
                self.asking.push(Box::pin(async move {
                    Asked { id, answer: asker.ask(question).await, permit }
                }));
            }
        }
    }

    fn asked(&mut self, asked: Asked) {
        let Asked { id, answer, permit } = asked;
        self.tap.answered(&id);
        let Some(answer) = answer else { return };
        let charge = self.tap.charge(answer.as_ref().unwrap_or(&Value::Null));
        let answer = match (&charge, answer) {
            (None, Ok(_)) => {
                Err(ErrorData::internal_error("the answer is larger than the limit", None))
            }
            (_, answer) => answer,
        };
        self.answer(id, answer, permit, charge);
    }

    fn answer(
        &mut self,
        id: RequestId,
        answer: Result<Value, ErrorData>,
        permit: OwnedSemaphorePermit,
        charge: Option<Charge>,
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
            // A server that cannot be written to is found out by its connection.
            let _ = sent.await;
            drop((permit, charge));
        }));
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Answering<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let notifies = matches!(message, JsonRpcMessage::Notification(_));
        let permit = Arc::clone(&self.notifications).try_acquire_owned();
        // Also when it is not waited for: that alone cancels the request it is about, over HTTP.
        let sent = self.inner.send(message);
        async move {
            match (notifies, permit) {
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
                Some(asked) = self.asking.next(), if !self.asking.is_empty() => self.asked(asked),
                Some(()) = self.sending.next(), if !self.sending.is_empty() => {}
                message = self.inner.receive() => return message,
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.asking.clear();
        self.sending.clear();
        self.inner.close().await
    }
}
