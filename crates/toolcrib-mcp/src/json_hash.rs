//! The hash of a value's JSON, computed without building the JSON in memory.

use std::io;

use serde::Serialize;

struct HashWriter(blake3::Hasher);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Computes the hash of the JSON that `serde_json` writes for a value.
pub(crate) fn json_hash(value: &impl Serialize) -> serde_json::Result<blake3::Hash> {
    let mut writer = io::BufWriter::new(HashWriter(blake3::Hasher::new()));
    serde_json::to_writer(&mut writer, value)?;
    let writer = writer.into_inner().map_err(|error| serde_json::Error::io(error.into_error()))?;
    Ok(writer.0.finalize())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_is_that_of_the_json_text() {
        let value = json!({"text": "x".repeat(100_000), "list": [1, {"a": null}]});
        assert_eq!(json_hash(&value).unwrap(), blake3::hash(value.to_string().as_bytes()));
    }
}
