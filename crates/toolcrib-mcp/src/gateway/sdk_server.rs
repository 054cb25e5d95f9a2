//! Implements the SDK's server traits for [`ClientSession`]. Results have the SDK's types over HTTP, and are plain JSON
//! over stdio.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientNotification,
    ClientRequest, CompleteRequestParams, CompleteResult, CreateTaskResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, GetTaskParams, GetTaskResult, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Request, ServerCapabilities, ServerConfig, ServerResult,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{
    NotificationContext, RequestContext, RoleServer, Service, SubscriptionContext,
};

use super::client::Client;
use super::client_session::ClientSession;
use super::prompts_and_resources::ResourceLocation;
use super::subscriptions::{check_uri, check_uris};
use super::{VisibleSnapshot, change_notifications, client_info_limit, supported_methods, tasks};
use crate::snapshot::ClientToolSearch;
use crate::snapshot::SessionKind;
use crate::unshared_servers::IdentifiedClient;
use crate::upstream::{QueueFull, Upstream, UpstreamError, own_implementation, page_request};

/// A session over stdio. Its results are sent as they are, without being converted to the SDK's types.
pub(crate) struct RawClientSession(pub(crate) ClientSession);

impl Service<RoleServer> for RawClientSession {
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
            | ClientRequest::CompleteRequest(_)
            | ClientRequest::GetTaskRequest(_)
            | ClientRequest::UpdateTaskRequest(_)
            | ClientRequest::CancelTaskRequest(_) => {
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

impl ClientSession {
    fn upstream_error(failed: UpstreamError) -> ErrorData {
        match failed {
            UpstreamError::Rejected(error) => error,
            other => ErrorData::internal_error(other.to_string(), None),
        }
    }

    fn queue_full_error(full: &QueueFull) -> ErrorData {
        ErrorData::internal_error(full.to_string(), None)
    }
}

impl ServerHandler for ClientSession {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_logging()
            .enable_completions()
            .enable_tasks()
            .build();
        let mut info = ServerConfig::new(capabilities)
            .with_server_info(own_implementation())
            .with_protocol_version(ProtocolVersion::V_2025_11_25);
        let visible = self.state.gateway.visible_in_session(self.profile()).ok();
        info.instructions = visible.and_then(|visible| visible.view.instruction.clone());
        info
    }

    /// Answers the handshake. A client that gets the full tool list gets no instructions, because the instructions are
    /// about our search tool, which is not in that list.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        client_info_limit::check(&request)?;
        let mut result = self.negotiate_initialize(&request)?;
        // In the older protocol, the gateway itself waits for tasks.
        result.capabilities.extensions = None;
        let visible = self.state.gateway.visible_in_session(self.profile()).ok();
        let search = ClientToolSearch::of(&request.client_info);
        let gets_full_list = |visible: VisibleSnapshot| {
            visible.view.list_decision(search, SessionKind::Stateful).is_full
        };
        if visible.is_some_and(gets_full_list) {
            result.instructions = None;
        }
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let mut info = ServerHandler::get_info(self);
        let visible = self.state.gateway.visible_to(self.profile(), SessionKind::Stateless).ok();
        info.instructions = visible.and_then(|visible| visible.view.instruction.clone());
        let versions = ServerHandler::supported_protocol_versions(self).into_owned();
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (gateway, subscriptions) = (&self.state.gateway, Arc::clone(&self.state.subscriptions));
        let (profile, closed) = (self.state.profile.clone(), self.state.closed.clone());
        let client = Client::outside_requests(self.state.id, &context.peer, closed.clone());
        let has_roots = client.has_roots();
        let uses = {
            let (gateway, profile) = (Arc::downgrade(gateway), profile.clone());
            move |id: u64, server: &str| {
                let Some(gateway) = gateway.upgrade() else { return false };
                let visible = gateway.visible_in_session(profile.as_deref());
                // A client with a process of its own does not use the one that others share.
                let is_used =
                    |it: &Upstream| it.id == id && !it.client_needs_own_process(has_roots);
                let is_known = gateway.hub().upstream(server).is_some_and(|it| is_used(&it));
                is_known && visible.is_ok_and(|visible| visible.view.can_see_server(server))
            }
        };
        // A client may send this notification twice. The second one is ignored, so that the session is counted once.
        if self.state.session.set(gateway.hub().metrics().session()).is_err() {
            return;
        }
        let (registration, messages) =
            gateway.hub().connected_clients().register(self.state.id, uses);
        tokio::spawn(change_notifications::forward_server_messages(client, messages, registration));
        let watched = (subscriptions, Arc::clone(&self.state.tool_list), self.state.list_hashes);
        tokio::spawn(change_notifications::notify_session(
            Arc::clone(gateway),
            (profile, self.state.id),
            watched,
            context.peer,
            closed,
        ));
        if let Ok(VisibleSnapshot { view, .. }) = gateway.visible_in_session(self.profile()) {
            let can_see = |server: &str| view.can_see_server(server);
            let client = IdentifiedClient { id: self.state.id, has_roots };
            gateway.hub().start_unshared_servers(client, can_see);
        }
        if has_roots {
            // Servers that started before a client connected were told that there are no roots, so they must request
            // them again.
            change_notifications::notify_roots_changed(gateway, self.state.id, self.profile())
                .await;
        }
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        let (gateway, id) = (&self.state.gateway, self.state.id);
        change_notifications::notify_roots_changed(gateway, id, self.profile()).await;
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.state.log_level.lock() = Some(request.level);
        self.state.gateway.hub().request_log_level(request.level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        check_uri(&request.uri)?;
        let client = self.client(&context);
        let visible = self.state.gateway.visible_in_session(client.viewer(self.profile()))?;
        let ResourceLocation { upstream, uri } =
            self.state.gateway.locate_resource(&visible, &request.uri, client.identified())?;
        let _queue_slot = upstream.enter_queue().map_err(|full| Self::queue_full_error(&full))?;
        let subscriptions = &self.state.subscriptions;
        let added =
            subscriptions.add(&upstream, &uri, &request.uri, client.abandoned.cancelled()).await;
        added.map_err(Self::upstream_error)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.client(&context);
        let visible = self.state.gateway.visible_in_session(client.viewer(self.profile()))?;
        let ResourceLocation { upstream, uri } =
            self.state.gateway.locate_resource(&visible, &request.uri, client.identified())?;
        let _queue_slot = upstream.enter_queue().map_err(|full| Self::queue_full_error(&full))?;
        let removed =
            self.state.subscriptions.remove(&upstream, &uri, client.abandoned.cancelled()).await;
        removed.map_err(Self::upstream_error)
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.answer_typed(ClientRequest::ListToolsRequest(page_request(params)), context, "tools")
            .await
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let request = ClientRequest::CallToolRequest(Request::new(params));
        let answer = self.answer(request, &context).await?;
        if tasks::created_task(&answer).is_some() {
            return self.to_task_type::<CreateTaskResult>(answer).map(CallToolResponse::Task);
        }
        self.to_result_or_question::<CallToolResult, _>(answer, "content")
    }

    async fn get_task(
        &self,
        params: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let request = ClientRequest::GetTaskRequest(Request::new(params));
        self.to_task_type(self.answer(request, &context).await?)
    }

    async fn update_task(
        &self,
        params: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = ClientRequest::UpdateTaskRequest(Request::new(params));
        self.answer(request, &context).await.map(drop)
    }

    async fn cancel_task(
        &self,
        params: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = ClientRequest::CancelTaskRequest(Request::new(params));
        self.answer(request, &context).await.map(drop)
    }

    /// Returns the definition of a tool that is listed in full. The SDK calls this to check the HTTP headers that
    /// repeat parameters of a tool call.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let VisibleSnapshot { snapshot, view } =
            self.state.gateway.visible_to(self.profile(), SessionKind::Stateless).ok()?;
        let tool = snapshot.crib.catalog().tool(view.listed_tool(name)?);
        serde_json::from_str(&tool.shown_definition()).ok()
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.answer_typed(
            ClientRequest::ListPromptsRequest(page_request(params)),
            context,
            "prompts",
        )
        .await
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let request = ClientRequest::GetPromptRequest(Request::new(params));
        self.answer_or_ask::<GetPromptResult, _>(request, context, "messages").await
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.answer_typed(
            ClientRequest::ListResourcesRequest(page_request(params)),
            context,
            "resources",
        )
        .await
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.answer_typed(
            ClientRequest::ListResourceTemplatesRequest(page_request(params)),
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
        let request = ClientRequest::ReadResourceRequest(Request::new(params));
        self.answer_or_ask::<ReadResourceResult, _>(request, context, "contents").await
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.answer_typed(ClientRequest::CompleteRequest(Request::new(params)), context, "values")
            .await
    }

    /// Returns the error for a request with an unknown method. The SDK also calls this for requests with a known method
    /// whose params it cannot parse.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let version = context.meta.protocol_version();
        let uses_newer_protocol = version.is_some_and(|version| !version.has_initialize());
        Err(supported_methods::unparsed_request_error(&request.method, uses_newer_protocol))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        client_info_limit::check(&context.request_context().meta)?;
        check_uris(context.requested().resource_subscriptions.as_deref().unwrap_or_default())?;
        let client = self.client(context.request_context());
        change_notifications::notify_subscription(
            &self.state.gateway,
            self.profile(),
            &client,
            &context,
        )
        .await;
        Ok(())
    }
}
