//! Finds the program of a command before anything is started.
//!
//! A misspelt command is the most common mistake in a config. It is detected here, with the server's `PATH` and not the
//! gateway's, and the error says how many folders were searched.
//!
//! The folder that Toolcrib was started in has no influence, because clients start it in a project's folder, which may
//! contain anybody's files. A relative command needs a `cwd` in the config, and relative folders in `PATH` are skipped.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::SpawnError;

/// The folders that `execvp` searches if `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Finds `program` in the `PATH` of `env`, and returns its absolute path. A relative path is relative to the configured
/// `cwd`.
pub(super) fn find_command(
    program: &OsStr,
    env: &[(OsString, OsString)],
    cwd: Option<&Path>,
) -> Result<PathBuf, SpawnError> {
    if program.as_bytes().contains(&b'/') {
        let path = match cwd {
            Some(cwd) => cwd.join(program),
            None => program.into(),
        };
        if !path.is_absolute() {
            return Err(SpawnError::RelativeCommand { program: program.into() });
        }
        return match (path.is_file(), is_executable(&path)) {
            (true, true) => Ok(path),
            (true, false) => Err(SpawnError::NotExecutable { path }),
            (false, _) => Err(SpawnError::NotFound { program: program.into(), path: None }),
        };
    }
    let path = env.iter().rev().find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value);
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
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
    fn a_command_is_searched_in_the_servers_path() {
        let found = |program: &str, env: &[(OsString, OsString)]| {
            find_command(OsStr::new(program), env, Some(Path::new("/")))
                .map_err(|error| error.to_string())
        };
        assert_eq!(found("sh", &path("/nowhere:/bin")), Ok("/bin/sh".into()));
        assert_eq!(found("sh", &[]), Ok("/bin/sh".into()));
        // Relative folders in `PATH` are not searched, not even relative to `cwd`.
        for relative in ["bin", "./bin", "bin:.", ""] {
            let missing = Err("cannot find the command `sh`".into());
            assert_eq!(found("sh", &path(relative)), missing, "{relative}");
        }
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
    fn a_relative_command_needs_a_cwd() {
        for program in ["./server", "bin/server", "../server"] {
            let error = find_command(OsStr::new(program), &path("/bin"), None).unwrap_err();
            assert!(matches!(error, SpawnError::RelativeCommand { .. }), "{program}: {error}");
        }
        assert!(find_command(OsStr::new("/bin/sh"), &path(""), None).is_ok());
    }

    #[test]
    fn the_hint_says_how_many_folders_were_searched() {
        let missing = find_command(OsStr::new("npx"), &path("/a:/b"), None).unwrap_err();
        let hint =
            "give the full path of the command, or set `PATH` in `env`; 2 folders were searched";
        assert_eq!(missing.hint(), hint);
    }
}
