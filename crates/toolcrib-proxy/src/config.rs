//! The config of the proxy: the `[proxy]` section of the file.

use serde::Deserialize;
use toolcrib_dialect::Api;
use toolcrib_dialect::ResponseLimits;
use toolcrib_dialect::capability::CapabilityOverrides;
use toolcrib_dialect::mode::RequestedMode;
use toolcrib_server::config::duration;
use toolcrib_server::{ConfigError, ConfigFile};

use crate::Secret;

/// The proxy's settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, expecting = "a map")]
pub struct ProxyConfig {
    /// The upstream for Chat Completions and Responses.
    pub openai: String,
    /// The upstream for Messages.
    pub anthropic: String,
    /// The upstream for `generateContent`.
    pub gemini: String,
    /// How tools are deferred, unless a route sets another mode. Default: the engine's `disclosure`.
    pub mode: Option<RequestedMode>,
    /// Maximum number of hidden rounds in one turn.
    pub rounds: usize,
    /// Time after which a turn gets no more hidden rounds, in seconds.
    #[serde(deserialize_with = "duration::whole_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "duration::Seconds"))]
    pub deadline: u64,
    /// Maximum size of a request that is read, in bytes. A larger one is forwarded unchanged, or rejected if it must be
    /// checked.
    pub request_bytes: usize,
    /// Maximum total size of the non-streamed responses that are read in one turn, in bytes.
    pub response_bytes: usize,
    /// Maximum amount of data that is held from the streamed responses of one turn, in bytes.
    pub turn_bytes: usize,
    /// Maximum size of the arguments of one call that is held back, in bytes.
    pub call_bytes: usize,
    /// Maximum amount of data that is held from all responses together, in bytes.
    pub total_response_bytes: usize,
    /// Where state is stored.
    pub state: StateConfig,
    /// Upstreams for certain models. The first matching route is used.
    pub routes: Vec<RouteConfig>,
    /// Callers with keys of their own, and what they may see.
    pub callers: Vec<CallerConfig>,
    /// Paths that are open to every caller with a key or a scope, in addition to generation, counting and lists of
    /// models. Examples: `POST /v1/embeddings`, `/v1/files/*`.
    pub paths: Vec<String>,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        let limits = ResponseLimits::default();
        Self {
            openai: "https://api.openai.com".into(),
            anthropic: "https://api.anthropic.com".into(),
            gemini: "https://generativelanguage.googleapis.com".into(),
            mode: None,
            rounds: toolcrib_dialect::DEFAULT_HIDDEN_ROUNDS,
            deadline: 300,
            request_bytes: 64 << 20,
            response_bytes: limits.response,
            turn_bytes: limits.turn,
            call_bytes: limits.call,
            total_response_bytes: 512 << 20,
            state: StateConfig::default(),
            routes: Vec::new(),
            callers: Vec::new(),
            paths: Vec::new(),
        }
    }
}

impl ProxyConfig {
    /// The name of the section.
    pub const SECTION: &str = "proxy";

    /// Reads the section.
    pub fn read(file: &ConfigFile<'_>) -> Result<Self, ConfigError> {
        file.section(Self::SECTION, "proxy")
    }

    /// Returns the keys whose values differ from those of another config, except callers and paths.
    pub(crate) fn changed_keys(&self, other: &Self) -> Vec<&'static str> {
        let keys = [
            ("openai", self.openai == other.openai),
            ("anthropic", self.anthropic == other.anthropic),
            ("gemini", self.gemini == other.gemini),
            ("mode", self.mode == other.mode),
            ("rounds", self.rounds == other.rounds),
            ("deadline", self.deadline == other.deadline),
            ("request_bytes", self.request_bytes == other.request_bytes),
            ("response_bytes", self.response_bytes == other.response_bytes),
            ("turn_bytes", self.turn_bytes == other.turn_bytes),
            ("call_bytes", self.call_bytes == other.call_bytes),
            ("total_response_bytes", self.total_response_bytes == other.total_response_bytes),
            ("state", self.state == other.state),
            ("routes", self.routes == other.routes),
        ];
        keys.into_iter().filter(|(_, is_same)| !is_same).map(|(key, _)| key).collect()
    }

    /// Returns the limits on the data that is held from responses.
    pub(crate) fn limits(&self) -> ResponseLimits {
        ResponseLimits {
            response: self.response_bytes,
            turn: self.turn_bytes,
            call: self.call_bytes,
        }
    }

    /// Returns every credential in the config, so that references in them can be expanded.
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

/// Where state is stored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct StateConfig {
    /// The URL of a Redis that replicas share. If not set, state is stored in memory.
    pub redis: Option<Secret>,
    /// Maximum size of the state in memory, in bytes.
    pub bytes: usize,
    /// Time after which unused state expires, in hours.
    #[serde(deserialize_with = "duration::whole_hours")]
    #[cfg_attr(feature = "schema", schemars(with = "duration::Seconds"))]
    pub hours: u64,
    /// Maximum time that a request waits for Redis before it continues without state, in milliseconds.
    #[serde(deserialize_with = "duration::whole_milliseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "duration::Seconds"))]
    pub timeout_ms: u64,
}

impl Default for StateConfig {
    fn default() -> Self {
        Self { redis: None, bytes: 64 << 20, hours: 24, timeout_ms: 250 }
    }
}

/// A route: the upstream for certain models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// Names or patterns of models: `qwen*`.
    pub models: Vec<String>,
    /// The API of the clients that the route applies to. Default: all.
    #[serde(default)]
    pub api: Option<Api>,
    /// The URL of the upstream.
    pub url: String,
    /// The API of the upstream. Default: the client's API.
    #[serde(default)]
    pub speaks: Option<Api>,
    /// The upstream's name for the model, if it differs from the name that clients use.
    #[serde(default)]
    pub model: Option<String>,
    /// How tools are deferred.
    #[serde(default)]
    pub mode: Option<RequestedMode>,
    /// The model's context window, in tokens.
    #[serde(default)]
    pub context: Option<usize>,
    /// The credential to send to the upstream. By default none is sent, because the client's own credential is meant
    /// for OpenAI, Anthropic or Google.
    #[serde(default)]
    pub key: Option<Secret>,
    /// Whether the client's own credential is sent if `key` is not set.
    #[serde(default)]
    pub client_key: bool,
    /// The native features that the upstream supports. Overrides what is assumed from its host and model.
    #[serde(default)]
    pub native: Option<CapabilityOverrides>,
}

/// A caller with a Toolcrib key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallerConfig {
    /// The caller's name in logs and statistics.
    pub name: String,
    /// The caller's key. The caller sends it in `x-toolcrib-key` or in place of the provider's credential.
    pub key: Secret,
    /// Names or patterns of the tools that the caller may know of. If empty, all tools.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Names or patterns of the tools that the caller may not know of.
    #[serde(default)]
    pub hidden: Vec<String>,
    /// Paths that are open to the caller, in addition to those of `[proxy]`.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The credentials that are sent to providers if the caller sends its Toolcrib key in place of a provider credential.
    #[serde(default)]
    pub upstream_keys: ProviderKeys,
}

/// A credential for each provider. Each is sent only to its own provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ProviderKeys {
    /// For the upstream of Chat Completions and Responses.
    pub openai: Option<Secret>,
    /// For the upstream of Messages.
    pub anthropic: Option<Secret>,
    /// For the upstream of `generateContent`.
    pub gemini: Option<Secret>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ProxyConfig, ConfigError> {
        ProxyConfig::read(&ConfigFile::parse(text).unwrap())
    }

    #[test]
    fn every_duration_may_have_units_or_be_a_number_in_the_unit_of_its_key() {
        for text in [
            "proxy = { deadline = '1m30s', state = { hours = '36h', timeout_ms = '1s500ms' } }",
            "proxy = { deadline = 90, state = { hours = 36, timeout_ms = 1500 } }",
        ] {
            let config = read(text).unwrap();
            assert_eq!(config.deadline, 90);
            assert_eq!((config.state.hours, config.state.timeout_ms), (36, 1_500));
        }
        for (text, unit) in [
            ("proxy.deadline = '90'", "seconds"),
            ("proxy.state.hours = '90m'", "hours"),
            ("proxy.state.timeout_ms = '1.5ms'", "milliseconds"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(&format!("a whole number of {unit}, or a duration")), "{error}");
        }
    }

    #[test]
    fn a_misspelled_key_gets_a_suggestion_in_every_table() {
        for (text, expected) in [
            ("[proxy]\nopnai = 'x'", "openai"),
            ("[proxy.state]\nhour = 1", "hours"),
            ("[[proxy.routes]]\nmodel = 'x'\nurls = 'x'", "url"),
            ("[[proxy.callers]]\nnmae = 'x'", "name"),
            (
                "[[proxy.callers]]\nname = 'x'\nkey = 'x'\nupstream_keys = { gemnii = 'x' }",
                "gemini",
            ),
        ] {
            let error = read(text).unwrap_err();
            let hint = format!(
                "did you mean `{expected}`? `toolcrib docs proxy` lists the keys and their defaults"
            );
            assert_eq!(error.hint, hint, "{text}: {error}");
        }
    }
}
