//! Sends the same request over several routes in rotation and compares the times.

use std::time::Instant;

use toolcrib_bench::{BenchError, Connection, Response, cpu_seconds, median, quantile};
use toolcrib_testkit::provider::ExactResponse;

use crate::client::Request;
use crate::recorded_exchange::RecordedExchange;
use crate::upstream::UpstreamAndProxy;

/// Number of rounds for each route. In each round, [`REQUESTS`] requests are sent one after another.
const ROUNDS: usize = 20;
const REQUESTS: usize = 100;
const WARM_UP_REQUESTS: usize = 50;

/// A connection to the upstream or to the proxy, with the request that is sent on it.
struct Route<'a> {
    connection: Connection,
    request: &'a Request,
    answers: &'a [ExactResponse],
    /// Times in milliseconds: one vector per round, each sorted.
    turns: Vec<Vec<f64>>,
}

/// Response times over three routes: directly, directly with only the few tools that the proxy sends, and through the
/// proxy. A response time ends when the text `content`, a parameter of [`Times::measure`], has arrived, or when the
/// response is complete if `content` is `None`.
pub(crate) struct Times {
    direct: Vec<Vec<f64>>,
    small: Vec<Vec<f64>>,
    through: Vec<Vec<f64>>,
    /// CPU time of the proxy per request, in milliseconds.
    cpu: f64,
}

impl Times {
    pub(crate) fn measure(
        pair: &UpstreamAndProxy,
        exchange: &RecordedExchange,
        content: Option<&str>,
    ) -> Result<Self, BenchError> {
        let route = |address: &str, request, answers| {
            Ok::<_, BenchError>(Route {
                connection: Connection::open(address)?,
                request,
                answers,
                turns: Vec::new(),
            })
        };
        let direct = std::slice::from_ref(&exchange.direct);
        let mut routes = [
            route(&pair.direct, &exchange.request, direct)?,
            route(&pair.direct, &exchange.small, &exchange.through[..1])?,
            route(&pair.through, &exchange.request, &exchange.through)?,
        ];
        for route in &mut routes {
            for _ in 0..WARM_UP_REQUESTS {
                route.once(pair, content)?;
            }
        }
        let seen = routes[2].once(pair, content)?.1;
        if contains(&seen.body, "tool_search") {
            return Err("the client saw a search".into());
        }
        let id = pair.proxy.id();
        let before = cpu_seconds(&id);
        for turn in 0..ROUNDS {
            for i in 0..routes.len() {
                let route = &mut routes[(i + turn) % 3];
                let mut took = Vec::with_capacity(REQUESTS);
                for _ in 0..REQUESTS {
                    took.push(route.once(pair, content)?.0);
                }
                took.sort_by(f64::total_cmp);
                route.turns.push(took);
            }
        }
        let cpu = (cpu_seconds(&id) - before) * 1e3 / (ROUNDS * REQUESTS) as f64;
        let [direct, small, through] = routes.map(|route| route.turns);
        Ok(Self { direct, small, through, cpu })
    }

    /// Prints these times as one row of the table.
    pub(crate) fn print(&self, name: &str) {
        let p = |turns: &[Vec<f64>], share| {
            let mut all = turns.concat();
            all.sort_by(f64::total_cmp);
            quantile(&all, share)
        };
        let (direct, through) = (&self.direct, &self.through);
        let by_turn = |share| {
            let pairs = through.iter().zip(direct);
            median(pairs.map(|(a, b)| quantile(a, share) - quantile(b, share)).collect())
        };
        println!(
            "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | {:+.2} | {:+.2} | {:+.2} | {:+.2} | {:.2} | {:.2} |",
            p(direct, 0.5),
            p(direct, 0.99),
            p(through, 0.5),
            p(through, 0.99),
            p(through, 0.5) - p(direct, 0.5),
            by_turn(0.5),
            p(through, 0.99) - p(direct, 0.99),
            by_turn(0.99),
            p(&self.small, 0.5),
            self.cpu,
        );
    }
}

/// Prints the head of the table that [`Times::print`] fills.
pub(crate) fn head() {
    println!(
        "{ROUNDS} turns of {REQUESTS} requests each way, in rotation, on kept connections; ms.\n"
    );
    println!(
        "| request | direct p50 | p99 | through p50 | p99 | p50 more | by turn | p99 more | by turn | direct, few tools p50 | proxy's processor time |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
}

impl Route<'_> {
    /// Sends the request once. Returns the time in milliseconds and the response.
    fn once(
        &mut self,
        pair: &UpstreamAndProxy,
        content: Option<&str>,
    ) -> Result<(f64, Response), BenchError> {
        pair.queue_responses(self.answers);
        let Request { path, headers, body } = self.request;
        let (mut first, begin) = (None, Instant::now());
        let response = self.connection.stream(path, headers, body, &mut |chunk| {
            if content.is_some_and(|content| contains(chunk, content)) {
                first.get_or_insert_with(Instant::now);
            }
        })?;
        let end = match content {
            Some(content) => first.ok_or_else(|| format!("no `{content}` in the response"))?,
            None => Instant::now(),
        };
        Ok(((end - begin).as_secs_f64() * 1e3, response))
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
