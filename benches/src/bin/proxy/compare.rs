//! The same request by several ways, in rotation.

use std::time::Instant;

use toolcrib_bench::{Connection, Failed, Response, at, cpu_seconds, median};
use toolcrib_testkit::provider::ExactResponse;

use crate::client::Request;
use crate::scene::Scene;
use crate::upstream::Pair;

/// Turns that each way gets, and requests of one turn, one after the other.
const TURNS: usize = 20;
const REQUESTS: usize = 100;
/// Requests before it counts.
const WARM: usize = 50;

/// One way to an answer.
struct Way<'a> {
    connection: Connection,
    request: &'a Request,
    answers: &'a [ExactResponse],
    /// Milliseconds, sorted, by turn.
    turns: Vec<Vec<f64>>,
}

/// Times of a scene by three ways: directly, directly with the few tools that the proxy sends, and
/// through the proxy. `content` is what is waited for; without it, the whole response.
pub(crate) struct Times {
    direct: Vec<Vec<f64>>,
    small: Vec<Vec<f64>>,
    through: Vec<Vec<f64>>,
    /// The proxy's processor time for one request, in milliseconds.
    cpu: f64,
}

impl Times {
    pub(crate) fn measure(
        pair: &Pair,
        scene: &Scene,
        content: Option<&str>,
    ) -> Result<Self, Failed> {
        let way = |address: &str, request, answers| {
            Ok::<_, Failed>(Way {
                connection: Connection::open(address)?,
                request,
                answers,
                turns: Vec::new(),
            })
        };
        let direct = std::slice::from_ref(&scene.direct);
        let mut ways = [
            way(&pair.direct, &scene.request, direct)?,
            way(&pair.direct, &scene.small, &scene.through[..1])?,
            way(&pair.through, &scene.request, &scene.through)?,
        ];
        for way in &mut ways {
            for _ in 0..WARM {
                way.once(pair, content)?;
            }
        }
        let seen = ways[2].once(pair, content)?.1;
        if contains(&seen.body, "tool_search") {
            return Err("the client saw a search".into());
        }
        let id = pair.proxy.id();
        let before = cpu_seconds(&id);
        for turn in 0..TURNS {
            for i in 0..ways.len() {
                let way = &mut ways[(i + turn) % 3];
                let mut took = Vec::with_capacity(REQUESTS);
                for _ in 0..REQUESTS {
                    took.push(way.once(pair, content)?.0);
                }
                took.sort_by(f64::total_cmp);
                way.turns.push(took);
            }
        }
        let cpu = (cpu_seconds(&id) - before) * 1e3 / (TURNS * REQUESTS) as f64;
        let [direct, small, through] = ways.map(|way| way.turns);
        Ok(Self { direct, small, through, cpu })
    }

    /// The row of a table.
    pub(crate) fn print(&self, name: &str) {
        let p = |turns: &[Vec<f64>], share| {
            let mut all = turns.concat();
            all.sort_by(f64::total_cmp);
            at(&all, share)
        };
        let (direct, through) = (&self.direct, &self.through);
        let by_turn = |share| {
            let pairs = through.iter().zip(direct);
            median(pairs.map(|(a, b)| at(a, share) - at(b, share)).collect())
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

/// The head of the table that [`Times::print`] fills.
pub(crate) fn head() {
    println!(
        "{TURNS} turns of {REQUESTS} requests each way, in rotation, on kept connections; ms.\n"
    );
    println!(
        "| request | direct p50 | p99 | through p50 | p99 | p50 more | by turn | p99 more | by turn | direct, few tools p50 | proxy's processor time |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
}

impl Way<'_> {
    /// Milliseconds that it took, and what came.
    fn once(&mut self, pair: &Pair, content: Option<&str>) -> Result<(f64, Response), Failed> {
        pair.will(self.answers);
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
