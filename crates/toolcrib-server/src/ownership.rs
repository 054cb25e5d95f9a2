//! Checks that other users cannot change a file or a folder.
//!
//! A config decides which programs run, and the state folder holds tokens. Another user who can write to one of them,
//! or to a folder above it, can act as this user. The rule is that of ssh's `StrictModes`: a path must belong to this
//! user or to root, and neither its group nor others may write to it. Outside Toolcrib's own folders, the owner's
//! private group may write, too; see [`GroupWrite`]. The rule applies to every folder up to the home folder, or up to
//! the root of the file system if the path is outside the home folder. There is no exception for sticky folders such as
//! `/tmp`.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Why a file or a folder is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum UntrustedPath {
    /// The file or folder belongs neither to this user nor to root.
    #[error("`{}` belongs to another user (uid {owner})", path.display())]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// The user id of the owner.
        owner: u32,
    },
    /// Other users may write to the file or folder.
    #[error("other users may write to `{}` (mode {mode:o})", path.display())]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// The permission bits of the file or folder.
        mode: u32,
    },
    /// The metadata of the file or folder cannot be read.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl UntrustedPath {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> String {
        match self {
            Self::Owner { path, .. } => {
                format!("change its owner with `chown`, or move it away: `{}`", path.display())
            }
            Self::Writable { path, .. } => format!("run: chmod go-w {}", path.display()),
            Self::Io { path, .. } => format!("check `{}` and its permissions", path.display()),
        }
    }
}

/// Whether the group of a file or folder may write to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupWrite {
    /// The group may not write. For files and folders that Toolcrib creates itself.
    Denied,
    /// The group may write if it is the owner's private group, which has the same id as the owner. Distributions that
    /// give every user such a group set the umask to 002, so most folders of their users are writable by the group.
    PrivateGroup,
}

/// Checks the owner and the permissions of one file or folder.
#[cfg(unix)]
pub fn check(path: &Path, metadata: &Metadata, group: GroupWrite) -> Result<(), UntrustedPath> {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid().as_raw();
    let owner = metadata.uid();
    if owner != user && owner != 0 {
        return Err(UntrustedPath::Owner { path: path.to_owned(), owner });
    }
    let mode = metadata.mode() & 0o7777;
    // On some systems, several users are in root's group, so this group does not count as private.
    let is_private = metadata.gid() == owner && owner != 0;
    let forbidden = if group == GroupWrite::PrivateGroup && is_private { 0o002 } else { 0o022 };
    if mode & forbidden != 0 {
        return Err(UntrustedPath::Writable { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Does nothing, because systems other than Unix have no such owners and permission bits.
#[cfg(not(unix))]
pub fn check(_path: &Path, _metadata: &Metadata, _group: GroupWrite) -> Result<(), UntrustedPath> {
    Ok(())
}

/// Checks `folder` and every folder above it. Stops after `home` if that is one of them. All folders must exist.
pub fn check_folders(folder: &Path, home: Option<&Path>) -> Result<(), UntrustedPath> {
    for ancestor in folder.ancestors() {
        let metadata = fs::metadata(ancestor)
            .map_err(|source| UntrustedPath::Io { path: ancestor.to_owned(), source })?;
        check(ancestor, &metadata, GroupWrite::PrivateGroup)?;
        if home.is_some_and(|home| home == ancestor) {
            break;
        }
    }
    Ok(())
}

/// What to do if the file to open is a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// Open the file that the link points to.
    Follow,
    /// Return an error.
    Refuse,
}

/// Opens a regular file for reading and returns it with its metadata. Fails for anything else, and does not block on a
/// named pipe. The metadata are read from the open file, because the path may refer to a different file after it was
/// opened.
pub fn open(path: &Path, symlinks: SymlinkPolicy) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let links =
            if symlinks == SymlinkPolicy::Refuse { OFlags::NOFOLLOW } else { OFlags::empty() };
        let flags = (OFlags::NONBLOCK | links).bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        return Ok((file, metadata));
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn every_folder_up_to_the_home_is_checked_and_none_above_it() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        let folder = home.join("a/b");
        fs::create_dir_all(&folder).unwrap();
        for path in [&home, &home.join("a"), &folder] {
            mode(path, 0o755);
        }
        mode(root.path(), 0o777);
        check_folders(&folder, Some(&home)).unwrap();
        assert!(matches!(
            check_folders(&folder, None),
            Err(UntrustedPath::Writable { path, mode: 0o777 }) if path == root.path()
        ));
        for shared in [&home, &home.join("a"), &folder] {
            for bits in [0o757, 0o1777] {
                mode(shared, bits);
                let error = check_folders(&folder, Some(&home)).unwrap_err();
                assert!(
                    matches!(&error, UntrustedPath::Writable { path, mode } if path == shared && *mode == bits),
                    "{error}"
                );
                assert_eq!(error.hint(), format!("run: chmod go-w {}", shared.display()));
            }
            mode(shared, 0o755);
        }
    }

    #[test]
    fn a_private_group_may_write_only_where_that_is_allowed() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        mode(folder.path(), 0o770);
        let metadata = fs::metadata(folder.path()).unwrap();
        assert!(check(folder.path(), &metadata, GroupWrite::Denied).is_err());
        let is_private = metadata.gid() == metadata.uid() && metadata.uid() != 0;
        let checked = check(folder.path(), &metadata, GroupWrite::PrivateGroup);
        assert_eq!(checked.is_ok(), is_private, "{checked:?}");
    }
}
