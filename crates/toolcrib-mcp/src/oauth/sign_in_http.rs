//! The HTTP client of a sign-in. It contacts only allowed addresses, and filters the responses.
//!
//! Of a token response, only the standard fields are passed on, and of an error, only its code. The SDK logs these
//! responses and repeats them in errors, and a server could put anything into the other fields.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{Request, Response, StatusCode};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::SignInTarget;
use super::allowed_addresses::AddressRule;
use super::token_store::TokenStore;

const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a response, in bytes. Metadata documents have a few kilobytes.
const MAX_BYTES: usize = 1 << 20;
/// How long further refreshes are answered with the token from the last refresh. Calls that fail together refresh
/// within this time.
const SHARED_REFRESH: Duration = Duration::from_secs(5);

pub(super) struct SignInHttp {
    http: reqwest::Client,
    rule: AddressRule,
    store: TokenStore,
    /// Until when further refreshes are answered with the stored token.
    fresh_until: Mutex<Option<Instant>>,
}

impl SignInHttp {
    pub(super) fn new(target: &SignInTarget, store: TokenStore) -> Result<Self, reqwest::Error> {
        let rule = AddressRule::new(target);
        let http = toolcrib_tls::client_builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(rule.clone()))
            .build()?;
        Ok(Self { http, rule, store, fresh_until: Mutex::new(None) })
    }

    async fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let grant = grant_type(&request);
        let refreshes = grant.as_deref() == Some("refresh_token");
        if refreshes && let Some(response) = self.shared_refresh() {
            return Ok(response);
        }
        let request = reqwest::Request::try_from(request)?;
        self.rule.check(request.url())?;
        let mut response = read_body(self.http.execute(request).await?).await?;
        if grant.is_some() {
            filter_token_response(&mut response, refreshes);
        }
        if refreshes && response.status().is_success() {
            self.share_refresh(&response);
        }
        Ok(response)
    }

    /// Returns the response to a refresh that follows shortly after another refresh, or `None` if there was no other
    /// refresh shortly before. The SDK refreshes once for each call that was answered with 401, one after the other.
    /// All of these refreshes get the token that the first one fetched.
    fn shared_refresh(&self) -> Option<Response<Vec<u8>>> {
        let until = (*self.fresh_until.lock())?;
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

    fn share_refresh(&self, response: &Response<Vec<u8>>) {
        let token: Map<String, Value> = serde_json::from_slice(response.body()).unwrap_or_default();
        let lifetime = token.get("expires_in").and_then(Value::as_u64).map(Duration::from_secs);
        let window = lifetime.map_or(SHARED_REFRESH, |lifetime| SHARED_REFRESH.min(lifetime / 2));
        *self.fresh_until.lock() = Some(Instant::now() + window);
    }
}

impl OAuthHttpClient for SignInHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request.request))
    }
}

async fn read_body(
    mut received: reqwest::Response,
) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
    let mut body = Vec::new();
    while let Some(chunk) = received.chunk().await? {
        if chunk.len() > MAX_BYTES - body.len() {
            return Err("the response is too large".into());
        }
        body.extend_from_slice(&chunk);
    }
    let mut response = Response::new(body);
    *response.status_mut() = received.status();
    *response.headers_mut() = std::mem::take(received.headers_mut());
    Ok(response)
}

/// Returns the grant type of a token request, or `None` for other requests.
fn grant_type(request: &Request<Vec<u8>>) -> Option<String> {
    let mut fields = form_urlencoded::parse(request.body());
    fields.find(|(name, _)| name == "grant_type").map(|(_, value)| value.into_owned())
}

/// Keeps only the standard fields of a token response, or only the code of an error.
fn filter_token_response(response: &mut Response<Vec<u8>>, refreshes: bool) {
    const TOKEN: [&str; 5] = ["access_token", "token_type", "expires_in", "refresh_token", "scope"];
    let received: Map<String, Value> = serde_json::from_slice(response.body()).unwrap_or_default();
    let kept: Map<String, Value> = if response.status().is_success() {
        received.into_iter().filter(|(name, _)| TOKEN.contains(&name.as_str())).collect()
    } else {
        let code = received
            .get("error")
            .and_then(Value::as_str)
            .and_then(|code| standard_code(code, refreshes));
        code.map(|code| ("error".to_owned(), Value::from(code))).into_iter().collect()
    };
    // If no field is left, the body is empty, and the SDK reports a failure without a text.
    *response.body_mut() =
        if kept.is_empty() { Vec::new() } else { Value::Object(kept).to_string().into_bytes() };
}

/// Returns the error code if RFC 6749 or RFC 8707 defines it.
fn standard_code(code: &str, refreshes: bool) -> Option<&'static str> {
    const CODES: [&str; 7] = [
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
        "invalid_target",
    ];
    // If the server no longer knows the client, a new login helps, just as it does for an invalid token. Therefore both
    // are reported with the same code.
    if refreshes && matches!(code, "invalid_client" | "unauthorized_client") {
        return Some("invalid_grant");
    }
    CODES.into_iter().find(|standard| *standard == code)
}

#[cfg(test)]
mod tests {
    use toolcrib_server::private_file::PrivateFolder;

    use super::super::{ClientIdentity, DisallowedAddress};
    use super::*;

    #[tokio::test]
    async fn the_address_of_each_request_is_checked() {
        let target = SignInTarget {
            name: "mail".to_owned(),
            url: "https://mcp.example.com/mcp".parse().unwrap(),
            client: ClientIdentity::Register,
            scopes: Vec::new(),
            trusted_hosts: Vec::new(),
        };
        let store =
            TokenStore::new(&PrivateFolder::new("/nowhere", None), &target.name, &target.url);
        let http = SignInHttp::new(&target, store).unwrap();
        let request = Request::get("http://127.0.0.1:9/").body(Vec::new()).unwrap();
        let error = http.send(request).await.unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&DisallowedAddress::Private), "{error}");
    }
}
