//! The upstream, and the proxy in front of it.
//!
//! A scripted provider takes longer to parse 200 tools than the proxy does, and through the proxy it would have only a
//! few tools to parse. The benchmark would then mostly measure the provider. Therefore each response is recorded once
//! and played back without parsing the request.

use toolcrib_bench::process::{GatewaySetup, Process};
use toolcrib_bench::{BenchError, Connection};
use toolcrib_testkit::provider::{
    BodyPart, CannedResponse, ExactResponse, Options, Pace, Provider,
};

use crate::client::Request;

/// An upstream, and a proxy that uses it as its only upstream.
pub(crate) struct UpstreamAndProxy {
    pub(crate) upstream: Provider,
    /// Host and port of the upstream. `through` contains the host and port of the proxy.
    pub(crate) direct: String,
    pub(crate) through: String,
    pub(crate) proxy: Process,
    _setting: GatewaySetup,
}

impl UpstreamAndProxy {
    pub(crate) fn start(options: Options) -> Result<Self, BenchError> {
        let upstream = Provider::start(options)?;
        let url = upstream.url.as_str();
        let setting = GatewaySetup::new()?;
        let (proxy, through) =
            setting.serve(&["--openai", url, "--anthropic", url, "--gemini", url])?;
        let direct = upstream.address().to_string();
        Ok(Self { upstream, direct, through, proxy, _setting: setting })
    }

    /// Starts an upstream that plays back recorded responses, and a proxy.
    pub(crate) fn play() -> Result<Self, BenchError> {
        Self::start(Options { keep_requests: false, ..Options::default() })
    }

    /// Starts an upstream whose responses can be recorded, and a proxy. `pace` sets the number of deltas in a stream
    /// and the pause before each.
    pub(crate) fn record(pace: Option<Pace>) -> Result<Self, BenchError> {
        Self::start(Options { pace, ..Options::default() })
    }

    /// Sends a request directly to the upstream and returns the response.
    pub(crate) fn answer(&self, request: &Request) -> Result<ExactResponse, BenchError> {
        let mut parts = Vec::new();
        let response = Connection::open(&self.direct)?.stream(
            &request.path,
            &request.headers,
            &request.body,
            &mut |chunk| parts.push(BodyPart::Bytes(chunk.to_vec().into())),
        )?;
        let kind = response.header("content-type").unwrap_or_default().to_owned();
        Ok(ExactResponse { status: 200, headers: vec![("content-type".into(), kind)], parts })
    }

    /// Sends a client's request through the proxy and returns the requests that the proxy then sent to the upstream.
    pub(crate) fn rounds(&self, request: &Request) -> Result<Vec<Request>, BenchError> {
        self.upstream.clear();
        let response = Connection::open(&self.through)?.post(
            &request.path,
            &request.headers,
            &request.body,
        )?;
        if response.header("x-toolcrib-mode") != Some("bridge") {
            return Err(format!("not deferred: {:?}", response.headers).into());
        }
        let rounds = self.upstream.requests().into_iter().map(|round| Request {
            path: round.path,
            headers: request.headers.clone(),
            body: String::from_utf8_lossy(&round.body).into_owned(),
        });
        Ok(rounds.collect())
    }

    pub(crate) fn queue_responses(&self, responses: &[ExactResponse]) {
        for response in responses {
            self.upstream.queue_response(CannedResponse::Exact(response.clone()));
        }
    }
}
