//! Reading the running total of a proxy elsewhere.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::Secret;
use crate::route::parse_base_url;
use crate::toolcrib_headers::KEY;
use crate::totals::Totals;

/// How long a proxy may take to say its total.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A proxy that did not say its total.
#[derive(Debug, thiserror::Error)]
pub enum FetchTotalsError {
    /// The URL is none.
    #[error(transparent)]
    Url(#[from] crate::route::InvalidUpstreamUrl),
    /// Nobody answers there.
    #[error("nobody answers there: {0}")]
    Unreachable(String),
    /// It asks for a key.
    #[error("it asks for a key")]
    KeyRequired,
    /// It has several callers, and the key is none of theirs.
    #[error("its statistics require a caller's key or the admin token")]
    NotAdmin,
    /// Somebody else answers.
    #[error("what answers there is no proxy of ours ({0})")]
    NotAProxy(u16),
}

impl FetchTotalsError {
    /// What can be done about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Url(_) => "such as `http://127.0.0.1:4180`",
            Self::Unreachable(_) => "start it with `toolcrib serve`",
            Self::KeyRequired => "put the key into the environment as `TOOLCRIB_KEY`",
            Self::NotAdmin => {
                "put `http.admin_token`, or the key of a caller, into the environment as `TOOLCRIB_KEY`"
            }
            Self::NotAProxy(_) => "name the address that `toolcrib serve` printed",
        }
    }
}

/// The total of the proxy at this URL.
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
            // The key is for the proxy that was named.
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
        let text = response.text().await.map_err(not_a_proxy)?;
        serde_json::from_str(&text).map_err(|_| FetchTotalsError::NotAProxy(status.as_u16()))
    }
    .boxed()
}
