//! Files that only their owner may read, in a folder that only its owner may change.
//!
//! A file is created with mode 0600 under a random name, written, flushed, and only then renamed to its own name, so
//! that other users cannot read it and a crash leaves no partial file. Before anything is read or written, the folder
//! and those above it are checked as [`ownership`] describes; a file that is a link, has a second name, or is open to
//! others is refused, because another user may have put it there or know what is in it. The calls block. Tokens and
//! credentials are a few hundred bytes, which is short enough for an async task; larger files belong on a blocking
//! thread.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::ownership::{self, GroupWrite, SymlinkPolicy, UntrustedPath};
use crate::random;

/// Why a folder or a file in it is not used.
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
    /// It is a symbolic link.
    #[error("`{}` is a symbolic link", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The file has further names, which may be in other users' folders.
    #[error("`{}` has {count} names (hard links)", path.display())]
    HardLinks {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        count: u64,
    },
    /// It is too large to be a file of ours.
    #[error("`{}` is larger than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The system refused.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl PrivateFileError {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            // What is in the folder may be another user's by now.
            Self::UntrustedPath(UntrustedPath::Writable { path, .. }) => {
                let path = path.display();
                format!("check what is in `{path}`, then run: chmod go-w {path}")
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
    /// The uppermost folder that is Toolcrib's own: from here on down nobody else may write, not even a group.
    root: PathBuf,
    /// Folders above this one are not checked.
    home: Option<PathBuf>,
}

impl PrivateFolder {
    /// The folder at `path`, which need not exist yet, for a user whose home is `home`.
    pub fn new(path: impl Into<PathBuf>, home: Option<PathBuf>) -> Self {
        let path = path.into();
        Self { root: path.clone(), path, home }
    }

    /// A folder in this one.
    #[must_use]
    pub fn folder(&self, name: &str) -> Self {
        Self { path: self.path.join(name), ..self.clone() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the file `name` is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether the folder exists, if it can be used.
    pub fn check(&self) -> Result<bool, PrivateFileError> {
        let real = match fs::canonicalize(&self.path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(PrivateFileError::Io { path: self.path.clone(), source }),
        };
        self.check_folders(&self.path, &self.root, self.home.as_deref())?;
        if real != self.path {
            // Links above the folder lead elsewhere, where the folders count, too.
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
            let about = fs::metadata(own)
                .map_err(|source| PrivateFileError::Io { path: own.to_owned(), source })?;
            if !about.is_dir() {
                let source = io::ErrorKind::NotADirectory.into();
                return Err(PrivateFileError::Io { path: self.path.clone(), source });
            }
            ownership::check(own, &about, GroupWrite::AccessDenied)?;
        }
        match root.parent() {
            Some(above) if home != Some(root) => Ok(ownership::check_folders(above, home)?),
            _ => Ok(()),
        }
    }

    /// Creates the folder and its parents, without access for other users, if it does not exist.
    pub fn prepare(&self) -> Result<(), PrivateFileError> {
        if self.check()? {
            return Ok(());
        }
        // What exists so far counts before anything is created in it.
        let home = self.home.as_deref();
        let is_above_home =
            |folder: &Path| home.is_some_and(|home| home != folder && home.starts_with(folder));
        if let Some(there) = self.path.ancestors().skip(1).find(|ancestor| ancestor.exists())
            && !is_above_home(there)
        {
            ownership::check_folders(there, home)?;
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

    /// The bytes of the file `name`, or `None` if there is no such file.
    pub fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, PrivateFileError> {
        if !self.check()? {
            return Ok(None);
        }
        let path = self.file(name);
        let (file, about) = match ownership::open(&path, SymlinkPolicy::Refuse) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(unopened(path, source)),
        };
        check_file(&path, &about)?;
        if about.len() > limit {
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
        self.prepare()?;
        let path = self.file(name);
        let renamed = write_draft(&path, bytes)
            .and_then(|draft| fs::rename(&draft, &path).inspect_err(|_| discard(&draft)));
        renamed.map_err(|source| PrivateFileError::Io { path, source })
    }

    /// Writes `bytes` to the file `name` unless there is one; returns whether it was written.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, PrivateFileError> {
        self.prepare()?;
        let path = self.file(name);
        let created = write_draft(&path, bytes)
            .and_then(|draft| rename_to_new(&draft, &path).inspect_err(|_| discard(&draft)));
        match created {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(source) => Err(PrivateFileError::Io { path, source }),
        }
    }

    /// Removes the file `name` if there is one.
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

    /// Opens the file `name`, which is for locking alone, and creates it if necessary.
    pub fn open_lock(&self, name: &str) -> Result<File, PrivateFileError> {
        self.prepare()?;
        let path = self.file(name);
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
            options.mode(0o600).custom_flags(flags.cast_signed());
        }
        options.open(&path).map_err(|source| unopened(path, source))
    }
}

/// Maximum size of a secret that an administrator placed, in bytes. A private key has a few thousand.
const MAX_SECRET: u64 = 1 << 20;

/// The bytes of a secret that an administrator placed anywhere, such as a private key. Links are followed, and the
/// file may be root's and readable by a group: tools that renew certificates make such files. Only a file that every
/// user of the machine can read is refused.
pub fn read_secret(path: &Path) -> Result<Vec<u8>, PrivateFileError> {
    let failed = |source| PrivateFileError::Io { path: path.to_owned(), source };
    let (file, about) = ownership::open(path, SymlinkPolicy::Follow).map_err(failed)?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&about) & 0o777;
        if mode & 0o007 != 0 {
            return Err(PrivateFileError::ReadableByOthers { path: path.to_owned(), mode });
        }
    }
    if about.len() > MAX_SECRET {
        return Err(PrivateFileError::TooLarge { path: path.to_owned(), limit: MAX_SECRET });
    }
    let mut bytes = Vec::new();
    file.take(MAX_SECRET).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Why a file was not opened. A link that is not followed is told from other failures by looking again.
fn unopened(path: PathBuf, source: io::Error) -> PrivateFileError {
    match fs::symlink_metadata(&path) {
        Ok(about) if about.is_symlink() => PrivateFileError::Link { path },
        _ => PrivateFileError::Io { path, source },
    }
}

#[cfg(unix)]
fn check_file(path: &Path, about: &fs::Metadata) -> Result<(), PrivateFileError> {
    use std::os::unix::fs::MetadataExt as _;
    ownership::check(path, about, GroupWrite::PrivateGroup).or_else(|error| match error {
        // Reported below as readable by others, whose hint (`chmod 600`) also removes the write permission.
        UntrustedPath::Writable { .. } => Ok(()),
        error => Err(error),
    })?;
    let mode = about.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(PrivateFileError::ReadableByOthers { path: path.to_owned(), mode });
    }
    if about.nlink() != 1 {
        return Err(PrivateFileError::HardLinks { path: path.to_owned(), count: about.nlink() });
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_file(_path: &Path, _about: &fs::Metadata) -> Result<(), PrivateFileError> {
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

/// Renames a draft unless there is such a file, which a concurrent first run may have made.
fn rename_to_new(draft: &Path, path: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
            // Not every file system can do it.
            Err(
                rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP,
            ) => {}
            renamed => return Ok(renamed?),
        }
    }
    // A link fails if the file exists. For a moment the file has two names, and a concurrent reader refuses it.
    fs::hard_link(draft, path)?;
    discard(draft);
    Ok(())
}

/// Removes a draft. A draft that cannot be removed does no harm, so the error is ignored.
fn discard(draft: &Path) {
    let _ = fs::remove_file(draft);
}

#[cfg(test)]
mod tests;
