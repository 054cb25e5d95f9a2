//! Reports each request: one line in the log, metrics and totals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use toolcrib_dialect::exchange::action::DecisionReport;
use toolcrib_dialect::{Api, TurnSummary};
use toolcrib_server::BodyPermit;
use toolcrib_server::error_response::RETRY_AFTER;

use crate::admission::AdmittedRequest;
use crate::api_error::error_response;
use crate::endpoint::EndpointKind;
use crate::metrics::OpenRequestGuard;
use crate::proxy::Proxy;
use crate::totals::{TotalsEntry, printable_name};
use crate::upstream_request::UpstreamFailure;

/// The data that is reported about a request. Each request that was sent to an upstream gets one line in the log, even
/// if its client disconnects before the end.
#[derive(Debug)]
pub(crate) struct RequestLog {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) api: Api,
    pub(crate) model: String,
    pub(crate) host: String,
    /// Whether the request only counts tokens.
    pub(crate) only_counts_tokens: bool,
    /// The caller's name or, if the caller has no name, the client's product name.
    client: String,
    caller: Option<String>,
    path: String,
    is_sent: AtomicBool,
    is_reported: AtomicBool,
    /// Counts the request as open until this is dropped.
    _open: OpenRequestGuard,
    /// Counts the memory of the request's body, which the exchange keeps until it ends.
    _body: Option<Arc<BodyPermit>>,
}

impl RequestLog {
    pub(crate) fn new(
        proxy: &Arc<Proxy>,
        api: Api,
        model: String,
        admitted: &AdmittedRequest,
        host: String,
        body: Option<Arc<BodyPermit>>,
    ) -> Self {
        let caller = admitted.caller.name().map(str::to_owned);
        Self {
            proxy: Arc::clone(proxy),
            api,
            model,
            host,
            only_counts_tokens: admitted.endpoint.kind == EndpointKind::Count,
            client: caller.clone().unwrap_or_else(|| client_product(&admitted.parts.headers)),
            caller,
            path: admitted.path.to_string(),
            is_sent: AtomicBool::new(false),
            is_reported: AtomicBool::new(false),
            _open: proxy.metrics.open(),
            _body: body,
        }
    }

    /// Records that the request is sent to the upstream.
    pub(crate) fn sent(&self) {
        self.is_sent.store(true, Ordering::Relaxed);
    }

    /// Reports a request that was answered.
    pub(crate) fn done(&self, report: &DecisionReport, summary: &TurnSummary, status: u16) {
        let DecisionReport { mode, reason, tools, deferred, tokens_before, tokens_after, .. } =
            report;
        let tokens = (*tokens_before, *tokens_after);
        self.proxy.metrics.request(self.api, mode, tokens, summary);
        // A request that only counts tokens uses no tokens itself.
        if *tools > 0 && !self.only_counts_tokens {
            self.proxy.running_totals.add(&TotalsEntry {
                caller: self.caller.as_deref(),
                model: &self.model,
                client: &self.client,
                deferred: *deferred > 0,
                tokens,
                summary: *summary,
            });
        }
        self.is_reported.store(true, Ordering::Relaxed);
        tracing::info!(
            caller = self.caller.as_deref().unwrap_or_default(),
            method = %Method::POST,
            path = self.path,
            api = %self.api,
            model = printable_name(&self.model),
            host = %self.host,
            client = self.client,
            mode,
            why = reason,
            tools,
            deferred,
            tokens_before,
            tokens_after,
            rounds = summary.rounds,
            searches = summary.searches,
            status,
            "answered"
        );
    }

    /// Reports that the upstream's response was cut off before anything was sent to the client, and returns the error
    /// response.
    pub(crate) fn upstream_cut_off(&self, error: &UpstreamFailure) -> Response {
        self.proxy.metrics.failure();
        tracing::warn!(host = %self.host, %error, "the upstream's response was cut off");
        error_response(
            self.api,
            StatusCode::BAD_GATEWAY,
            &format!("the upstream's response was cut off: {error}"),
        )
    }

    /// Reports that there is not enough memory for a response of which nothing was sent to the client yet, and returns
    /// the error response.
    pub(crate) fn out_of_memory(&self, error: &UpstreamFailure) -> Response {
        self.proxy.metrics.failure();
        tracing::warn!(host = %self.host, %error, "there is not enough memory for the response");
        let mut response =
            error_response(self.api, StatusCode::SERVICE_UNAVAILABLE, &error.to_string());
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        response
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        if *self.is_sent.get_mut() && !*self.is_reported.get_mut() {
            tracing::info!(
                caller = self.caller.as_deref().unwrap_or_default(),
                method = %Method::POST,
                path = self.path,
                api = %self.api,
                model = printable_name(&self.model),
                host = %self.host,
                client = self.client,
                "sent, but the response is incomplete"
            );
        }
    }
}

/// The data that is reported about a request that is forwarded unread. The line in the log is written when this is
/// dropped, so that every such request gets a line.
#[derive(Debug)]
pub(crate) struct ForwardLog {
    pub(crate) host: String,
    /// The status of the upstream's response, if there was one.
    pub(crate) status: Option<u16>,
    caller: Option<String>,
    method: Method,
    path: String,
}

impl ForwardLog {
    pub(crate) fn new(admitted: &AdmittedRequest, host: String) -> Self {
        Self {
            host,
            status: None,
            caller: admitted.caller.name().map(str::to_owned),
            method: admitted.parts.method.clone(),
            path: admitted.path.to_string(),
        }
    }
}

impl Drop for ForwardLog {
    fn drop(&mut self) {
        tracing::info!(
            caller = self.caller.as_deref().unwrap_or_default(),
            method = %self.method,
            path = self.path,
            host = %self.host,
            status = self.status,
            "forwarded"
        );
    }
}

/// Returns the client's product name from `User-Agent`, without its version.
fn client_product(headers: &HeaderMap) -> String {
    let agent =
        headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    agent.split(['/', ' ']).next().unwrap_or_default().to_owned()
}

/// Reports an upstream that cannot be reached, and returns the error response.
pub(crate) fn upstream_unreachable(
    proxy: &Proxy,
    api: Api,
    host: &str,
    error: &UpstreamFailure,
) -> Response {
    proxy.metrics.failure();
    tracing::warn!(%host, %error, "the upstream cannot be reached");
    let text = format!("the upstream {host} cannot be reached: {error}");
    error_response(api, StatusCode::BAD_GATEWAY, &text)
}
