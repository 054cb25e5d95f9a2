//! Reads any bytes as the file of an encoder, and embeds the same bytes as text with this encoder.
//!
//! An encoder that is accepted must turn every text and every part of it into a vector of length 0 or 1, and must give
//! probabilities for general tools.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_embed::{Encoder, Vector};

/// Maximum number of bytes that are embedded, so that the file can be longer than the text.
const TEXT: usize = 512;

fn check(vector: &Vector) {
    let length = vector.dot(vector);
    assert!(vector.is_zero() || (length - 1.0).abs() < 1e-3, "{length}");
}

fuzz_target!(|data: &[u8]| {
    let Ok(encoder) = Encoder::parse(data.to_vec().into()) else { return };
    let text = String::from_utf8_lossy(&data[..data.len().min(TEXT)]);
    let half = text.len() / 2;
    let embedded = encoder.embed(&text, 64, &[0..half, half..text.len()]);
    check(&embedded.whole);
    embedded.parts.iter().flatten().for_each(check);
    let types = encoder.general_types();
    for probability in types.request_probabilities(&embedded.whole.quantised()) {
        assert!((0.0..=1.0).contains(&probability), "{probability}");
    }
    for one in types.as_slice() {
        let cosine = embedded.whole.quantised().dot(one.tool.direction());
        assert!((0.0..=1.0).contains(&one.tool.probability(cosine)));
    }
});
