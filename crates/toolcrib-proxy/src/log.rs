//! What is reported of a request: one line in the log, and the numbers.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use toolcrib_dialect::exchange::action::Report;
use toolcrib_dialect::{Api, Summary};
use toolcrib_server::BodyPermit;

use crate::error::error;
use crate::metrics::Open;
use crate::proxy::Proxy;
use crate::totals::{Entry, shown};
use crate::upstream::Lost;

/// A request, as far as it is reported.
#[derive(Debug)]
pub(crate) struct RequestLog {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) api: Api,
    pub(crate) model: String,
    pub(crate) client: String,
    pub(crate) host: String,
    /// Whether only tokens are counted.
    pub(crate) counts: bool,
    /// Counts it as under way.
    pub(crate) _open: Open,
    /// Counts the memory of its body, which the exchange keeps until it is over.
    pub(crate) _body: Option<BodyPermit>,
}

impl RequestLog {
    /// Reports a request that was answered.
    pub(crate) fn done(&self, report: &Report, summary: &Summary, status: u16) {
        let Report { mode, why, tools, deferred, tokens } = report;
        self.proxy.metrics.request(self.api, mode, *tokens, summary);
        // A request that only counts tokens takes none.
        if *tools > 0 && !self.counts {
            self.proxy.running.add(&Entry {
                model: &self.model,
                client: &self.client,
                deferred: *deferred > 0,
                tokens: *tokens,
                summary: *summary,
            });
        }
        tracing::info!(
            api = %self.api,
            model = shown(&self.model),
            host = %self.host,
            client = self.client,
            mode,
            why,
            tools,
            deferred,
            tokens_before = tokens.0,
            tokens_after = tokens.1,
            rounds = summary.rounds,
            searches = summary.searches,
            status,
            "answered"
        );
    }

    /// Reports an upstream that broke off, before the client had anything.
    pub(crate) fn broken(&self, lost: &Lost) -> Response {
        self.proxy.metrics.failure();
        tracing::warn!(host = %self.host, %lost, "the upstream broke off");
        error(self.api, StatusCode::BAD_GATEWAY, &format!("the upstream broke off: {lost}"))
    }
}

/// Reports an upstream that was not reached.
pub(crate) fn unreachable(proxy: &Proxy, api: Option<Api>, host: &str, lost: &Lost) -> Response {
    proxy.metrics.failure();
    tracing::warn!(%host, %lost, "the upstream cannot be reached");
    let text = format!("the upstream {host} cannot be reached: {lost}");
    error(api.unwrap_or(Api::Chat), StatusCode::BAD_GATEWAY, &text)
}
