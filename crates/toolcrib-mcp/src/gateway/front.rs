//! The face that one client sees: the SDK's server, with our answers.
//!
//! The SDK does handshakes, versions and subscriptions. What comes from servers is answered without its
//! types over stdio, and past them over HTTP (see [`super::cargo`]).

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rmcp::model::{
    ClientRequest, ErrorData, Implementation, InputRequiredResult, LoggingLevel, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client::{Client, Left};
use super::result::{Keep, finish};
use super::session_list::SessionList;
use super::watches::Watches;
use super::{Gateway, Sight};
use crate::arguments::Arguments;
use crate::metrics;
use crate::shelf::{Protocol, Stamps};

/// Clients that search tools themselves and would do it twice.
const SEARCH_THEMSELVES: [&str; 2] = ["claude-code", "codex-mcp-client"];

/// Whether a client is one of them.
pub(super) fn searches_itself(client: &Implementation) -> bool {
    SEARCH_THEMSELVES.contains(&&*client.name)
}

/// The face that one client sees.
#[derive(Clone)]
pub(crate) struct Front {
    pub(super) face: Arc<Face>,
}

pub(super) struct Face {
    pub(super) gateway: Arc<Gateway>,
    pub(super) id: u64,
    pub(super) profile: Option<String>,
    pub(super) watches: Arc<Watches>,
    pub(super) log_level: Mutex<Option<LoggingLevel>>,
    pub(super) list: Arc<SessionList>,
    /// Of the lists when it connected.
    pub(super) stamps: Option<Stamps>,
    /// Counted while it is connected.
    pub(super) session: OnceLock<metrics::Session>,
    pub(super) gone: CancellationToken,
    _gone: DropGuard,
    pub(super) left: Left,
}

impl Front {
    pub(super) fn new(gateway: Arc<Gateway>, id: u64, profile: Option<String>, left: Left) -> Self {
        let gone = CancellationToken::new();
        let watches = Arc::new(Watches::new(Arc::clone(&gateway)));
        let stamps = gateway.stamps(profile.as_deref(), Protocol::Session);
        let face = Face {
            gateway,
            stamps,
            id,
            profile,
            watches,
            log_level: Mutex::default(),
            list: Arc::default(),
            session: OnceLock::new(),
            _gone: gone.clone().drop_guard(),
            gone,
            left,
        };
        Self { face: Arc::new(face) }
    }

    pub(super) fn client(&self, context: &RequestContext<RoleServer>) -> Client {
        let level = *self.face.log_level.lock().unwrap_or_else(PoisonError::into_inner);
        Client::of(self.face.id, context, level, &self.face.left, self.profile())
    }

    pub(super) fn profile(&self) -> Option<&str> {
        self.face.profile.as_deref()
    }

    async fn tools(
        &self,
        client: &Client,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let gateway = &self.face.gateway;
        // A request of the newer protocol has no session, so each of them may be a client's first. Each server
        // is waited for once only, however many requests there are.
        if client.modern || !self.face.list.is_sent() {
            gateway.await_first_answers(client, self.profile()).await;
        }
        let see = || gateway.sight_in(self.profile(), client.protocol());
        // On the newer wire a list may not depend on who is connected.
        if client.modern {
            let view = see()?.view;
            gateway.hub().metrics().saved(view.saved as u64);
            return Ok(view.list.clone());
        }
        let searches = context.client_info().is_some_and(|client| searches_itself(&client));
        let (Sight { view, .. }, list) = self.face.list.send(searches, see)?;
        if !view.is_full_for(searches) {
            gateway.hub().metrics().saved(view.saved as u64);
        }
        Ok(list)
    }

    /// Notes the tools that a session found, and notifies it if that changed its list.
    async fn add_found(
        &self,
        names: &[String],
        client: &Client,
        context: &RequestContext<RoleServer>,
    ) {
        let gateway = &self.face.gateway;
        let Ok(Sight { view, .. }) = gateway.sight(self.profile()) else { return };
        let adds = !client.modern && view.adds_found(gateway.hub().config().gateway.add_found);
        if adds && self.face.list.add(&view, names) {
            let _ = context.peer.notify_tool_list_changed().await;
        }
    }

    /// Answers what is about tools, prompts and resources.
    pub(super) async fn answer(
        &self,
        request: ClientRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        check(context)?;
        let client = self.client(context);
        let (gateway, profile) = (&self.face.gateway, self.profile());
        let (result, keep) = match request {
            ClientRequest::ListToolsRequest(_) => (self.tools(&client, context).await?, Keep::List),
            ClientRequest::CallToolRequest(request) => {
                let params = request.params;
                let arguments =
                    Arguments::of_request(&context.extensions, params.arguments.as_ref());
                let called = gateway.call_tool(params, arguments, &client, profile).await?;
                self.add_found(&called.found, &client, context).await;
                (called.result, Keep::No)
            }
            ClientRequest::ListPromptsRequest(_) => (gateway.list_prompts(profile)?, Keep::List),
            ClientRequest::GetPromptRequest(request) => {
                (gateway.get_prompt(request.params, &client, profile).await?, Keep::No)
            }
            ClientRequest::ListResourcesRequest(_) => {
                (gateway.list_resources(profile)?, Keep::List)
            }
            ClientRequest::ListResourceTemplatesRequest(_) => {
                (gateway.list_templates(profile)?, Keep::List)
            }
            ClientRequest::ReadResourceRequest(request) => {
                (gateway.read_resource(request.params, &client, profile).await?, Keep::Read)
            }
            ClientRequest::CompleteRequest(request) => {
                (gateway.complete(request.params, &client, profile).await?, Keep::No)
            }
            other => {
                return Err(ErrorData::internal_error(
                    format!("`{}` came here", other.method()),
                    None,
                ));
            }
        };
        Ok(finish(result, client.modern, keep))
    }

    /// The same in the SDK's type, for HTTP.
    pub(super) async fn typed<T>(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
        list: &str,
    ) -> Result<T, ErrorData>
    where
        T: DeserializeOwned + Serialize,
    {
        self.load(self.answer(request, &context).await?, list)
    }

    /// The same, of what a server may answer with a question.
    pub(super) async fn answered<T, R>(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
        list: &str,
    ) -> Result<R, ErrorData>
    where
        T: DeserializeOwned + Serialize,
        R: From<T> + From<InputRequiredResult>,
    {
        let answer = self.answer(request, &context).await?;
        // A question in a form that the SDK does not know passes as the other kind does: marked.
        if answer.get("resultType").is_some_and(|kind| kind == "input_required")
            && let Ok(asks) = self.load::<InputRequiredResult>(answer.clone(), "inputRequests")
        {
            return Ok(asks.into());
        }
        self.load::<T>(answer, list).map(R::from)
    }

    fn load<T>(&self, answer: Value, list: &str) -> Result<T, ErrorData>
    where
        T: DeserializeOwned + Serialize,
    {
        let unfit =
            || ErrorData::internal_error("the server's answer has no form that MCP knows", None);
        self.face.gateway.cargo.load(answer, list).ok_or_else(unfit)
    }
}

/// Whether a request says what its era wants it to say. The SDK sees to that for what it answers itself.
fn check(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let supported = ProtocolVersion::KNOWN_VERSIONS;
    let Some(version) = context.meta.protocol_version() else {
        // Without a handshake every request must bring its own.
        return match context.peer.peer_info() {
            Some(_) => Ok(()),
            None => Err(incomplete(context)),
        };
    };
    if !supported.contains(&version) {
        return Err(ErrorData::unsupported_protocol_version(version, supported));
    }
    let newer = !version.has_initialize();
    if newer && !context.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty() {
        return Err(incomplete(context));
    }
    Ok(())
}

fn incomplete(context: &RequestContext<RoleServer>) -> ErrorData {
    let missing = context.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).join(", ");
    ErrorData::invalid_params(format!("`_meta` is missing or malformed: {missing}"), None)
}
