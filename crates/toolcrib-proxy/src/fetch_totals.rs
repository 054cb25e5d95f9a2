//! Fetches the totals of a running proxy: the tokens that it has saved.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::Secret;
use crate::route::parse_base_url;
use crate::toolcrib_headers::KEY;
use crate::totals::Totals;

/// Maximum time for the request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of the response, in bytes. The rows are limited in number, so a proxy sends much less.
const MAX_BODY_BYTES: usize = 4 << 20;

/// Why the totals could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchTotalsError {
    /// The URL is invalid.
    #[error(transparent)]
    Url(#[from] crate::route::InvalidUpstreamUrl),
    /// The request failed.
    #[error("the proxy cannot be reached: {0}")]
    Unreachable(String),
    /// The proxy requires a key.
    #[error("the proxy requires a key")]
    KeyRequired,
    /// The key belongs neither to a caller nor to the admin.
    #[error("the proxy's statistics require a caller's key or the admin token")]
    NotAdmin,
    /// Something other than a Toolcrib proxy answered at this address.
    #[error("the server at this address is not a Toolcrib proxy (status {0})")]
    NotAProxy(u16),
}

impl FetchTotalsError {
    /// What the user can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Url(_) => "write a URL such as `http://127.0.0.1:4180`",
            Self::Unreachable(_) => "start the proxy with `toolcrib serve`",
            Self::KeyRequired => "set the key in the environment variable `TOOLCRIB_KEY`",
            Self::NotAdmin => {
                "set `http.admin_token`, or the key of a caller, in the environment variable `TOOLCRIB_KEY`"
            }
            Self::NotAProxy(_) => "use the address that `toolcrib serve` printed",
        }
    }
}

/// Fetches the totals of the proxy at this URL.
pub fn fetch_totals<'a>(
    url: &'a str,
    key: Option<&'a Secret>,
) -> BoxFuture<'a, Result<Totals, FetchTotalsError>> {
    async move {
        let url = format!("{}/toolcrib/stats", parse_base_url(url)?.as_str().trim_end_matches('/'));
        let unreachable =
            |error: reqwest::Error| FetchTotalsError::Unreachable(error.without_url().to_string());
        let client = toolcrib_tls::client_builder()
            .timeout(TIMEOUT)
            // Redirects are not followed, because the key must not be sent anywhere else.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(unreachable)?;
        let mut request = client.get(url);
        if let Some(key) = key {
            request = request.header(KEY, key.expose());
        }
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if status == reqwest::StatusCode::UNAUTHORIZED {
            return Err(FetchTotalsError::KeyRequired);
        }
        if status == reqwest::StatusCode::FORBIDDEN {
            return Err(FetchTotalsError::NotAdmin);
        }
        let not_a_proxy = |_| FetchTotalsError::NotAProxy(status.as_u16());
        let mut response = response;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(not_a_proxy)? {
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                return Err(FetchTotalsError::NotAProxy(status.as_u16()));
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|_| FetchTotalsError::NotAProxy(status.as_u16()))
    }
    .boxed()
}
