//! A journal of events, one per line, which a test reads afterwards.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// The file to which events are appended. `None` if the server keeps no journal.
pub(crate) struct Journal(Option<File>);

impl Journal {
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let file = path.map(|path| OpenOptions::new().create(true).append(true).open(path));
        Ok(Self(file.transpose()?))
    }

    /// Appends one line in a single write, so that several servers can share a file.
    pub(crate) fn note(&self, event: &str) {
        if let Some(mut file) = self.0.as_ref() {
            // A failure to write the journal must not change how the server behaves.
            let _ = file.write_all(format!("{event}\n").as_bytes());
        }
    }
}
