//! Routes a server's questions to the clients that they are for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;
use tokio::sync::oneshot;

use super::SharedState;
use super::active_calls::{ActiveCalls, CallingClient, ServerMessage};
use super::server_requests::PendingQuestion;

#[derive(Debug)]
pub(crate) struct QuestionRouter {
    pub(crate) server: Arc<str>,
    pub(crate) id: u64,
    /// The client whose own process the server is, if clients do not share it.
    pub(crate) owner: Option<u64>,
    /// Set when the server asks without saying which call the question belongs to.
    pub(crate) has_asked: Arc<AtomicBool>,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) active_calls: Arc<ActiveCalls>,
}

impl QuestionRouter {
    /// Asks a client and returns its answer. Returns `None` if the server cancelled the question.
    pub(super) async fn ask(&self, question: PendingQuestion) -> Option<Result<Value, ErrorData>> {
        let cancelled = question.cancelled.clone();
        tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            answer = self.ask_client(question) => Some(answer),
        }
    }

    /// Returns the only client that uses the server, if there is exactly one.
    fn only_client(&self) -> Option<CallingClient> {
        match self.owner {
            Some(owner) => self.shared.clients.client(owner),
            None => self.shared.clients.only_client_of(self.id, &self.server),
        }
    }

    /// Records that the server asks without saying which call the question belongs to. Such a server cannot be shared,
    /// see [`crate::config::SharePolicy`].
    fn record_question(&self) {
        if !self.has_asked.swap(true, Ordering::Relaxed) {
            self.shared.notify_view_changed();
        }
    }

    async fn ask_client(&self, question: PendingQuestion) -> Result<Value, ErrorData> {
        let PendingQuestion { request, origin, charge, .. } = question;
        let error =
            |reason: &str| ErrorData::new(ErrorCode::INVALID_REQUEST, reason.to_owned(), None);
        if origin.is_none() {
            self.record_question();
        }
        let client = match self.active_calls.find(origin.as_ref()).await {
            Ok(client) => client,
            // Servers also request roots outside of calls. Such a request goes to the only client that uses the
            // server.
            Err(reason) => {
                let outside_of_calls = request.method == "roots/list" && origin.is_none();
                let only = self.only_client().filter(|_| outside_of_calls);
                only.ok_or_else(|| error(reason))?
            }
        };
        let (answer, answered) = oneshot::channel();
        let sent = client.messages.send(ServerMessage::Question(request, answer)).await;
        sent.map_err(|_| error("the client has disconnected"))?;
        let answer = answered.await.map_err(|_| error("the client has disconnected"))?;
        // The question stays in memory until the client has answered it, so its memory is released only here.
        drop(charge);
        answer
    }
}
