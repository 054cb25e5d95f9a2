//! The gateway: how a client's requests are answered.
//!
//! Each file covers one part of the protocol: [`tools`] finds and runs tools, [`prompts_and_resources`] lists and reads
//! prompts and resources, [`forwarded_request`] sends one request to a server and waits for its result,
//! [`change_notifications`] notifies clients of changes, and [`subscriptions`] tracks the resources that clients
//! subscribe to. [`client_session`] is the session of one client.

mod call_deadline;
mod call_wait;
mod change_notifications;
mod client;
mod client_info_limit;
mod client_session;
mod forward_error;
mod forward_outcome;
mod forwarded_request;
mod lossy_notifier;
mod message_size;
mod operation;
mod pending_input;
mod prompts_and_resources;
mod protocol_result;
mod question;
mod sdk_server;
mod server_instructions;
mod session_tool_list;
mod shown_instructions;
mod startup_wait;
mod subscriptions;
mod supported_methods;
mod tasks;
mod tool_arguments;
mod tools;
mod unknown_fields;

pub(crate) use client::{BodyMemory, ClientDisconnected, RequestStream};
pub(crate) use client_info_limit::{HINT as CLIENT_INFO_HINT, excess as client_info_excess};
pub(crate) use client_session::{ClientSession, ConnectionKind};
pub(crate) use sdk_server::RawClientSession;
pub(crate) use supported_methods::malformed_params;

use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;
use toolcrib_core::TokenCounter;
use toolcrib_server::GatewayTotals;
use toolcrib_server::metrics::Registry;

use crate::config::{GatewayConfig, UnsupportedTasks};
use crate::hidden_text::{LoggedOnce, class_names, clean_value, find_hidden, loggable_name};
use crate::hub::Hub;
use crate::snapshot::{ClientView, ListHashes, SessionKind, Snapshot};
use crate::unshared_servers::{IdentifiedClient, TooManyUnsharedServers};
use crate::upstream::{CallPermit, HostEnvironment, Upstream};
use crate::{ClientEnvironment, PoolClients, ServerPool};
use client::Client;
use forward_error::ForwardError;
use forward_outcome::{ForwardOutcome, PausedFor, PausedRequest};
use forwarded_request::ForwardedRequest;
use operation::{Operation, RetryInputs};
use pending_input::{PendingInput, PendingInputs};
use tasks::OpenTasks;
use unknown_fields::UnknownFields;

/// Connects clients to the servers of a config.
pub struct Gateway {
    hub: Arc<Hub>,
    pending_inputs: PendingInputs,
    /// The tasks that clients know.
    tasks: OpenTasks,
    pub(crate) unknown_fields: UnknownFields,
    /// The tools, prompts and servers whose hidden characters were already logged. Each is logged once.
    logged_hidden_text: LoggedOnce,
}

/// For whom something is looked up. What a client sees depends on its profile, and on the lists of its own processes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Viewer<'a> {
    profile: Option<&'a str>,
    /// The id of the client, if it can be told apart from other clients.
    client: Option<u64>,
}

/// Any client of a profile.
impl<'a> From<Option<&'a str>> for Viewer<'a> {
    fn from(profile: Option<&'a str>) -> Self {
        Self { profile, client: None }
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("hub", &self.hub).finish_non_exhaustive()
    }
}

/// How often tasks, and calls that wait for a client's answer, are checked for expiry.
const EXPIRY_CHECK: Duration = Duration::from_secs(30);
/// Maximum number of times that a waiting request is moved to another process of its server.
const MAX_PROCESS_CHANGES: usize = 4;

async fn drop_expired(gateway: Weak<Gateway>) {
    loop {
        tokio::time::sleep(EXPIRY_CHECK).await;
        match gateway.upgrade() {
            Some(gateway) => {
                gateway.pending_inputs.drop_expired();
                gateway.tasks.drop_expired();
            }
            None => return,
        }
    }
}

/// What a client of one profile can see at one moment.
pub(crate) struct VisibleSnapshot {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) view: Arc<ClientView>,
}

impl Gateway {
    /// Starts the servers of a config, without waiting until they are ready. The references of the config are resolved
    /// in the environment of this process.
    pub fn start(
        config: GatewayConfig,
        environment: HostEnvironment,
        clients: PoolClients,
        counter: Arc<dyn TokenCounter>,
    ) -> Arc<Self> {
        let pool = ServerPool::new(&config, environment, clients);
        Self::start_in(pool, config, ClientEnvironment::of_this_process(), counter)
    }

    /// Like [`Self::start`], but shares the servers of a pool, and resolves references in the environment of a client.
    pub fn start_in(
        pool: Arc<ServerPool>,
        config: GatewayConfig,
        environment: ClientEnvironment,
        counter: Arc<dyn TokenCounter>,
    ) -> Arc<Self> {
        let hub = Hub::start(config, pool, environment, counter);
        let gateway = Arc::new(Self {
            hub,
            pending_inputs: PendingInputs::default(),
            tasks: OpenTasks::default(),
            unknown_fields: UnknownFields::default(),
            logged_hidden_text: LoggedOnce::default(),
        });
        tokio::spawn(drop_expired(Arc::downgrade(&gateway)));
        gateway
    }

    /// Returns the current config.
    pub fn config(&self) -> Arc<GatewayConfig> {
        self.hub.config()
    }

    /// Replaces the config. Servers whose config stays the same keep running. Changed limits take effect only after a
    /// restart.
    pub fn reload(&self, config: GatewayConfig) {
        self.hub.reload(config);
    }

    /// Returns what the gateway has done since it started.
    pub fn totals(&self) -> GatewayTotals {
        self.hub.metrics().totals()
    }

    /// Adds the gateway's metrics to a registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.hub.metrics().register(registry);
    }

    /// Stops all servers. Waits at most `within` until they have stopped.
    pub async fn stop(&self, within: Duration) {
        self.hub.stop(within).await;
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Creates the session of a new client. `disconnected` is cancelled when the client disconnects.
    pub(crate) fn client_session(
        self: &Arc<Self>,
        profile: Option<String>,
        disconnected: ClientDisconnected,
        connection: ConnectionKind,
    ) -> ClientSession {
        let id = self.hub.unique_id();
        ClientSession::new(Arc::clone(self), id, profile, disconnected, connection)
    }

    /// Returns what a client sees in a session, or an error if a reload has removed its profile.
    pub(crate) fn visible_in_session<'v>(
        &self,
        viewer: impl Into<Viewer<'v>>,
    ) -> Result<VisibleSnapshot, ErrorData> {
        self.visible_to(viewer, SessionKind::Stateful)
    }

    /// Returns what a client sees, with or without a session, or an error if there is no such profile.
    pub(crate) fn visible_to<'v>(
        &self,
        viewer: impl Into<Viewer<'v>>,
        session_kind: SessionKind,
    ) -> Result<VisibleSnapshot, ErrorData> {
        let Viewer { profile, client } = viewer.into();
        let snapshot = self.hub.snapshot_for(client);
        let removed =
            || ErrorData::new(ErrorCode::INVALID_REQUEST, "there is no such profile", None);
        let view = snapshot.view(profile, session_kind).ok_or_else(removed)?;
        Ok(VisibleSnapshot { snapshot, view })
    }

    /// Returns the hashes of the lists that clients of a profile without own processes see now, or `None` if there is no such
    /// profile.
    fn list_hashes(&self, profile: Option<&str>, session_kind: SessionKind) -> Option<ListHashes> {
        self.visible_to(profile, session_kind).ok().map(|visible| visible.view.list_hashes)
    }

    /// Returns a server, if the client may see it. `client` is `None` if it cannot be told apart from other clients.
    fn visible_upstream(
        &self,
        visible: &VisibleSnapshot,
        name: &str,
        client: Option<IdentifiedClient>,
    ) -> Option<Result<Arc<Upstream>, TooManyUnsharedServers>> {
        let can_see = visible.view.can_see_server(name);
        can_see.then(|| self.hub.upstream_for(name, client)).flatten()
    }

    /// Whether a client may use this operation of a server now.
    fn is_allowed(&self, viewer: Viewer<'_>, server: &str, operation: &Operation) -> bool {
        let Ok(visible) = self.visible_in_session(viewer) else { return false };
        let Operation::Tool { name, .. } = operation else {
            return visible.view.can_see_server(server);
        };
        let catalog = visible.snapshot.crib.catalog();
        let server_tools = catalog.servers().iter().find(|(name, _)| **name == *server);
        let mut ids = server_tools.into_iter().flat_map(|(_, ids)| ids);
        ids.any(|id| visible.view.scope.contains(*id) && catalog.tool(*id).declared_name() == *name)
    }

    /// Checks a server's result for hidden characters. They are removed from prompts and completions, which are texts
    /// for the model or the user. Results of calls and contents of resources are data, and are changed only if
    /// `clean_results` is set in the config.
    fn check_hidden_text(&self, server: &str, operation: &Operation, mut result: Value) -> Value {
        let found = find_hidden(&result);
        if found.is_empty() {
            return result;
        }
        let cleans = matches!(operation, Operation::Prompt { .. } | Operation::Completion(_))
            || self.hub.config().gateway.clean_results;
        if cleans {
            clean_value(&mut result);
        }
        // A URI may be different with every read, so all resources of a server are logged as one.
        let (kind, name) = match operation {
            Operation::Tool { name, .. } => ("tool", loggable_name(name)),
            Operation::Prompt { name, .. } => ("prompt", loggable_name(name)),
            Operation::Resource { .. } => ("resources", String::new()),
            // Completions are suggestions to the user. Hidden characters are removed from them, but not reported.
            // The caller checks the parts of an answer about a task.
            Operation::Completion(_) | Operation::Task(_) => return result,
        };
        self.hub.metrics().found_hidden_text(server);
        if self.logged_hidden_text.is_first(server, &format!("{kind} {name}")) {
            let done = if cleans { "removed" } else { "passed on" };
            tracing::warn!(
                server,
                kind,
                name,
                "hidden characters in a result, {done}: {}",
                class_names(&found)
            );
        }
        result
    }

    /// Waits until a request may be sent, and returns the process of the server that the client uses then. While the
    /// request waits, a process may turn out to be one that this client must not share.
    async fn wait_for_server(
        &self,
        upstream: &Arc<Upstream>,
        operation: &Operation,
        client: &Client,
    ) -> Result<(Arc<Upstream>, CallPermit), ForwardError> {
        let mut upstream = Arc::clone(upstream);
        for _ in 0..MAX_PROCESS_CHANGES {
            let permit = ForwardedRequest::wait_for_permit(&upstream, operation, client).await?;
            match self.hub.upstream_for(&upstream.name, client.identified()) {
                Some(Ok(now)) if !Arc::ptr_eq(&now, &upstream) => upstream = now,
                Some(Err(full)) => return Err(ForwardError::Failed(full.to_string())),
                _ => return Ok((upstream, permit)),
            }
        }
        let problem = format!(
            "`{}`: the process for this client changed too often while the request waited; try again",
            upstream.name
        );
        Err(ForwardError::Failed(problem))
    }

    /// Forwards a request to a server, or continues an earlier request that waits for this client's answer.
    async fn forward(
        &self,
        upstream: Arc<Upstream>,
        operation: Operation,
        client: &Client,
        mut inputs: RetryInputs,
        profile: Option<&str>,
    ) -> Result<Value, ForwardError> {
        let is_retry =
            |forwarded: &ForwardedRequest| forwarded.is_retried_by(&upstream, &operation);
        let pending = inputs
            .state
            .as_deref()
            .and_then(|state| self.pending_inputs.take(state, profile, is_retry));
        let forwarded = if let Some(PendingInput { mut forwarded, paused_for, .. }) = pending {
            let mut responses = inputs.responses.take();
            match paused_for {
                PausedFor::Question(answer) => {
                    let response = responses
                        .as_mut()
                        .and_then(|responses| responses.remove(forward_outcome::QUESTION_KEY));
                    let problem = "`inputResponses` has no answer to the question";
                    let missing = || ErrorData::invalid_params(problem, None);
                    // Sending fails if the server has disconnected. The call then returns an error.
                    let _ = answer.send(response.ok_or_else(missing));
                }
                PausedFor::Task => {
                    forwarded.answer_task(client, responses.unwrap_or_default()).await?;
                }
            }
            forwarded
        } else {
            let server = self.wait_for_server(&upstream, &operation, client).await?;
            let is_allowed =
                |_: &_| self.is_allowed(client.viewer(profile), &upstream.name, &operation);
            ForwardedRequest::send(server, operation.clone(), client, inputs, is_allowed).await?
        };
        let mut outcome = forwarded.wait(client).await?;
        loop {
            let forwarded = match outcome {
                ForwardOutcome::Result(result) => {
                    return Ok(self.check_hidden_text(&upstream.name, &operation, result));
                }
                ForwardOutcome::InputRequired(paused) => {
                    let PausedRequest { forwarded, requests, paused_for } = *paused;
                    let id = client.identified().map(|client| client.id);
                    let owner = (id, profile.map(str::to_owned));
                    let state = self.pending_inputs.add(forwarded, paused_for, owner);
                    let state = state.map_err(|error| ForwardError::Failed(error.to_string()))?;
                    return Ok(forward_outcome::input_required(&requests, &state));
                }
                ForwardOutcome::TaskRequired(_, error) if !self.polls_tasks() => {
                    return Err(ForwardError::Rpc(error));
                }
                ForwardOutcome::TaskRequired(mut forwarded, _) => {
                    forwarded.resend_for_task(client).await?;
                    forwarded
                }
                ForwardOutcome::Task(forwarded, result) => {
                    match self.pass_on_task(forwarded, result, client, profile) {
                        Ok(result) => return Ok(result),
                        Err((mut forwarded, result)) => {
                            forwarded.poll_task(&result)?;
                            forwarded
                        }
                    }
                }
            };
            outcome = forwarded.wait(client).await?;
        }
    }

    /// Whether the gateway waits for tasks on behalf of clients that do not support them.
    fn polls_tasks(&self) -> bool {
        self.hub.config().gateway.unsupported_tasks == UnsupportedTasks::Wait
    }
}
