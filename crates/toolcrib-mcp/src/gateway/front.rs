//! The face that one client sees: the SDK's server, with our answers.
//!
//! The SDK does handshakes, versions and subscriptions. What comes from servers is answered without its
//! types over stdio, and past them over HTTP (see [`super::cargo`]).

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientNotification, ClientRequest,
    CompleteRequestParams, CompleteResult, CustomResult, ErrorData, Extensions,
    GetPromptRequestParams, GetPromptResponse, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    Request, RequestOptionalParam, ServerCapabilities, ServerConfig, ServerResult, SetLevelRequest,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{
    NotificationContext, RequestContext, RoleServer, Service, SubscriptionContext,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client::Client;
use super::news::{self, Watches};
use super::result::{Keep, finish};
use super::{Gateway, Sight};
use crate::upstream::{Failed, ourselves};

/// Tools that are added to one client's list at most.
const ADDED: usize = 64;
/// Clients that search tools themselves and would do it twice.
const SEARCH_THEMSELVES: [&str; 2] = ["claude-code", "codex-mcp-client"];

/// The face that one client sees.
#[derive(Clone)]
pub(crate) struct Front {
    face: Arc<Face>,
}

struct Face {
    gateway: Arc<Gateway>,
    id: u64,
    profile: Option<String>,
    watches: Arc<Watches>,
    log_level: Mutex<Option<LoggingLevel>>,
    /// Tools this client has found, where they are added to its list.
    found: Mutex<Vec<String>>,
    gone: CancellationToken,
    _gone: DropGuard,
}

impl Front {
    pub(super) fn new(gateway: Arc<Gateway>, id: u64, profile: Option<String>) -> Self {
        let gone = CancellationToken::new();
        let watches = Arc::new(Watches::new(Arc::clone(&gateway)));
        let face = Face {
            gateway,
            id,
            profile,
            watches,
            log_level: Mutex::default(),
            found: Mutex::default(),
            _gone: gone.clone().drop_guard(),
            gone,
        };
        Self { face: Arc::new(face) }
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> Client {
        let level = *self.face.log_level.lock().unwrap_or_else(PoisonError::into_inner);
        Client::of(self.face.id, context, level)
    }

    fn profile(&self) -> Option<&str> {
        self.face.profile.as_deref()
    }

    fn tools(
        &self,
        client: &Client,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let gateway = &self.face.gateway;
        let Sight { shelf, view } = gateway.sight(self.profile())?;
        let config = gateway.hub().config();
        // On the newer wire a list may not depend on who is connected.
        let whole = !client.modern
            && config.gateway.defer_to_clients
            && context.client_info().is_some_and(|who| SEARCH_THEMSELVES.contains(&&*who.name));
        if whole {
            return Ok(view.full(shelf.crib.catalog()));
        }
        gateway.hub().metrics().saved(view.saved as u64);
        let mut list = view.list.clone();
        if let Some(tools) = list.get_mut("tools").and_then(Value::as_array_mut) {
            let found = self.face.found.lock().unwrap_or_else(PoisonError::into_inner);
            let catalog = shelf.crib.catalog();
            let added = found.iter().filter(|name| view.direct(name).is_none());
            let added =
                added.filter_map(|name| catalog.find(name)).filter(|id| view.scope.contains(*id));
            tools.extend(
                added.filter_map(|id| {
                    serde_json::from_str(&catalog.tool(id).definition_here()).ok()
                }),
            );
        }
        Ok(list)
    }

    /// Adds tools that were found to this client's list, where that is wanted.
    async fn add_found(
        &self,
        names: Vec<String>,
        client: &Client,
        context: &RequestContext<RoleServer>,
    ) {
        if client.modern || !self.face.gateway.hub().config().gateway.add_found {
            return;
        }
        let added = {
            let mut found = self.face.found.lock().unwrap_or_else(PoisonError::into_inner);
            let before = found.len();
            for name in names {
                if found.len() < ADDED && !found.contains(&name) {
                    found.push(name);
                }
            }
            found.len() > before
        };
        if added {
            let _ = context.peer.notify_tool_list_changed().await;
        }
    }

    /// Answers what is about tools, prompts and resources.
    async fn answer(
        &self,
        request: ClientRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        check(context)?;
        let client = self.client(context);
        let (gateway, profile) = (&self.face.gateway, self.profile());
        let (result, keep) = match request {
            ClientRequest::ListToolsRequest(_) => (self.tools(&client, context)?, Keep::List),
            ClientRequest::CallToolRequest(request) => {
                let called = gateway.call_tool(request.params, &client, profile).await?;
                self.add_found(called.found, &client, context).await;
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
    async fn typed<T>(
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

    fn load<T>(&self, answer: Value, list: &str) -> Result<T, ErrorData>
    where
        T: DeserializeOwned + Serialize,
    {
        let unfit =
            || ErrorData::internal_error("the server's answer has no form that MCP knows", None);
        self.face.gateway.cargo.load(answer, list).ok_or_else(unfit)
    }
}

/// The same face over stdio, where an answer needs no type of the SDK's.
pub(crate) struct RawFront(pub(crate) Front);

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

/// An answer that is a question.
fn input_required(answer: &Value) -> Option<InputRequiredResult> {
    (answer.get("resultType")? == "input_required")
        .then(|| serde_json::from_value(answer.clone()).ok())
        .flatten()
}

fn with<M: Default>(
    params: Option<PaginatedRequestParams>,
) -> RequestOptionalParam<M, PaginatedRequestParams> {
    RequestOptionalParam { method: M::default(), params, extensions: Extensions::default() }
}

fn incomplete(context: &RequestContext<RoleServer>) -> ErrorData {
    let missing = context.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).join(", ");
    ErrorData::invalid_params(format!("`_meta` is missing or malformed: {missing}"), None)
}

impl Service<RoleServer> for RawFront {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        match request {
            ClientRequest::ListToolsRequest(_)
            | ClientRequest::CallToolRequest(_)
            | ClientRequest::ListPromptsRequest(_)
            | ClientRequest::GetPromptRequest(_)
            | ClientRequest::ListResourcesRequest(_)
            | ClientRequest::ListResourceTemplatesRequest(_)
            | ClientRequest::ReadResourceRequest(_)
            | ClientRequest::CompleteRequest(_) => {
                let answer = self.0.answer(request, &context).await?;
                Ok(ServerResult::CustomResult(CustomResult(answer)))
            }
            other => Service::handle_request(&self.0, other, context).await,
        }
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Service::handle_notification(&self.0, notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(&self.0)
    }
}

impl Front {
    fn failed(failed: Failed) -> ErrorData {
        match failed {
            Failed::Refused(error) => error,
            other => ErrorData::internal_error(other.to_string(), None),
        }
    }

    fn missing(uri: &str) -> ErrorData {
        let data = serde_json::json!({"uri": uri});
        ErrorData::resource_not_found("there is no such resource", Some(data))
    }
}
impl ServerHandler for Front {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_logging()
            .enable_completions()
            .build();
        capabilities.experimental = None;
        let mut info = ServerConfig::new(capabilities)
            .with_server_info(ourselves())
            .with_protocol_version(ProtocolVersion::V_2025_11_25);
        let sight = self.face.gateway.sight(self.profile()).ok();
        info.instructions = sight.and_then(|sight| sight.view.instruction.clone());
        info
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (gateway, watches) = (Arc::clone(&self.face.gateway), Arc::clone(&self.face.watches));
        let profile = self.face.profile.clone();
        tokio::spawn(news::tell_session(
            gateway,
            profile,
            watches,
            context.peer,
            self.face.gone.clone(),
        ));
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.face.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        let sight = self.face.gateway.sight(self.profile())?;
        for upstream in self.face.gateway.hub().all() {
            let Some(link) = upstream.link().filter(|_| sight.view.knows(&upstream.name)) else {
                continue;
            };
            // In the newer era each request says what it wants to see.
            if link.is_modern() || link.info.capabilities.logging.is_none() {
                continue;
            }
            let request = SetLevelRequest::new(SetLevelRequestParams::new(request.level));
            let within = crate::config::seconds(upstream.config.start_timeout);
            let gone = context.ct.clone();
            tokio::spawn(async move {
                tokio::select! {
                    _ = link.ask(ClientRequest::SetLevelRequest(request), within) => {}
                    () = gone.cancelled() => {}
                }
            });
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let sight = self.face.gateway.sight(self.profile())?;
        let located = self
            .face
            .gateway
            .locate(&sight, &request.uri)
            .ok_or_else(|| Self::missing(&request.uri))?;
        self.face
            .watches
            .add(&located.upstream, &located.uri, &request.uri)
            .await
            .map_err(Self::failed)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let sight = self.face.gateway.sight(self.profile())?;
        let located = self
            .face
            .gateway
            .locate(&sight, &request.uri)
            .ok_or_else(|| Self::missing(&request.uri))?;
        self.face.watches.remove(&located.upstream, &located.uri).await.map_err(Self::failed)
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.typed(ClientRequest::ListToolsRequest(with(params)), context, "tools").await
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answer =
            self.answer(ClientRequest::CallToolRequest(Request::new(params)), &context).await?;
        if let Some(asks) = input_required(&answer) {
            return Ok(CallToolResponse::InputRequired(asks));
        }
        self.load(answer, "content").map(CallToolResponse::Complete)
    }

    /// For the SDK, which checks headers that mirror a tool's parameters.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let Sight { shelf, view } = self.face.gateway.sight(self.profile()).ok()?;
        let tool = shelf.crib.catalog().tool(view.direct(name)?);
        serde_json::from_str(&tool.definition_here()).ok()
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.typed(ClientRequest::ListPromptsRequest(with(params)), context, "prompts").await
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let answer =
            self.answer(ClientRequest::GetPromptRequest(Request::new(params)), &context).await?;
        if let Some(asks) = input_required(&answer) {
            return Ok(GetPromptResponse::InputRequired(asks));
        }
        self.load(answer, "messages").map(GetPromptResponse::Complete)
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.typed(ClientRequest::ListResourcesRequest(with(params)), context, "resources").await
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.typed(
            ClientRequest::ListResourceTemplatesRequest(with(params)),
            context,
            "resourceTemplates",
        )
        .await
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let answer =
            self.answer(ClientRequest::ReadResourceRequest(Request::new(params)), &context).await?;
        if let Some(asks) = input_required(&answer) {
            return Ok(ReadResourceResponse::InputRequired(asks));
        }
        self.load(answer, "contents").map(ReadResourceResponse::Complete)
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.typed(ClientRequest::CompleteRequest(Request::new(params)), context, "values").await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        news::tell_subscription(&self.face.gateway, self.profile(), &context).await;
        Ok(())
    }
}
