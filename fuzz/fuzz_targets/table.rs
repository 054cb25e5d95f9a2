//! Reads any bytes as a table of vectors, and embeds the same bytes as text with this table.
//!
//! A table that is accepted must turn every text into a vector of length 0 or 1.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_core::EmbeddingModel;

fuzz_target!(|data: &[u8]| {
    let Ok(model) = EmbeddingModel::parse(data.to_vec().into()) else { return };
    let text = String::from_utf8_lossy(data);
    let vector = model.embed(&text);
    let length = vector.dot(&vector);
    assert!(vector.is_zero() || (length - 1.0).abs() < 1e-3, "{length}");
});
