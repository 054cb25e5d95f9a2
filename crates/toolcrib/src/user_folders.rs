//! The user's home, config and state folders, from the environment.
//!
//! Relative paths are ignored, as the XDG specification demands, because they would point into the working folder.
//! Rejected: the crate `etcetera`, which looks up the home folder in the password database if `HOME` is not set. A
//! service without a home folder would then save tokens in a folder that nobody configured.

use std::ffi::OsString;
use std::path::PathBuf;

use toolcrib_server::private_file::PrivateFolder;

/// The folders of the user who runs the command. Each is absolute.
#[derive(Debug, Default)]
pub(crate) struct UserFolders {
    /// `HOME`.
    pub(crate) home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, else `~/.config`.
    pub(crate) config: Option<PathBuf>,
    /// `XDG_STATE_HOME`, else `~/.local/state`.
    pub(crate) state: Option<PathBuf>,
}

impl UserFolders {
    /// Reads the environment of this process.
    pub(crate) fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// Reads the variables from `variable` instead of the environment of this process.
    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let home = absolute(variable("HOME"));
        let or_below_home = |name: &str, below: &str| {
            absolute(variable(name)).or_else(|| home.as_ref().map(|home| home.join(below)))
        };
        Self {
            config: or_below_home("XDG_CONFIG_HOME", ".config"),
            state: or_below_home("XDG_STATE_HOME", ".local/state"),
            home,
        }
    }
}

/// Returns the folder for tokens, logins, saved tool lists and backups, or `None` if there is no home folder. Rejected: a folder
/// for temporary files, in which other users could plant files for us to read.
pub(crate) fn state_folder() -> Option<PrivateFolder> {
    let UserFolders { home, state, .. } = UserFolders::from_environment();
    Some(PrivateFolder::new(state?.join("toolcrib"), home))
}

/// Returns the path if it is absolute, otherwise `None`.
pub(crate) fn absolute(path: Option<OsString>) -> Option<PathBuf> {
    path.map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_folders_are_ignored() {
        let folders = |pairs: &[(&str, &str)]| {
            UserFolders::from_variables(|name| {
                let pair = pairs.iter().find(|(known, _)| *known == name);
                pair.map(|(_, value)| (*value).into())
            })
        };
        let at = |path: &str| Some(PathBuf::from(path));
        assert_eq!(folders(&[("HOME", "/h")]).config, at("/h/.config"));
        assert_eq!(folders(&[("HOME", "/h")]).state, at("/h/.local/state"));
        assert_eq!(folders(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]).config, at("/x"));
        for relative in [".", "", "x", "./x", "../x"] {
            let pairs =
                [("HOME", "/h"), ("XDG_CONFIG_HOME", relative), ("XDG_STATE_HOME", relative)];
            assert_eq!(folders(&pairs).config, at("/h/.config"), "{relative}");
            assert_eq!(folders(&pairs).state, at("/h/.local/state"), "{relative}");
            let without_home = folders(&[("HOME", relative)]);
            assert_eq!((without_home.home, without_home.config), (None, None), "{relative}");
        }
    }
}
