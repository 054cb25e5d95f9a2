//! Our side of a connection to a server: what it may ask us, and what it tells us.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, CustomResult, ElicitationCapability, ErrorCode,
    ErrorData, FormElicitationCapability, Implementation, ProtocolVersion, RequestId,
    RootsCapabilities, SamplingCapability, ServerNotification, ServerRequest,
    UrlElicitationCapability,
};
use rmcp::service::{
    InboundStreamOrigin, NotificationContext, RequestContext, RoleClient, Service,
};
use tokio::sync::{mpsc, oneshot};

use super::callers::{Asked, Callers, Said};
use super::sessions::Sessions;

/// What a server may ask of us and tell us.
#[derive(Debug)]
pub(crate) struct OurSide {
    pub(crate) server: Arc<str>,
    pub(crate) callers: Arc<Callers>,
    pub(crate) sessions: Arc<Sessions>,
    /// Where the uris of changed resources go.
    pub(crate) updated: mpsc::Sender<String>,
}

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
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        if matches!(request, ServerRequest::PingRequest(_)) {
            return Ok(ClientResult::empty(()));
        }
        let call = origin(&context);
        let nobody = |why: &str| ErrorData::new(ErrorCode::INVALID_REQUEST, why.to_owned(), None);
        let asked = Asked::of(&request).ok_or_else(|| nobody("the question cannot be read"))?;
        let caller = match self.callers.find(call.as_ref()).await {
            Ok(caller) => caller,
            // Roots are asked for outside of calls too.
            Err(why) => {
                let alone = asked.method == "roots/list" && call.is_none();
                let sole = self.sessions.sole(&self.server).filter(|_| alone);
                sole.ok_or_else(|| nobody(why))?
            }
        };
        let (answer, answered) = oneshot::channel();
        let gone = |_| nobody("the client is gone");
        caller
            .questions
            .send(Said::Question(asked, answer))
            .await
            .map_err(|_| nobody("the client is gone"))?;
        tokio::select! {
            answer = answered => answer.map_err(gone)?.map(|value| ClientResult::CustomResult(CustomResult(value))),
            () = context.ct.cancelled() => Err(nobody("cancelled")),
        }
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        // Progress, changes of lists and log lines are seen by the tap.
        if let ServerNotification::ResourceUpdatedNotification(updated) = notification {
            // A full queue holds news enough.
            let _ = self.updated.try_send(updated.params.uri);
        }
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        introduction()
    }
}

fn origin(context: &RequestContext<RoleClient>) -> Option<RequestId> {
    match context.extensions.get::<InboundStreamOrigin>() {
        Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id.clone()),
        _ => None,
    }
}
