//! Routes a server's questions to the clients that they are for.

use std::sync::Arc;

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;
use tokio::sync::oneshot;

use super::active_calls::{ActiveCalls, ServerMessage};
use super::connected_clients::ConnectedClients;
use super::server_requests::PendingQuestion;

#[derive(Debug)]
pub(crate) struct QuestionRouter {
    pub(crate) server: Arc<str>,
    pub(crate) active_calls: Arc<ActiveCalls>,
    pub(crate) clients: Arc<ConnectedClients>,
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

    async fn ask_client(&self, question: PendingQuestion) -> Result<Value, ErrorData> {
        let PendingQuestion { request, origin, charge, .. } = question;
        let error =
            |reason: &str| ErrorData::new(ErrorCode::INVALID_REQUEST, reason.to_owned(), None);
        let client = match self.active_calls.find(origin.as_ref()).await {
            Ok(client) => client,
            // Servers also request roots outside of calls. Such a request goes to the only client that can see the
            // server.
            Err(reason) => {
                let outside_of_calls = request.method == "roots/list" && origin.is_none();
                let only = self.clients.only_client_of(&self.server).filter(|_| outside_of_calls);
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
