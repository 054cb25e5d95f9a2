//! The request handler for rmcp.
//!
//! There is one [`Fixture`] per session in the older protocol, and one per request in the newer protocol. State that
//! must outlive a [`Fixture`] is in [`Shared`].
#![expect(deprecated, reason = "logging and resource subscriptions belong to the older protocol")]

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::changes::{self, Changes};
use crate::tasks::Tasks;
use crate::{prompts, resources, tools};

/// How long a list may be cached. Any value would do; tests check only that it reaches the client.
const TTL_MS: u64 = 1_000;

/// The state that all sessions of the older protocol and all requests of the newer protocol share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) changes: Changes,
    pub(crate) tasks: Tasks,
    /// All HTTP sessions. `None` on stdio.
    pub(crate) sessions: Option<Arc<LocalSessionManager>>,
}

impl Shared {
    pub(crate) fn with_sessions(sessions: Arc<LocalSessionManager>) -> Self {
        Self { sessions: Some(sessions), ..Self::default() }
    }
}

/// The state of one session of the older protocol, or of one request of the newer protocol.
pub(crate) struct Fixture {
    pub(crate) shared: Arc<Shared>,
    /// The minimum log level that a client of the older protocol has set. Until it sets one, all messages are sent.
    level: Mutex<Option<LoggingLevel>>,
    /// The resources that a client of the older protocol is subscribed to.
    watched: Arc<Mutex<BTreeSet<String>>>,
}

impl Fixture {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, level: Mutex::default(), watched: Arc::default() }
    }

    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        *self.level.lock()
    }

    fn tools(&self) -> Vec<Tool> {
        tools::list(self.shared.changes.extra_tool())
    }
}

type Context = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("toolcrib-fixture", env!("CARGO_PKG_VERSION")))
            .with_instructions("A server for tests. Every tool does what its description says.")
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(&self, _: Page, _: Context) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools())
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, &context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        self.shared.tasks.get(&request.task_id)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        self.shared.tasks.update(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.shared.tasks.cancel(&request.task_id)
    }

    async fn list_prompts(&self, _: Page, _: Context) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list(self.shared.changes.extra_prompt()))
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(request, &context).await
    }

    async fn list_resources(&self, _: Page, _: Context) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list())
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _: Page,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates())
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let result = resources::read(&request.uri)?;
        Ok(result.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values = ["tea", "teapot", "test", "testament"]
            .into_iter()
            .filter(|word| word.starts_with(&request.argument.value))
            .map(str::to_owned)
            .collect();
        let completion =
            CompletionInfo::new(values).map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(completion))
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        *self.level.lock() = Some(request.level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: Context,
    ) -> Result<(), ErrorData> {
        resources::read(&request.uri)?;
        self.watched.lock().insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: Context,
    ) -> Result<(), ErrorData> {
        self.watched.lock().remove(&request.uri);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let changes = self.shared.changes.subscribe();
        tokio::spawn(changes::notify_client_of_older_protocol(
            changes,
            context.peer,
            Arc::clone(&self.watched),
        ));
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        changes::notify_subscriber(self.shared.changes.subscribe(), &context).await;
        Ok(())
    }
}
