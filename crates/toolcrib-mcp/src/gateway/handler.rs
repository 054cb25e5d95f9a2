//! A [`Front`] as the SDK wants a server to be: typed over HTTP, raw over stdio.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError};

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientNotification, ClientRequest,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Request, ServerCapabilities, ServerConfig,
    ServerResult, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{
    NotificationContext, RequestContext, RoleServer, Service, SubscriptionContext,
};

use super::client::Client;
use super::front::{Front, searches_itself};
use super::offers::Located;
use super::watches::{check_address, check_addresses};
use super::{Sight, introduction, methods, news};
use crate::shelf::Protocol;
use crate::upstream::{Failed, QueueFull, ourselves, page};

/// The same face over stdio, where an answer needs no type of the SDK's.
pub(crate) struct RawFront(pub(crate) Front);

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

    fn busy(full: &QueueFull) -> ErrorData {
        ErrorData::internal_error(full.to_string(), None)
    }
}

impl ServerHandler for Front {
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
            .build();
        let mut info = ServerConfig::new(capabilities)
            .with_server_info(ourselves())
            .with_protocol_version(ProtocolVersion::V_2025_11_25);
        let sight = self.face.gateway.sight(self.profile()).ok();
        info.instructions = sight.and_then(|sight| sight.view.instruction.clone());
        info
    }

    /// A client that gets the full list because it searches tools itself gets no instructions: they are about our
    /// search tool, which is not in that list.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        introduction::check(&request)?;
        let mut greeting = self.negotiate_initialize(&request)?;
        let sight = self.face.gateway.sight(self.profile()).ok();
        let searches = searches_itself(&request.client_info);
        if sight.is_some_and(|sight| sight.view.is_full_for(searches)) {
            greeting.instructions = None;
        }
        context.peer.set_peer_info(request);
        Ok(greeting)
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let mut info = ServerHandler::get_info(self);
        let sight = self.face.gateway.sight_in(self.profile(), Protocol::Stateless).ok();
        info.instructions = sight.and_then(|sight| sight.view.instruction.clone());
        let versions = ServerHandler::supported_protocol_versions(self).into_owned();
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (gateway, watches) = (&self.face.gateway, Arc::clone(&self.face.watches));
        let (profile, gone) = (self.face.profile.clone(), self.face.gone.clone());
        let client = Client::between_requests(self.face.id, &context.peer, gone.clone());
        let knows = {
            let (gateway, profile) = (Arc::downgrade(gateway), profile.clone());
            move |server: &str| {
                let sight = gateway.upgrade().and_then(|it| it.sight(profile.as_deref()).ok());
                sight.is_some_and(|sight| sight.view.knows(server))
            }
        };
        // A client may say it twice; it is one client all the same.
        if self.face.session.set(gateway.hub().metrics().session()).is_err() {
            return;
        }
        let (present, said) = gateway.hub().sessions().enter(self.face.id, knows);
        let has_roots = client.has_roots();
        tokio::spawn(news::ask_session(client, said, present));
        let told = (watches, Arc::clone(&self.face.list), self.face.stamps);
        tokio::spawn(news::tell_session(Arc::clone(gateway), profile, told, context.peer, gone));
        if has_roots {
            // Servers that started before their client came were told that there are none.
            news::tell_roots(gateway, self.profile()).await;
        }
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        news::tell_roots(&self.face.gateway, self.profile()).await;
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.face.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        self.face.gateway.hub().want_logs(request.level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        check_address(&request.uri)?;
        let client = self.client(&context);
        let sight = self.face.gateway.sight(self.profile())?;
        let Located { upstream, uri } = self.face.gateway.locate(&sight, &request.uri)?;
        let _place = upstream.queue().map_err(|full| Self::busy(&full))?;
        let watches = &self.face.watches;
        let added = watches.add(&upstream, &uri, &request.uri, client.gone.cancelled()).await;
        added.map_err(Self::failed)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.client(&context);
        let sight = self.face.gateway.sight(self.profile())?;
        let Located { upstream, uri } = self.face.gateway.locate(&sight, &request.uri)?;
        let _place = upstream.queue().map_err(|full| Self::busy(&full))?;
        let removed = self.face.watches.remove(&upstream, &uri, client.gone.cancelled()).await;
        removed.map_err(Self::failed)
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.typed(ClientRequest::ListToolsRequest(page(params)), context, "tools").await
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let request = ClientRequest::CallToolRequest(Request::new(params));
        self.answered::<CallToolResult, _>(request, context, "content").await
    }

    /// For the SDK, which checks headers that mirror a tool's parameters.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let Sight { shelf, view } =
            self.face.gateway.sight_in(self.profile(), Protocol::Stateless).ok()?;
        let tool = shelf.crib.catalog().tool(view.direct(name)?);
        serde_json::from_str(&tool.shown_definition()).ok()
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.typed(ClientRequest::ListPromptsRequest(page(params)), context, "prompts").await
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let request = ClientRequest::GetPromptRequest(Request::new(params));
        self.answered::<GetPromptResult, _>(request, context, "messages").await
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.typed(ClientRequest::ListResourcesRequest(page(params)), context, "resources").await
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.typed(
            ClientRequest::ListResourceTemplatesRequest(page(params)),
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
        self.answered::<ReadResourceResult, _>(request, context, "contents").await
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.typed(ClientRequest::CompleteRequest(Request::new(params)), context, "values").await
    }

    /// For the SDK, requests whose params it cannot read are requests with a method that it does not know.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let version = context.meta.protocol_version();
        let newer = version.is_some_and(|version| !version.has_initialize());
        Err(methods::unread(&request.method, newer))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        introduction::check(&context.request_context().meta)?;
        check_addresses(context.requested().resource_subscriptions.as_deref().unwrap_or_default())?;
        news::tell_subscription(&self.face.gateway, self.profile(), &context).await;
        Ok(())
    }
}
