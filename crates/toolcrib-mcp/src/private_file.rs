//! Files that only their owner may read, written whole or not at all.
//!
//! A file is born with mode 0600 under a name nobody else knows, filled, flushed, and only then
//! given its real name: there is no moment at which another user or a crash sees half of it.
//! The calls block. Tokens and credentials are a few hundred bytes, so nobody moves them off the runtime;
//! remembered lists are larger, and written where blocking is allowed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// No token or credential of ours is near this; a file that is larger is not one.
const LARGEST: u64 = 1 << 20;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("other users may read it (mode {mode:o})")]
    Shared { mode: u32 },
    #[error("it is larger than {LARGEST} bytes")]
    TooLarge,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Makes `folder` and its parents; what is made is closed to other users.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Puts `bytes` in the place of whatever `path` held.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = write_draft(path, bytes)?;
    fs::rename(&draft, path).inspect_err(|_| discard(&draft))
}

/// Puts `bytes` at `path` if nothing is there; `AlreadyExists` otherwise.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = write_draft(path, bytes)?;
    // A link, for a rename would silently win over the other of two first runs.
    let linked = fs::hard_link(&draft, path);
    discard(&draft);
    linked
}

/// The bytes at `path`, or nothing where there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Unreadable> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Asked of the open file, not of the path: the path may be another file by now.
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

/// `N` bytes from the operating system, as lower-case hex.
pub(crate) fn random_hex<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect())
}

fn hex_digit(half: u8) -> char {
    char::from_digit(u32::from(half), 16).unwrap_or('0')
}

fn write_draft(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let draft = path.with_extension(format!("{}.draft", random_hex::<8>()?));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).inspect_err(|_| discard(&draft))?;
    Ok(draft)
}

/// A draft that stays behind is litter, not a fault of what was asked for.
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
