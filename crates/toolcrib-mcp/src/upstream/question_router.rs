//! Routes a server's questions to the clients that they are for.

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::SharedState;
use super::active_calls::{ActiveCalls, CallingClient, RawRequest, ServerMessage};
use super::demand::Demand;
use super::server_requests::PendingQuestion;
use crate::config::UnattributedQuestions;

/// What a server has learned about the roots of a client on one connection. A later value includes the earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RootsAnswer {
    /// Nothing, because it has not asked, or was not answered yet.
    #[default]
    None,
    /// It asked, and got an error.
    Refused,
    /// It knows the roots.
    Known,
}

/// The current answer. Clones share it.
pub(crate) type RootsProgress = Arc<watch::Sender<RootsAnswer>>;

#[derive(Debug)]
pub(crate) struct QuestionRouter {
    pub(crate) server: Arc<str>,
    pub(crate) id: u64,
    /// The client whose own process the server is, if clients do not share it.
    pub(crate) owner: Option<u64>,
    /// The unattributed questions of the server so far.
    pub(crate) questions: Arc<Mutex<UnattributedQuestions>>,
    pub(crate) demand: Arc<Demand>,
    pub(crate) roots: RootsProgress,
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

    /// Records that the server asks without saying which call the question belongs to, because not all clients can
    /// share such a server, see [`crate::config::SharePolicy`].
    fn record_question(&self, asks_for_roots: bool) {
        let question =
            if asks_for_roots { UnattributedQuestions::Roots } else { UnattributedQuestions::Any };
        let mut questions = self.questions.lock();
        if *questions < question {
            *questions = question;
            drop(questions);
            self.shared.notify_view_changed();
        }
    }

    async fn ask_client(&self, question: PendingQuestion) -> Result<Value, ErrorData> {
        let PendingQuestion { request, origin, charge, .. } = question;
        let error =
            |reason: &str| ErrorData::new(ErrorCode::INVALID_REQUEST, reason.to_owned(), None);
        let asks_for_roots = request.method == "roots/list";
        if origin.is_none() {
            self.record_question(asks_for_roots);
        }
        // Servers also request roots when no call is in progress. Such a request goes to the only client that uses the
        // server. If the request was first sent through a call, and the call ends before it is answered, the request did
        // not belong to the call. The client is then asked again directly.
        let may_be_outside_calls = asks_for_roots && origin.is_none();
        let only_client = || self.only_client().filter(|_| may_be_outside_calls);
        let answer = match self.active_calls.find(origin.as_ref()).await {
            Ok(client) => {
                let retry = may_be_outside_calls.then(|| request.clone());
                match (send(client, request).await, retry.zip(only_client())) {
                    (None, Some((request, client))) => send(client, request).await,
                    (answer, _) => answer,
                }
            }
            Err(reason) => send(only_client().ok_or_else(|| error(reason))?, request).await,
        };
        // The question stays in memory until the client has answered it, so its memory is released only here.
        drop(charge);
        let answer = answer.unwrap_or_else(|| Err(error("the client has disconnected")));
        if asks_for_roots {
            let answered = if answer.is_ok() { RootsAnswer::Known } else { RootsAnswer::Refused };
            self.roots.send_modify(|before| *before = answered.max(*before));
            // The process may have to be stopped now.
            self.demand.notify();
        }
        answer
    }
}

/// Sends a question to a client and returns its answer. Returns `None` if the call through which the question was sent
/// ends first, or if the client disconnects.
async fn send(client: CallingClient, request: RawRequest) -> Option<Result<Value, ErrorData>> {
    let (answer, answered) = oneshot::channel();
    client.messages.send(ServerMessage::Question(request, answer)).await.ok()?;
    answered.await.ok()
}
