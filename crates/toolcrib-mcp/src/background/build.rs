//! Identifies a build of Toolcrib.
//!
//! Two builds never share a background gateway, even if they have the same version: one of them may have been built to
//! try out a change. Each build has its own socket, so an update never interrupts a running gateway. New
//! clients start a gateway of the new build, and the old one ends when its last client disconnects.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// How many bytes at the start and at the end of the executable identify a build.
const SAMPLE_BYTES: u64 = 64 << 10;

/// Returns a text that identifies the build of an executable: its version, and a hash of parts of the file.
pub fn build_id(executable: &Path) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match sample(executable) {
        Ok(sample) => format!("{version}+{}", &blake3::hash(&sample).to_hex()[..16]),
        Err(_) => version.to_owned(),
    }
}

/// Returns the start and the end of a file, and its length. Reading all of a large executable would take longer than
/// connecting.
fn sample(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = length.to_le_bytes().to_vec();
    file.by_ref().take(SAMPLE_BYTES).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(length.saturating_sub(SAMPLE_BYTES)))?;
    file.take(SAMPLE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
