//! Tests of which files and folders are rejected, and that files are written completely.

use super::*;

const LIMIT: u64 = 1 << 10;

fn folder() -> (tempfile::TempDir, PrivateFolder) {
    let home = tempfile::tempdir().unwrap();
    let folder = PrivateFolder::new(home.path().join("state"), Some(home.path().to_owned()));
    (home, folder)
}

#[test]
fn replacing_leaves_one_file_and_creating_never_overwrites() {
    let (_home, folder) = folder();
    assert!(folder.read("a.json", LIMIT).unwrap().is_none());
    assert!(folder.create("a.json", b"one").unwrap());
    assert!(!folder.create("a.json", b"two").unwrap());
    assert_eq!(folder.read("a.json", LIMIT).unwrap().unwrap(), b"one");
    folder.replace("a.json", b"three").unwrap();
    assert_eq!(folder.read("a.json", LIMIT).unwrap().unwrap(), b"three");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
    assert!(folder.read("b.json", LIMIT).unwrap().is_none());
    folder.remove("a.json").unwrap();
    folder.remove("a.json").unwrap();
    assert!(folder.read("a.json", LIMIT).unwrap().is_none());
}

#[test]
fn a_file_over_the_size_limit_is_rejected() {
    let (_home, folder) = folder();
    folder.replace("a.json", &vec![b' '; LIMIT as usize]).unwrap();
    assert!(folder.read("a.json", LIMIT).is_ok());
    folder.replace("a.json", &vec![b' '; LIMIT as usize + 1]).unwrap();
    assert!(matches!(folder.read("a.json", LIMIT), Err(PrivateFileError::TooLarge { .. })));
}

#[cfg(unix)]
#[test]
fn folders_that_others_can_write_to_and_linked_files_are_rejected() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let (home, state) = folder();
    let inner = state.subfolder("servers");
    inner.replace("a", b"one").unwrap();
    assert_eq!(fs::metadata(state.path()).unwrap().permissions().mode() & 0o777, 0o700);
    for shared in [state.path(), inner.path(), home.path()] {
        for bits in [0o770, 0o707, 0o1777] {
            // In folders above the state folder, the owner's private group may write.
            if bits == 0o770 && shared == home.path() {
                continue;
            }
            mode(shared, bits);
            let is_rejected = |done: Result<(), PrivateFileError>| {
                let error = done.unwrap_err();
                assert!(matches!(
                    error,
                    PrivateFileError::UntrustedPath(UntrustedPath::Writable { .. })
                ));
                assert!(error.hint().ends_with(&format!("chmod go-w {}", shared.display())));
            };
            is_rejected(inner.read("a", LIMIT).map(|_| ()));
            is_rejected(inner.replace("a", b"two"));
            is_rejected(inner.create("b", b"two").map(|_| ()));
            is_rejected(inner.remove("a"));
            is_rejected(inner.open_lock("lock").map(|_| ()));
        }
        mode(shared, 0o700);
    }
    assert_eq!(inner.read("a", LIMIT).unwrap().unwrap(), b"one");

    fs::hard_link(inner.file("a"), inner.file("b")).unwrap();
    assert!(matches!(inner.read("a", LIMIT), Err(PrivateFileError::HardLinks { count: 2, .. })));
    fs::remove_file(inner.file("b")).unwrap();
    symlink(inner.file("a"), inner.file("b")).unwrap();
    assert!(matches!(inner.read("b", LIMIT), Err(PrivateFileError::Link { .. })));
    assert!(matches!(inner.open_lock("b"), Err(PrivateFileError::Link { .. })));
    // Writing replaces the link itself and leaves the file that it points to unchanged.
    inner.replace("b", b"other").unwrap();
    assert_eq!(inner.read("a", LIMIT).unwrap().unwrap(), b"one");
    assert_eq!(inner.read("b", LIMIT).unwrap().unwrap(), b"other");
    mode(&inner.file("a"), 0o640);
    assert!(matches!(
        inner.read("a", LIMIT),
        Err(PrivateFileError::ReadableByOthers { mode: 0o640, .. })
    ));
}
