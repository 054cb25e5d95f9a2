//! Chooses the upstream for a request: the upstream of a route for the request's model, or otherwise that of the vendor
//! of the request's API.

use toolcrib_core::policy::Glob;
use toolcrib_dialect::Api;
use toolcrib_dialect::capability::CapabilityOverrides;
use toolcrib_dialect::mode::RequestedMode;
use toolcrib_dialect::translate::adapter;
use url::Url;

use crate::Secret;
use crate::caller::Caller;
use crate::config::{ProxyConfig, RouteConfig};
use crate::endpoint::{Endpoint, Vendor};

/// The credential that is sent to an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamCredential {
    /// The client's own credential.
    FromClient,
    /// No credential.
    None,
    /// This key.
    Key(Secret),
}

/// A server that requests are sent to.
#[derive(Debug, Clone)]
pub struct LlmUpstream {
    /// The URL without the version segment.
    pub url: Url,
    /// The upstream's API. `None` means that it is always the client's API.
    pub speaks: Option<Api>,
    /// The upstream's name for the model, if it differs from the name that clients use.
    pub model: Option<String>,
    /// How tools are deferred.
    pub mode: Option<RequestedMode>,
    /// The model's context window, in tokens.
    pub context: Option<usize>,
    /// The credential that is sent to the upstream.
    pub credential: UpstreamCredential,
    /// Whether the upstream is one of the three providers in the config, for which callers have `upstream_keys`. The
    /// upstream of a route may be another server and must not get those keys.
    pub is_provider: bool,
    /// The native features that the upstream supports, as configured.
    pub native: Option<CapabilityOverrides>,
}

impl LlmUpstream {
    fn plain(url: &str) -> Result<Self, InvalidUpstreamUrl> {
        Ok(Self {
            url: parse_base_url(url)?,
            speaks: None,
            model: None,
            mode: None,
            context: None,
            credential: UpstreamCredential::FromClient,
            is_provider: true,
            native: None,
        })
    }

    fn routed(route: &RouteConfig) -> Result<Self, InvalidUpstreamUrl> {
        let credential = match &route.key {
            Some(key) => UpstreamCredential::Key(key.clone()),
            None if route.client_key => UpstreamCredential::FromClient,
            None => UpstreamCredential::None,
        };
        Ok(Self {
            url: parse_base_url(&route.url)?,
            speaks: route.speaks,
            model: route.model.clone(),
            mode: route.mode,
            context: route.context,
            credential,
            is_provider: false,
            native: route.native.clone(),
        })
    }

    /// Returns the credential that is sent to the upstream for a caller whose client uses the API of `vendor`.
    pub(crate) fn credential_for(&self, caller: &Caller, vendor: Vendor) -> UpstreamCredential {
        let Some(keys) = caller
            .substitute_keys
            .as_ref()
            .filter(|_| self.credential == UpstreamCredential::FromClient)
        else {
            return self.credential.clone();
        };
        // The client sent a Toolcrib key in place of a credential, so there is no credential to forward.
        let key = match vendor {
            _ if !self.is_provider => &None,
            Vendor::OpenAi => &keys.openai,
            Vendor::Anthropic => &keys.anthropic,
            Vendor::Google => &keys.gemini,
        };
        key.clone().map_or(UpstreamCredential::None, UpstreamCredential::Key)
    }

    /// Returns the upstream's host. The port is included unless it is the scheme's default port.
    pub fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns the URL of a path on the upstream.
    pub fn at(&self, path_and_query: &str) -> String {
        let base = self.url.as_str().trim_end_matches('/');
        format!("{base}{path_and_query}")
    }
}

/// The error about a text that is not the URL of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the URL of an upstream: write `https://host` or `http://host:port`")]
pub struct InvalidUpstreamUrl(String);

/// Parses a base URL. A version segment at its end is removed, because some people include it.
pub(crate) fn parse_base_url(text: &str) -> Result<Url, InvalidUpstreamUrl> {
    let trimmed = text.trim().trim_end_matches('/');
    let versions = ["/v1", "/v1beta", "/v1alpha"];
    let trimmed =
        versions.iter().find_map(|version| trimmed.strip_suffix(version)).unwrap_or(trimmed);
    // The text before an `@` is left out of the error, because it may contain a password.
    let invalid = || InvalidUpstreamUrl(text.split('@').next_back().unwrap_or(text).to_owned());
    let url = Url::parse(trimmed).map_err(|_| invalid())?;
    let is_usable =
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none();
    // A credential in a URL would be written to the log.
    let has_no_credential = url.username().is_empty() && url.password().is_none();
    if is_usable && has_no_credential { Ok(url) } else { Err(invalid()) }
}

/// All upstreams, and the models that are routed to them.
#[derive(Debug)]
pub struct Routes {
    openai: LlmUpstream,
    anthropic: LlmUpstream,
    google: LlmUpstream,
    by_model: Vec<(Vec<Glob>, Option<Api>, LlmUpstream)>,
}

impl Routes {
    /// Creates the upstreams of a config.
    pub fn new(config: &ProxyConfig) -> Result<Self, InvalidUpstreamUrl> {
        let route = |route: &RouteConfig| {
            let models = route.models.iter().map(|model| Glob::new(model)).collect();
            Ok((models, route.api, LlmUpstream::routed(route)?))
        };
        Ok(Self {
            openai: LlmUpstream::plain(&config.openai)?,
            anthropic: LlmUpstream::plain(&config.anthropic)?,
            google: LlmUpstream::plain(&config.gemini)?,
            by_model: config.routes.iter().map(route).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the upstream for a request to this endpoint with this model.
    pub fn find(&self, endpoint: Endpoint, model: Option<&str>) -> &LlmUpstream {
        let matches = |(models, api, upstream): &&(Vec<Glob>, Option<Api>, LlmUpstream)| {
            let Some(model) = model else { return false };
            let speaks = upstream.speaks.zip(endpoint.api);
            // The route does not apply to a client whose requests cannot be translated to the upstream's API.
            let is_translatable =
                speaks.is_none_or(|(to, from)| to == from || adapter(from, to).is_some());
            let is_for_api = api.is_none() || *api == endpoint.api;
            is_for_api && is_translatable && models.iter().any(|glob| glob.matches_name(model))
        };
        let routed = self.by_model.iter().find(matches).map(|(_, _, upstream)| upstream);
        routed.unwrap_or(match endpoint.vendor {
            Vendor::OpenAi => &self.openai,
            Vendor::Anthropic => &self.anthropic,
            Vendor::Google => &self.google,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::EndpointKind;

    #[test]
    fn a_model_is_sent_to_the_upstream_of_its_route() {
        let config: ProxyConfig = serde_json::from_value(serde_json::json!({
            "openai": "https://gateway.example/api/v1/",
            "routes": [
                {"models": ["qwen*"], "url": "http://localhost:11434/v1", "mode": "append"},
                {"models": ["claude-*"], "api": "messages", "url": "https://b.example", "key": "k"}
            ]
        }))
        .unwrap();
        let routes = Routes::new(&config).unwrap();
        let endpoint = |api| Endpoint {
            vendor: Vendor::of(api),
            api: Some(api),
            kind: EndpointKind::Generate,
            names_google_project: false,
            lacks_version: false,
        };
        let (chat, messages) = (endpoint(Api::Chat), endpoint(Api::Messages));
        let at = |endpoint, model| routes.find(endpoint, model).at("/v1/x");
        assert_eq!(at(chat, Some("gpt-5")), "https://gateway.example/api/v1/x");
        assert_eq!(at(chat, Some("Qwen3-8b")), "http://localhost:11434/v1/x");
        assert_eq!(routes.find(chat, Some("qwen3")).credential, UpstreamCredential::None);
        assert_eq!(at(messages, Some("claude-opus-5")), "https://b.example/v1/x");
        assert_eq!(at(chat, Some("claude-opus-5")), "https://gateway.example/api/v1/x");
        assert_eq!(at(messages, None), "https://api.anthropic.com/v1/x");
    }

    #[test]
    fn the_error_for_an_invalid_url_contains_no_password() {
        for text in
            ["localhost:8080", "ftp://x", "https://", "https://u:hunter2@host", "http://h?x=1"]
        {
            let error = parse_base_url(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert_eq!(parse_base_url("https://host/v1beta").unwrap().as_str(), "https://host/");
    }
}
