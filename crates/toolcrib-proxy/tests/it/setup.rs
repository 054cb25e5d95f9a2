//! The test setup: a scripted provider, a proxy in front of it on its own port, and a client.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, Method};
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use serde_json::Value;
use tokio::net::TcpListener;
use toolcrib_core::Settings;
use toolcrib_proxy::{Proxy, ProxyConfig, Secret};
use toolcrib_testkit::provider::{Options, Provider};

use crate::client_requests::ClientCase;
use crate::client_responses::ClientView;

/// Maximum time for one step of a test; longer than any step takes on a busy machine. A step that takes longer has
/// hung, so the test fails.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(2);

/// A provider, and a proxy in front of it.
pub(crate) struct TestSetup {
    pub(crate) provider: Provider,
    pub(crate) proxy: Arc<Proxy>,
    /// The URL of the proxy, without a path.
    pub(crate) url: String,
    pub(crate) client: reqwest::Client,
}

/// A response as the client received it.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// All bytes that arrived, even if the body was cut off.
    pub(crate) body: Bytes,
    /// Whether the body was cut off.
    pub(crate) cut: bool,
}

impl ReceivedResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// Returns the value of a numeric header.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.header(name).parse().unwrap()
    }
}

/// Returns a config in which every upstream is the provider.
pub(crate) fn config(provider: &Provider) -> ProxyConfig {
    let url = provider.url.clone();
    ProxyConfig {
        openai: url.clone(),
        anthropic: url.clone(),
        gemini: url,
        ..ProxyConfig::default()
    }
}

/// Serves a proxy on its own port, and returns its URL.
pub(crate) async fn serve(proxy: &Arc<Proxy>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let listener = listener.tap_io(|connection| connection.set_nodelay(true).unwrap());
    let router = proxy.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

impl TestSetup {
    /// Starts a provider with these options, and a proxy whose config is the default except for its upstreams.
    pub(crate) async fn new(options: Options) -> Self {
        Self::with(options, |_| {}).await
    }

    /// Like `new`, but `change` changes the proxy's config.
    pub(crate) async fn with(options: Options, change: impl FnOnce(&mut ProxyConfig)) -> Self {
        let provider = Provider::start(options).unwrap();
        let mut config = config(&provider);
        change(&mut config);
        Self::start(provider, config, None).await
    }

    /// Starts a proxy with this config. `shared_key` is the key for callers without a key of their own.
    pub(crate) async fn start(
        provider: Provider,
        config: ProxyConfig,
        shared_key: Option<Secret>,
    ) -> Self {
        let proxy =
            Arc::new(Proxy::new(config, Settings::default(), shared_key, Arc::default()).unwrap());
        let url = serve(&proxy).await;
        Self { provider, proxy, url, client: toolcrib_tls::client_builder().build().unwrap() }
    }

    /// Builds a request to the proxy.
    pub(crate) fn post(&self, case: ClientCase, body: &Value) -> reqwest::RequestBuilder {
        let url = format!("{}{}", self.url, case.path());
        let body = body.to_string();
        self.client.post(url).header("content-type", "application/json").body(body)
    }

    /// Sends a request to the proxy, and returns the response.
    pub(crate) async fn ask(&self, case: ClientCase, body: &Value) -> ReceivedResponse {
        get(self.post(case, body)).await
    }

    /// Sends a request to the proxy, and reads the response, which must be complete and successful.
    pub(crate) async fn ask_and_read(&self, case: ClientCase, body: &Value) -> ClientView {
        let got = self.ask(case, body).await;
        assert_eq!(got.status, 200, "{case:?}: {}", got.text());
        let view = case.read(&got.body);
        assert!(view.ended && !got.cut, "{case:?}: {}", got.text());
        view
    }

    /// Returns the bodies that the provider received.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.provider
            .requests()
            .iter()
            .map(toolcrib_testkit::provider::ReceivedRequest::json)
            .collect()
    }

    /// Returns the bodies that the provider received, as text.
    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        self.provider.requests().iter().map(|request| text(&request.body)).collect()
    }

    /// Returns the proxy's metrics in the format of `/metrics`.
    pub(crate) fn metrics(&self) -> String {
        let mut registry = toolcrib_server::metrics::registry();
        self.proxy.register_metrics(&mut registry);
        toolcrib_server::metrics::encode(&registry)
    }

    pub(crate) async fn stats(&self) -> Value {
        get(self.client.request(Method::GET, format!("{}/toolcrib/stats", self.url))).await.json()
    }

    /// Waits until the provider has received this many requests.
    pub(crate) async fn wait_for_requests(&self, count: usize) {
        let look = async {
            while self.provider.requests().len() < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, look)
            .await
            .expect("the provider received too few requests");
    }

    /// Waits until the upstream has no open request. A stalled request stays open until the proxy cancels it.
    pub(crate) async fn wait_until_upstream_idle(&self, what: &str) {
        let is_idle = tokio::time::timeout(TEST_TIMEOUT, self.provider.wait_until_idle()).await;
        assert!(is_idle.is_ok(), "{what}: the upstream still has an open request");
    }
}

/// Sends a request, and reads the complete response.
pub(crate) async fn get(request: reqwest::RequestBuilder) -> ReceivedResponse {
    let answer = begin(request).await;
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let (body, cut) = rest(answer).await;
    ReceivedResponse { status, headers, body, cut }
}

/// Sends a request, and reads the head of the response.
pub(crate) async fn begin(request: reqwest::RequestBuilder) -> reqwest::Response {
    tokio::time::timeout(TEST_TIMEOUT, request.send()).await.expect("no response in time").unwrap()
}

/// Reads the next chunk of a body.
pub(crate) async fn more(answer: &mut reqwest::Response) -> Bytes {
    let chunk = tokio::time::timeout(TEST_TIMEOUT, answer.chunk()).await.expect("no chunk in time");
    chunk.unwrap().expect("the body has ended")
}

/// Reads the rest of a body. Returns the bytes that arrived, and whether the body was cut off.
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
    let cut = tokio::time::timeout(TEST_TIMEOUT, read).await.expect("the body did not end in time");
    (all.into(), cut)
}

/// Reads a body until the part that was read contains this text. Returns that part.
pub(crate) async fn until(answer: &mut reqwest::Response, text: &str) -> String {
    let mut all = String::new();
    while !all.contains(text) {
        all += std::str::from_utf8(&more(answer).await).unwrap();
    }
    all
}
