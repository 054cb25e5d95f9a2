//! How a client starts Toolcrib: in the way in which this process was started, so that an upgrade of Toolcrib needs no
//! change of the client's file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// The command with which a client starts Toolcrib, without the arguments of `toolcrib` itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) reason: LaunchReason,
}

/// Why Toolcrib is started with this command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LaunchReason {
    /// npx installed this program into its cache.
    Npx,
    /// uvx installed this program into its cache.
    Uvx,
    /// The command line named this path.
    NamedPath,
    /// This path was found in `PATH`. It may be a symbolic link, which an upgrade updates.
    FoundInPath,
    /// The path of the executable itself.
    Executable,
}

/// What is known about the start of this process.
#[derive(Debug)]
pub(super) struct ProcessStart {
    /// The executable, with symbolic links resolved.
    pub(super) executable: PathBuf,
    /// The first argument, which is the command as it was typed.
    pub(super) typed: OsString,
    pub(super) folder: PathBuf,
    /// The folders in `PATH`.
    pub(super) path: Vec<PathBuf>,
    /// `TOOLCRIB_LAUNCHER`, which our npm package sets.
    pub(super) launcher: Option<OsString>,
}

impl ProcessStart {
    pub(super) fn of_this_process() -> Self {
        let executable = std::env::current_exe().unwrap_or_else(|_| "toolcrib".into());
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self {
            executable: executable.canonicalize().unwrap_or(executable),
            typed: std::env::args_os().next().unwrap_or_default(),
            folder: std::env::current_dir().unwrap_or_default(),
            path: std::env::split_paths(&path).collect(),
            launcher: std::env::var_os("TOOLCRIB_LAUNCHER"),
        }
    }

    /// Decides how a client starts Toolcrib. `is_same` tells whether a path leads to the executable.
    pub(super) fn launch(&self, is_same: impl Fn(&Path) -> bool) -> Launch {
        let has_folder = |name: &str| {
            self.executable.components().any(|part| part.as_os_str().to_string_lossy() == name)
        };
        let runner = |command: &str, args: &[&str], reason| Launch {
            command: command.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            reason,
        };
        if self.launcher.as_ref().is_some_and(|launcher| launcher == "npx") || has_folder("_npx") {
            return runner("npx", &["-y", "toolcrib"], LaunchReason::Npx);
        }
        // uvx keeps the packages that it runs in these folders of its cache, and may remove them at any time. Packages of
        // `uv tool install` are in another folder.
        if has_folder("archive-v0") || has_folder("environments-v2") {
            return runner("uvx", &["toolcrib"], LaunchReason::Uvx);
        }
        let typed = Path::new(&self.typed);
        let (path, reason) = if typed.components().count() > 1 {
            (self.folder.join(typed), LaunchReason::NamedPath)
        } else {
            let mut found = self.path.iter().filter(|folder| folder.is_absolute());
            let found = found.find_map(|folder| {
                let path = folder.join(typed);
                is_same(&path).then_some(path)
            });
            (found.unwrap_or_default(), LaunchReason::FoundInPath)
        };
        // A name such as `./toolcrib` may have been replaced since the start.
        let (path, reason) = if is_same(&path) {
            (std::path::absolute(&path).unwrap_or(path), reason)
        } else {
            (self.executable.clone(), LaunchReason::Executable)
        };
        runner(&path.to_string_lossy(), &[], reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(executable: &str, typed: &str, launcher: Option<&str>) -> (String, LaunchReason) {
        let start = ProcessStart {
            executable: executable.into(),
            typed: typed.into(),
            folder: "/src".into(),
            path: ["relative", "/empty", "/home/me/.local/bin"].map(PathBuf::from).into(),
            launcher: launcher.map(OsString::from),
        };
        let links = ["/home/me/.local/bin/toolcrib", "/src/target/toolcrib", executable];
        let launch = start.launch(|path| links.iter().any(|link| Path::new(link) == path));
        let words = [vec![launch.command], launch.args].concat();
        (words.join(" "), launch.reason)
    }

    #[test]
    fn a_client_starts_toolcrib_as_it_was_started() {
        let opt = "/opt/toolcrib-1.2/bin/toolcrib";
        let uv = "/home/me/.cache/uv/archive-v0/x9/bin/toolcrib";
        let npx = "/home/me/.npm/_npx/ab12/node_modules/@toolcrib/linux-x64/bin/toolcrib";
        let tool = "/home/me/.local/share/uv/tools/toolcrib/bin/toolcrib";
        for (executable, typed, launcher, command, reason) in [
            (opt, "toolcrib", None, "/home/me/.local/bin/toolcrib", LaunchReason::FoundInPath),
            (tool, "toolcrib", None, "/home/me/.local/bin/toolcrib", LaunchReason::FoundInPath),
            (opt, "target/toolcrib", None, "/src/target/toolcrib", LaunchReason::NamedPath),
            (opt, opt, None, opt, LaunchReason::NamedPath),
            (opt, "other", None, opt, LaunchReason::Executable),
            (opt, "./moved", None, opt, LaunchReason::Executable),
            (uv, "toolcrib", None, "uvx toolcrib", LaunchReason::Uvx),
            (npx, npx, None, "npx -y toolcrib", LaunchReason::Npx),
            (opt, opt, Some("npx"), "npx -y toolcrib", LaunchReason::Npx),
        ] {
            assert_eq!(
                launch(executable, typed, launcher),
                (command.to_owned(), reason),
                "{typed}"
            );
        }
    }
}
