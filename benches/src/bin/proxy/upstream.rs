//! The upstream, and the proxy before it.
//!
//! A scripted provider that reads 200 tools takes longer over them than the proxy does, and through the
//! proxy it would have few to read: what was measured would be the provider. So each answer is recorded
//! once, and played back without a look at the request.

use toolcrib_bench::process::{Process, Setting};
use toolcrib_bench::{Connection, Failed};
use toolcrib_testkit::provider::{
    BodyPart, CannedResponse, ExactResponse, Options, Pace, Provider,
};

use crate::client::Request;

/// An upstream, and a proxy that knows no other.
pub(crate) struct Pair {
    pub(crate) upstream: Provider,
    /// Host and port of each.
    pub(crate) direct: String,
    pub(crate) through: String,
    pub(crate) proxy: Process,
    _setting: Setting,
}

impl Pair {
    pub(crate) fn start(options: Options) -> Result<Self, Failed> {
        let upstream = Provider::start(options)?;
        let url = upstream.url.as_str();
        let setting = Setting::new()?;
        let (proxy, through) =
            setting.serve(&["--openai", url, "--anthropic", url, "--gemini", url])?;
        let direct = upstream.address().to_string();
        Ok(Self { upstream, direct, through, proxy, _setting: setting })
    }

    /// One that plays back.
    pub(crate) fn play() -> Result<Self, Failed> {
        Self::start(Options { keep_requests: false, ..Options::default() })
    }

    /// One to record from; `pace` makes it say so many deltas, whatever it is asked.
    pub(crate) fn record(pace: Option<Pace>) -> Result<Self, Failed> {
        Self::start(Options { pace, ..Options::default() })
    }

    /// What the upstream says to a request.
    pub(crate) fn answer(&self, request: &Request) -> Result<ExactResponse, Failed> {
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

    /// What the proxy asks the upstream, to answer a request.
    pub(crate) fn rounds(&self, request: &Request) -> Result<Vec<Request>, Failed> {
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

    pub(crate) fn will(&self, responses: &[ExactResponse]) {
        for response in responses {
            self.upstream.queue_response(CannedResponse::Exact(response.clone()));
        }
    }
}
