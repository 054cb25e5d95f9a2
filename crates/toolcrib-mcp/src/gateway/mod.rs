//! The gateway: operation a client asks for, and operation becomes of it.
//!
//! Each file answers one part of the protocol: [`tools`] finds and runs tools, [`offers`] hands out
//! prompts and resources, [`exchange`] carries one request to a server and back, [`news`] tells clients
//! operation changed, [`watches`] tracks the resources they subscribe to. [`front`] is the session of one client.

mod change_notifications;
mod client;
mod client_info_limit;
mod client_session;
mod forwarded_request;
mod message_size;
mod operation;
mod passthrough;
mod pending_input;
mod prompts_and_resources;
mod protocol_result;
mod question;
mod sdk_server;
mod session_tool_list;
mod startup_wait;
mod subscriptions;
mod supported_methods;
mod tools;

pub(crate) use client::{BodyMemory, ClientDisconnected, RequestStream};
pub(crate) use client_info_limit::{HINT as CLIENT_INFO_HINT, excess as client_info_excess};
pub(crate) use client_session::ClientSession;
pub(crate) use sdk_server::RawClientSession;
pub(crate) use supported_methods::malformed_params;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;
use toolcrib_core::TokenCounter;
use toolcrib_server::metrics::Registry;

use crate::config::Config;
use crate::hidden_text::{LoggedOnce, class_names, clean_value, find_hidden, loggable_name};
use crate::hub::Hub;
use crate::snapshot::{ClientView, ListHashes, SessionKind, Snapshot};
use crate::upstream::{HostEnvironment, Upstream};
use client::Client;
use forwarded_request::{ForwardError, ForwardOutcome, ForwardedRequest, PausedRequest};
use operation::{Operation, RetryInputs};
use passthrough::Passthrough;
use pending_input::{PendingInput, PendingInputs};

/// The gateway.
pub struct Gateway {
    hub: Arc<Hub>,
    pending_inputs: PendingInputs,
    subscriptions: subscriptions::SubscriptionRegistry,
    pub(crate) passthrough: Passthrough,
    /// Where hidden text was found and logged_hidden_text.
    logged_hidden_text: LoggedOnce,
    /// Counts connections, to tell one client's calls from another's.
    next_client_id: AtomicU64,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("hub", &self.hub).finish_non_exhaustive()
    }
}

/// How often calls that wait for an answer are looked at.
const EXPIRY_CHECK: Duration = Duration::from_secs(30);

async fn drop_expired_inputs(gateway: Weak<Gateway>) {
    loop {
        tokio::time::sleep(EXPIRY_CHECK).await;
        match gateway.upgrade() {
            Some(gateway) => gateway.pending_inputs.drop_expired(),
            None => return,
        }
    }
}

/// Operation a client of one profile can see at one moment.
pub(crate) struct VisibleSnapshot {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) view: Arc<ClientView>,
}

impl Gateway {
    /// Starts the servers of a config; none of them is waited for.
    pub fn start(
        config: Config,
        environment: HostEnvironment,
        counter: Arc<dyn TokenCounter>,
    ) -> Arc<Self> {
        let (hub, updates) = Hub::start(config, environment, counter);
        let gateway = Arc::new(Self {
            hub,
            pending_inputs: PendingInputs::default(),
            subscriptions: subscriptions::SubscriptionRegistry::default(),
            passthrough: Passthrough::default(),
            logged_hidden_text: LoggedOnce::default(),
            next_client_id: AtomicU64::new(0),
        });
        tokio::spawn(change_notifications::forward_resource_updates(
            Arc::downgrade(&gateway),
            updates,
        ));
        tokio::spawn(drop_expired_inputs(Arc::downgrade(&gateway)));
        gateway
    }

    /// The config that holds now.
    pub fn config(&self) -> Arc<Config> {
        self.hub.config()
    }

    /// Replaces the config. Servers that it does not change keep running; changed limits take effect only
    /// in a new gateway.
    pub fn reload(&self, config: Config) {
        self.hub.reload(config);
    }

    /// Makes the gateway's metrics part of a registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.hub.metrics().register(registry);
    }

    /// Ends all servers.
    pub async fn stop(&self, within: Duration) {
        self.hub.stop(within).await;
    }

    /// All servers.
    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// A state for one more client; `disconnected` tells when it has gone.
    pub(crate) fn client_session(
        self: &Arc<Self>,
        profile: Option<String>,
        disconnected: ClientDisconnected,
    ) -> ClientSession {
        let id = self.next_client_id.fetch_add(1, Ordering::Relaxed);
        ClientSession::new(Arc::clone(self), id, profile, disconnected)
    }

    /// Operation a client of a profile sees now in a session. A profile that is gone from the config shows
    /// nothing.
    pub(crate) fn visible_in_session(
        &self,
        profile: Option<&str>,
    ) -> Result<VisibleSnapshot, ErrorData> {
        self.visible_to(profile, SessionKind::Stateful)
    }

    /// The same, under either protocol.
    pub(crate) fn visible_to(
        &self,
        profile: Option<&str>,
        protocol: SessionKind,
    ) -> Result<VisibleSnapshot, ErrorData> {
        let snapshot = self.hub.snapshot();
        let gone = || ErrorData::new(ErrorCode::INVALID_REQUEST, "there is no such profile", None);
        let view = snapshot.view(profile, protocol).ok_or_else(gone)?;
        Ok(VisibleSnapshot { snapshot, view })
    }

    /// The list_hashes of the lists that clients of a profile see now.
    fn list_hashes(&self, profile: Option<&str>, protocol: SessionKind) -> Option<ListHashes> {
        self.visible_to(profile, protocol).ok().map(|visible| visible.view.list_hashes)
    }

    /// A server that a client may know of.
    fn visible_upstream(&self, visible: &VisibleSnapshot, name: &str) -> Option<Arc<Upstream>> {
        visible.view.can_see_server(name).then(|| self.hub.upstream(name)).flatten()
    }

    /// Whether a client may ask this now.
    fn is_allowed(&self, profile: Option<&str>, server: &str, operation: &Operation) -> bool {
        let Ok(visible) = self.visible_in_session(profile) else { return false };
        let Operation::Tool { name, .. } = operation else {
            return visible.view.can_see_server(server);
        };
        let catalog = visible.snapshot.crib.catalog();
        let of = catalog.servers().iter().find(|(known, _)| **known == *server);
        let mut ids = of.into_iter().flat_map(|(_, ids)| ids);
        ids.any(|id| visible.view.scope.contains(*id) && catalog.tool(*id).declared_name() == *name)
    }

    /// A server's result after a check for hidden characters. They are removed from prompts and completions, which
    /// are text that a server writes for the model or the user. Results of calls and contents of resources are data,
    /// and are changed only if configured.
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
        // An address may be new with every read, so resources count as one place.
        let (kind, name) = match operation {
            Operation::Tool { name, .. } => ("tool", loggable_name(name)),
            Operation::Prompt { name, .. } => ("prompt", loggable_name(name)),
            Operation::Resource { .. } => ("resources", String::new()),
            // Suggestions to the user are not results: they are cleaned, but not reported.
            Operation::Completion(_) => return result,
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

    /// Carries a request to a server, or takes up one that waits for this client's answer.
    async fn forward(
        &self,
        upstream: Arc<Upstream>,
        operation: Operation,
        client: &Client,
        mut inputs: RetryInputs,
        profile: Option<&str>,
    ) -> Result<Value, ForwardError> {
        let is_retry = |forwarded: &ForwardedRequest| forwarded.is_retry_of(&upstream, &operation);
        let waiting = inputs
            .state
            .as_deref()
            .and_then(|state| self.pending_inputs.take(state, profile, is_retry));
        let forwarded = if let Some(PendingInput { forwarded, answer, .. }) = waiting {
            let given = inputs
                .responses
                .as_mut()
                .and_then(|given| given.remove(forwarded_request::QUESTION_KEY));
            let missing = || ErrorData::invalid_params("the answer is missing", None);
            // Should the server be gone meanwhile, the call says so.
            let _ = answer.send(given.ok_or_else(missing));
            forwarded
        } else {
            let allowed = || self.is_allowed(profile, &upstream.name, &operation);
            ForwardedRequest::send(
                Arc::clone(&upstream),
                operation.clone(),
                client,
                inputs,
                allowed,
            )
            .await?
        };
        match forwarded.wait(client).await? {
            ForwardOutcome::Result(result) => {
                Ok(self.check_hidden_text(&upstream.name, &operation, result))
            }
            ForwardOutcome::InputRequired(paused) => {
                let PausedRequest { forwarded, question, answer } = *paused;
                let name = self.pending_inputs.add(forwarded, answer, profile.map(str::to_owned));
                let name = name.map_err(|error| ForwardError::UpstreamError(error.to_string()))?;
                Ok(forwarded_request::input_required(&question, &name))
            }
        }
    }
}
