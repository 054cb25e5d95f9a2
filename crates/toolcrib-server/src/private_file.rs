//! Files that only their owner may read, in a folder that only its owner may change.
//!
//! A file is created with mode 0600 under a random name, written, flushed, and only then renamed, so that other users
//! cannot read it and a crash leaves no partial file. Before anything is read or written, the folder and those above it
//! are checked as described in [`ownership`]. A file that is a symbolic link, has several hard links, or is accessible
//! to other users is rejected, because another user may have put it there or may have read it.
//!
//! The functions block. Tokens and credentials are a few hundred bytes, which is fine in an async task; larger files
//! belong on a blocking thread.

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
        /// Its permission bits.
        mode: u32,
    },
    /// The file is a symbolic link.
    #[error("`{}` is a symbolic link", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The file has several hard links, and the others may be in folders of other users.
    #[error("`{}` has {count} hard links", path.display())]
    HardLinks {
        /// The file.
        path: PathBuf,
        /// The number of hard links.
        count: u64,
    },
    /// The file is too large to be one of Toolcrib's.
    #[error("`{}` is larger than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Maximum size, in bytes.
        limit: u64,
    },
    /// An operation failed.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl PrivateFileError {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            // Another user may have changed the contents of the folder.
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

/// A folder with private files.
#[derive(Debug, Clone)]
pub struct PrivateFolder {
    path: PathBuf,
    /// The uppermost folder that belongs to Toolcrib. Nobody else may write in it or below it, not even a group.
    root: PathBuf,
    /// Folders above this one are not checked.
    home: Option<PathBuf>,
}

impl PrivateFolder {
    /// Refers to the folder at `path`, which need not exist yet. `home` is the user's home folder.
    pub fn new(path: impl Into<PathBuf>, home: Option<PathBuf>) -> Self {
        let path = path.into();
        Self { root: path.clone(), path, home }
    }

    /// Refers to a folder in this one.
    #[must_use]
    pub fn subfolder(&self, name: &str) -> Self {
        Self { path: self.path.join(name), ..self.clone() }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the file `name`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether the folder exists. Fails if it exists and must not be used.
    pub fn check(&self) -> Result<bool, PrivateFileError> {
        let real = match fs::canonicalize(&self.path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(PrivateFileError::Io { path: self.path.clone(), source }),
        };
        self.check_folders(&self.path, &self.root, self.home.as_deref())?;
        if real != self.path {
            // There are symbolic links in the path, so the folders that they lead to are checked as well.
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
            ownership::check(own, &metadata, GroupWrite::AccessDenied)?;
        }
        match root.parent() {
            Some(above) if home != Some(root) => Ok(ownership::check_folders(above, home)?),
            _ => Ok(()),
        }
    }

    /// Creates the folder and its parents, without access for other users, if it does not exist.
    pub fn create_if_missing(&self) -> Result<(), PrivateFileError> {
        if self.check()? {
            return Ok(());
        }
        // The folders that already exist are checked before anything is created in them.
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

    /// Reads the file `name`; `None` if there is no such file.
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

    /// Writes `bytes` to the file `name`, replacing any file there.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), PrivateFileError> {
        self.create_if_missing()?;
        let path = self.file(name);
        let renamed = write_draft(&path, bytes)
            .and_then(|draft| fs::rename(&draft, &path).inspect_err(|_| discard(&draft)));
        renamed.map_err(|source| PrivateFileError::Io { path, source })
    }

    /// Writes `bytes` to the file `name` unless it exists. Returns whether it was written.
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

    /// Opens the lock file `name`, and creates it if necessary.
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

/// Maximum size of a secret file, in bytes. A private key has a few thousand.
const MAX_SECRET_BYTES: u64 = 1 << 20;

/// Reads a secret that an administrator created, such as a private key. Symbolic links are followed, and the file may
/// belong to root and be readable by a group, because tools that renew certificates create such files. Only a file that
/// every user of the machine can read is rejected.
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

/// Returns why a file could not be opened. A symbolic link, which is not followed, is distinguished from other failures
/// by inspecting the path again.
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
        // Such a file is reported below as readable by others.
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

/// Renames a draft to `path` without replacing a file. Another process may create that file at the same time.
fn rename_to_new(draft: &Path, path: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
            // Not every file system supports this flag.
            Err(
                rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP,
            ) => {}
            renamed => return Ok(renamed?),
        }
    }
    // Creating a hard link fails if the file exists. For a moment the file has two links, and a concurrent reader
    // rejects it.
    fs::hard_link(draft, path)?;
    discard(draft);
    Ok(())
}

/// Removes a draft. A draft that stays does no harm, so errors are ignored.
fn discard(draft: &Path) {
    let _ = fs::remove_file(draft);
}

#[cfg(test)]
mod tests;
