//! Our side of a connection to a server: how we introduce ourselves, and how its questions reach a client.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, Implementation, ProtocolVersion, RootsCapabilities,
    SamplingCapability, ServerNotification, ServerRequest, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient, Service};
use serde_json::Value;
use tokio::sync::oneshot;

use super::callers::{Callers, Said};
use super::server_requests::Question;
use super::sessions::Sessions;

/// Puts the questions of one server to the clients they are for.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) server: Arc<str>,
    pub(crate) callers: Arc<Callers>,
    pub(crate) sessions: Arc<Sessions>,
}

impl Asker {
    /// The client's answer; `None` if the server took the question back.
    pub(super) async fn ask(&self, question: Question) -> Option<Result<Value, ErrorData>> {
        let cancelled = question.cancelled.clone();
        tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            answer = self.put(question) => Some(answer),
        }
    }

    async fn put(&self, question: Question) -> Result<Value, ErrorData> {
        let Question { asked, origin, charge, .. } = question;
        let nobody = |why: &str| ErrorData::new(ErrorCode::INVALID_REQUEST, why.to_owned(), None);
        let caller = match self.callers.find(origin.as_ref()).await {
            Ok(caller) => caller,
            // Roots are asked for outside of calls too.
            Err(why) => {
                let alone = asked.method == "roots/list" && origin.is_none();
                let sole = self.sessions.sole(&self.server).filter(|_| alone);
                sole.ok_or_else(|| nobody(why))?
            }
        };
        let (answer, answered) = oneshot::channel();
        let sent = caller.questions.send(Said::Question(asked, answer)).await;
        sent.map_err(|_| nobody("the client is gone"))?;
        let answer = answered.await.map_err(|_| nobody("the client is gone"))?;
        // Until now the client's side held the question.
        drop(charge);
        answer
    }
}

/// What the SDK hands to us: nothing of interest. Requests are answered by [`super::answering`], and notifications are
/// seen by the tap.
#[derive(Debug)]
pub(crate) struct OurSide;

/// How we introduce ourselves: able to do all that a client behind us may be able to do. Servers offer
/// some tools only to clients that can be asked, and a connection is made before its clients are known.
pub(crate) fn introduction() -> ClientConfig {
    let mut elicitation = ElicitationCapability::default();
    elicitation.form = Some(FormElicitationCapability::default());
    elicitation.url = Some(UrlElicitationCapability::default());
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = Some(elicitation);
    capabilities.sampling = Some(SamplingCapability::default());
    let mut roots = RootsCapabilities::default();
    roots.list_changed = Some(true);
    capabilities.roots = Some(roots);
    ClientConfig::new(capabilities, ourselves())
        .with_protocol_version(ProtocolVersion::V_2025_11_25)
}

/// Our name, to servers and to clients.
pub(crate) fn ourselves() -> Implementation {
    Implementation::new("toolcrib", env!("CARGO_PKG_VERSION")).with_title("Toolcrib")
}

impl Service<RoleClient> for OurSide {
    async fn handle_request(
        &self,
        _request: ServerRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "unknown method", None))
    }

    async fn handle_notification(
        &self,
        _notification: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        introduction()
    }
}
