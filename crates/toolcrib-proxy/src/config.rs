//! What people can choose about the proxy: the `[proxy]` section of the file.

use serde::Deserialize;
use toolcrib_dialect::Api;
use toolcrib_dialect::capability::Overrides;
use toolcrib_dialect::decide::Wish;

use crate::Secret;

/// The proxy's settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where Chat Completions and Responses go.
    pub openai: String,
    /// Where Messages go.
    pub anthropic: String,
    /// Where `generateContent` goes.
    pub gemini: String,
    /// How tools are deferred, where no route says otherwise.
    pub mode: Wish,
    /// Hidden rounds of one turn, at most.
    pub rounds: usize,
    /// Seconds after which a turn gets no more hidden rounds.
    pub deadline: u64,
    /// Bytes of a request that is read; a larger one passes as it comes.
    pub request_bytes: usize,
    /// Where state is kept.
    pub state: State,
    /// Models that go elsewhere. The first that fits counts.
    pub routes: Vec<Route>,
    /// Who may come in, and what they may see.
    pub callers: Vec<Caller>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            openai: "https://api.openai.com".into(),
            anthropic: "https://api.anthropic.com".into(),
            gemini: "https://generativelanguage.googleapis.com".into(),
            mode: Wish::Auto,
            rounds: toolcrib_dialect::ROUNDS,
            deadline: 300,
            request_bytes: 64 << 20,
            state: State::default(),
            routes: Vec::new(),
            callers: Vec::new(),
        }
    }
}

impl Config {
    /// Every credential in it, for whoever replaces references to the environment.
    pub fn secrets(&mut self) -> impl Iterator<Item = &mut Secret> {
        let routes = self.routes.iter_mut().filter_map(|route| route.key.as_mut());
        let callers = self.callers.iter_mut().flat_map(|caller| {
            let keys = &mut caller.upstream_keys;
            let theirs = [&mut keys.openai, &mut keys.anthropic, &mut keys.gemini];
            std::iter::once(&mut caller.key).chain(theirs.into_iter().flatten())
        });
        self.state.redis.as_mut().into_iter().chain(routes).chain(callers)
    }
}

/// Where state is kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct State {
    /// A Redis that several replicas share; without one, this process's memory.
    pub redis: Option<Secret>,
    /// Bytes of state in memory, at most.
    pub bytes: usize,
    /// Hours that state stays which nobody asks for.
    pub hours: u64,
}

impl Default for State {
    fn default() -> Self {
        Self { redis: None, bytes: 64 << 20, hours: 24 }
    }
}

/// Models that go to an upstream of their own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Names or patterns of models: `qwen*`.
    pub models: Vec<String>,
    /// The API that clients ask for it by; all of them if none is named.
    #[serde(default)]
    pub api: Option<Api>,
    /// Where it is.
    pub url: String,
    /// The API that it speaks, where that is not the client's.
    #[serde(default)]
    pub speaks: Option<Api>,
    /// The name of the model there, where clients call it by another.
    #[serde(default)]
    pub model: Option<String>,
    /// How tools are deferred.
    #[serde(default)]
    pub mode: Option<Wish>,
    /// The model's context window, in tokens.
    #[serde(default)]
    pub context: Option<usize>,
    /// The credential to send. The client's own goes nowhere but to the three upstreams above.
    #[serde(default)]
    pub key: Option<Secret>,
    /// Whether the client's own credential is sent, where there is no `key`.
    #[serde(default)]
    pub client_key: bool,
    /// What it can do natively, where that is known better than by its name.
    #[serde(default)]
    pub native: Option<Overrides>,
}

/// Somebody who may come in with a key of ours.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caller {
    /// Its name, in logs and statistics.
    pub name: String,
    /// Its key: in `x-toolcrib-key`, or in place of the provider's.
    pub key: Secret,
    /// The tools it may know of, as names or patterns; all of them if none is named.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Tools it may not know of.
    #[serde(default)]
    pub hidden: Vec<String>,
    /// The providers' credentials that are sent for it, where its key stood in place of one.
    #[serde(default)]
    pub upstream_keys: Keys,
}

/// A credential for each provider; one of them is never sent to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keys {
    /// For where Chat Completions and Responses go.
    pub openai: Option<Secret>,
    /// For where Messages go.
    pub anthropic: Option<Secret>,
    /// For where `generateContent` goes.
    pub gemini: Option<Secret>,
}
