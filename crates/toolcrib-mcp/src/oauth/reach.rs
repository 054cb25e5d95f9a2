//! Which addresses signing in may ask, and what of their answers comes in.
//!
//! Where to sign in is said by the upstream server, so it is a stranger's text: without a rule it could
//! point our requests at the machine itself or into the private network. The rule: the server's own host
//! always; else only https to a public address, checked on the very address that is connected to. Redirects
//! are never followed here (rmcp follows those of discovery itself, within one origin).
//!
//! Of an answer with tokens only the standard fields come in, of an error only its code: rmcp logs and
//! repeats both, and a server could put anything there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{Request, Response, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};
use serde_json::{Map, Value};
use url::{Host, Url, form_urlencoded};

use super::Upstream;
use super::store::Store;

const TIMEOUT: Duration = Duration::from_secs(30);
/// Metadata documents have a few kilobytes.
const LARGEST: usize = 1 << 20;
/// Calls that fail together come for a new token within this time of each other.
const TOGETHER: Duration = Duration::from_secs(5);

/// Which rule an address breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Barred {
    /// Not a URL, or one with a user name in it.
    #[error("it is malformed")]
    Malformed,
    /// Neither http nor https.
    #[error("it is neither http nor https")]
    Scheme,
    /// Plain http to somewhere else than the server's own host.
    #[error("it is not https")]
    Plain,
    /// This machine, or a private network, that the config does not name.
    #[error("it is a private address")]
    Private,
}

/// The rule for one upstream server.
#[derive(Debug, Clone)]
struct Rule {
    base: Url,
    trusted: Arc<[String]>,
}

impl Rule {
    fn new(upstream: &Upstream) -> Self {
        let trusted = upstream.trusted_hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Self { base: upstream.url.clone(), trusted }
    }

    fn check(&self, url: &Url) -> Result<(), Barred> {
        let host = url.host().ok_or(Barred::Malformed)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Barred::Malformed);
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Barred::Scheme);
        }
        let downgrade = url.scheme() == "http" && self.base.scheme() != "http";
        if is_loopback(&host) {
            return if self.is_local() { Ok(()) } else { Err(Barred::Private) };
        }
        if downgrade || (url.scheme() == "http" && url.host() != self.base.host()) {
            return Err(Barred::Plain);
        }
        let address = match host {
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => IpAddr::V6(address),
            Host::Domain(_) => return Ok(()),
        };
        let named = url.host_str().is_some_and(|host| self.names(host));
        if named || is_public(address) { Ok(()) } else { Err(Barred::Private) }
    }

    /// Those addresses of `host` that may be connected to.
    fn keep(&self, host: &str, found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
        let free = self.names(host) || (self.is_local() && is_loopback(&Host::Domain(host)));
        found.filter(|address| free || is_public(address.ip())).collect()
    }

    /// Whether the upstream server itself is on this machine.
    fn is_local(&self) -> bool {
        self.base.host().is_some_and(|host| is_loopback(&host))
    }

    /// Whether the config names this host: then its owner knows where it leads.
    fn names(&self, host: &str) -> bool {
        self.base.host_str() == Some(host) || self.trusted.iter().any(|trusted| trusted == host)
    }
}

/// Checks an endpoint that a metadata document names.
pub(super) fn check_text(upstream: &Upstream, text: &str) -> Result<(), Barred> {
    let url = text.parse().map_err(|_| Barred::Malformed)?;
    Rule::new(upstream).check(&url)
}

/// Answers with the addresses that the rule allows, so that the checked one is the one connected to.
impl Resolve for Rule {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = self.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let kept = rule.keep(&host, found);
            if kept.is_empty() {
                Err(Barred::Private.into())
            } else {
                Ok(Box::new(kept.into_iter()) as Addrs)
            }
        })
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => IpAddr::V6(*address).to_canonical().is_loopback(),
    }
}

fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    let special = matches!((a, b), (0 | 240.., _) | (100, 64..=127) | (198, 18 | 19) | (192, 0));
    !(special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast())
}

/// Global unicast (`2000::/3`) without the tunnels that hide an IPv4 address, and NAT64 by what it hides.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
        }
        [0x2001, 0, ..] | [0x2002, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// The HTTP client of the sign-in.
pub(super) struct Reach {
    http: reqwest::Client,
    rule: Rule,
    store: Store,
    /// Until when the last refresh also answers the next one.
    fresh_until: Mutex<Option<Instant>>,
}

impl Reach {
    pub(super) fn new(upstream: &Upstream, store: Store) -> Result<Self, reqwest::Error> {
        let rule = Rule::new(upstream);
        let http = toolcrib_tls::client_builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(rule.clone()))
            .build()?;
        Ok(Self { http, rule, store, fresh_until: Mutex::new(None) })
    }

    async fn ask(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let grant = grant_of(&request);
        let refreshes = grant.as_deref() == Some("refresh_token");
        if refreshes && let Some(answer) = self.answer_again() {
            return Ok(answer);
        }
        let request = reqwest::Request::try_from(request)?;
        self.rule.check(request.url())?;
        let mut answer = read(self.http.execute(request).await?).await?;
        if grant.is_some() {
            strip(&mut answer, refreshes);
        }
        if refreshes && answer.status().is_success() {
            self.remember(&answer);
        }
        Ok(answer)
    }

    /// rmcp refreshes once per call that was answered 401, one after the other. Those that come for the
    /// same reason get the token that the first one fetched.
    fn answer_again(&self) -> Option<Response<Vec<u8>>> {
        let until = (*self.fresh_until.lock().unwrap_or_else(PoisonError::into_inner))?;
        if Instant::now() >= until {
            return None;
        }
        let body = serde_json::to_vec(&self.store.token()?).ok()?;
        Response::builder()
            .status(StatusCode::OK)
            .header("content-type", "application/json")
            .body(body)
            .ok()
    }

    fn remember(&self, answer: &Response<Vec<u8>>) {
        let token: Map<String, Value> = serde_json::from_slice(answer.body()).unwrap_or_default();
        let life = token.get("expires_in").and_then(Value::as_u64).map(Duration::from_secs);
        let window = life.map_or(TOGETHER, |life| TOGETHER.min(life / 2));
        *self.fresh_until.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Instant::now() + window);
    }
}

impl OAuthHttpClient for Reach {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.ask(request.request))
    }
}

async fn read(mut answer: reqwest::Response) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if chunk.len() > LARGEST - body.len() {
            return Err("the answer is too long".into());
        }
        body.extend_from_slice(&chunk);
    }
    let mut response = Response::new(body);
    *response.status_mut() = answer.status();
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    Ok(response)
}

/// The grant that a request asks tokens for; other requests have none.
fn grant_of(request: &Request<Vec<u8>>) -> Option<String> {
    let mut fields = form_urlencoded::parse(request.body());
    fields.find(|(name, _)| name == "grant_type").map(|(_, value)| value.into_owned())
}

fn strip(answer: &mut Response<Vec<u8>>, refreshes: bool) {
    const TOKEN: [&str; 5] = ["access_token", "token_type", "expires_in", "refresh_token", "scope"];
    let said: Map<String, Value> = serde_json::from_slice(answer.body()).unwrap_or_default();
    let kept: Map<String, Value> = if answer.status().is_success() {
        said.into_iter().filter(|(name, _)| TOKEN.contains(&name.as_str())).collect()
    } else {
        let code =
            said.get("error").and_then(Value::as_str).and_then(|code| known(code, refreshes));
        code.map(|code| ("error".to_owned(), Value::from(code))).into_iter().collect()
    };
    // Nothing at all, where nothing is known: rmcp then reports a failure without a text.
    *answer.body_mut() =
        if kept.is_empty() { Vec::new() } else { Value::Object(kept).to_string().into_bytes() };
}

/// The error codes of RFC 6749 and 8707.
fn known(code: &str, refreshes: bool) -> Option<&'static str> {
    const CODES: [&str; 7] = [
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
        "invalid_target",
    ];
    // A client that the server has forgotten is cured by a new login, as is a spent token.
    if refreshes && matches!(code, "invalid_client" | "unauthorized_client") {
        return Some("invalid_grant");
    }
    CODES.into_iter().find(|known| *known == code)
}

#[cfg(test)]
mod tests {
    use toolcrib_server::private_file::PrivateFolder;

    use super::*;

    fn rule(base: &str) -> Rule {
        Rule {
            base: base.parse().unwrap(),
            trusted: ["sso.corp".to_owned(), "10.0.0.9".to_owned()].into(),
        }
    }

    #[test]
    fn addresses_that_a_metadata_document_may_name() {
        use Barred::{Malformed, Plain, Private, Scheme};
        let (public, plain, local) =
            ("https://mcp.example.com/mcp", "http://intranet:8080/mcp", "http://localhost:1/mcp");
        let table = [
            (public, "https://auth.example.net/token", Ok(())),
            (public, "https://mcp.example.com:8443/token", Ok(())),
            (public, "https://93.184.216.34/token", Ok(())),
            (public, "https://sso.corp/token", Ok(())),
            (public, "https://10.0.0.9/token", Ok(())),
            (public, "http://mcp.example.com/token", Err(Plain)),
            (public, "http://auth.example.net/token", Err(Plain)),
            (public, "http://sso.corp/token", Err(Plain)),
            (public, "http://localhost/token", Err(Private)),
            (public, "https://localhost./token", Err(Private)),
            (public, "https://a.localhost/token", Err(Private)),
            (public, "https://127.0.0.1/token", Err(Private)),
            (public, "https://2130706433/token", Err(Private)),
            (public, "https://[::1]/token", Err(Private)),
            (public, "https://[::ffff:127.0.0.1]/token", Err(Private)),
            (public, "https://10.0.0.8/token", Err(Private)),
            (public, "https://169.254.169.254/token", Err(Private)),
            (public, "https://[64:ff9b::a00:1]/token", Err(Private)),
            (public, "https://[2002:a00:1::]/token", Err(Private)),
            (public, "https://u@auth.example.net/token", Err(Malformed)),
            (public, "file:///etc/passwd", Err(Malformed)),
            (public, "ftp://auth.example.net/token", Err(Scheme)),
            (plain, "http://intranet:9090/token", Ok(())),
            (plain, "https://auth.example.net/token", Ok(())),
            (plain, "http://elsewhere/token", Err(Plain)),
            (plain, "http://127.0.0.1/token", Err(Private)),
            (local, "http://127.0.0.1:2/token", Ok(())),
            (local, "http://[::1]:2/token", Ok(())),
            (local, "http://10.0.0.8/token", Err(Plain)),
            (local, "https://10.0.0.8/token", Err(Private)),
        ];
        for (base, url, expected) in table {
            assert_eq!(rule(base).check(&url.parse().unwrap()), expected, "{base} -> {url}");
        }
    }

    #[tokio::test]
    async fn a_request_itself_is_checked_too() {
        let upstream = Upstream {
            name: "mail".to_owned(),
            url: "https://mcp.example.com/mcp".parse().unwrap(),
            client: super::super::ClientId::Register,
            scopes: Vec::new(),
            trusted_hosts: Vec::new(),
        };
        let store =
            Store::new(&PrivateFolder::new("/nowhere", None), &upstream.name, &upstream.url);
        let reach = Reach::new(&upstream, store).unwrap();
        let request = Request::get("http://127.0.0.1:9/").body(Vec::new()).unwrap();
        let error = reach.ask(request).await.unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Barred::Private), "{error}");
    }

    #[test]
    fn addresses_that_a_name_may_lead_to() {
        let public = "https://mcp.example.com/mcp";
        let all = [
            "93.184.216.34",
            "10.0.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "fd00::1",
            "fe80::1",
            "2606:2800::1",
            "64:ff9b::5db8:d822",
            "64:ff9b::7f00:1",
        ];
        let all = all.map(|text| SocketAddr::new(text.parse().unwrap(), 0));
        let kept = |base: &str, host: &str| -> Vec<String> {
            let kept = rule(base).keep(host, all.into_iter());
            kept.iter().map(|address| address.ip().to_string()).collect()
        };
        let outside = ["93.184.216.34", "2606:2800::1", "64:ff9b::5db8:d822"];
        assert_eq!(kept(public, "auth.example.net"), outside);
        assert_eq!(kept(public, "localhost"), outside);
        assert_eq!(kept("http://localhost:1/mcp", "auth.example.net"), outside);
        for (base, host) in
            [(public, "mcp.example.com"), (public, "sso.corp"), ("http://localhost/", "localhost")]
        {
            assert_eq!(kept(base, host).len(), all.len(), "{host}");
        }
    }
}
