//! Measures the overhead of the proxy for a request with 200 tools and a response that is not streamed.

use toolcrib_bench::BenchError;

use crate::client::{APIS, goal, name, tools};
use crate::compare::{Times, head};
use crate::recorded_exchange::RecordedExchange;
use crate::upstream::UpstreamAndProxy;

pub(crate) const TOOLS: usize = 200;

pub(crate) fn measure() -> Result<(), BenchError> {
    let (record, play) = (UpstreamAndProxy::record(None)?, UpstreamAndProxy::play()?);
    let tools = tools(0, TOOLS)?;
    head();
    let mut sizes = Vec::new();
    for (says, kind, rounds) in [("Hi.", "", 1), (&goal(&tools), ", with one search", 2)] {
        for api in APIS {
            let exchange = RecordedExchange::record(&record, api, &tools, says, false)?;
            if exchange.through.len() != rounds {
                return Err(format!("{} rounds, not {rounds}", exchange.through.len()).into());
            }
            let times = Times::measure(&play, &exchange, None)?;
            times.print(&format!("{}{kind}", name(exchange.api)));
            sizes.push(format!("{} of {}", exchange.small.body.len(), exchange.request.body.len()));
        }
    }
    println!("\nBytes that reach the upstream first: {}.", sizes.join(", "));
    Ok(())
}
