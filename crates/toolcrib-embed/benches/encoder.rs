//! Measures how long the encoder takes for texts of 16, 64 and 112 tokens, with each kernel of this CPU.
//!
//! The weights are the file named by `TOOLCRIB_BENCH_ENCODER`, or those of the `toolcrib` crate. Everything runs on one
//! thread. The kernels take turns, so that a change of the machine's clock rate affects all of them.
//!
//! `cargo bench -p toolcrib-embed --features deep --bench encoder`

#![allow(clippy::print_stdout)]

use std::borrow::Cow;
use std::hint::black_box;
use std::time::Instant;

use toolcrib_embed::Encoder;

const TOKENS: [usize; 3] = [16, 64, 112];
/// Number of measurements of each kernel and number of tokens.
const ROUNDS: usize = 60;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolcrib/weights/encoder.bin");
    let path = std::env::var_os("TOOLCRIB_BENCH_ENCODER").unwrap_or_else(|| default.into());
    let bytes: &'static [u8] = Vec::leak(std::fs::read(path)?);
    let mut times = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        black_box(Encoder::parse(Cow::Borrowed(bytes))?);
        times.push(millis(began));
    }
    println!("{:.1} ms to read {} bytes\n", quantile(&mut times, 0.5), bytes.len());
    let kernels = Encoder::parse(Cow::Borrowed(bytes))?.with_each_kernel();
    let text = "Sends a message to a channel, and returns its identifier. ".repeat(20);
    println!("| tokens | kernel | p50 ms | p90 ms |\n|---:|---|---:|---:|");
    for tokens in TOKENS {
        let mut times = vec![Vec::new(); kernels.len()];
        for _ in 0..ROUNDS {
            for ((_, encoder), times) in kernels.iter().zip(&mut times) {
                let began = Instant::now();
                let encoded = black_box(encoder.embed(black_box(&text), tokens, &[]));
                times.push(millis(began));
                assert_eq!(encoded.tokens, tokens, "the text is long enough");
            }
        }
        for ((kernel, _), times) in kernels.iter().zip(&mut times) {
            let (p50, p90) = (quantile(times, 0.5), quantile(times, 0.9));
            println!("| {tokens} | {kernel} | {p50:.2} | {p90:.2} |");
        }
    }
    Ok(())
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Sorts the values and returns the given quantile of them.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}
