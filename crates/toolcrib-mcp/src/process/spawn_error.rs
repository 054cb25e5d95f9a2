//! Errors of starting a server, and what the operator can do about them.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such command.
    #[error("cannot find the command `{}`", program.display())]
    NotFound {
        /// The command as configured.
        program: OsString,
        /// The `PATH` that was searched, if the command is a name and not a path.
        path: Option<OsString>,
    },
    /// The file exists, but is not executable.
    #[error("`{}` is not an executable file", path.display())]
    NotExecutable {
        /// The path of the file.
        path: PathBuf,
    },
    /// The command is a relative path, and the config has no `cwd`.
    #[error("the command `{}` is relative to the folder that Toolcrib was started in", program.display())]
    RelativeCommand {
        /// The command as configured.
        program: OsString,
    },
    /// `cwd` is a relative path.
    #[error("`cwd` is relative to the folder that Toolcrib was started in: `{}`", cwd.display())]
    RelativeFolder {
        /// The folder as configured.
        cwd: PathBuf,
    },
    /// `cwd` is not a folder.
    #[error("cannot run in `{}`: not a folder", cwd.display())]
    Folder {
        /// The folder as configured.
        cwd: PathBuf,
    },
    /// The system cannot run the file, for example because its interpreter is missing.
    #[error("cannot run `{}`: {reason}", program.display())]
    CannotRun {
        /// The command as configured.
        program: OsString,
        /// The system's error.
        reason: String,
    },
    /// The warden could not be started.
    #[error("cannot start the warden: {0}")]
    Warden(#[from] io::Error),
    /// The warden exited or hung before it had started the server.
    #[error("the warden started no server{}{stderr}", if stderr.is_empty() { "" } else { ": " })]
    WardenLost {
        /// The last lines of the warden's stderr.
        stderr: String,
    },
}

impl SpawnError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> String {
        match self {
            Self::NotFound { program, .. } | Self::RelativeCommand { program }
                if program.to_string_lossy().contains(' ') =>
            {
                "`command` is the program alone; its arguments go into `args`".into()
            }
            Self::NotFound { path: Some(path), .. } => format!(
                "give the full path of the command, or set `PATH` in `env`; {} folders were searched",
                std::env::split_paths(path).filter(|folder| folder.is_absolute()).count()
            ),
            Self::NotFound { path: None, .. } => {
                "the path is relative to `cwd`; check both".into()
            }
            Self::RelativeCommand { .. } | Self::RelativeFolder { .. } => {
                "clients start Toolcrib in any folder: use an absolute path, or start it with `${workspaceFolder}/` to mean that folder"
                    .into()
            }
            Self::NotExecutable { path } => {
                format!("run `chmod +x {}`, or use its interpreter as the command", path.display())
            }
            Self::Folder { .. } => "create the folder, or correct it in the configuration".into(),
            Self::CannotRun { .. } => {
                "check that the file is a program for this machine, and that the interpreter in its \
                 first line exists"
                    .into()
            }
            Self::Warden(_) | Self::WardenLost { .. } => {
                "the gateway runs its own executable as a warden for each server: check that the file \
                 still exists, and the limits on processes and open files"
                    .into()
            }
        }
    }
}
