//! Whether other users can change a file or a folder.
//!
//! A config decides which programs run, and the state folder holds tokens. Another user who can write to one of
//! them, or to a folder above it, can act as us. The rule is the one of ssh's `StrictModes`: a path belongs to us
//! or to root, and neither its group nor everybody may write to it, up to the home folder; outside the home
//! folder, up to the root of the file system. A sticky folder such as `/tmp` is no exception.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Why a file or a folder is not used.
#[derive(Debug, thiserror::Error)]
pub enum UntrustedPath {
    /// Neither ours nor root's.
    #[error("`{}` belongs to another user (uid {owner})", path.display())]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
    },
    /// Others may change it.
    #[error("other users may write to `{}` (mode {mode:o})", path.display())]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The system refused to say.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl UntrustedPath {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Owner { path, .. } => {
                format!("make it yours with `chown`, or move it away: `{}`", path.display())
            }
            Self::Writable { path, .. } => format!("run: chmod go-w {}", path.display()),
            Self::Io { path, .. } => format!("check `{}` and its permissions", path.display()),
        }
    }
}

/// Whether the group may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupWrite {
    /// Never: for what Toolcrib creates itself.
    AccessDenied,
    /// If the group is the owner's private one, with the same number as the owner. Distributions that give every
    /// user such a group set the umask 002, so most of their users' folders are writable by it.
    PrivateGroup,
}

/// Checks the owner and the permissions of one file or folder.
#[cfg(unix)]
pub fn check(path: &Path, about: &Metadata, group: GroupWrite) -> Result<(), UntrustedPath> {
    use std::os::unix::fs::MetadataExt as _;
    let us = rustix::process::geteuid().as_raw();
    let owner = about.uid();
    if owner != us && owner != 0 {
        return Err(UntrustedPath::Owner { path: path.to_owned(), owner });
    }
    let mode = about.mode() & 0o7777;
    // Root's group is shared by several users on some systems.
    let is_private = about.gid() == owner && owner != 0;
    let forbidden = if group == GroupWrite::PrivateGroup && is_private { 0o002 } else { 0o022 };
    if mode & forbidden != 0 {
        return Err(UntrustedPath::Writable { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Other systems have no such owners and permission bits.
#[cfg(not(unix))]
pub fn check(_path: &Path, _about: &Metadata, _group: GroupWrite) -> Result<(), UntrustedPath> {
    Ok(())
}

/// Checks `folder` and every folder above it, up to `home` if it is below that. The folder must exist.
pub fn check_folders(folder: &Path, home: Option<&Path>) -> Result<(), UntrustedPath> {
    for ancestor in folder.ancestors() {
        let about = fs::metadata(ancestor)
            .map_err(|source| UntrustedPath::Io { path: ancestor.to_owned(), source })?;
        check(ancestor, &about, GroupWrite::PrivateGroup)?;
        if home.is_some_and(|home| home == ancestor) {
            break;
        }
    }
    Ok(())
}

/// What to do with a symbolic link in place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// Open the file that it leads to.
    Follow,
    /// Fail.
    Refuse,
}

/// Opens a regular file for reading, with what is known of it. Anything else is refused; a named pipe is not waited
/// for. The metadata are those of the open file, since the path may name another file by now.
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
    let about = file.metadata()?;
    if about.is_file() {
        return Ok((file, about));
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
    fn every_folder_up_to_the_home_counts_and_none_above_it() {
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
        let about = fs::metadata(folder.path()).unwrap();
        assert!(check(folder.path(), &about, GroupWrite::AccessDenied).is_err());
        let is_private = about.gid() == about.uid() && about.uid() != 0;
        let checked = check(folder.path(), &about, GroupWrite::PrivateGroup);
        assert_eq!(checked.is_ok(), is_private, "{checked:?}");
    }
}
