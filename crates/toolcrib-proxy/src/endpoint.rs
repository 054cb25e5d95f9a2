//! Determines which endpoint a path belongs to, and which vendor's API the endpoint is part of.
//!
//! Most paths identify the API. For a path that several vendors have, such as `/v1/models`, the headers show which
//! vendor's client sent the request. Only endpoints that are listed here are open to a caller with a key or a scope.
//! Rejected: a list of closed endpoints, which would miss the endpoints that a provider adds later.

use axum::http::{HeaderMap, Method};
use toolcrib_dialect::Api;

use crate::path::NormalizedPath;
use crate::query;

/// The vendor of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// OpenAI, and all providers with a compatible API.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Google.
    Google,
}

impl Vendor {
    /// Returns the vendor of an API.
    pub fn of(api: Api) -> Self {
        match api {
            Api::Chat | Api::Responses => Self::OpenAi,
            Api::Messages => Self::Anthropic,
            Api::Gemini => Self::Google,
        }
    }

    /// Returns the API whose error format clients of this vendor expect.
    pub(crate) fn error_api(self) -> Api {
        match self {
            Self::OpenAi => Api::Chat,
            Self::Anthropic => Api::Messages,
            Self::Google => Api::Gemini,
        }
    }
}

/// What an endpoint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointKind {
    /// Generates a response.
    Generate,
    /// Counts tokens.
    Count,
    /// Lists models, or describes one.
    Models,
    /// Anything else: files, batches, stored responses, administration.
    Other,
}

/// The endpoint of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// The vendor of the endpoint's API.
    pub vendor: Vendor,
    /// The API, if the proxy reads the bodies of requests to this path.
    pub api: Option<Api>,
    /// What the endpoint does.
    pub kind: EndpointKind,
    /// Whether the path contains the Google Cloud project that pays for the request.
    pub names_google_project: bool,
    /// Whether the path lacks the version segment, which the upstream requires.
    pub lacks_version: bool,
}

impl Endpoint {
    /// Finds the endpoint of a path, case-insensitively, because some upstreams ignore case.
    pub fn from_path(path: &NormalizedPath, query: Option<&str>, headers: &HeaderMap) -> Self {
        let folded = path.as_str().to_ascii_lowercase();
        let all: Vec<&str> = folded.split('/').filter(|segment| !segment.is_empty()).collect();
        let (version, rest) = match all.as_slice() {
            [version @ ("v1" | "v1beta" | "v1alpha"), rest @ ..] => (Some(*version), rest),
            all => (None, all),
        };
        let is_v1 = matches!(version, None | Some("v1"));
        let (api, kind) = match rest {
            ["chat", "completions"] if is_v1 => (Some(Api::Chat), EndpointKind::Generate),
            ["responses"] if is_v1 => (Some(Api::Responses), EndpointKind::Generate),
            ["responses", "input_tokens"] if is_v1 => (Some(Api::Responses), EndpointKind::Count),
            ["messages"] if is_v1 => (Some(Api::Messages), EndpointKind::Generate),
            ["messages", "count_tokens"] if is_v1 => (Some(Api::Messages), EndpointKind::Count),
            rest => gemini(rest).unwrap_or((None, models(rest))),
        };
        let vendor = match api {
            Some(api) => Vendor::of(api),
            None => vendor_of_client(&all, rest, query.unwrap_or_default(), headers),
        };
        let kind = match rest {
            ["models", model @ ..]
                if is_v1 && vendor == Vendor::OpenAi && is_slashed_model(model) =>
            {
                EndpointKind::Models
            }
            _ => kind,
        };
        let names_google_project = matches!(rest, ["projects", ..]);
        let lacks_version = version.is_none() && api.is_some_and(|api| api != Api::Gemini);
        Self { vendor, api, kind, names_google_project, lacks_version }
    }

    /// Whether every caller may use this method of the endpoint. True for generation, counting, and lists of models.
    pub fn is_open_to_callers(&self, method: &Method) -> bool {
        match self.kind {
            EndpointKind::Generate | EndpointKind::Count => method == Method::POST,
            EndpointKind::Models => matches!(*method, Method::GET | Method::HEAD),
            EndpointKind::Other => false,
        }
    }
}

/// Returns the API (if the body is read) and the kind of a path that ends with `models/MODEL:VERB`; `None` for any
/// other path or an unknown verb. If the part before `models` is not one that Google uses, the API is the same, but the
/// kind is `Other`, so the endpoint is not open to callers.
fn gemini(rest: &[&str]) -> Option<(Option<Api>, EndpointKind)> {
    let [prefix @ .., "models", last] = rest else { return None };
    let (model, verb) = last.split_once(':')?;
    let is_known = is_name(model, "")
        && match prefix {
            [] => true,
            ["publishers", publisher] => is_name(publisher, ""),
            ["projects", project, "locations", location, "publishers", publisher] => {
                [project, location, publisher].iter().all(|name| is_name(name, ":"))
            }
            _ => false,
        };
    let (api, kind) = match verb {
        "generatecontent" | "streamgeneratecontent" => (Some(Api::Gemini), EndpointKind::Generate),
        "counttokens" => (None, EndpointKind::Count),
        _ => return None,
    };
    Some((api, if is_known { kind } else { EndpointKind::Other }))
}

/// Returns `Models` if the path lists models or describes one, and otherwise `Other`. `rest` is the path after the
/// version segment.
fn models(rest: &[&str]) -> EndpointKind {
    match rest {
        ["models"] => EndpointKind::Models,
        // A colon is allowed, because names of fine-tuned models contain colons. Longer paths are Google's operations
        // on a model, which are not open to callers.
        ["models", model] if is_name(model, ":") => EndpointKind::Models,
        _ => EndpointKind::Other,
    }
}

/// Whether these segments are a model's id with slashes, such as `meta-llama/llama-3`. Only servers with an
/// OpenAI-compatible API have such ids: in Google's API, the segments after a model are operations.
fn is_slashed_model(model: &[&str]) -> bool {
    (2..=3).contains(&model.len()) && model.iter().all(|segment| is_name(segment, ""))
}

/// Whether a segment is a plain name. `more` are characters that are allowed in addition to the usual ones.
fn is_name(segment: &str, more: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c) || more.contains(c);
    !segment.is_empty() && segment.chars().all(plain)
}

/// Returns the vendor whose client sent a request, for a path that belongs to no API. A credential must not be sent to
/// the wrong provider, so the header that contains the credential and the credential's prefix are considered, too.
fn vendor_of_client(all: &[&str], rest: &[&str], query: &str, headers: &HeaderMap) -> Vendor {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer =
        header("authorization").and_then(|value| value.split_once(' ')).map(|(_, key)| key);
    let bears = |start: &str| bearer.is_some_and(|key| key.starts_with(start));
    // Whether a segment has the form `MODEL:VERB`, as in Google's API. Names of OpenAI's fine-tuned models also contain
    // colons, but start with `ft:`.
    let is_verb = |last: &str| last.matches(':').count() == 1 && !last.starts_with("ft:");
    let verb =
        |segments: &[&str]| segments.windows(2).any(|pair| pair[0] == "models" && is_verb(pair[1]));
    let google = matches!(all, ["v1beta" | "v1alpha" | "upload", ..] | ["v1", "projects", ..])
        || verb(rest)
        || headers.contains_key("x-goog-api-key")
        || query::credentials(query).next().is_some()
        || bears("ya29.");
    let anthropic = headers.contains_key("anthropic-version")
        || headers.contains_key("x-api-key")
        || matches!(rest, ["messages" | "complete", ..])
        || bears("sk-ant-");
    match (google, anthropic) {
        (true, _) => Vendor::Google,
        (false, true) => Vendor::Anthropic,
        (false, false) => Vendor::OpenAi,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(target: &str, headers: &HeaderMap) -> Endpoint {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        Endpoint::from_path(&NormalizedPath::read(path.as_bytes()).unwrap(), query, headers)
    }

    #[test]
    fn the_path_gives_the_api_and_the_headers_the_vendor() {
        use EndpointKind::{Count, Generate, Models, Other};
        let none = HeaderMap::new();
        for (target, vendor, api, kind) in [
            ("/v1/chat/completions", Vendor::OpenAi, Some(Api::Chat), Generate),
            ("/chat/completions", Vendor::OpenAi, Some(Api::Chat), Generate),
            ("/V1/Chat/completions/", Vendor::OpenAi, Some(Api::Chat), Generate),
            ("/v1/chat;a/completions", Vendor::OpenAi, None, Other),
            ("/v1/responses", Vendor::OpenAi, Some(Api::Responses), Generate),
            ("/v1/responses/input_tokens", Vendor::OpenAi, Some(Api::Responses), Count),
            ("/v1/responses/resp_1", Vendor::OpenAi, None, Other),
            ("/v1/messages?beta=true", Vendor::Anthropic, Some(Api::Messages), Generate),
            ("/v1/messages/count_tokens", Vendor::Anthropic, Some(Api::Messages), Count),
            ("/v1/messages/batches", Vendor::Anthropic, None, Other),
            (
                "/v1beta/models/gemini-3-pro:generateContent",
                Vendor::Google,
                Some(Api::Gemini),
                Generate,
            ),
            (
                "/v1beta/models/g:streamGenerateContent?alt=sse",
                Vendor::Google,
                Some(Api::Gemini),
                Generate,
            ),
            (
                "/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
                Vendor::Google,
                Some(Api::Gemini),
                Generate,
            ),
            ("/v1beta/models/a/models/g:generateContent", Vendor::Google, Some(Api::Gemini), Other),
            ("/v1beta/models/g%20x:generateContent", Vendor::Google, Some(Api::Gemini), Other),
            ("/v1beta/models/g:generateContent:generateContent", Vendor::Google, None, Models),
            ("/v1beta/models/:generateContent", Vendor::Google, Some(Api::Gemini), Other),
            ("/v1beta/models/g:countTokens", Vendor::Google, None, Count),
            ("/v1beta/models/g/operations", Vendor::Google, None, Other),
            ("/v1/models", Vendor::OpenAi, None, Models),
            ("/v1/models/ft:gpt-4o:org::id", Vendor::OpenAi, None, Models),
            ("/v1/models/meta-llama/llama-3", Vendor::OpenAi, None, Models),
            ("/v1/models/a/b/c", Vendor::OpenAi, None, Models),
            ("/v1/models/a/b/c/d", Vendor::OpenAi, None, Other),
            ("/v1/models/g/operations?key=AIza", Vendor::Google, None, Other),
            ("/v1/models/gemini-x:countTokens?key=AIza", Vendor::Google, None, Count),
            ("/upload/v1beta/files?key=AIza", Vendor::Google, None, Other),
            ("/v1/files?access_token=ya29", Vendor::Google, None, Other),
            ("/v1beta/openai/chat/completions", Vendor::Google, None, Other),
            ("/v1/threads/runs", Vendor::OpenAi, None, Other),
            ("/", Vendor::OpenAi, None, Other),
        ] {
            let endpoint = read(target, &none);
            assert_eq!(
                (endpoint.vendor, endpoint.api, endpoint.kind),
                (vendor, api, kind),
                "{target}"
            );
        }
        assert!(
            read("/messages", &none).lacks_version && !read("/v1/messages", &none).lacks_version
        );
        let with = |name: &'static str, value: &str| {
            HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
        };
        let vendor = |target, headers: &HeaderMap| read(target, headers).vendor;
        assert_eq!(
            vendor("/v1/models", &with("anthropic-version", "2023-06-01")),
            Vendor::Anthropic
        );
        assert_eq!(
            vendor("/v1/files", &with("authorization", "Bearer sk-ant-1")),
            Vendor::Anthropic
        );
    }

    #[test]
    fn an_endpoint_is_open_only_with_its_own_method() {
        let none = HeaderMap::new();
        for (method, target, open) in [
            (Method::POST, "/v1/chat/completions", true),
            (Method::GET, "/v1/chat/completions", false),
            (Method::GET, "/v1/models/x", true),
            (Method::DELETE, "/v1/models/x", false),
            (Method::POST, "/v1beta/models/x:countTokens", true),
            (Method::POST, "/v1beta/models/x:embedContent", false),
        ] {
            assert_eq!(read(target, &none).is_open_to_callers(&method), open, "{method} {target}");
        }
    }
}
