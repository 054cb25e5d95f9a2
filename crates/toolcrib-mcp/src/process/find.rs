//! Where a command is, before anything is started.
//!
//! A misspelt command is the commonest mistake in a configuration. It is found here, in the
//! environment the server will have and not in ours, and told with the path that was searched.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::SpawnError;

/// What `execvp` searches when `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Finds `program` the way `execvp` in the folder `cwd` would, with the `PATH` of `env`.
pub(super) fn find(
    program: &OsStr,
    env: &[(OsString, OsString)],
    cwd: &Path,
) -> Result<PathBuf, SpawnError> {
    if program.as_bytes().contains(&b'/') {
        let path = cwd.join(program);
        return match (path.is_file(), is_executable(&path)) {
            (true, true) => Ok(path),
            (true, false) => Err(SpawnError::NotExecutable { path }),
            (false, _) => Err(SpawnError::NotFound { program: program.into(), path: None }),
        };
    }
    let path = env.iter().rev().find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value);
    std::env::split_paths(path)
        .map(|folder| cwd.join(folder).join(program))
        .find(|candidate| is_executable(candidate))
        .ok_or_else(|| SpawnError::NotFound { program: program.into(), path: Some(path.into()) })
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(value: &str) -> Vec<(OsString, OsString)> {
        vec![("PATH".into(), value.into())]
    }

    #[test]
    fn the_path_of_the_server_counts() {
        let root = Path::new("/");
        let found = |program: &str, env: &[(OsString, OsString)]| {
            find(OsStr::new(program), env, root).map_err(|error| error.to_string())
        };
        assert_eq!(found("sh", &path("/nowhere:/bin")), Ok("/bin/sh".into()));
        assert_eq!(found("sh", &[]), Ok("/bin/sh".into()));
        assert_eq!(found("sh", &path("bin")), Ok("/bin/sh".into()));
        assert_eq!(found("bin/sh", &path("")), Ok("/bin/sh".into()));
        assert_eq!(found("sh", &path("/nowhere")), Err("cannot find the command `sh`".into()));
        assert_eq!(found("", &path("/bin")), Err("cannot find the command ``".into()));
        assert_eq!(found("bin", &path("/")), Err("cannot find the command `bin`".into()));
        assert_eq!(
            found("/etc/passwd", &path("")),
            Err("`/etc/passwd` is not an executable file".into())
        );
    }

    #[test]
    fn the_hint_says_where_was_looked() {
        let missing = find(OsStr::new("npx"), &path("/a:/b"), Path::new("/")).unwrap_err();
        let hint = "give the full path of the command, or name `PATH` in its environment; it is looked \
                    for in 2 folders";
        assert_eq!(missing.hint(), hint);
    }
}
