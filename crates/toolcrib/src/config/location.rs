//! Which file is the config, and whether it can be trusted.
//!
//! Without `--config`, only the file in the user's config folder is used. A config names programs to run and hosts that
//! receive keys, and a working folder may contain files of other people. The default file must belong to the user or to
//! root, and no other user may be able to change it. A file that is named with `--config` is used even if others can
//! change it, but with a warning, because files that are mounted into a container often have other owners. `ssh -F`
//! accepts such files, too.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use toolcrib_eval::files::FileError;
use toolcrib_server::config::MAX_CONFIG_BYTES;
use toolcrib_server::ownership::{self, GroupWrite, SymlinkPolicy, UntrustedPath};
use toolcrib_text::clean::one_line;

use crate::output::{Failure, print_stderr};
use crate::user_folders::UserFolders;

/// Name of the config file.
const NAME: &str = "toolcrib.toml";

/// The config file of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// The file that `--config` names.
    Named(PathBuf),
    /// The default file in the user's config folder.
    UserFolder(PathBuf),
}

impl Location {
    /// Returns the file that `--config` names, whether or not it exists. Without `--config`, returns the file in the
    /// user's config folder, or `None` if there is no such file.
    pub(crate) fn find(named: Option<&Path>) -> Result<Option<Self>, Failure> {
        if let Some(path) = named {
            return Ok(Some(Self::Named(path.to_owned())));
        }
        let Some(path) = user_config() else { return Ok(None) };
        match fs::symlink_metadata(&path) {
            Ok(_) => Ok(Some(Self::UserFolder(path))),
            Err(error) if is_missing(&error) => Ok(None),
            Err(source) => Err(FileError::Io { path: path.display().to_string(), source }.into()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Named(path) | Self::UserFolder(path) => path,
        }
    }

    /// Returns the text of the file, and a warning if it was named with `--config` and other users can change it.
    pub(crate) fn read(&self) -> Result<(String, Option<String>), Failure> {
        match self {
            Self::Named(path) => Ok((read_text(path)?, self.warning())),
            Self::UserFolder(path) => Ok((text_of(path, open_trusted(path)?)?, None)),
        }
    }

    /// Returns a warning if the file was named with `--config` and other users can change it.
    pub(crate) fn warning(&self) -> Option<String> {
        let Self::Named(path) = self else { return None };
        let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let error = ownership::check(path, &about, GroupWrite::PrivateGroup).err()?;
        Some(format!("{error}, so they can decide what Toolcrib runs; {}", error.hint()))
    }
}

/// Describes which file is used, or that there is none. This is the first line of a command's log.
pub(crate) fn describe_location(location: Option<&Location>) -> String {
    let text = match (location, user_config()) {
        (Some(location), _) => format!("config: `{}`", location.path().display()),
        (None, Some(path)) => {
            format!(
                "config: none; `{}` does not exist, and `--config` is not given",
                path.display()
            )
        }
        (None, None) => "config: none; HOME is not set, and `--config` is not given".to_owned(),
    };
    one_line(&text)
}

/// Prints a note if the working folder contains a `toolcrib.toml` that is not used. Earlier versions used it. With
/// `--config` there is no note.
pub(crate) fn note_unused_config(location: Option<&Location>) {
    let here = Path::new(".").join(NAME);
    let is_in_use = match location {
        Some(Location::Named(_)) => true,
        Some(Location::UserFolder(path)) => fs::canonicalize(path)
            .ok()
            .is_some_and(|path| fs::canonicalize(&here).ok() == Some(path)),
        None => false,
    };
    if !is_in_use && fs::symlink_metadata(&here).is_ok() {
        print_stderr(
            "note: ./toolcrib.toml is not used; if you trust it, name it with `--config ./toolcrib.toml`",
        );
    }
}

/// Returns the path `toolcrib/toolcrib.toml` in the user's config folder, or `None` if the user has no config folder.
pub(crate) fn user_config() -> Option<PathBuf> {
    Some(UserFolders::from_environment().config?.join("toolcrib").join(NAME))
}

/// Opens the default config if only the user or root can change it.
fn open_trusted(path: &Path) -> Result<File, Failure> {
    let refused = |error: &UntrustedPath| {
        let hint = format!("{}; or name a file with `--config F`", error.hint());
        Failure::input(format!("`{}` is not used", path.display()), error, hint)
    };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    if let Some(folder) = path.parent() {
        ownership::check_folders(folder, home.as_deref()).map_err(|error| refused(&error))?;
    }
    // A symbolic link is followed, because many people keep their configs in a repository and link to them.
    let (file, about) = ownership::open(path, SymlinkPolicy::Follow)
        .map_err(|source| FileError::Io { path: path.display().to_string(), source })?;
    ownership::check(path, &about, GroupWrite::PrivateGroup).map_err(|error| refused(&error))?;
    Ok(file)
}

/// Reads a config file as text, without the byte order mark that some editors write.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let file = File::open(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Failure::input(
            format!("`{}`", path.display()),
            &"no such file",
            "`toolcrib import --write F` creates one from the servers of your other clients",
        ),
        _ => FileError::Io { path: path.display().to_string(), source }.into(),
    })?;
    text_of(path, file)
}

/// Reads a file that was not named on the command line. Returns an error if the file is a pipe or a device.
pub(crate) fn read_regular(path: &Path) -> Result<String, Failure> {
    let (file, _) = ownership::open(path, SymlinkPolicy::Follow)
        .map_err(|source| FileError::Io { path: path.display().to_string(), source })?;
    text_of(path, file)
}

fn text_of(path: &Path, file: File) -> Result<String, Failure> {
    let place = || format!("`{}`", path.display());
    let mut bytes = Vec::new();
    file.take(MAX_CONFIG_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| FileError::Io { path: path.display().to_string(), source })?;
    if bytes.len() > MAX_CONFIG_BYTES {
        let hint = "keep only the part about servers";
        return Err(Failure::input(place(), &"more than 4 MiB", hint));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::input(place(), &"not UTF-8 text", "save the file as UTF-8"))?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
