//! Files that only their owner may read, in a folder that only its owner may change.
//!
//! A file is created with mode 0600 under a random name, written, flushed, and only then renamed, so that other users
//! cannot read it and a crash leaves no partial file. Before anything is read or written, the folder and the folders
//! above it are checked as described in [`ownership`]. A file that is a symbolic link, has several hard links, or is
//! accessible to other users is rejected, because another user may have put it there or may have read it.
//!
//! The functions block. Tokens and credentials have a few hundred bytes, so reading them in an async task is fine.
//! Larger files should be read on a blocking thread.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::ownership::{self, GroupWrite, SymlinkPolicy, UntrustedPath};
use crate::random;

/// Why a folder or a file in it cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// Other users can change the folder, a folder above it, or the file.
    #[error(transparent)]
    UntrustedPath(#[from] UntrustedPath),
    /// Other users have access to the file.
    #[error("other users may read `{}` (mode {mode:o})", path.display())]
    ReadableByOthers {
        /// The file.
        path: PathBuf,
        /// The permission bits of the file.
        mode: u32,
    },
    /// The file is a symbolic link.
    #[error("`{}` is a symbolic link", path.display())]
    Link {
        /// The path of the link.
        path: PathBuf,
    },
    /// The file has several hard links, some of which may be in folders of other users.
    #[error("`{}` has {count} hard links", path.display())]
    HardLinks {
        /// The file.
        path: PathBuf,
        /// The number of hard links.
        count: u64,
    },
    /// The file is larger than any file that Toolcrib would have written there.
    #[error("`{}` is larger than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Maximum size, in bytes.
        limit: u64,
    },
    /// An operation of the file system failed.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl PrivateFileError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> String {
        match self {
            // The hint says to check the contents first, because another user may have changed them.
            Self::UntrustedPath(UntrustedPath::Writable { path, .. }) => {
                let path = path.display();
                format!("check the contents of `{path}`, then run: chmod go-w {path}")
            }
            Self::UntrustedPath(error) => error.hint(),
            Self::ReadableByOthers { path, .. }
            | Self::Link { path }
            | Self::HardLinks { path, .. } => {
                format!("delete `{}`", path.display())
            }
            Self::TooLarge { path, .. } => format!("delete `{}`", path.display()),
            Self::Io { path, .. } => format!("check `{}` and its permissions", path.display()),
        }
    }
}

/// A folder whose files only their owner may read.
#[derive(Debug, Clone)]
pub struct PrivateFolder {
    path: PathBuf,
    /// The topmost folder that belongs to Toolcrib. In this folder and below it, nobody else may write, not even a
    /// group.
    root: PathBuf,
    /// The user's home folder. Folders above it are not checked.
    home: Option<PathBuf>,
}

impl PrivateFolder {
    /// Describes the folder at `path`, which may not exist yet. `home` is the user's home folder.
    pub fn new(path: impl Into<PathBuf>, home: Option<PathBuf>) -> Self {
        let path = path.into();
        Self { root: path.clone(), path, home }
    }

    /// Describes a folder inside this one.
    #[must_use]
    pub fn subfolder(&self, name: &str) -> Self {
        Self { path: self.path.join(name), ..self.clone() }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file `name` in this folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns whether the folder exists. Fails if it exists but is not safe to use.
    pub fn check(&self) -> Result<bool, PrivateFileError> {
        let real = match fs::canonicalize(&self.path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(PrivateFileError::Io { path: self.path.clone(), source }),
        };
        self.check_folders(&self.path, &self.root, self.home.as_deref())?;
        if real != self.path {
            // The path contains symbolic links, so the folders that they lead to are checked as well.
            let resolved = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let home = self.home.as_deref().map(resolved);
            self.check_folders(&real, &resolved(&self.root), home.as_deref())?;
        }
        Ok(true)
    }

    fn check_folders(
        &self,
        folder: &Path,
        root: &Path,
        home: Option<&Path>,
    ) -> Result<(), PrivateFileError> {
        for own in folder.ancestors().take_while(|ancestor| ancestor.starts_with(root)) {
            let metadata = fs::metadata(own)
                .map_err(|source| PrivateFileError::Io { path: own.to_owned(), source })?;
            if !metadata.is_dir() {
                let source = io::ErrorKind::NotADirectory.into();
                return Err(PrivateFileError::Io { path: self.path.clone(), source });
            }
            ownership::check(own, &metadata, GroupWrite::Denied)?;
        }
        match root.parent() {
            Some(above) if home != Some(root) => Ok(ownership::check_folders(above, home)?),
            _ => Ok(()),
        }
    }

    /// If the folder does not exist, creates it and its parents without access for other users.
    pub fn create_if_missing(&self) -> Result<(), PrivateFileError> {
        if self.check()? {
            return Ok(());
        }
        // Folders that already exist are checked before anything is created in them.
        let home = self.home.as_deref();
        let is_above_home =
            |folder: &Path| home.is_some_and(|home| home != folder && home.starts_with(folder));
        if let Some(existing) = self.path.ancestors().skip(1).find(|ancestor| ancestor.exists())
            && !is_above_home(existing)
        {
            ownership::check_folders(existing, home)?;
        }
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(&self.path)
            .map_err(|source| PrivateFileError::Io { path: self.path.clone(), source })?;
        self.check().map(|_| ())
    }

    /// Reads the file `name`. Returns `None` if the file does not exist, and an error if it is larger than `limit`
    /// bytes.
    pub fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, PrivateFileError> {
        if !self.check()? {
            return Ok(None);
        }
        let path = self.file(name);
        let (file, metadata) = match ownership::open(&path, SymlinkPolicy::Refuse) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(open_error(path, source)),
        };
        check_file(&path, &metadata)?;
        if metadata.len() > limit {
            return Err(PrivateFileError::TooLarge { path, limit });
        }
        let mut bytes = Vec::new();
        match file.take(limit).read_to_end(&mut bytes) {
            Ok(_) => Ok(Some(bytes)),
            Err(source) => Err(PrivateFileError::Io { path, source }),
        }
    }

    /// Writes `bytes` to the file `name`. Replaces the file if it exists.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), PrivateFileError> {
        self.create_if_missing()?;
        let path = self.file(name);
        let renamed = write_draft(&path, bytes)
            .and_then(|draft| fs::rename(&draft, &path).inspect_err(|_| discard(&draft)));
        renamed.map_err(|source| PrivateFileError::Io { path, source })
    }

    /// Writes `bytes` to the file `name` unless the file exists. Returns whether the file was written.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, PrivateFileError> {
        self.create_if_missing()?;
        let path = self.file(name);
        let created = write_draft(&path, bytes)
            .and_then(|draft| rename_to_new(&draft, &path).inspect_err(|_| discard(&draft)));
        match created {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(source) => Err(PrivateFileError::Io { path, source }),
        }
    }

    /// Removes the file `name` if it exists.
    pub fn remove(&self, name: &str) -> Result<(), PrivateFileError> {
        if !self.check()? {
            return Ok(());
        }
        let path = self.file(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(PrivateFileError::Io { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Opens the lock file `name`. Creates it if it does not exist.
    pub fn open_lock(&self, name: &str) -> Result<File, PrivateFileError> {
        self.create_if_missing()?;
        let path = self.file(name);
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
            options.mode(0o600).custom_flags(flags.cast_signed());
        }
        options.open(&path).map_err(|source| open_error(path, source))
    }
}

/// Maximum size of a secret file, in bytes. A private key has a few thousand bytes.
const MAX_SECRET_BYTES: u64 = 1 << 20;

/// Reads a secret that an administrator created, such as a private key. Symbolic links are followed, and the file may
/// belong to root and be readable by a group, because tools that renew certificates create such files. Only a file to
/// which every user of the machine has access is rejected.
pub fn read_secret(path: &Path) -> Result<Vec<u8>, PrivateFileError> {
    let failed = |source| PrivateFileError::Io { path: path.to_owned(), source };
    let (file, metadata) = ownership::open(path, SymlinkPolicy::Follow).map_err(failed)?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&metadata) & 0o777;
        if mode & 0o007 != 0 {
            return Err(PrivateFileError::ReadableByOthers { path: path.to_owned(), mode });
        }
    }
    if metadata.len() > MAX_SECRET_BYTES {
        return Err(PrivateFileError::TooLarge { path: path.to_owned(), limit: MAX_SECRET_BYTES });
    }
    let mut bytes = Vec::new();
    file.take(MAX_SECRET_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Returns the error for a file that could not be opened. Opening does not follow symbolic links and fails for them, so
/// the path is inspected again to report a link as such.
fn open_error(path: PathBuf, source: io::Error) -> PrivateFileError {
    match fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_symlink() => PrivateFileError::Link { path },
        _ => PrivateFileError::Io { path, source },
    }
}

#[cfg(unix)]
fn check_file(path: &Path, metadata: &fs::Metadata) -> Result<(), PrivateFileError> {
    use std::os::unix::fs::MetadataExt as _;
    ownership::check(path, metadata, GroupWrite::PrivateGroup).or_else(|error| match error {
        // A file that others may write to is reported below, as readable by others.
        UntrustedPath::Writable { .. } => Ok(()),
        error => Err(error),
    })?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(PrivateFileError::ReadableByOthers { path: path.to_owned(), mode });
    }
    if metadata.nlink() != 1 {
        return Err(PrivateFileError::HardLinks { path: path.to_owned(), count: metadata.nlink() });
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_file(_path: &Path, _metadata: &fs::Metadata) -> Result<(), PrivateFileError> {
    Ok(())
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

/// Renames a draft to `path` but never replaces an existing file, even if another process creates it at the same time.
fn rename_to_new(draft: &Path, path: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
            // Not every file system supports `NOREPLACE`, so fall through to a hard link.
            Err(
                rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP,
            ) => {}
            renamed => return Ok(renamed?),
        }
    }
    // Creating a hard link fails if the file exists. Until the draft is removed, the file has two links, so a
    // concurrent reader rejects it.
    fs::hard_link(draft, path)?;
    discard(draft);
    Ok(())
}

/// Removes a draft. Errors are ignored, because a draft that is left behind does no harm.
fn discard(draft: &Path) {
    let _ = fs::remove_file(draft);
}

#[cfg(test)]
mod tests;
