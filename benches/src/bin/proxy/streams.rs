//! Measures five hundred concurrent streams.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use toolcrib_bench::{BenchError, Connection, cpu_seconds, peak_mb, quantile, resident_mb};
use toolcrib_testkit::provider::{BodyPart, ExactResponse, Pace};

use crate::client::{APIS, name, tools};
use crate::overhead::TOOLS;
use crate::recorded_exchange::RecordedExchange;
use crate::upstream::UpstreamAndProxy;

const STREAMS: usize = 500;
/// Number of deltas in one stream. [`PAUSE`] is the time between them.
const DELTAS: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);
/// How many times all streams are run. All passes use the same connections.
const PASSES: usize = 3;
/// How the streams start: all at once, or each 2 ms after the previous one, while the earlier ones are still running.
const SPREADS: [(&str, Duration); 2] =
    [("at once", Duration::ZERO), ("within a second", Duration::from_millis(2))];
/// The text of each delta.
const WORD: &str = "token by ";
/// Stack size of a reader thread, in bytes. 500 default stacks would reserve a gigabyte of address space.
const STACK: usize = 256 << 10;

struct Run {
    errors: usize,
    seconds: f64,
    /// Milliseconds to the first delta of each stream, sorted.
    first: Vec<f64>,
}

pub(crate) fn measure() -> Result<(), BenchError> {
    let record = UpstreamAndProxy::record(Some(Pace { deltas: DELTAS, pause: Duration::ZERO }))?;
    let tools = tools(0, TOOLS)?;
    println!(
        "{STREAMS} streams together, {PASSES} times, each with {DELTAS} words, {PAUSE:?} apart.\n"
    );
    println!(
        "| streams | errors | s direct | s through | first word p50 ms direct | through | proxy's µs a word | peak MB | MB after |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (begun, gap) in SPREADS {
        for api in APIS {
            let exchange = RecordedExchange::record(&record, api, &tools, "Hi.", true)?
                .with_parts(with_pauses);
            row(&format!("{}, begun {begun}", name(api)), &exchange, gap)?;
        }
    }
    Ok(())
}

fn row(name: &str, exchange: &RecordedExchange, gap: Duration) -> Result<(), BenchError> {
    // Each row of the table is measured with a new proxy, because the peak memory of a process never decreases.
    let play = UpstreamAndProxy::play()?;
    let id = play.proxy.id();
    let direct = run(&play, &play.direct, exchange, std::slice::from_ref(&exchange.direct), gap)?;
    let before = cpu_seconds(&id);
    let through = run(&play, &play.through, exchange, &exchange.through, gap)?;
    let words = (STREAMS * DELTAS * PASSES) as f64;
    println!(
        "| {name} | {} | {:.2} | {:.2} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
        through.errors + direct.errors,
        direct.seconds,
        through.seconds,
        quantile(&direct.first, 0.5),
        quantile(&through.first, 0.5),
        (cpu_seconds(&id) - before) / words * 1e6,
        peak_mb(&id),
        resident_mb(&id),
    );
    Ok(())
}

fn with_pauses(parts: Vec<BodyPart>) -> Vec<BodyPart> {
    parts.into_iter().flat_map(|part| [BodyPart::Pause(PAUSE), part]).collect()
}

fn run(
    pair: &UpstreamAndProxy,
    address: &str,
    exchange: &RecordedExchange,
    answers: &[ExactResponse],
    gap: Duration,
) -> Result<Run, BenchError> {
    for _ in 0..STREAMS * PASSES {
        pair.queue_responses(answers);
    }
    let (errors, start) = (AtomicUsize::new(0), Barrier::new(STREAMS + 1));
    let (errors, start) = (&errors, &start);
    let reader = |late: Duration| -> Vec<f64> {
        let mut connection = Connection::open(address);
        start.wait();
        std::thread::sleep(late);
        let mut firsts = Vec::new();
        for _ in 0..PASSES {
            let said =
                connection.as_mut().map_err(|error| error.to_string()).and_then(|connection| {
                    read_stream(connection, exchange).map_err(|error| error.to_string())
                });
            match said {
                Ok((first, DELTAS)) => firsts.push(first),
                Ok((_, words)) => fail(errors, &format!("{words} words")),
                Err(error) => fail(errors, &error),
            }
        }
        firsts
    };
    std::thread::scope(|threads| {
        let reader = &reader;
        let begin = |at| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(threads, move || reader(gap * at))
        };
        let readers: Result<Vec<_>, _> = (0..STREAMS as u32).map(begin).collect();
        let readers = readers?;
        start.wait();
        let begin = Instant::now();
        let mut first: Vec<f64> =
            readers.into_iter().flat_map(|reader| reader.join().unwrap_or_default()).collect();
        first.sort_by(f64::total_cmp);
        let seconds = begin.elapsed().as_secs_f64();
        Ok(Run { errors: errors.load(Ordering::Relaxed), seconds, first })
    })
}

/// Reads one stream. Returns the milliseconds until its first delta arrived, and the number of deltas.
fn read_stream(
    connection: &mut Connection,
    exchange: &RecordedExchange,
) -> Result<(f64, usize), BenchError> {
    let request = &exchange.request;
    let (mut first, mut words, begin) = (f64::NAN, 0, Instant::now());
    connection.stream(&request.path, &request.headers, &request.body, &mut |chunk| {
        // A delta contains `WORD` once. Events that repeat the whole text contain it many times and are not counted.
        let text = String::from_utf8_lossy(chunk);
        let came = text.lines().filter(|line| line.matches(WORD).count() == 1).count();
        if words == 0 && came > 0 {
            first = begin.elapsed().as_secs_f64() * 1e3;
        }
        words += came;
    })?;
    Ok((first, words))
}

fn fail(errors: &AtomicUsize, why: &str) {
    if errors.fetch_add(1, Ordering::Relaxed) == 0 {
        println!("a stream failed: {why}");
    }
}
