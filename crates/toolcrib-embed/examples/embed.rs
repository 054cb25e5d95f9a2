//! Embeds texts with an encoder: reads one text per line, and writes the vectors as little-endian floats.
//!
//! `training/general.py` uses it, so that it works with the vectors that Toolcrib computes, before they are quantised.
//!
//! ```sh
//! cargo run --release --features deep --example embed -- encoder.bin 128 < texts > vectors
//! ```

use std::borrow::Cow;
use std::error::Error;
use std::io::{BufWriter, Write as _};
use std::thread;

use toolcrib_embed::Encoder;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(max_tokens)) = (arguments.next(), arguments.next()) else {
        return Err("usage: embed ENCODER MAX_TOKENS < TEXTS > VECTORS".into());
    };
    let max_tokens: usize = max_tokens.parse()?;
    let encoder = Encoder::parse(Cow::Owned(std::fs::read(path)?))?;
    let input = std::io::read_to_string(std::io::stdin().lock())?;
    let texts: Vec<&str> = input.lines().collect();
    let threads = thread::available_parallelism()?.get();
    let mut out = BufWriter::new(std::io::stdout().lock());
    thread::scope(|scope| {
        let embed = |part: &[&str]| -> Vec<u8> {
            let vector = |text: &&str| encoder.embed(text, max_tokens, &[]).whole;
            part.iter().map(vector).flat_map(|vector| bytes(vector.values())).collect()
        };
        let parts = texts.chunks(texts.len().div_ceil(threads).max(1));
        let running: Vec<_> = parts.map(|part| scope.spawn(move || embed(part))).collect();
        for part in running {
            out.write_all(&part.join().map_err(|_| "a thread panicked")?)?;
        }
        Ok::<(), Box<dyn Error>>(())
    })?;
    Ok(out.flush()?)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
