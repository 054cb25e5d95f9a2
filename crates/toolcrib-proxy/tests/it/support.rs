//! The stage: the scripted provider, the proxy before it on a port of its own, and a client.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, Method};
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use serde_json::Value;
use tokio::net::TcpListener;
use toolcrib_core::Settings;
use toolcrib_proxy::{Config, Proxy, Secret};
use toolcrib_testkit::provider::{Options, Provider};

use crate::dialects::Case;
use crate::reading::Seen;

/// Longer than anything here takes on a busy machine: what is not over by then hangs.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// The provider, and the proxy before it.
pub(crate) struct Stage {
    pub(crate) provider: Provider,
    pub(crate) proxy: Arc<Proxy>,
    /// Of the proxy, without a path.
    pub(crate) url: String,
    pub(crate) client: reqwest::Client,
}

/// An answer, as its bytes came.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// All that came, whether it came to an end or not.
    pub(crate) body: Bytes,
    /// Whether the body was cut off.
    pub(crate) cut: bool,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// A header that is a number.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.header(name).parse().unwrap()
    }
}

/// A config whose upstreams are all the provider.
pub(crate) fn config(provider: &Provider) -> Config {
    let url = provider.url.clone();
    Config { openai: url.clone(), anthropic: url.clone(), gemini: url, ..Config::default() }
}

/// Serves a proxy on a port of its own; returns its URL.
pub(crate) async fn serve(proxy: &Arc<Proxy>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let listener = listener.tap_io(|connection| connection.set_nodelay(true).unwrap());
    let router = proxy.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

impl Stage {
    /// A provider that behaves so, and a proxy with nothing configured but where it is.
    pub(crate) async fn new(options: Options) -> Self {
        Self::with(options, |_| {}).await
    }

    /// The same, with something else configured.
    pub(crate) async fn with(options: Options, change: impl FnOnce(&mut Config)) -> Self {
        let provider = Provider::start(options).unwrap();
        let mut config = config(&provider);
        change(&mut config);
        Self::start(provider, config, None).await
    }

    /// A proxy with this config, and this key for callers without one of their own.
    pub(crate) async fn start(
        provider: Provider,
        config: Config,
        shared_key: Option<Secret>,
    ) -> Self {
        let proxy =
            Arc::new(Proxy::new(config, Settings::default(), shared_key, Arc::default()).unwrap());
        let url = serve(&proxy).await;
        Self { provider, proxy, url, client: toolcrib_tls::client_builder().build().unwrap() }
    }

    /// A request to the proxy, to be sent.
    pub(crate) fn post(&self, case: Case, body: &Value) -> reqwest::RequestBuilder {
        let url = format!("{}{}", self.url, case.path());
        let body = body.to_string();
        self.client.post(url).header("content-type", "application/json").body(body)
    }

    /// Asks the proxy.
    pub(crate) async fn ask(&self, case: Case, body: &Value) -> Got {
        get(self.post(case, body)).await
    }

    /// Asks the proxy; the answer must be one.
    pub(crate) async fn see(&self, case: Case, body: &Value) -> Seen {
        let got = self.ask(case, body).await;
        assert_eq!(got.status, 200, "{case:?}: {}", got.text());
        let seen = case.read(&got.body);
        assert!(seen.ended && !got.cut, "{case:?}: {}", got.text());
        seen
    }

    /// The bodies that reached the provider.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.provider
            .requests()
            .iter()
            .map(toolcrib_testkit::provider::ReceivedRequest::json)
            .collect()
    }

    /// The same as text.
    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        self.provider.requests().iter().map(|request| text(&request.body)).collect()
    }

    /// The metrics of the proxy, as `/metrics` has them.
    pub(crate) fn metrics(&self) -> String {
        let mut registry = toolcrib_server::metrics::registry();
        self.proxy.register_metrics(&mut registry);
        toolcrib_server::metrics::encode(&registry)
    }

    /// What the proxy says of itself.
    pub(crate) async fn stats(&self) -> Value {
        get(self.client.request(Method::GET, format!("{}/toolcrib/stats", self.url))).await.json()
    }

    /// Waits until so many requests have reached the provider.
    pub(crate) async fn reached(&self, count: usize) {
        let look = async {
            while self.provider.requests().len() < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, look).await.expect("a request reaches the provider");
    }

    /// Waits until the upstream has no request any more. One that stalls would have it for ever.
    pub(crate) async fn left(&self, what: &str) {
        let settled = tokio::time::timeout(PATIENCE, self.provider.wait_until_idle()).await;
        assert!(settled.is_ok(), "{what}: the upstream is still being asked");
    }
}

/// Sends a request and takes all that comes.
pub(crate) async fn get(request: reqwest::RequestBuilder) -> Got {
    let answer = begin(request).await;
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let (body, cut) = rest(answer).await;
    Got { status, headers, body, cut }
}

/// Sends a request and takes the head of the answer.
pub(crate) async fn begin(request: reqwest::RequestBuilder) -> reqwest::Response {
    tokio::time::timeout(PATIENCE, request.send()).await.expect("the head of an answer").unwrap()
}

/// The next piece of a body.
pub(crate) async fn more(answer: &mut reqwest::Response) -> Bytes {
    let chunk = tokio::time::timeout(PATIENCE, answer.chunk()).await.expect("a piece in time");
    chunk.unwrap().expect("a piece of the body")
}

/// All that is still to come of a body, and whether it was cut off.
pub(crate) async fn rest(mut answer: reqwest::Response) -> (Bytes, bool) {
    let mut all = Vec::new();
    let read = async {
        loop {
            match answer.chunk().await {
                Ok(Some(chunk)) => all.extend_from_slice(&chunk),
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    };
    let cut = tokio::time::timeout(PATIENCE, read).await.expect("the end of a body");
    (all.into(), cut)
}

/// Reads a body until it has this text in it.
pub(crate) async fn until(answer: &mut reqwest::Response, text: &str) -> String {
    let mut all = String::new();
    while !all.contains(text) {
        all += std::str::from_utf8(&more(answer).await).unwrap();
    }
    all
}
