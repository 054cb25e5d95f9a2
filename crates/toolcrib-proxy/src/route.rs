//! Which API a request speaks, and which upstream it goes to.
//!
//! A path tells the API. For paths that several providers have, such as `/v1/models`, the headers tell
//! whose client it is. The model tells the upstream, where a route names it.

use axum::http::{HeaderMap, Uri};
use toolcrib_core::policy::Glob;
use toolcrib_dialect::Api;
use toolcrib_dialect::capability::Overrides;
use toolcrib_dialect::mode::RequestedMode;
use toolcrib_dialect::translate::adapter;
use url::Url;

use crate::Secret;
use crate::config::{Config, Route};

/// Whose API it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// OpenAI's, and everybody's who imitates it.
    OpenAi,
    /// Anthropic's.
    Anthropic,
    /// Google's.
    Google,
}

/// Whose API one is.
pub fn vendor(api: Api) -> Vendor {
    match api {
        Api::Chat | Api::Responses => Vendor::OpenAi,
        Api::Messages => Vendor::Anthropic,
        Api::Gemini => Vendor::Google,
    }
}

/// What a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Whose API.
    pub vendor: Vendor,
    /// The API, where the path is one whose requests carry tools.
    pub api: Option<Api>,
}

/// Reads a path.
pub fn asked(uri: &Uri, headers: &HeaderMap) -> Asked {
    let path = uri.path();
    let rest = ["/v1beta", "/v1alpha", "/v1"].iter().find_map(|version| path.strip_prefix(version));
    let rest = rest.unwrap_or(path);
    let api = match rest {
        "/chat/completions" => Some(Api::Chat),
        "/responses" | "/responses/input_tokens" => Some(Api::Responses),
        "/messages" | "/messages/count_tokens" => Some(Api::Messages),
        _ if rest.contains("/models/")
            && (rest.ends_with(":generateContent") || rest.ends_with(":streamGenerateContent")) =>
        {
            Some(Api::Gemini)
        }
        _ => None,
    };
    let vendor = match api {
        Some(api) => vendor(api),
        None => whose(uri, rest, headers),
    };
    Asked { vendor, api }
}

/// Whose client sends a request to a path that is no API with tools. A credential must not end up with
/// another provider, so that every sign counts: where it is put, and what it looks like.
fn whose(uri: &Uri, rest: &str, headers: &HeaderMap) -> Vendor {
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer =
        header("authorization").and_then(|value| value.split_once(' ')).map(|(_, key)| key);
    let bears = |start: &str| bearer.is_some_and(|key| key.starts_with(start));
    let places = ["/v1beta", "/v1alpha", "/upload/", "/v1/projects/"];
    let google = places.iter().any(|place| path.starts_with(place))
        || (rest.contains("/models/") && rest.contains(':'))
        || headers.contains_key("x-goog-api-key")
        || query
            .split('&')
            .any(|pair| pair.starts_with("key=") || pair.starts_with("access_token="))
        || bears("ya29.");
    let anthropic = headers.contains_key("anthropic-version")
        || headers.contains_key("x-api-key")
        || ["/messages", "/complete"].iter().any(|place| rest.starts_with(place))
        || bears("sk-ant-");
    match (google, anthropic) {
        (true, _) => Vendor::Google,
        (false, true) => Vendor::Anthropic,
        (false, false) => Vendor::OpenAi,
    }
}

/// Whether a path, which is no API whose bodies are read, may have tools in its bodies all the same.
pub(crate) fn may_have_tools(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["batch", "/chat/completions", "/responses", "/messages", "cachedcontents", "generatecontent"]
        .iter()
        .any(|part| path.contains(part))
}

/// Whether a path means another than it says: whoever reads it next may make it shorter.
pub(crate) fn is_winding(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace("%2e", ".");
    path.split(['/', '\\']).any(|part| matches!(part, "." | ".."))
}

/// What is sent to an upstream to show who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// What the client sent.
    Clients,
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
    /// What it can do natively, as configured.
    pub native: Option<Overrides>,
}

impl Upstream {
    fn plain(url: &str) -> Result<Self, NoUrl> {
        Ok(Self {
            url: base(url)?,
            speaks: None,
            model: None,
            mode: None,
            context: None,
            credential: Credential::Clients,
            native: None,
        })
    }

    fn routed(route: &Route) -> Result<Self, NoUrl> {
        let credential = match &route.key {
            Some(key) => Credential::Key(key.clone()),
            None if route.client_key => Credential::Clients,
            None => Credential::None,
        };
        Ok(Self {
            url: base(&route.url)?,
            speaks: route.speaks,
            model: route.model.clone(),
            mode: route.mode,
            context: route.context,
            credential,
            native: route.native.clone(),
        })
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
pub struct NoUrl(String);

/// A base URL; the version segment that some people write is taken off.
pub(crate) fn base(text: &str) -> Result<Url, NoUrl> {
    let trimmed = text.trim().trim_end_matches('/');
    let versions = ["/v1", "/v1beta", "/v1alpha"];
    let trimmed =
        versions.iter().find_map(|version| trimmed.strip_suffix(version)).unwrap_or(trimmed);
    // What stands before an `@` may be a password.
    let shown = || NoUrl(text.split('@').next_back().unwrap_or(text).to_owned());
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
    pub fn new(config: &Config) -> Result<Self, NoUrl> {
        let route = |route: &Route| {
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
    pub fn find(&self, asked: Asked, model: Option<&str>) -> &Upstream {
        let fits = |(models, api, upstream): &&(Vec<Glob>, Option<Api>, Upstream)| {
            let Some(model) = model else { return false };
            let speaks = upstream.speaks.zip(asked.api);
            // A client whose words cannot be put into those of the upstream has no business there.
            let understood =
                speaks.is_none_or(|(to, from)| to == from || adapter(from, to).is_some());
            let wanted = api.is_none() || *api == asked.api;
            wanted && understood && models.iter().any(|glob| glob.is(model))
        };
        let routed = self.by_model.iter().find(fits).map(|(_, _, upstream)| upstream);
        routed.unwrap_or(match asked.vendor {
            Vendor::OpenAi => &self.openai,
            Vendor::Anthropic => &self.anthropic,
            Vendor::Google => &self.google,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_tells_the_api_and_the_headers_whose_it_is() {
        let none = HeaderMap::new();
        let mut anthropic = HeaderMap::new();
        anthropic.insert("anthropic-version", "2023-06-01".parse().unwrap());
        let read = |path: &str, headers: &HeaderMap| {
            let asked = asked(&path.parse().unwrap(), headers);
            (asked.vendor, asked.api)
        };
        for (path, vendor, api) in [
            ("/v1/chat/completions", Vendor::OpenAi, Some(Api::Chat)),
            ("/chat/completions", Vendor::OpenAi, Some(Api::Chat)),
            ("/v1/responses", Vendor::OpenAi, Some(Api::Responses)),
            ("/v1/responses/resp_1", Vendor::OpenAi, None),
            ("/v1/messages?beta=true", Vendor::Anthropic, Some(Api::Messages)),
            ("/v1/messages/count_tokens", Vendor::Anthropic, Some(Api::Messages)),
            ("/v1/messages/batches", Vendor::Anthropic, None),
            ("/v1beta/models/gemini-3-pro:generateContent", Vendor::Google, Some(Api::Gemini)),
            ("/v1beta/models/g:streamGenerateContent?alt=sse", Vendor::Google, Some(Api::Gemini)),
            ("/v1beta/models/g:countTokens", Vendor::Google, None),
            ("/v1/models", Vendor::OpenAi, None),
            ("/v1/models/gemini-x:countTokens?key=AIza", Vendor::Google, None),
            ("/upload/v1beta/files?key=AIza", Vendor::Google, None),
            ("/v1/files?access_token=ya29", Vendor::Google, None),
        ] {
            assert_eq!(read(path, &none), (vendor, api), "{path}");
        }
        assert_eq!(read("/v1/models", &anthropic), (Vendor::Anthropic, None));
        let mut bearer = HeaderMap::new();
        bearer.insert("authorization", "Bearer sk-ant-1".parse().unwrap());
        assert_eq!(read("/v1/files", &bearer), (Vendor::Anthropic, None));
        for path in ["/v1/./chat/completions", "/v1/x/%2E%2e/messages", "/..", "/v1/.."] {
            assert!(is_winding(path), "{path}");
        }
        assert!(!is_winding("/v1/models/gemini-2.5..x:generateContent"));
    }

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
        let chat = Asked { vendor: Vendor::OpenAi, api: Some(Api::Chat) };
        let messages = Asked { vendor: Vendor::Anthropic, api: Some(Api::Messages) };
        let at = |asked, model| routes.find(asked, model).at("/v1/x");
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
            let error = base(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert_eq!(base("https://host/v1beta").unwrap().as_str(), "https://host/");
    }
}
