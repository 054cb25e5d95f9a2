//! Which upstream a request goes to: the one of its API's vendor, or the one that a route names for its model.

use toolcrib_core::policy::Glob;
use toolcrib_dialect::Api;
use toolcrib_dialect::capability::CapabilityOverrides;
use toolcrib_dialect::mode::RequestedMode;
use toolcrib_dialect::translate::adapter;
use url::Url;

use crate::Secret;
use crate::caller::Caller;
use crate::config::{Config, RouteConfig};
use crate::endpoint::{Endpoint, Vendor};

/// What is sent to an upstream to show who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// What the client sent.
    FromClient,
    /// Nothing.
    None,
    /// This.
    Key(Secret),
}

/// Where requests go.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The URL without the version segment.
    pub url: Url,
    /// The API it speaks, where that is not the client's.
    pub speaks: Option<Api>,
    /// What the model is called there.
    pub model: Option<String>,
    /// How tools are deferred.
    pub mode: Option<RequestedMode>,
    /// The context window.
    pub context: Option<usize>,
    /// What is sent to show who asks.
    pub credential: Credential,
    /// Whether it is one of the three providers in the config, for which callers have `upstream_keys`. A route may lead
    /// elsewhere, and must not get those keys.
    pub is_provider: bool,
    /// What it can do natively, as configured.
    pub native: Option<CapabilityOverrides>,
}

impl Upstream {
    fn plain(url: &str) -> Result<Self, InvalidUpstreamUrl> {
        Ok(Self {
            url: parse_base_url(url)?,
            speaks: None,
            model: None,
            mode: None,
            context: None,
            credential: Credential::FromClient,
            is_provider: true,
            native: None,
        })
    }

    fn routed(route: &RouteConfig) -> Result<Self, InvalidUpstreamUrl> {
        let credential = match &route.key {
            Some(key) => Credential::Key(key.clone()),
            None if route.client_key => Credential::FromClient,
            None => Credential::None,
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

    /// The credential that is sent to it for a caller whose client uses the API of `vendor`.
    pub(crate) fn credential_for(&self, caller: &Caller, vendor: Vendor) -> Credential {
        let Some(keys) =
            caller.substitute_keys.as_ref().filter(|_| self.credential == Credential::FromClient)
        else {
            return self.credential.clone();
        };
        // The client sent a key of ours in place of a credential, so it has none to forward.
        let key = match vendor {
            _ if !self.is_provider => &None,
            Vendor::OpenAi => &keys.openai,
            Vendor::Anthropic => &keys.anthropic,
            Vendor::Google => &keys.gemini,
        };
        key.clone().map_or(Credential::None, Credential::Key)
    }

    /// Its host, with the port where it is an odd one.
    pub fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// The URL of a path there.
    pub fn at(&self, path_and_query: &str) -> String {
        let base = self.url.as_str().trim_end_matches('/');
        format!("{base}{path_and_query}")
    }
}

/// A URL that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no URL of an upstream: write `https://host` or `http://host:port`")]
pub struct InvalidUpstreamUrl(String);

/// A base URL; the version segment that some people write is taken off.
pub(crate) fn parse_base_url(text: &str) -> Result<Url, InvalidUpstreamUrl> {
    let trimmed = text.trim().trim_end_matches('/');
    let versions = ["/v1", "/v1beta", "/v1alpha"];
    let trimmed =
        versions.iter().find_map(|version| trimmed.strip_suffix(version)).unwrap_or(trimmed);
    // What stands before an `@` may be a password.
    let shown = || InvalidUpstreamUrl(text.split('@').next_back().unwrap_or(text).to_owned());
    let url = Url::parse(trimmed).map_err(|_| shown())?;
    let usable =
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none();
    // A credential in a URL would end up in a log.
    let bare = url.username().is_empty() && url.password().is_none();
    if usable && bare { Ok(url) } else { Err(shown()) }
}

/// All upstreams.
#[derive(Debug)]
pub struct Routes {
    openai: Upstream,
    anthropic: Upstream,
    google: Upstream,
    by_model: Vec<(Vec<Glob>, Option<Api>, Upstream)>,
}

impl Routes {
    /// Reads the config's.
    pub fn new(config: &Config) -> Result<Self, InvalidUpstreamUrl> {
        let route = |route: &RouteConfig| {
            let models = route.models.iter().map(|model| Glob::new(model)).collect();
            Ok((models, route.api, Upstream::routed(route)?))
        };
        Ok(Self {
            openai: Upstream::plain(&config.openai)?,
            anthropic: Upstream::plain(&config.anthropic)?,
            google: Upstream::plain(&config.gemini)?,
            by_model: config.routes.iter().map(route).collect::<Result<_, _>>()?,
        })
    }

    /// Where a request goes that asks for this model.
    pub fn find(&self, endpoint: Endpoint, model: Option<&str>) -> &Upstream {
        let fits = |(models, api, upstream): &&(Vec<Glob>, Option<Api>, Upstream)| {
            let Some(model) = model else { return false };
            let speaks = upstream.speaks.zip(endpoint.api);
            // A client whose words cannot be put into those of the upstream has no business there.
            let understood =
                speaks.is_none_or(|(to, from)| to == from || adapter(from, to).is_some());
            let wanted = api.is_none() || *api == endpoint.api;
            wanted && understood && models.iter().any(|glob| glob.is(model))
        };
        let routed = self.by_model.iter().find(fits).map(|(_, _, upstream)| upstream);
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
    fn a_model_goes_where_its_route_says() {
        let config: Config = serde_json::from_value(serde_json::json!({
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
        assert_eq!(routes.find(chat, Some("qwen3")).credential, Credential::None);
        assert_eq!(at(messages, Some("claude-opus-5")), "https://b.example/v1/x");
        assert_eq!(at(chat, Some("claude-opus-5")), "https://gateway.example/api/v1/x");
        assert_eq!(at(messages, None), "https://api.anthropic.com/v1/x");
    }

    #[test]
    fn a_url_that_is_none_is_said_without_what_is_secret_in_it() {
        for text in
            ["localhost:8080", "ftp://x", "https://", "https://u:hunter2@host", "http://h?x=1"]
        {
            let error = parse_base_url(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert_eq!(parse_base_url("https://host/v1beta").unwrap().as_str(), "https://host/");
    }
}
