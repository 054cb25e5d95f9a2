//! Measures the first request with tools that are new to the proxy. The proxy parses and indexes them and counts their
//! tokens before it sends anything.

use std::time::Instant;

use toolcrib_bench::{BenchError, Connection, median};
use toolcrib_testkit::provider::Dialect;

use crate::client::{Request, tools};
use crate::recorded_exchange::RecordedExchange;
use crate::upstream::UpstreamAndProxy;

/// Number of proxies that are started for each figure.
const STARTS: usize = 5;

pub(crate) fn measure() -> Result<(), BenchError> {
    println!("Chat Completions, exact counts; the median of {STARTS} proxies, ms.\n");
    println!("| tools | first request of a process | other tools later | the same again |");
    println!("|---:|---:|---:|---:|");
    let record = UpstreamAndProxy::record(None)?;
    for size in [200, 2_000] {
        let exchange = |from| {
            RecordedExchange::record(&record, Dialect::Chat, &tools(from, size)?, "Hi.", false)
        };
        let scenes = [exchange(0)?, exchange(size)?];
        let order = [&scenes[0], &scenes[1], &scenes[1]];
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..STARTS {
            let play = UpstreamAndProxy::play()?;
            let mut connection = Connection::open(&play.through)?;
            for (exchange, times) in order.iter().zip(&mut times) {
                play.queue_responses(&exchange.through);
                let Request { path, headers, body } = &exchange.request;
                let begin = Instant::now();
                connection.post(path, headers, body)?;
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
        }
        let [first, other, again] = times.map(median);
        println!("| {size} | {first:.1} | {other:.1} | {again:.1} |");
    }
    Ok(())
}
