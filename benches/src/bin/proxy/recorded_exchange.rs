//! A client's request with the recorded responses of the upstream, both without and with the proxy in between.

use serde_json::Value;
use toolcrib_bench::BenchError;
use toolcrib_testkit::provider::{BodyPart, Dialect, ExactResponse};

use crate::client::Request;
use crate::upstream::UpstreamAndProxy;

#[derive(Debug)]
pub(crate) struct RecordedExchange {
    pub(crate) api: Dialect,
    /// The client's request.
    pub(crate) request: Request,
    /// The upstream's response to `request` without the proxy.
    pub(crate) direct: ExactResponse,
    /// The first request that the proxy sends to the upstream: `request` with only a few tools.
    pub(crate) small: Request,
    /// The upstream's responses to the proxy, one per round.
    pub(crate) through: Vec<ExactResponse>,
}

impl RecordedExchange {
    pub(crate) fn record(
        from: &UpstreamAndProxy,
        api: Dialect,
        tools: &[Value],
        says: &str,
        stream: bool,
    ) -> Result<Self, BenchError> {
        let request = Request::new(api, tools, says, stream);
        let rounds = from.rounds(&request)?;
        let through = rounds.iter().map(|round| from.answer(round)).collect::<Result<_, _>>()?;
        let small = rounds.into_iter().next().ok_or("the upstream was not asked")?;
        Ok(Self { api, direct: from.answer(&request)?, request, small, through })
    }

    /// Applies `change` to the body parts of every recorded response.
    pub(crate) fn with_parts(mut self, change: impl Fn(Vec<BodyPart>) -> Vec<BodyPart>) -> Self {
        for answer in self.through.iter_mut().chain([&mut self.direct]) {
            answer.parts = change(std::mem::take(&mut answer.parts));
        }
        self
    }
}
