//! The gateway as a client of a server: what it announces in the handshake, and the service that the SDK requires.

use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, Implementation, ProtocolVersion, RootsCapabilities,
    SamplingCapability, ServerNotification, ServerRequest, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient, Service};
use serde_json::json;

/// The service that the SDK calls for a server's messages. No message should arrive here, because
/// [`super::answering_transport`] answers requests, and the tap handles notifications.
#[derive(Debug)]
pub(crate) struct ClientService;

/// The extension for user interfaces of tools (MCP Apps).
pub(crate) const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The type of the user interfaces that a host must be able to show.
const APP_MIME_TYPE: &str = "text/html;profile=mcp-app";

/// Returns what the gateway announces to servers: every capability that one of its clients may have. Servers offer some
/// tools only to clients with certain capabilities, and a connection is made before its clients are known.
fn client_config() -> ClientConfig {
    let mut elicitation = ElicitationCapability::default();
    elicitation.form = Some(FormElicitationCapability::default());
    elicitation.url = Some(UrlElicitationCapability::default());
    let mut capabilities = ClientCapabilities::builder().enable_tasks().build();
    capabilities.elicitation = Some(elicitation);
    capabilities.sampling = Some(SamplingCapability::default());
    let mut roots = RootsCapabilities::default();
    roots.list_changed = Some(true);
    capabilities.roots = Some(roots);
    let settings = json!({"mimeTypes": [APP_MIME_TYPE]});
    let settings = settings.as_object().cloned().unwrap_or_default();
    capabilities.extensions = Some([(APPS_EXTENSION.to_owned(), settings)].into());
    ClientConfig::new(capabilities, own_implementation())
        .with_protocol_version(ProtocolVersion::V_2025_11_25)
}

/// Returns the name and version of Toolcrib, for servers and clients.
pub(crate) fn own_implementation() -> Implementation {
    Implementation::new("toolcrib", env!("CARGO_PKG_VERSION")).with_title("Toolcrib")
}

impl Service<RoleClient> for ClientService {
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
        client_config()
    }
}
