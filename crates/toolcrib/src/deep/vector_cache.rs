//! Deep vectors in a file, so that no tool is embedded twice.
//!
//! Each encoder has a file of its own in the state folder. A vector is found by a hash of the text that it was computed
//! from, so all catalogs and all versions of a catalog share the vector. Records have a fixed size and a checksum. They are
//! appended under a lock, so several processes can use the file at once. A damaged record is skipped; losing one costs only the time
//! to embed a tool again. If the file reaches its maximum size, the older half is dropped.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use toolcrib_core::rank::{TextEncoder, TextKey};
use toolcrib_embed::QuantisedVector;
use toolcrib_server::private_file::{PrivateFileError, PrivateFolder};

use super::{CAPACITY, KeyedVector};

/// Name of the folder, below the state folder.
const FOLDER: &str = "vectors";
const KEY_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 8;
/// How often this process tries to lock the file, and the pause after an attempt. Together, it waits at most a second.
const LOCK_ATTEMPTS: usize = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The file with the vectors of one encoder.
#[derive(Debug)]
pub(super) struct VectorCache {
    folder: PrivateFolder,
    name: String,
    dims: usize,
    /// Whether it was checked that the file may be read.
    is_checked: AtomicBool,
}

impl VectorCache {
    pub(super) fn new(state: &PrivateFolder, encoder: &dyn TextEncoder) -> Self {
        let name = format!("{:032x}.bin", u128::from_be_bytes(encoder.id()));
        let folder = state.subfolder(FOLDER);
        Self { folder, name, dims: encoder.dims(), is_checked: AtomicBool::new(false) }
    }

    /// Reads all vectors. If the file cannot be read, there are none.
    pub(super) fn read(&self) -> Vec<KeyedVector> {
        match self.folder.read(&self.name, self.max_bytes()) {
            Ok(bytes) => self.records(&bytes.unwrap_or_default()),
            Err(error) => {
                log(&error, "read");
                Vec::new()
            }
        }
    }

    /// Appends vectors. If the file cannot be written, they are only kept in memory.
    pub(super) fn append(&self, vectors: &[KeyedVector]) {
        if vectors.is_empty() {
            return;
        }
        if let Err(error) = self.try_append(vectors) {
            log(&error, "write");
        }
    }

    fn try_append(&self, vectors: &[KeyedVector]) -> Result<(), PrivateFileError> {
        let mut file = self.open_locked()?;
        let length = file.metadata().map_err(|source| self.failed(source))?.len();
        let bytes: Vec<u8> = vectors.iter().flat_map(record).collect();
        let is_damaged = length % self.record_bytes() as u64 != 0;
        let is_full = length + bytes.len() as u64 > self.max_bytes();
        if is_damaged || is_full || !self.may_be_read() {
            let known = self.read();
            let dropped = if is_full { known.len() / 2 } else { 0 };
            let kept = known.iter().skip(dropped).chain(vectors);
            return self.folder.replace(&self.name, &kept.flat_map(record).collect::<Vec<u8>>());
        }
        file.write_all(&bytes).map_err(|source| self.failed(source))
    }

    /// Opens the file and locks it until it is closed. Another process may replace the file while this one waits for the
    /// lock, so the file is opened again if it is not the one in the folder any more. If the lock is held for long, for
    /// example by a suspended process, this is an error, because a search must not wait for it.
    fn open_locked(&self) -> Result<File, PrivateFileError> {
        for _ in 0..LOCK_ATTEMPTS {
            let file = self.folder.open_lock(&self.name)?;
            match file.try_lock() {
                Ok(()) if is_file_at(&file, &self.folder.file(&self.name)) => return Ok(file),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(source)) => return Err(self.failed(source)),
            }
        }
        Err(self.failed(io::ErrorKind::WouldBlock.into()))
    }

    /// Whether the file may be read. One that others may read, or that has several links, is replaced instead of
    /// extended. After the first success, this is not checked again, because Toolcrib never makes the file readable to
    /// others.
    fn may_be_read(&self) -> bool {
        let may_be_read = self.is_checked.load(Ordering::Relaxed)
            || self.folder.read(&self.name, self.max_bytes()).is_ok();
        self.is_checked.store(may_be_read, Ordering::Relaxed);
        may_be_read
    }

    fn failed(&self, source: io::Error) -> PrivateFileError {
        PrivateFileError::Io { path: self.folder.file(&self.name), source }
    }

    fn record_bytes(&self) -> usize {
        KEY_BYTES + size_of::<f32>() + self.dims + CHECKSUM_BYTES
    }

    fn max_bytes(&self) -> u64 {
        (CAPACITY * self.record_bytes()) as u64
    }

    fn records(&self, bytes: &[u8]) -> Vec<KeyedVector> {
        bytes.chunks_exact(self.record_bytes()).filter_map(|record| self.parse(record)).collect()
    }

    fn parse(&self, record: &[u8]) -> Option<KeyedVector> {
        let (content, sum) = record.split_at_checked(record.len() - CHECKSUM_BYTES)?;
        if checksum(content) != sum {
            return None;
        }
        let (key, vector) = content.split_first_chunk()?;
        Some((TextKey(*key), QuantisedVector::from_bytes(self.dims, vector)?))
    }
}

/// Whether an open file is still the one at this path.
#[cfg(unix)]
fn is_file_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let (open, there) = (file.metadata().map(identity), path.metadata().map(identity));
    matches!((open, there), (Ok(open), Ok(there)) if open == there)
}

/// Other systems do not replace a file that is open.
#[cfg(not(unix))]
fn is_file_at(_file: &File, _path: &Path) -> bool {
    true
}

fn record((key, vector): &KeyedVector) -> Vec<u8> {
    let mut record = key.0.to_vec();
    record.extend(vector.to_bytes());
    record.extend(checksum(&record));
    record
}

fn log(error: &PrivateFileError, action: &str) {
    tracing::warn!(hint = error.hint(), "cannot {action} the vectors of tools: {error}");
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECKSUM_BYTES]);
    sum
}
