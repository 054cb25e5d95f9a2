//! The gateway: what a client asks for, and what becomes of it.
//!
//! Each file answers one part of the protocol: [`tools`] finds and runs tools, [`offers`] hands out
//! prompts and resources, [`exchange`] carries one request to a server and back, [`news`] tells clients
//! what changed, [`watches`] tracks the resources they subscribe to. [`front`] is the session of one client.

mod cargo;
mod client;
mod exchange;
mod front;
mod handler;
mod introduction;
mod message_size;
mod methods;
mod news;
mod offers;
mod parked;
mod question;
mod result;
mod session_list;
mod tools;
mod waiting;
mod watches;
mod what;

pub(crate) use client::{HeldBody, Left, RequestStream};
pub(crate) use front::Front;
pub(crate) use handler::RawFront;
pub(crate) use introduction::{HINT as INTRODUCTION_HINT, excess as introduction_excess};
pub(crate) use methods::malformed_params;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;
use toolcrib_core::TokenCounter;
use toolcrib_server::metrics::Registry;

use crate::config::Config;
use crate::hidden_text::{Logged, classes, clean_value, find_hidden, shown};
use crate::hub::Hub;
use crate::shelf::{Protocol, Shelf, Stamps, View};
use crate::upstream::{Environment, Upstream};
use cargo::Cargo;
use client::Client;
use exchange::{Exchange, NoAnswer, Outcome, Question};
use parked::{Lot, Parked};
use what::{Inputs, What};

/// The gateway.
pub struct Gateway {
    hub: Arc<Hub>,
    lot: Lot,
    subscribers: watches::Subscribers,
    pub(crate) cargo: Cargo,
    /// Where hidden text was found and logged.
    logged: Logged,
    /// Counts connections, to tell one client's calls from another's.
    clients: AtomicU64,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("hub", &self.hub).finish_non_exhaustive()
    }
}

/// How often calls that wait for an answer are looked at.
const SWEEP: Duration = Duration::from_secs(30);

async fn sweep(gateway: Weak<Gateway>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        match gateway.upgrade() {
            Some(gateway) => gateway.lot.sweep(),
            None => return,
        }
    }
}

/// What a client of one profile can see at one moment.
pub(crate) struct Sight {
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) view: Arc<View>,
}

impl Gateway {
    /// Starts the servers of a config; none of them is waited for.
    pub fn start(
        config: Config,
        environment: Environment,
        counter: Arc<dyn TokenCounter>,
    ) -> Arc<Self> {
        let (hub, updates) = Hub::start(config, environment, counter);
        let gateway = Arc::new(Self {
            hub,
            lot: Lot::default(),
            subscribers: watches::Subscribers::default(),
            cargo: Cargo::default(),
            logged: Logged::default(),
            clients: AtomicU64::new(0),
        });
        tokio::spawn(news::tell_updates(Arc::downgrade(&gateway), updates));
        tokio::spawn(sweep(Arc::downgrade(&gateway)));
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

    /// A face for one more client; `left` tells when it has gone.
    pub(crate) fn front(self: &Arc<Self>, profile: Option<String>, left: Left) -> Front {
        let id = self.clients.fetch_add(1, Ordering::Relaxed);
        Front::new(Arc::clone(self), id, profile, left)
    }

    /// What a client of a profile sees now in a session. A profile that is gone from the config shows
    /// nothing.
    pub(crate) fn sight(&self, profile: Option<&str>) -> Result<Sight, ErrorData> {
        self.sight_in(profile, Protocol::Session)
    }

    /// The same, under either protocol.
    pub(crate) fn sight_in(
        &self,
        profile: Option<&str>,
        protocol: Protocol,
    ) -> Result<Sight, ErrorData> {
        let shelf = self.hub.shelf();
        let gone = || ErrorData::new(ErrorCode::INVALID_REQUEST, "there is no such profile", None);
        let view = shelf.view(profile, protocol).ok_or_else(gone)?;
        Ok(Sight { shelf, view })
    }

    /// The stamps of the lists that clients of a profile see now.
    fn stamps(&self, profile: Option<&str>, protocol: Protocol) -> Option<Stamps> {
        self.sight_in(profile, protocol).ok().map(|sight| sight.view.stamps)
    }

    /// A server that a client may know of.
    fn upstream(&self, sight: &Sight, name: &str) -> Option<Arc<Upstream>> {
        sight.view.knows(name).then(|| self.hub.upstream(name)).flatten()
    }

    /// Whether a client may ask this now.
    fn allows(&self, profile: Option<&str>, server: &str, what: &What) -> bool {
        let Ok(sight) = self.sight(profile) else { return false };
        let What::Tool { name, .. } = what else { return sight.view.knows(server) };
        let catalog = sight.shelf.crib.catalog();
        let of = catalog.servers().iter().find(|(known, _)| **known == *server);
        let mut ids = of.into_iter().flat_map(|(_, ids)| ids);
        ids.any(|id| sight.view.scope.contains(*id) && catalog.tool(*id).declared_name() == *name)
    }

    /// A server's result after a check for hidden characters. They are removed from prompts and completions, which
    /// are text that a server writes for the model or the user. Results of calls and contents of resources are data,
    /// and are changed only if configured.
    fn inspected(&self, server: &str, what: &What, mut result: Value) -> Value {
        let found = find_hidden(&result);
        if found.is_empty() {
            return result;
        }
        let cleans = matches!(what, What::Prompt { .. } | What::Completion(_))
            || self.hub.config().gateway.clean_results;
        if cleans {
            clean_value(&mut result);
        }
        // An address may be new with every read, so resources count as one place.
        let (kind, name) = match what {
            What::Tool { name, .. } => ("tool", shown(name)),
            What::Prompt { name, .. } => ("prompt", shown(name)),
            What::Resource { .. } => ("resources", String::new()),
            // Suggestions to the user are not results: they are cleaned, but not reported.
            What::Completion(_) => return result,
        };
        self.hub.metrics().hid_text(server);
        if self.logged.is_first(server, &format!("{kind} {name}")) {
            let done = if cleans { "removed" } else { "passed on" };
            tracing::warn!(
                server,
                kind,
                name,
                "hidden characters in a result, {done}: {}",
                classes(&found)
            );
        }
        result
    }

    /// Carries a request to a server, or takes up one that waits for this client's answer.
    async fn exchange(
        &self,
        upstream: Arc<Upstream>,
        what: What,
        client: &Client,
        mut inputs: Inputs,
        profile: Option<&str>,
    ) -> Result<Value, NoAnswer> {
        let again = |exchange: &Exchange| exchange.is_of(&upstream, &what);
        let waiting =
            inputs.state.as_deref().and_then(|state| self.lot.take(state, profile, again));
        let exchange = if let Some(Parked { exchange, answer, .. }) = waiting {
            let given = inputs.responses.as_mut().and_then(|given| given.remove(exchange::KEY));
            let missing = || ErrorData::invalid_params("the answer is missing", None);
            // Should the server be gone meanwhile, the call says so.
            let _ = answer.send(given.ok_or_else(missing));
            exchange
        } else {
            let allowed = || self.allows(profile, &upstream.name, &what);
            Exchange::begin(Arc::clone(&upstream), what.clone(), client, inputs, allowed).await?
        };
        match exchange.carry(client).await? {
            Outcome::Answer(answer) => Ok(self.inspected(&upstream.name, &what, answer)),
            Outcome::Asks(question) => {
                let Question { exchange, request, answer } = *question;
                let name = self.lot.park(exchange, answer, profile.map(str::to_owned));
                let name = name.map_err(|error| NoAnswer::Server(error.to_string()))?;
                Ok(exchange::input_required(&request, &name))
            }
        }
    }
}
