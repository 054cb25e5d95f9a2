//! The session of one client. It answers the requests that the SDK's server receives.
//!
//! The SDK implements handshakes, version negotiation and subscriptions. For a client over stdio, results from servers
//! are passed on without the SDK's types. For a client over HTTP they must have these types, and
//! [`super::unknown_fields`] restores the fields that the types drop.

use parking_lot::Mutex;
use std::sync::{Arc, Once, OnceLock};

use rmcp::model::{ClientRequest, ErrorData, InputRequiredResult, LoggingLevel, ProtocolVersion};
use rmcp::service::{RequestContext, RoleServer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolcrib_core::Ledger;

use super::client::{Client, ClientDisconnected};
use super::protocol_result::{CachePolicy, adapt_result};
use super::session_tool_list::SessionToolList;
use super::shown_instructions::ShownInstructions;
use super::subscriptions::ClientSubscriptions;
use super::{Gateway, VisibleSnapshot, tasks};
use crate::hidden_text::loggable_name;
use crate::metrics;
use crate::raw_arguments::RawArguments;
use crate::snapshot::{ClientToolSearch, ListDecision};
use crate::snapshot::{ListHashes, SessionKind};

/// The session of one client. Clones share the session.
#[derive(Clone)]
pub(crate) struct ClientSession {
    pub(super) state: Arc<SessionState>,
}

pub(super) struct SessionState {
    pub(super) gateway: Arc<Gateway>,
    pub(super) id: u64,
    pub(super) profile: Option<String>,
    pub(super) subscriptions: Arc<ClientSubscriptions>,
    pub(super) log_level: Mutex<Option<LoggingLevel>>,
    pub(super) tool_list: Arc<SessionToolList>,
    shown_instructions: Arc<ShownInstructions>,
    /// The hashes of the lists when the client connected.
    pub(super) list_hashes: Option<ListHashes>,
    /// Counts the session in the metrics while it is open.
    pub(super) session: OnceLock<metrics::OpenSession>,
    /// Whether it was logged which tool list the client gets.
    logged_list: Once,
    pub(super) closed: CancellationToken,
    _closed: DropGuard,
    pub(super) disconnected: ClientDisconnected,
    connection: ConnectionKind,
}

/// Ends the tasks and the processes that belong to the client.
impl Drop for SessionState {
    fn drop(&mut self) {
        if self.connection == ConnectionKind::Stream {
            self.gateway.tasks.end_session(self.id);
            self.gateway.pending_inputs.end_session(self.id);
        }
        self.gateway.hub().end_client(self.id);
    }
}

/// What a [`ClientSession`] is created for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    /// A stream on which one client sends all of its requests, in either protocol.
    Stream,
    /// An HTTP session of the older protocol, or a single request of the newer protocol.
    Http,
}

impl ClientSession {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        id: u64,
        profile: Option<String>,
        disconnected: ClientDisconnected,
        connection: ConnectionKind,
    ) -> Self {
        let closed = CancellationToken::new();
        let subscriptions = Arc::new(ClientSubscriptions::new(Arc::clone(&gateway)));
        let list_hashes = gateway.list_hashes(profile.as_deref(), SessionKind::Stateful);
        let state = SessionState {
            gateway,
            list_hashes,
            id,
            profile,
            subscriptions,
            log_level: Mutex::default(),
            tool_list: Arc::default(),
            shown_instructions: Arc::default(),
            session: OnceLock::new(),
            logged_list: Once::new(),
            _closed: closed.clone().drop_guard(),
            closed,
            disconnected,
            connection,
        };
        Self { state: Arc::new(state) }
    }

    pub(super) fn client(&self, context: &RequestContext<RoleServer>) -> Client {
        let level = *self.state.log_level.lock();
        let SessionState { id, disconnected, connection, shown_instructions, .. } = &*self.state;
        let mut client = Client::of_request(*id, context, level, disconnected, self.profile());
        client.has_stable_id = *connection == ConnectionKind::Stream || !client.uses_newer_protocol;
        if client.has_stable_id {
            client.group = client.id;
        }
        client.shown_instructions = client.has_stable_id.then(|| Arc::clone(shown_instructions));
        client
    }

    /// Returns the id of the session.
    pub(crate) fn id(&self) -> u64 {
        self.state.id
    }

    pub(super) fn profile(&self) -> Option<&str> {
        self.state.profile.as_deref()
    }

    async fn list_session_tools(
        &self,
        client: &Client,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let gateway = &self.state.gateway;
        // A client of the newer protocol has no session, so any of its requests may be its first. The gateway waits
        // only once for each server, however many requests there are.
        if client.uses_newer_protocol || !self.state.tool_list.has_sent_list() {
            gateway.wait_for_startup(client, self.profile()).await;
        }
        let search = context
            .client_info()
            .map_or_else(ClientToolSearch::default, |client| ClientToolSearch::of(&client));
        let look = || gateway.visible_to(client.viewer(self.profile()), client.session_kind());
        // In the newer protocol, a list must not depend on the connection, so found tools are not added to it.
        if client.uses_newer_protocol {
            let view = look()?.view;
            let decision = view.list_decision(search, SessionKind::Stateless);
            self.log_list_decision(client, context, decision);
            gateway.hub().metrics().saved(view.saved_tokens as u64);
            return Ok(view.list_with(&Ledger::new(0), client.shows_apps()));
        }
        let (VisibleSnapshot { view, .. }, list, decision) =
            self.state.tool_list.send(search, client.shows_apps(), look)?;
        self.log_list_decision(client, context, decision);
        if !decision.is_full {
            gateway.hub().metrics().saved(view.saved_tokens as u64);
        }
        Ok(list)
    }

    /// Logs once in each session which tool list the client gets, and why. A request of the newer protocol over HTTP
    /// belongs to no session, so nothing is logged for it.
    fn log_list_decision(
        &self,
        client: &Client,
        context: &RequestContext<RoleServer>,
        decision: ListDecision,
    ) {
        if !client.has_stable_id {
            return;
        }
        self.state.logged_list.call_once(|| {
            let info = context.client_info();
            tracing::info!(
                client = info.as_ref().map(|info| loggable_name(&info.name)),
                version = info.as_ref().map(|info| loggable_name(&info.version)),
                full_list = decision.is_full,
                "{}",
                decision.reason
            );
        });
    }

    /// Records the tools that the client's search found, and notifies the client if its tool list changed as a result.
    async fn add_found_tools(
        &self,
        names: &[String],
        client: &Client,
        context: &RequestContext<RoleServer>,
    ) {
        let gateway = &self.state.gateway;
        let Ok(VisibleSnapshot { view, .. }) =
            gateway.visible_in_session(client.viewer(self.profile()))
        else {
            return;
        };
        let adds = !client.uses_newer_protocol
            && view.adds_found_tools(gateway.hub().config().gateway.add_found);
        if adds && self.state.tool_list.add(&view, names) {
            let _ = context.peer.notify_tool_list_changed().await;
        }
    }

    /// Answers a request about tools, prompts or resources.
    pub(super) async fn answer(
        &self,
        request: ClientRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        check_protocol_version(context)?;
        let client = self.client(context);
        let (gateway, profile) = (&self.state.gateway, self.profile());
        let (result, cache_policy) = match request {
            ClientRequest::ListToolsRequest(_) => {
                (self.list_session_tools(&client, context).await?, CachePolicy::List)
            }
            ClientRequest::CallToolRequest(request) => {
                let params = request.params;
                let arguments =
                    RawArguments::from_request(&context.extensions, params.arguments.as_ref());
                let called = gateway.call_tool(params, arguments, &client, profile).await?;
                self.add_found_tools(&called.found_tools, &client, context).await;
                (called.result, CachePolicy::NoStore)
            }
            ClientRequest::ListPromptsRequest(_) => {
                (gateway.list_prompts(client.viewer(profile))?, CachePolicy::List)
            }
            ClientRequest::GetPromptRequest(request) => {
                (gateway.get_prompt(request.params, &client, profile).await?, CachePolicy::NoStore)
            }
            ClientRequest::ListResourcesRequest(_) => {
                (gateway.list_resources(client.viewer(profile))?, CachePolicy::List)
            }
            ClientRequest::ListResourceTemplatesRequest(_) => {
                (gateway.list_templates(client.viewer(profile))?, CachePolicy::List)
            }
            ClientRequest::ReadResourceRequest(request) => (
                gateway.read_resource(request.params, &client, profile).await?,
                CachePolicy::Resource,
            ),
            ClientRequest::CompleteRequest(request) => {
                (gateway.complete(request.params, &client, profile).await?, CachePolicy::NoStore)
            }
            other @ (ClientRequest::GetTaskRequest(_)
            | ClientRequest::UpdateTaskRequest(_)
            | ClientRequest::CancelTaskRequest(_)) => {
                (gateway.request_task(other, &client, profile).await?, CachePolicy::NoStore)
            }
            other => {
                return Err(ErrorData::internal_error(
                    format!("unexpected method `{}`", other.method()),
                    None,
                ));
            }
        };
        Ok(adapt_result(result, client.uses_newer_protocol, cache_policy))
    }

    /// Answers a request over HTTP, where the SDK requires its own result types.
    pub(super) async fn answer_typed<T>(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
        list: &str,
    ) -> Result<T, ErrorData>
    where
        T: DeserializeOwned + Serialize,
    {
        self.to_sdk_type(self.answer(request, &context).await?, list)
    }

    /// Answers a request over HTTP, where the SDK requires its own result types. The result may also be a server's
    /// question.
    pub(super) async fn answer_or_ask<T, R>(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
        list: &str,
    ) -> Result<R, ErrorData>
    where
        T: DeserializeOwned + Serialize,
        R: From<T> + From<InputRequiredResult>,
    {
        self.to_result_or_question::<T, R>(self.answer(request, &context).await?, list)
    }

    /// Converts a result to the SDK's types. The result may also be a server's question.
    pub(super) fn to_result_or_question<T, R>(
        &self,
        answer: Value,
        list: &str,
    ) -> Result<R, ErrorData>
    where
        T: DeserializeOwned + Serialize,
        R: From<T> + From<InputRequiredResult>,
    {
        // Like any other result, a question that the SDK cannot parse completely is stored, and `unknown_fields`
        // restores the original in the response.
        if answer.get("resultType").is_some_and(|kind| kind == "input_required")
            && let Ok(asks) =
                self.to_sdk_type::<InputRequiredResult>(answer.clone(), "inputRequests")
        {
            return Ok(asks.into());
        }
        self.to_sdk_type::<T>(answer, list).map(R::from)
    }

    /// Converts a server's answer to the SDK's types, which the SDK requires for tasks over HTTP. `answer` is the answer to
    /// a request about a task, or the result of the call that created it.
    pub(super) fn to_task_type<T>(&self, answer: Value) -> Result<T, ErrorData>
    where
        T: DeserializeOwned + Serialize,
    {
        let empty = tasks::empty_task(&answer);
        let typed = self.state.gateway.unknown_fields.to_sdk_type_or(answer, empty);
        typed.ok_or_else(invalid_result)
    }

    fn to_sdk_type<T>(&self, answer: Value, list: &str) -> Result<T, ErrorData>
    where
        T: DeserializeOwned + Serialize,
    {
        self.state.gateway.unknown_fields.to_sdk_type(answer, list).ok_or_else(invalid_result)
    }
}

fn invalid_result() -> ErrorData {
    ErrorData::internal_error("the server's result is not valid in MCP", None)
}

/// Checks that a request has the `_meta` fields that its protocol version requires. The SDK checks this only for the
/// requests that it answers itself.
fn check_protocol_version(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let supported = ProtocolVersion::KNOWN_VERSIONS;
    let Some(version) = context.meta.protocol_version() else {
        // Without a handshake, every request must name its protocol version.
        return match context.peer.peer_info() {
            Some(_) => Ok(()),
            None => Err(missing_meta(context)),
        };
    };
    if !supported.contains(&version) {
        return Err(ErrorData::unsupported_protocol_version(version, supported));
    }
    let uses_newer_protocol = !version.has_initialize();
    if uses_newer_protocol
        && !context.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
    {
        return Err(missing_meta(context));
    }
    Ok(())
}

fn missing_meta(context: &RequestContext<RoleServer>) -> ErrorData {
    let missing = context.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).join(", ");
    ErrorData::invalid_params(format!("`_meta` is missing or malformed: {missing}"), None)
}
