//! Files that only their owner may read, written completely or not at all.
//!
//! A file is created with mode 0600 under a random name, written, flushed, and only then renamed or linked to
//! its own name, so that other users cannot read it and a crash leaves no partial file. The calls block. Tokens and credentials are a
//! few hundred bytes, which is short enough for an async task; larger files belong on a blocking thread.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::random;

/// Maximum size of a file that is read, in bytes. Far above any token or credential.
const LARGEST: u64 = 1 << 20;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// Other users have access to it.
    #[error("other users may read it (mode {mode:o})")]
    Shared {
        /// Its permission bits.
        mode: u32,
    },
    /// It is too large to be a file of ours.
    #[error("it is larger than {LARGEST} bytes")]
    TooLarge,
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Creates `folder` and its parents, without access for other users.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes `bytes` to `path`, replacing any file there.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = write_draft(path, bytes)?;
    fs::rename(&draft, path).inspect_err(|_| discard(&draft))
}

/// Writes `bytes` to `path` if there is no such file; fails with `AlreadyExists` otherwise.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = write_draft(path, bytes)?;
    // A link fails if the file exists. A rename would silently replace the file of a concurrent first run.
    let linked = fs::hard_link(&draft, path);
    discard(&draft);
    linked
}

/// The bytes at `path`, or `None` if there is no such file.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, Unreadable> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Of the open file, not of the path, which may name another file by now.
    let about = file.metadata()?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777;
        if mode & 0o077 != 0 {
            return Err(Unreadable::Shared { mode });
        }
    }
    if about.len() > LARGEST {
        return Err(Unreadable::TooLarge);
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn write_draft(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let draft = path.with_extension(format!("{}.draft", random::hex::<8>()?));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).inspect_err(|_| discard(&draft))?;
    Ok(draft)
}

/// Removes a draft. A draft that cannot be removed does no harm, so the error is ignored.
fn discard(draft: &Path) {
    let _ = fs::remove_file(draft);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacing_leaves_one_file_and_creating_never_wins_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        create(&path, b"one").unwrap();
        assert_eq!(create(&path, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(read(&path).unwrap().unwrap(), b"one");
        replace(&path, b"three").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"three");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft stays behind");
        assert!(read(&folder.path().join("b.json")).unwrap().is_none());
    }

    #[test]
    fn a_file_of_another_size_is_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        replace(&path, &vec![b' '; LARGEST as usize + 1]).unwrap();
        assert!(matches!(read(&path), Err(Unreadable::TooLarge)));
    }
}
