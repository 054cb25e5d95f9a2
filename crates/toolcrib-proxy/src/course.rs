//! How a request goes up, and how else where that is refused.
//!
//! An upstream tells that it does not know a feature when it first meets it: with the first round, or
//! with the first answer to a search. The request is then sent again in another mode. The client sees
//! nothing of it, and what was refused is remembered once the other way has led somewhere.

use std::sync::{Arc, PoisonError};

use axum::http::StatusCode;
use toolcrib_dialect::capability::{self, Capability, Learned};
use toolcrib_dialect::decide::{Wish, decide};
use toolcrib_dialect::history;
use toolcrib_dialect::record::{Past, Places};
use toolcrib_dialect::{Mode, Plan, Request, Toolset, Turn};
use toolcrib_store::{Key, Store as _};

use crate::exchange::Exchange;
use crate::head;
use crate::prepare;
use crate::upstream::Line;

/// Times one request is sent again because an upstream refused what is native.
const FALLBACKS: usize = 4;

/// What a request is begun with, and begun anew.
pub(crate) struct Course {
    request: Arc<Request>,
    /// The toolset of the last leg: it has the tools, and the request lets go of them.
    tools: Option<Arc<Toolset>>,
    places: Places,
    past: Past,
    wish: Wish,
    /// How the conversation deferred before.
    begun: Option<Mode>,
    /// What is known of refusals, with those of this request.
    trial: Learned,
    learns: bool,
    /// Whether thinking is left out.
    unbound: bool,
    fallbacks: usize,
}

/// One way to go up.
pub(crate) struct Leg {
    pub(crate) toolset: Arc<Toolset>,
    pub(crate) line: Line,
}

impl Course {
    /// A request and what is kept of its conversation.
    pub(crate) async fn new(exchange: &Exchange, request: Arc<Request>, wish: Wish) -> Self {
        let places = Places::of(&request, exchange.caller.id);
        let past = exchange.past(&places).await;
        Self {
            begun: past.mode(),
            trial: exchange.learned(),
            request,
            tools: None,
            places,
            past,
            wish,
            learns: false,
            unbound: false,
            fallbacks: 0,
        }
    }

    /// The way to go as things stand; `None` where nothing is to be deferred.
    pub(crate) async fn leg(&mut self, exchange: &mut Exchange) -> Option<Leg> {
        let (api, model) = (exchange.api, &self.request.model);
        let capability = exchange.capability(model, &self.trial);
        let (mode, because) = decide(api, self.wish, &capability, self.begun)?;
        let toolset = self.toolset(exchange, mode).await;
        // Before there is a turn that has it too.
        if let Some(request) = Arc::get_mut(&mut self.request) {
            request.let_go();
        }
        self.tools = Some(Arc::clone(&toolset));
        exchange.say(&toolset, &because.to_string());
        let mut line = exchange.line.clone();
        line.words.unbound = self.unbound;
        head::ask_plain(&mut line.headers);
        if is_native(mode) {
            head::add_betas(&mut line.headers, capability.betas);
        }
        Some(Leg { toolset, line })
    }

    fn tools(&self) -> &str {
        self.tools.as_ref().map_or_else(|| self.request.tools(), |toolset| toolset.input())
    }

    /// The request as it came.
    pub(crate) fn text(&self) -> String {
        self.request.with_tools(self.tools())
    }

    /// The turn that goes this way.
    pub(crate) fn turn(&self, exchange: &Exchange, leg: &Leg) -> Turn {
        let (request, toolset) = (Arc::clone(&self.request), Arc::clone(&leg.toolset));
        let rounds = exchange.proxy.config.rounds;
        Turn::new(request, self.places.clone(), self.past.clone(), toolset, rounds)
    }

    /// Whether an answer may be a refusal that leads elsewhere.
    pub(crate) fn may_turn(&self, status: StatusCode) -> bool {
        matches!(status.as_u16(), 400 | 422) && self.fallbacks < FALLBACKS
    }

    /// Takes an error in; says whether there is another way to go.
    pub(crate) fn turned(
        &mut self,
        exchange: &Exchange,
        mode: Mode,
        status: StatusCode,
        body: &[u8],
    ) -> bool {
        if !self.may_turn(status) {
            return false;
        }
        let (api, host, model) = (exchange.api, &exchange.host, &self.request.model);
        let missing = capability::refusal(api, status.as_u16(), body).filter(|_| is_native(mode));
        if let Some(missing) = missing {
            tracing::warn!(%host, model, ?missing, "a native feature was refused");
            self.trial.learn(api, host, model, missing, exchange.proxy.now());
            self.learns = true;
        } else if is_native(mode) && capability::misused(api, status.as_u16(), body) {
            (self.wish, self.begun) = (Wish::Bridge, None);
        } else if !self.unbound && capability::thinking_refused(body) {
            self.unbound = true;
        } else {
            return false;
        }
        self.fallbacks += 1;
        exchange.proxy.metrics.fallback(api, mode.name());
        true
    }

    /// Takes the error of a hidden round in; where there is another way to go, the turn goes it.
    pub(crate) async fn turns(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        leg: &mut Leg,
        status: StatusCode,
        body: &[u8],
    ) -> bool {
        if !self.turned(exchange, leg.toolset.mode(), status, body) {
            return false;
        }
        let Some(other) = self.leg(exchange).await else { return false };
        *leg = other;
        turn.restart(self.past.clone(), Arc::clone(&leg.toolset));
        true
    }

    /// Remembers what was refused, once it went without.
    pub(crate) fn went(&mut self, exchange: &Exchange, status: StatusCode) {
        if self.learns && status.is_success() {
            self.learns = false;
            let mut learned = exchange.proxy.learned.lock().unwrap_or_else(PoisonError::into_inner);
            learned.merge(self.trial.clone());
        }
    }

    async fn toolset(&self, exchange: &Exchange, mode: Mode) -> Arc<Toolset> {
        let context = exchange.line.upstream.context;
        let (request, past) = (&self.request, &self.past);
        let plan = |loaded| Plan {
            api: exchange.api,
            mode,
            settings: exchange.proxy.settings.clone(),
            counter: prepare::counter(&request.model),
            model: request.model.clone(),
            context,
            sticky: past.mode().is_some(),
            second_names: past.second_names(),
            counts: request.counts,
            loaded,
        };
        let toolset = exchange.proxy.toolsets.get(plan(past.loaded()), self.tools()).await;
        let more = history::must_load(request, past, &toolset);
        if more.is_empty() {
            return toolset;
        }
        exchange.proxy.toolsets.get(plan([past.loaded(), more].concat()), self.tools()).await
    }
}

fn is_native(mode: Mode) -> bool {
    matches!(mode, Mode::Reference(_) | Mode::Hosted(_))
}

impl Exchange {
    /// What the upstream can do natively, as far as is known.
    pub(crate) fn capability(&self, model: &str, learned: &Learned) -> Capability {
        // What is said in another API's words has only that API's features.
        let api = self.line.words.speaks.unwrap_or(self.api);
        let native = self.line.upstream.native.as_ref();
        capability::resolve(api, &self.host, model, native, learned, self.proxy.now())
    }

    /// What upstreams have refused so far.
    pub(crate) fn learned(&self) -> Learned {
        self.proxy.learned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records of the conversation; none, where the store does not answer.
    async fn past(&self, places: &Places) -> Past {
        let keys: Vec<Key> = places.keys().iter().map(|key| Key::new(key.0)).collect();
        if keys.is_empty() {
            return Past::default();
        }
        match self.proxy.store.get(&keys).await {
            Ok(found) => {
                let found = found.into_iter().map(|bytes| bytes.map(|bytes| bytes.to_vec()));
                Past::found(places, found.collect())
            }
            Err(lost) => {
                tracing::warn!(%lost, "state cannot be read; the conversation goes on without it");
                self.proxy.metrics.state_lost();
                Past::default()
            }
        }
    }
}
